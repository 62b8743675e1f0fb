//! Laws of ownership, checked on random objects and random sequences of writes.

use machinery::value::decode_managed;
use machinery::{Map, Release, Text, Value, json};
use schema::apply::{ConvertError, FieldSet, Force, Request, TypeSchema, Versions, apply, parse_fields_v1, update};

struct One(TypeSchema);

impl Versions for One {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == "example.com/v1").then_some(&self.0)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

/// A xorshift generator. The same seed always yields the same sequence of writes.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// A list with at least one item of four. As in upstream, an empty list would be applied anew after each time it
    /// was emptied.
    fn some(&mut self) -> Vec<i64> {
        let bits = 1 + self.below(15) as i64;
        (0..4).filter(|i| bits >> i & 1 == 1).collect()
    }

    fn spec(&mut self) -> Value {
        let mut spec = Map::new();
        let number = |random: &mut Random| Value::from(random.below(3) as i64);
        if self.below(2) == 0 {
            spec.insert("number", number(self));
        }
        if self.below(2) == 0 {
            let items = self.some();
            spec.insert("set", items.into_iter().map(|i| Value::from(format!("s{i}"))).collect());
        }
        if self.below(2) == 0 {
            let keys = self.some();
            let items = keys.into_iter().map(|i| {
                let mut item = json!({"name": (format!("n{i}"))});
                if self.below(2) == 0 {
                    item.set_at(&["value"], number(self));
                }
                item
            });
            spec.insert("map", items.collect());
        }
        if self.below(2) == 0 {
            let fields = self.some();
            let fields = fields.into_iter().map(|i| (Text::from(format!("k{i}")), number(self)));
            spec.insert("free", Value::Object(fields.collect()));
        }
        if self.below(2) == 0 {
            spec.insert("atomic", json!([(number(self)), (number(self))]));
        }
        Value::Object(spec)
    }
}

fn types() -> One {
    One(TypeSchema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "number": {"type": "integer"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}},
        "free": {"type": "object", "additionalProperties": {"type": "integer"}},
        "atomic": {"type": "array", "items": {"type": "integer"}}
    }}}})))
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "u"}, "spec": spec})
}

fn sets(object: &Value) -> Vec<(String, FieldSet)> {
    let entries = object.items_at(&["metadata", "managedFields"]);
    let read = entries.iter().map(|entry| {
        let set = entry.get("fieldsV1").map(parse_fields_v1).and_then(Result::ok).unwrap_or_default();
        (format!("{} {}", entry.str_at(&["manager"]), entry.str_at(&["operation"])), set)
    });
    read.collect()
}

/// The paths of the leaves of the spec, as conflicts print them.
fn leaves(value: &Value) -> Vec<String> {
    let spec = value.get("spec").and_then(Value::as_object);
    spec.into_iter()
        .flat_map(Map::iter)
        .filter(|(n, _)| *n == "number" || *n == "atomic")
        .map(|(n, _)| format!(".spec.{n}"))
        .collect()
}

#[test]
fn managed_fields_obey_algebraic_laws() {
    let versions = types();
    for seed in 1..400u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut live: Option<Value> = None;
        for step in 0..12 {
            let manager = ["alice", "bob", "carol"][random.below(3) as usize];
            let request = Request {
                manager,
                api_version: "example.com/v1",
                kind: "Thing",
                subresource: "",
                time: 1000 + step,
                versions: &versions,
                zero: None,
                release: Release::NEWEST,
            };
            let mut wanted = object(random.spec());
            if random.below(3) == 0 {
                check_encoded(seed, live.as_ref(), &wanted, &request);
                update(live.as_ref(), &mut wanted, &request);
                live = Some(wanted);
            } else {
                wanted.remove_at(&["metadata", "uid"]);
                let before = live.clone();
                let applied = match apply(live.as_ref(), &wanted, Force::No, &request) {
                    Ok(applied) => applied,
                    Err(conflict) => {
                        assert_eq!(conflict.code, 409, "{seed}: {conflict:?}");
                        apply(live.as_ref(), &wanted, Force::Yes, &request).expect("forced")
                    }
                };
                let applied = applied.object;
                check_apply(seed, before.as_ref(), &wanted, &applied, manager);
                // if an applier leaves nothing in an object, the object becomes null, which no schema allows
                if applied.get("spec").is_none_or(Value::is_null) {
                    continue;
                }
                let again = apply(Some(&applied), &wanted, Force::No, &Request { time: 9999, ..request });
                assert_eq!(again.expect("again").object.to_json(), applied.to_json(), "{seed}: idempotent");
                live = Some(applied);
                if let Some(live) = &mut live {
                    live.set_at(&["metadata", "uid"], Value::from("u"));
                }
            }
            let live = live.as_ref().expect("live");
            let owned: Vec<String> = sets(live).iter().flat_map(|(_, set)| set.paths()).collect();
            // without any owner, nothing is tracked until the next apply
            for leaf in leaves(live).into_iter().filter(|_| !owned.is_empty()) {
                assert!(owned.contains(&leaf), "{seed}: {leaf} has no owner in {live}");
            }
        }
    }
}

/// Checks that a write to the object as it is stored, with sets that are encoded and may be known, has the outcome of one to the
/// decoded object.
fn check_encoded(seed: u64, live: Option<&Value>, wanted: &Value, request: &Request<'_>) {
    let Some(live) = live else { return };
    let stored = decode_managed(live.to_json().as_bytes()).expect("stored");
    let (mut of_decoded, mut of_stored) = (wanted.clone(), wanted.clone());
    update(Some(&decoded(live)), &mut of_decoded, request);
    update(Some(&stored), &mut of_stored, request);
    assert_eq!(of_decoded.to_json(), of_stored.to_json(), "{seed}: update");
    let mut wanted = wanted.clone();
    wanted.remove_at(&["metadata", "uid"]);
    let outcome = |live: &Value| apply(Some(live), &wanted, Force::No, request).map(|applied| applied.object.to_json());
    assert_eq!(format!("{:?}", outcome(&decoded(live))), format!("{:?}", outcome(&stored)), "{seed}: apply");
}

fn decoded(object: &Value) -> Value {
    let mut object = object.clone();
    object.decode_parts();
    object
}

/// Checks that applied values are set and owned, and that fields of other owners which the applier did not name are
/// unchanged.
fn check_apply(seed: u64, before: Option<&Value>, wanted: &Value, applied: &Value, manager: &str) {
    let own = format!("{manager} Apply");
    for leaf in leaves(wanted) {
        let name = leaf.trim_start_matches(".spec.");
        assert_eq!(applied.at(&["spec", name]), wanted.at(&["spec", name]), "{seed}");
    }
    let (Some(before), after) = (before, sets(applied)) else { return };
    for (owner, set) in sets(before).iter().filter(|(owner, _)| *owner != own) {
        let kept = after.iter().find(|(o, _)| o == owner).map(|(_, set)| set.paths()).unwrap_or_default();
        for path in set.paths() {
            let taken = leaves(wanted).contains(&path) && before.get("spec") != applied.get("spec");
            let below = path.contains('[') || path.contains(".free");
            assert!(kept.contains(&path) || taken || below, "{seed}: {owner} lost {path}\n{before}\n{applied}");
        }
    }
}
