//! The times of `metadata.managedFields` in an update that changes nothing else.
//!
//! The field manager compares an object with the body of a request, and sets the time of the writer's entry when
//! they differ. It cannot know what the endpoint resets afterwards (`status`, `uid`, `creationTimestamp`). An
//! update in which only such times remain gets the stored times back, so that it equals the stored object and is
//! not written.

use machinery::{Text, Value};

use super::Codec;

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// The fields of metadata that an update takes from the stored object, regardless of the request.
const RESET: [&str; 6] = ["creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid"];

/// The fields that an update takes from an object that is being deleted.
const RESET_IN_DELETION: [&str; 2] = ["deletionGracePeriodSeconds", "deletionTimestamp"];

/// Gives `object`, the prepared update of `old`, the times of `old`'s managedFields if nothing but these times
/// differs.
pub fn restore(codec: &dyn Codec, object: &mut Value, old: &Value) {
    let (Some(new_list), Some(old_list)) = (object.at(&MANAGED_FIELDS), old.at(&MANAGED_FIELDS)) else { return };
    if new_list == old_list || !entries_equal(new_list, old_list) {
        return;
    }
    let new_list = new_list.clone();
    object.set_at(&MANAGED_FIELDS, old_list.clone());
    if !codec.is_equal(object, old) {
        object.set_at(&MANAGED_FIELDS, new_list);
    }
}

/// Whether two lists of managedFields hold the same entries in the same order, whatever their times.
fn entries_equal(new: &Value, old: &Value) -> bool {
    fn timeless(entry: &Value) -> impl Iterator<Item = (&Text, &Value)> {
        entry.fields().filter(|(name, _)| *name != "time")
    }
    let (Some(new), Some(old)) = (new.as_array(), old.as_array()) else { return false };
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| timeless(new).eq(timeless(old)))
}

/// Finds changes in an applied custom resource that kube-apiserver counts although nothing of them is stored. It
/// compares the object with the stored one before it coerces it, so that `labels: null` and `finalizers: []` are
/// differences, and such differences in the metadata of embedded resources increment the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncoerced {
    /// Nothing, or only what the update resets anyway.
    Same,
    /// Fields that do not increment the generation.
    Differs,
    /// Fields that increment the generation.
    Counts,
}

impl Uncoerced {
    /// Compares an applied object before and after coercion. `old` is the stored object; a generation counts the fields
    /// outside of metadata for which `counted` is true.
    pub fn of(sent: &Value, coerced: &Value, old: &Value, counted: impl Fn(&str) -> bool) -> Uncoerced {
        let in_deletion = |name: &str| old.at(&["metadata", name]).is_some_and(|value| !value.is_null());
        let is_reset = |name: &str| RESET.contains(&name) || RESET_IN_DELETION.contains(&name) && in_deletion(name);
        let outside =
            |skip: &dyn Fn(&str) -> bool| equal_but(Some(sent), Some(coerced), |name| name == "metadata" || skip(name));
        if !outside(&|name| !counted(name)) {
            Uncoerced::Counts
        } else if !outside(&|_| false) || !equal_but(sent.get("metadata"), coerced.get("metadata"), is_reset) {
            Uncoerced::Differs
        } else {
            Uncoerced::Same
        }
    }
}

/// Gives the update of a custom resource the next generation.
pub fn count_generation(object: &mut Value, old: &Value) {
    let generation = old.int_at(&["metadata", "generation"]);
    object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
}

/// Whether two objects have the same fields, except for those that `skip` names.
fn equal_but(a: Option<&Value>, b: Option<&Value>, skip: impl Fn(&str) -> bool) -> bool {
    fn fields(object: Option<&Value>, skip: impl Fn(&str) -> bool) -> impl Iterator<Item = (&Text, &Value)> {
        let fields = object.and_then(Value::as_object).into_iter().flat_map(machinery::Map::iter);
        fields.filter(move |(name, _)| !skip(name))
    }
    fields(a, &skip).eq(fields(b, &skip))
}
