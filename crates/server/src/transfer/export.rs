//! Writes objects of a snapshot to a file.

use std::io::Write;

use base::digest;
use machinery::{Value, json};
use objects::{Key, Layout, Place};
use store::{Entry, Revision, Snapshot};

use super::selection::DEFINITIONS;
use super::{FORMAT, ObjectSelection, Progress, TransferProgress, unreadable};

/// The objects of a snapshot that an export writes.
pub struct Chosen<'a> {
    entries: Vec<(Place, &'a Entry)>,
    revision: Revision,
}

/// Decodes the value of an entry. The error is one line that names the object.
fn decode(place: &Place, entry: &Entry, layout: &Layout) -> Result<Value, String> {
    let opened = layout.open(place, entry.value.clone()).map_err(|why| unreadable(place, &why))?;
    machinery::value::decode(&opened.value).map_err(|error| unreadable(place, &error.to_string()))
}

/// The objects of a snapshot, with their places. Keys of other programs are skipped.
fn placed<'a>(snapshot: &'a Snapshot, layout: &Layout) -> Vec<(Place, &'a Entry)> {
    snapshot.entries.iter().filter_map(|entry| Some((layout.find(&entry.key)?, entry))).collect()
}

/// The CustomResourceDefinitions that can be read.
fn definitions(entries: &[(Place, &Entry)], layout: &Layout) -> Vec<Value> {
    let is_definition = |place: &Place| (&*place.key.group, &*place.key.plural) == DEFINITIONS;
    let found = entries.iter().filter(|(place, _)| is_definition(place));
    found.filter_map(|(place, entry)| decode(place, entry, layout).ok()).collect()
}

/// Selects objects of a snapshot.
///
/// # Errors
///
/// One line: nothing is selected, or an object whose labels decide cannot be read.
pub fn choose<'a>(snapshot: &'a Snapshot, layout: &Layout, selection: &ObjectSelection) -> Result<Chosen<'a>, String> {
    let mut entries = placed(snapshot, layout);
    let selection = &selection.resolve(&match selection.names_custom_resources() {
        true => definitions(&entries, layout),
        false => vec![],
    });
    entries.retain(|(place, _)| selection.has_key(&place.key));
    if !selection.labels.is_empty() {
        let mut selected = Vec::with_capacity(entries.len());
        for (place, entry) in entries {
            if selection.has_labels(&decode(&place, entry, layout)?) {
                selected.push((place, entry));
            }
        }
        entries = selected;
    }
    if entries.is_empty() && !selection.is_everything() {
        return Err("no object of the store has the given namespace, resource and labels".to_owned());
    }
    Ok(Chosen { entries, revision: snapshot.revision })
}

/// The objects of a snapshot that can be read, and a line for each of the others.
pub fn choose_readable<'a>(snapshot: &'a Snapshot, layout: &Layout) -> (Chosen<'a>, Vec<String>) {
    let (mut entries, mut failed) = (vec![], vec![]);
    for (place, entry) in placed(snapshot, layout) {
        match decode(&place, entry, layout) {
            Ok(_) => entries.push((place, entry)),
            Err(why) => failed.push(why),
        }
    }
    (Chosen { entries, revision: snapshot.revision }, failed)
}

/// Writes objects to `out` and flushes it. Fails with a one-line message.
pub fn export(
    chosen: &Chosen<'_>,
    layout: &Layout,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<TransferProgress, String> {
    let failed = |error: std::io::Error| format!("cannot write: {error}");
    let mut done = TransferProgress { objects: 0, of: chosen.entries.len(), revision: chosen.revision };
    let mut sum = digest::Sha256::default();
    let mut write = |line: Value, out: &mut dyn Write| {
        let line = format!("{}\n", line.to_json());
        sum.update(line.as_bytes());
        out.write_all(line.as_bytes()).map_err(failed)
    };
    write(json!({"format": FORMAT, "objects": (done.of), "revision": (done.revision)}), out)?;
    for (place, entry) in &chosen.entries {
        let object = decode(place, entry, layout)?;
        let Key { group, plural, path } = place.key.clone();
        let line = json!({
            "group": (Value::String(group)), "resource": (Value::String(plural)), "path": (Value::String(path)),
            "object": object
        });
        write(line, out)?;
        done.objects += 1;
        progress(done);
    }
    let sum = json!({"sha256": (sum.hex())});
    out.write_all(format!("{}\n", sum.to_json()).as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
    Ok(done)
}
