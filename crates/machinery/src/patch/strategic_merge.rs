//! Strategic Merge Patch: a merge patch that knows which lists merge, and by which key.
//!
//! Directives: `$patch` (`replace`, `delete`), `$retainKeys`, `$setElementOrder/<list>`,
//! `$deleteFromPrimitiveList/<list>`. Only built-in kinds have the metadata that this needs.

use super::gotext::{plain, text, type_of};
use super::merge_patch::drop_nulls;
use super::{ObjectPatch, PatchError, Unknown, decode_object};
use crate::limits::MERGED_LIST_ITEMS_MAX;
use crate::status::Status;
use crate::types::{Container, GoBase, GoField, GoStruct, go_struct};
use crate::value::{Map, Text, Value};

mod order;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// How the fields of an object merge, which the table of Go types defines for its struct.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchMeta(Option<&'static GoStruct>);

/// How one field merges.
#[derive(Clone, Copy, Debug, Default)]
struct FieldMeta {
    /// Whether lists are merged instead of replaced.
    merge: bool,
    /// Whether objects are replaced instead of merged.
    replace: bool,
    /// The key of the items of a list of objects.
    merge_key: &'static str,
    /// How the object, or the items of the list, merge in turn.
    child: PatchMeta,
}

impl PatchMeta {
    /// How the fields of a type such as `core.v1.Pod` merge.
    pub fn of_type(name: &str) -> PatchMeta {
        PatchMeta(go_struct(name))
    }

    fn field(self, name: &str) -> FieldMeta {
        let found = self.0.and_then(|of| of.flat().find(|field| field.name == name));
        let Some(GoField { go_type, merging, .. }) = found else { return FieldMeta::default() };
        let has = |strategy: &str| merging.strategy.split(',').any(|known| known == strategy);
        let child = match (go_type.container, go_type.base) {
            (Container::None | Container::List, GoBase::Struct(inner)) => PatchMeta::of_type(inner),
            _ => PatchMeta::default(),
        };
        FieldMeta { merge: has("merge"), replace: has("replace"), merge_key: merging.merge_key, child }
    }
}

/// Decodes the body of a request.
///
/// # Errors
///
/// The bytes are not JSON, or neither an object nor null.
pub fn decode_patch(bytes: &[u8], unknown: Unknown) -> Result<ObjectPatch, PatchError> {
    let patch = decode_object(bytes)?;
    Ok(if unknown == Unknown::Reported { patch } else { ObjectPatch { strict_errors: vec![], ..patch } })
}

/// The patch as error messages show it after upstream's merge has modified it: without directives that were carried
/// out, lists whose order it sets, and nulls that removed nothing.
pub fn applied(patch: &Value, original: &Value) -> Value {
    let (Value::Object(fields), Value::Object(original)) = (patch, original) else { return patch.clone() };
    let mut left = fields.clone();
    if fields.get(DIRECTIVE).and_then(Value::as_str) == Some("replace") {
        left.remove(DIRECTIVE);
        return Value::Object(left);
    }
    left.remove(RETAIN_KEYS);
    let ordered = fields.keys().filter_map(|key| Some((key, key.strip_prefix(SET_ORDER)?.strip_prefix('/')?)));
    ordered.for_each(|(order, list)| [order, list].iter().for_each(|key| drop(left.remove(key))));
    for (key, value) in left.iter_mut() {
        match original.get(key) {
            Some(original @ Value::Object(_)) => *value = applied(value, original),
            Some(Value::Array(_)) if matches!(value, Value::Array(_)) => {}
            _ => drop_nulls(value),
        }
    }
    Value::Object(left)
}

/// Why a patch cannot be applied.
enum Failure {
    /// 400: the patch has an invalid form.
    BadRequest(&'static str),
    /// 422 without details.
    Unprocessable,
    /// 500: any other error.
    Other(String),
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        match failure {
            Failure::BadRequest(why) => Status::bad_request(why),
            Failure::Unprocessable => Status::generic_invalid(),
            Failure::Other(why) => Status::untyped(500, why),
        }
    }
}

const BAD_PRIMITIVES: Failure = Failure::BadRequest("invalid patch format of primitive list");
const BAD_RETAIN_KEYS: Failure = Failure::BadRequest("invalid patch format of retainKeys");
const BAD_SET_ORDER: Failure = Failure::BadRequest("invalid patch format of setElementOrder list");

fn no_merge_key(item: &Map, key: &str) -> Failure {
    let item = plain(&Value::Object(item.clone()));
    Failure::Other(format!("map: {item} does not contain declared merge key: {key}"))
}

