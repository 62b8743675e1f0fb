//! Laws that hold for every schema and every object, checked on random ones. The seeds are fixed, so every run checks
//! the same cases.

use machinery::value::decode;
use machinery::{Map, Text, Value, json};
use schema::definition::{self, ApiVersion};
use schema::{CompileOptions, Malformed, Prior, Schema};

/// A xorshift generator. The same seed always yields the same schema and objects.
struct Random(u64);

const NAMES: [&str; 5] = ["a", "b", "c", "name", "x.y"];
const TEXTS: [&str; 6] = ["", "a", "ab", "abc", "2020-01-01", "1h"];

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn scalar(&mut self) -> Value {
        match self.below(6) {
            0 => Value::Null,
            1 => Value::Bool(self.one_in(2)),
            2 => Value::Int(self.below(8) as i64 - 2),
            3 => Value::Float(self.pick(&[0.5, 1.0, 2.5, -3.0])),
            _ => Value::from(self.pick(&TEXTS)),
        }
    }

    fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth > 3 { 4 } else { 6 }) {
            4 => (0..self.below(3)).map(|_| self.any(depth + 1)).collect(),
            5 => Value::Object(
                (0..self.below(3)).map(|_| (Text::from(self.pick(&NAMES)), self.any(depth + 1))).collect::<Map>(),
            ),
            _ => self.scalar(),
        }
    }

    /// A schema that a definition may have.
    fn schema(&mut self, depth: usize) -> Value {
        let kinds = ["string", "integer", "number", "boolean", "", "any", "object", "array", "map"];
        let kind = if depth == 0 { "object" } else { self.pick(if depth > 3 { &kinds[..6] } else { &kinds }) };
        let mut schema = match kind {
            "object" => {
                let fields = (0..1 + self.below(3)).map(|_| (Text::from(self.pick(&NAMES)), self.schema(depth + 1)));
                json!({"type": "object", "properties": (Value::Object(fields.collect()))})
            }
            "map" => json!({"type": "object", "additionalProperties": (self.schema(depth + 1))}),
            "array" => json!({"type": "array", "items": (self.schema(depth + 1))}),
            "any" => json!({"x-kubernetes-preserve-unknown-fields": true}),
            "" => json!({"x-kubernetes-int-or-string": true}),
            scalar => json!({"type": (scalar)}),
        };
        if kind == "object" && self.one_in(5) {
            schema.set_at(&["x-kubernetes-preserve-unknown-fields"], Value::Bool(true));
        }
        self.checks(&mut schema);
        if depth > 0 {
            if self.one_in(4) {
                schema.set_at(&["nullable"], Value::Bool(true));
            }
            if self.one_in(3) {
                let default = self.object(&schema, depth);
                schema.set_at(&["default"], default);
            }
        }
        schema
    }

    fn checks(&mut self, schema: &mut Value) {
        let number = Value::Int(self.below(4) as i64);
        for (key, value) in [
            ("minimum", number.clone()),
            ("maximum", Value::Float(2.5)),
            ("maxLength", number.clone()),
            ("pattern", Value::from("^a")),
            ("format", Value::from("date")),
            ("maxItems", number.clone()),
            ("maxProperties", number),
            ("required", json!(["a"])),
            ("enum", json!([1, "a", {"a": 1}])),
            ("anyOf", json!([{"minimum": 1}, {"required": ["b"]}])),
            ("not", json!({"enum": ["ab"]})),
        ] {
            if self.one_in(12) {
                schema.set_at(&[key], value);
            }
        }
    }

    /// An object that mostly fits the schema.
    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        if self.one_in(8) || depth > 6 {
            return self.any(depth);
        }
        match schema.str_at(&["type"]) {
            "object" => {
                let mut fields = Map::new();
                for (name, inner) in schema.fields_at(&["properties"]) {
                    if !self.one_in(3) {
                        fields.insert(name.clone(), self.object(inner, depth + 1));
                    }
                }
                if let Some(inner) = schema.get("additionalProperties") {
                    fields.insert(self.pick(&NAMES), self.object(inner, depth + 1));
                }
                Value::Object(fields)
            }
            "array" => {
                let items = schema.get("items").cloned().unwrap_or_default();
                (0..self.below(3)).map(|_| self.object(&items, depth + 1)).collect()
            }
            "string" => Value::from(self.pick(&TEXTS)),
            "integer" => Value::Int(self.below(5) as i64),
            "boolean" => Value::Bool(true),
            _ => self.scalar(),
        }
    }

    /// The object as JSON, with its fields in any order.
    fn shuffled(&mut self, value: &Value) -> String {
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.shuffled(item)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(map) => {
                let mut fields: Vec<(&Text, &Value)> = map.iter().collect();
                for i in (1..fields.len()).rev() {
                    fields.swap(i, self.below(i + 1));
                }
                let fields = fields.into_iter().map(|(name, inner)| {
                    let mut text = Value::String(name.clone()).to_json();
                    text.push(':');
                    text + &self.shuffled(inner)
                });
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            scalar => scalar.to_json(),
        }
    }
}

fn brought(schema: &Schema, object: &mut Value) {
    schema.prune(object, &mut vec![]);
    let _ = schema.coerce_embedded(object, Malformed::Drop, &mut vec![]);
}

