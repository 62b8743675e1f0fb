//! The order of merged lists: items of the patch have the order of the patch, and others that of the object.

use super::{
    BAD_SET_ORDER, DIRECTIVE, Failure, FieldMeta, Identity, PatchItems, PatchMeta, SET_ORDER, bad_type, check_length,
    identity_of_items, merge_list, no_merge_key, without_directives,
};
use crate::patch::gotext::plain;
use crate::value::{Map, Text, Value};

const LIST: &str = "[]interface {}";
const MAP: &str = "map[string]interface {}";

/// Merges the lists whose order the patch sets, and removes them from the patch.
pub(super) fn set_element_orders(original: &mut Map, patch: &mut Map, meta: PatchMeta) -> Result<(), Failure> {
    let directives: Vec<Text> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type(LIST, &other.unwrap_or_default())),
        };
        let name = directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/')).ok_or(BAD_SET_ORDER)?;
        if let Some(merged) = ordered(original.get(name), patch.get(name), &order, meta.field(name))? {
            original.insert(name, Value::Array(merged));
            patch.remove(name);
        }
    }
    Ok(())
}

fn list_of(value: Option<&Value>) -> Result<Option<&[Value]>, Failure> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(bad_type(LIST, other)),
    }
}

fn ordered(
    original: Option<&Value>,
    patch: Option<&Value>,
    order: &[Value],
    field: FieldMeta,
) -> Result<Option<Vec<Value>>, Failure> {
    check_length(order.len())?;
    let (original, patch) = (list_of(original)?, list_of(patch)?);
    let key = field.merge_key;
    check_order(patch.unwrap_or_default(), order, key)?;
    let merged = match (original, patch) {
        (None, None) => return Ok(None),
        (Some(original), None) => original.to_vec(),
        (None, Some(patch)) => patch.iter().cloned().filter_map(without_directives).collect(),
        (Some(original), Some(patch)) if field.merge => {
            merge_list(original.to_vec(), patch.to_vec(), field, PatchItems::Merged)?
        }
        (Some(_), Some(patch)) => patch.to_vec(),
    };
    let (patched, rest) = partition(merged, order, key)?;
    let original = original.unwrap_or_default();
    let by = identity_of_items(&[original, patch.unwrap_or_default()], key)?;
    let object_order = order_after_in_place_merge(original, patch.unwrap_or_default(), key);
    arrange(patched, rest, order, &object_order, by).map(Some)
}

/// The order of the object's items by which kube-apiserver sorts. Its merge has already deleted and appended items in
/// the backing array of the list, so that appended items have the positions of deleted ones.
fn order_after_in_place_merge(original: &[Value], patch: &[Value], key: &str) -> Vec<Value> {
    let mut memory = original.to_vec();
    if key.is_empty() || patch.iter().any(|item| item.get(DIRECTIVE).is_some() && !is_deletion(item)) {
        return memory;
    }
    let mut length = memory.len();
    let at = |memory: &[Value], item: &Value| memory.iter().position(|known| known.get(key) == item.get(key));
    for item in patch.iter().filter(|item| is_deletion(item)) {
        while let Some(index) = at(&memory[..length], item) {
            let last = memory[length - 1].clone();
            memory[index..length].rotate_left(1);
            memory[length - 1] = last;
            length -= 1;
        }
    }
    for item in patch.iter().filter(|item| !is_deletion(item)) {
        if length < memory.len() && at(&memory[..length], item).is_none() {
            memory[length] = item.clone();
            length += 1;
        }
    }
    memory
}

fn is_deletion(item: &Value) -> bool {
    item.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")
}

/// The value that identifies an item.
fn identity<'v>(item: &'v Value, key: &str) -> Result<&'v Value, Failure> {
    match item {
        item if key.is_empty() => Ok(item),
        Value::Object(map) => map.get(key).ok_or_else(|| no_merge_key(map, key)),
        other => Err(bad_type(MAP, other)),
    }
}

/// Checks that the items of the patch have the order that its `$setElementOrder` sets.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), Failure> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let Some(other) = patch.iter().find(|item| !key.is_empty() && !matches!(item, Value::Object(_))) {
        return Err(bad_type(MAP, other));
    }
    let keep = |item: &&Value| key.is_empty() || !is_deletion(item);
    let mut items = patch.iter().filter(keep).peekable();
    for place in order {
        // directives are skipped, but not after the end of the order
        while items.next_if(|item| item.get(DIRECTIVE).is_some()).is_some() {}
        let Some(item) = items.peek() else { break };
        if identity(item, key)? == identity(place, key)? {
            items.next();
        }
    }
    match items.peek() {
        None => Ok(()),
        Some(_) => {
            let list = |items: &[Value]| plain(&Value::Array(items.to_vec()));
            let (patch, order) = (list(patch), list(order));
            let why = format!("The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n");
            Err(Failure::Other(why))
        }
    }
}

/// The items that occur in `by`, and the others.
pub(super) fn partition(items: Vec<Value>, by: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), Failure> {
    let (mut named, mut others) = (vec![], vec![]);
    for item in items {
        let id = identity(&item, key)?;
        let is_named = by.iter().any(|b| if key.is_empty() { b == id } else { b.get(key) == Some(id) });
        if is_named { named.push(item) } else { others.push(item) }
    }
    Ok((named, others))
}

fn place(order: &[Value], item: &Value, by: Identity<'_>) -> Option<usize> {
    match by {
        Identity::Field(key) => {
            let wanted = item.get(key);
            order.iter().position(|other| other.get(key) == wanted)
        }
        Identity::Value => order.iter().position(|other| other == item),
    }
}

/// Sorts stably by the positions in `order`; an item that `order` lacks goes before the item it is compared with.
fn sort(items: Vec<Value>, order: &[Value], by: Identity<'_>) -> Result<Vec<Value>, Failure> {
    let mut deletions = vec![];
    let mut sorted: Vec<(Option<usize>, Value)> = vec![];
    if let Identity::Field(key) = by {
        for item in items.iter().chain(order) {
            identity(item, key)?;
        }
    }
    for item in items {
        if matches!(by, Identity::Field(_)) && is_deletion(&item) {
            deletions.push(item);
            continue;
        }
        sorted.push((place(order, &item, by), item));
        let mut at = sorted.len() - 1;
        while at > 0 {
            let less = match (sorted[at].0, sorted[at - 1].0) {
                (Some(a), Some(b)) => a < b,
                _ => true,
            };
            if !less {
                break;
            }
            sorted.swap(at, at - 1);
            at -= 1;
        }
    }
    Ok(sorted.into_iter().map(|(_, item)| item).chain(deletions).collect())
}

/// Sorts the items of the patch by its order and the others by the order of the object, and merges the two lists. An
/// item that only the object has comes first if the object had it before the item of the patch.
pub(super) fn arrange(
    patched: Vec<Value>,
    others: Vec<Value>,
    patch_order: &[Value],
    object_order: &[Value],
    by: Identity<'_>,
) -> Result<Vec<Value>, Failure> {
    let mut right = sort(patched, patch_order, by)?.into_iter().peekable();
    let mut left = sort(others, object_order, by)?.into_iter().peekable();
    let mut all = Vec::with_capacity(left.len() + right.len());
    loop {
        let left_first = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => {
                let places = (place(object_order, l, by), place(object_order, r, by));
                matches!(places, (Some(l), Some(r)) if l < r)
            }
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(all),
        };
        all.extend(if left_first { left.next() } else { right.next() });
    }
}