fn bad_type(expected: &str, found: &Value) -> Failure {
    let found = if found.is_null() { "%!s(<nil>)" } else { type_of(found) };
    Failure::Other(format!("expected a {expected}, but received a {found}"))
}

/// The document with the patch merged in.
pub fn apply(document: Value, patch: Value, meta: PatchMeta) -> Result<Value, Status> {
    let (document, patch) = match (document, patch) {
        (document, Value::Null) => return Ok(document),
        (Value::Object(document), Value::Object(patch)) => (document, patch),
        (_, Value::Object(patch)) => (Map::new(), patch),
        _ => return Err(Status::bad_request("invalid JSON document")),
    };
    Ok(Value::Object(merge_map(document, patch, meta)?))
}

fn unknown_directive(directive: &Value, patch: &Map) -> Failure {
    let map = plain(&Value::Object(patch.clone()));
    Failure::Other(format!("unknown patch type: {} in map: {map}", text(directive)))
}

fn merge_map(mut original: Map, mut patch: Map, meta: PatchMeta) -> Result<Map, Failure> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::set_element_orders(&mut original, &mut patch, meta)?;
    // deletions come last, as they mostly do in kube-apiserver, where the order is that of Go's maps
    let (deletions, fields): (Vec<_>, Vec<_>) =
        patch.into_iter().partition(|(name, _)| name.starts_with(DELETE_PRIMITIVES));
    for (name, value) in fields.into_iter().chain(deletions) {
        let (name, items) = match name.strip_prefix(DELETE_PRIMITIVES) {
            Some(rest) => (Text::from(rest.strip_prefix('/').ok_or(BAD_PRIMITIVES)?), PatchItems::Deleted),
            None => (name, PatchItems::Merged),
        };
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        merge_field(&mut original, name, value, items, meta)?;
    }
    Ok(original)
}

/// Whether the items of a list in the patch are merged into the original list or deleted from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchItems {
    Merged,
    /// The list is a `$deleteFromPrimitiveList`.
    Deleted,
}

fn merge_field(
    original: &mut Map,
    name: Text,
    mut value: Value,
    items: PatchItems,
    meta: PatchMeta,
) -> Result<(), Failure> {
    let field = meta.field(&name);
    match (original.get_mut(&name), value) {
        (Some(Value::Object(current)), Value::Object(patch)) => {
            *current = if field.replace { patch } else { merge_map(std::mem::take(current), patch, field.child)? };
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            *current = if field.merge || items == PatchItems::Deleted {
                merge_list(std::mem::take(current), patch, field, items)?
            } else {
                patch
            };
        }
        _ if items == PatchItems::Deleted => {}
        (_, new) => {
            value = new;
            drop_nulls(&mut value);
            match without_directives(value) {
                Some(value) => drop(original.insert(name, value)),
                None => drop(original.remove(&name)),
            }
        }
    }
    Ok(())
}

fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), Failure> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or(BAD_RETAIN_KEYS)?;
    let retained = |name: &str| keys.iter().any(|k| k.as_str() == Some(name));
    let is_directive = |name: &str| name.starts_with(DELETE_PRIMITIVES) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !retained(name)) {
        return Err(BAD_RETAIN_KEYS);
    }
    original.retain(|name, _| retained(name));
    Ok(())
}

/// The value without objects that have a field `$patch`; `None` if the value itself is such an object.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

/// Rejects lists that would take too long to merge, since each item is compared with all others.
fn check_length(items: usize) -> Result<(), Failure> {
    match items > MERGED_LIST_ITEMS_MAX {
        true => Err(Failure::Other(format!(
            "the allowed maximum of items of lists that are merged is {MERGED_LIST_ITEMS_MAX}, got {items}"
        ))),
        false => Ok(()),
    }
}

/// The key of the items of a list.
#[derive(Clone, Copy)]
enum Identity<'k> {
    /// This field: they are objects.
    Field(&'k str),
    /// Their value: they are not objects.
    Value,
}

/// The identity of the items of the lists. Fails if they are of different types.
fn identity_of_items<'k>(lists: &[&[Value]], key: &'k str) -> Result<Identity<'k>, Failure> {
    check_length(lists.iter().map(|list| list.len()).sum())?;
    let mut items = lists.iter().flat_map(|list| list.iter());
    let Some(first) = items.next() else {
        return Err(Failure::Other("no elements in any of the given slices".to_owned()));
    };
    if matches!(first, Value::Array(_)) {
        return Err(Failure::Unprocessable);
    }
    if items.any(|item| type_of(item) != type_of(first)) {
        let lists: Value = lists.iter().map(|list| Value::Array(list.to_vec())).collect();
        return Err(Failure::Other(format!("list element types are not identical: {}", plain(&lists))));
    }
    Ok(if matches!(first, Value::Object(_)) { Identity::Field(key) } else { Identity::Value })
}

fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: FieldMeta,
    items: PatchItems,
) -> Result<Vec<Value>, Failure> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = field.merge_key;
    let by = identity_of_items(&[&original, &patch], key)?;
    let (merged, order, patch) = match (by, items) {
        (Identity::Value, PatchItems::Deleted) => {
            return Ok(original.into_iter().filter(|item| !patch.contains(item)).collect());
        }
        (Identity::Value, PatchItems::Merged) => {
            let both: Vec<Value> = original.iter().chain(&patch).cloned().collect();
            (without_duplicates(both), original, patch)
        }
        (Identity::Field(""), _) => {
            return Err(Failure::Other("cannot merge lists without merge key for string".to_owned()));
        }
        (Identity::Field(key), _) => {
            let (original, patch) = apply_item_directives(original, patch, key)?;
            (merge_items(original.clone(), patch.clone(), key, field.child)?, original, patch)
        }
    };
    let (patched, rest) = order::partition(merged, &patch, key)?;
    order::arrange(patched, rest, &patch, &order, by)
}

/// Carries out the items that are directives. Returns the remaining original items and the items to merge.
fn apply_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Failure> {
    let mut items = vec![];
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else { continue };
        let Some(directive) = map.get(DIRECTIVE) else {
            items.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                original.retain(|item| item.get(key) != Some(value));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(Failure::Other("merging lists cannot yet be specified in the patch".to_owned()));
            }
            _ => return Err(unknown_directive(directive, map)),
        }
    }
    Ok(if replace { (items, vec![]) } else { (original, items) })
}

fn merge_items(mut original: Vec<Value>, patch: Vec<Value>, key: &str, meta: PatchMeta) -> Result<Vec<Value>, Failure> {
    for item in patch {
        let Value::Object(map) = item else { continue };
        let value = map.get(key).ok_or_else(|| no_merge_key(&map, key))?;
        match original.iter_mut().find(|item| item.get(key) == Some(value)) {
            Some(Value::Object(found)) => *found = merge_map(std::mem::take(found), map, meta)?,
            _ => original.push(Value::Object(map)),
        }
    }
    Ok(original)
}