fn errors(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<String> {
    let outcome = schema.validate_after(Prior::Metadata(vec![]), object, old);
    outcome.errors.iter().map(ToString::to_string).collect()
}

/// Checks a law on random schemas and objects, as many as take only a moment.
fn for_each_case(mut law: impl FnMut(&mut Random, &Schema, &Value, Value)) {
    for seed in 1..600u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let text = random.schema(0);
        let schema = Schema::compile(&text, &CompileOptions::default());
        assert!(schema.is_structural(), "{}", text.to_json());
        for _ in 0..6 {
            let object = random.object(&text, 0);
            law(&mut random, &schema, &text, object);
        }
    }
}

#[test]
fn pruning_again_changes_nothing() {
    let mut pruned = 0;
    for_each_case(|_, schema, text, mut object| {
        let given = object.clone();
        brought(schema, &mut object);
        let once = object.clone();
        let mut unknown = vec![];
        schema.prune(&mut object, &mut unknown);
        assert_eq!((object.to_json(), unknown), (once.to_json(), vec![]), "{} {}", text.to_json(), given.to_json());
        pruned += usize::from(once != given);
    });
    assert!(pruned > 100, "{pruned}");
}

#[test]
fn defaulting_again_changes_nothing() {
    let mut defaulted = 0;
    for_each_case(|_, schema, text, mut object| {
        brought(schema, &mut object);
        let given = object.clone();
        schema.default(&mut object).expect("few defaults");
        let once = object.clone();
        schema.default(&mut object).expect("few defaults");
        assert_eq!(object.to_json(), once.to_json(), "{} {}", text.to_json(), given.to_json());
        defaulted += usize::from(once != given);
    });
    assert!(defaulted > 100, "{defaulted}");
}

#[test]
fn key_order_is_irrelevant() {
    let mut refused = 0;
    for_each_case(|random, schema, text, object| {
        let read = |text: &str| {
            let mut object = decode(text.as_bytes()).expect("JSON");
            brought(schema, &mut object);
            schema.default(&mut object).expect("few defaults");
            (object.to_json(), errors(schema, &object, None))
        };
        let (one, other) = (random.shuffled(&object), random.shuffled(&object));
        let found = read(&one);
        assert_eq!(found, read(&other), "{}\n{one}\n{other}", text.to_json());
        refused += usize::from(!found.1.is_empty());
    });
    assert!(refused > 100, "{refused}");
}

#[test]
fn unchanged_values_are_not_reported() {
    for_each_case(|_, schema, text, mut object| {
        brought(schema, &mut object);
        schema.default(&mut object).expect("few defaults");
        if text.to_json().contains("preserve-unknown") {
            // objects with unknown fields are not compared
            return;
        }
        let found = errors(schema, &object, Some(&object));
        assert_eq!(found, [""; 0], "{} {}", text.to_json(), object.to_json());
    });
}

/// A definition whose versions have some fields in common.
fn random_definition(random: &mut Random) -> Value {
    let schemas: Vec<Value> = (0..2).map(|_| random.schema(0)).collect();
    let count = 1 + random.below(3);
    let versions = (0..count).map(|i| {
        let schema = schemas[random.below(2)].clone();
        let mut version = json!({"name": (format!("v{}", i + 1)), "served": (random.one_in(2)), "storage": (i == 0),
            "schema": {"openAPIV3Schema": (schema)}});
        if random.one_in(2) {
            version.set_at(&["subresources"], json!({"status": {}}));
        }
        if random.one_in(2) {
            let column = json!({"name": "A", "type": "string", "jsonPath": (random.pick(&[".a", ".b"]))});
            version.set_at(&["additionalPrinterColumns"], json!([(column)]));
        }
        if random.one_in(3) {
            version.set_at(&["deprecated"], Value::Bool(true));
        }
        version
    });
    let versions: Value = versions.collect();
    let mut spec = json!({"group": "example.com", "scope": (random.pick(&["Cluster", "Namespaced"])),
        "names": {"plural": "kites", "kind": "Kite", "singular": "kite", "listKind": "KiteList"}, "versions": (versions)});
    if random.one_in(2) {
        let client = json!({"service": {"namespace": "a", "name": "b", "port": 443}});
        let webhook = json!({"clientConfig": (client), "conversionReviewVersions": ["v1", "v1beta1"]});
        spec.set_at(&["conversion"], json!({"strategy": "Webhook", "webhook": (webhook)}));
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kites.example.com"}, "spec": (spec)})
}

#[test]
fn conversion_between_v1_and_v1beta1_is_lossless() {
    for seed in 1..400u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let body = random_definition(&mut random);
        let stored =
            definition::to_stored(&definition::decode(&body, ApiVersion::V1).expect("a definition").definition);
        let beta = definition::to_beta(&stored);
        assert_eq!(definition::beta_to_stored(&beta).to_json(), stored.to_json(), "{}", beta.to_json());
        // a client of v1beta1 reads the definition and sends it back
        let sent = decode(beta.to_json().as_bytes()).expect("JSON");
        let read = definition::decode(&sent, ApiVersion::V1Beta1).expect("a definition");
        assert_eq!(read.unknown, [""; 0], "{}", beta.to_json());
        assert_eq!(definition::beta_to_stored(&read.definition).to_json(), stored.to_json(), "{}", beta.to_json());
        assert_eq!(definition::to_beta(&definition::beta_to_stored(&read.definition)).to_json(), beta.to_json());
    }
}