/// Drops repeated items, of which the first stays. As in upstream, the last item of the list moves to the position of a
/// dropped one.
fn without_duplicates(mut items: Vec<Value>) -> Vec<Value> {
    let mut i = 0;
    while i + 1 < items.len() {
        let mut j = i + 1;
        while j < items.len() {
            if items.get(i) == items.get(j) {
                items.swap_remove(j);
            } else {
                j += 1;
            }
        }
        i += 1;
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::decode;

    fn run(go_type: &str, document: &str, patch: &str) -> String {
        let meta = PatchMeta::of_type(go_type);
        let value = |text: &str| decode(text.as_bytes()).expect("JSON");
        apply(value(document), value(patch), meta).map_or_else(|s| s.message.clone(), |v| v.to_json())
    }

    #[test]
    fn applied_directives_are_removed() {
        let document = r#"{"data":{"a":"1"},"l":[1]}"#;
        let cases = [
            (r#"{"data":{"$patch":"replace","q":1}}"#, r#"{"data":{"q":1}}"#),
            (r#"{"data":{"$patch":"delete"}}"#, r#"{"data":{"$patch":"delete"}}"#),
            (r#"{"data":{"$retainKeys":["a"],"b":null}}"#, r#"{"data":{"b":null}}"#),
            (r#"{"$setElementOrder/l":[2,1],"l":[2],"x":1}"#, r#"{"x":1}"#),
            (r#"{"new":{"a":null,"b":{"c":null},"$patch":"replace"}}"#, r#"{"new":{"$patch":"replace","b":{}}}"#),
            (r#"{"gone":null}"#, r#"{"gone":null}"#),
            (r#"{"data":{"a":{"b":null}}}"#, r#"{"data":{"a":{}}}"#),
        ];
        let value = |text: &str| decode(text.as_bytes()).expect("JSON");
        for (patch, want) in cases {
            assert_eq!(applied(&value(patch), &value(document)).to_json(), want, "{patch}");
        }
    }

    #[test]
    fn patches_merge_by_their_metadata() {
        let names = r#"{"finalizers":["a","b"]}"#;
        let owners = r#"{"ownerReferences":[{"uid":"1"},{"uid":"2"}]}"#;
        let cases = [
            (names, r#"{"finalizers":["c"]}"#, r#"{"finalizers":["c","a","b"]}"#),
            (names, r#"{"finalizers":["b","c"]}"#, r#"{"finalizers":["a","b","c"]}"#),
            (names, r#"{"$deleteFromPrimitiveList/finalizers":["a"]}"#, r#"{"finalizers":["b"]}"#),
            (
                names,
                r#"{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["a","c"]}"#,
                r#"{"finalizers":["c","b"]}"#,
            ),
            (names, r#"{"$setElementOrder/finalizers":["b","a"]}"#, r#"{"finalizers":["b","a"]}"#),
            (
                names,
                r#"{"$setElementOrder/finalizers":["b","c"],"finalizers":["c"]}"#,
                r#"{"finalizers":["a","b","c"]}"#,
            ),
            ("{}", r#"{"$setElementOrder/finalizers":["b"]}"#, "{}"),
            (
                r#"{"ownerReferences":[{"uid":"c"},{"uid":"a"},{"uid":"b"}]}"#,
                r#"{"$setElementOrder/ownerReferences":[{"uid":"d"},{"uid":"a"}],"ownerReferences":[{"uid":"d"},{"$patch":"delete","uid":"b"}]}"#,
                r#"{"ownerReferences":[{"uid":"c"},{"uid":"d"},{"uid":"a"}]}"#,
            ),
            (
                r#"{"ownerReferences":[{"uid":"c"}]}"#,
                r#"{"$setElementOrder/ownerReferences":[{"uid":"d"}],"ownerReferences":[{"uid":"d"},{"$patch":"replace"}]}"#,
                "The order in patch list:\n[map[uid:d] map[$patch:replace]]\n doesn't match $setElementOrder list:\n[map[uid:d]]\n",
            ),
            (
                owners,
                r#"{"ownerReferences":[{"uid":"2","x":1},{"uid":"3"}]}"#,
                r#"{"ownerReferences":[{"uid":"1"},{"uid":"2","x":1},{"uid":"3"}]}"#,
            ),
            (owners, r#"{"ownerReferences":[{"$patch":"delete","uid":"1"}]}"#, r#"{"ownerReferences":[{"uid":"2"}]}"#),
            (
                owners,
                r#"{"ownerReferences":[{"$patch":"replace"},{"uid":"9"}]}"#,
                r#"{"ownerReferences":[{"uid":"9"}]}"#,
            ),
            (owners, r#"{"ownerReferences":[{"x":1}]}"#, "map: map[x:1] does not contain declared merge key: uid"),
            (r#"{"m":{"a":1,"b":2}}"#, r#"{"m":{"$retainKeys":["a"],"a":3}}"#, r#"{"m":{"a":3}}"#),
            (r#"{"m":{"a":1}}"#, r#"{"m":{"$retainKeys":["b"],"a":3}}"#, "invalid patch format of retainKeys"),
            (r#"{"m":{"a":1}}"#, r#"{"m":{"$patch":"replace","b":1}}"#, r#"{"m":{"b":1}}"#),
            (r#"{"m":{"a":1}}"#, r#"{"m":{"$patch":"delete"}}"#, r#"{"m":{}}"#),
            (r#"{"m":{"a":1}}"#, r#"{"m":{"$patch":"wipe"}}"#, "unknown patch type: wipe in map: map[$patch:wipe]"),
            (r#"{"m":{"a":1}}"#, r#"{"m":{"$patch":5}}"#, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
            ("{}", r#"{"m":{"a":null,"b":{"$patch":"delete"}}}"#, r#"{"m":{}}"#),
        ];
        for (document, patch, want) in cases {
            assert_eq!(run("meta.v1.ObjectMeta", document, patch), want, "{document} {patch}");
        }
        let budget = "policy.v1.PodDisruptionBudgetSpec";
        assert_eq!(run(budget, r#"{"selector":{"a":1}}"#, r#"{"selector":{"b":1}}"#), r#"{"selector":{"b":1}}"#);
    }

    #[test]
    fn long_lists_are_not_merged() {
        let names = |count: usize| (0..count).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(",");
        let patched = |count: usize| {
            run("meta.v1.ObjectMeta", r#"{"finalizers":["a"]}"#, &format!(r#"{{"finalizers":[{}]}}"#, names(count)))
        };
        assert!(patched(MERGED_LIST_ITEMS_MAX - 1).starts_with(r#"{"finalizers":["#));
        assert!(patched(MERGED_LIST_ITEMS_MAX).contains("got 4001"), "{}", patched(MERGED_LIST_ITEMS_MAX));
    }
}
