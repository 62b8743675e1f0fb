//! Reads a file, checks it, and writes its objects to a store.

use std::collections::{HashMap, HashSet};

use base::digest;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use machinery::{Text, Value};
use objects::{Body, Key, Layout, Place, Storage};
use store::{Entry, Expected, Refused, Revision, Write as Put};

use super::selection::DEFINITIONS;
use super::{FORMAT, ObjectSelection, Progress, TransferProgress, unreadable};
use crate::limits;

/// How an import treats a store that has objects already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The import is refused.
    Fail,
    /// An object that exists is kept.
    Skip,
    /// An object that exists with another content is overwritten.
    Replace,
}

/// The selected objects of a complete file: where each belongs in the new store, and its value.
pub struct Checked {
    objects: Vec<(Place, Bytes)>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    pub written: usize,
    /// Objects that existed with the same content.
    pub same: usize,
    /// Objects that existed with another content, which was kept.
    pub skipped: usize,
    /// The newest revision that was written; 0 if none was.
    pub revision: Revision,
}

/// Checks a file and reads its selected objects.
///
/// # Errors
///
/// One line: the file is corrupt or has another format, names an object twice, has none that is selected, or an object that the
/// layout cannot represent.
pub fn check(
    file: &[u8],
    layout: &Layout,
    selection: &ObjectSelection,
    progress: Progress<'_>,
) -> Result<Checked, String> {
    let damaged = |why: &str| format!("the file is corrupt: {why}");
    let decode = |line: &[u8]| machinery::value::decode(line).map_err(|error| damaged(&error.to_string()));
    if file.is_empty() {
        return Err("the file is empty; write it with \"pintle export\"".to_owned());
    }
    let first = file.split(|b| *b == b'\n').next().unwrap_or_default();
    let header = decode(first).unwrap_or_default();
    match header.str_at(&["format"]) {
        FORMAT => {}
        "" => return Err("the file does not begin as one of \"pintle export\" does".to_owned()),
        other => return Err(format!("the file has format {other:?}, and this version reads {FORMAT:?}")),
    }
    let body = file.strip_suffix(b"\n").ok_or_else(|| damaged("it ends within a line"))?;
    let end = body.iter().rposition(|b| *b == b'\n').ok_or_else(|| damaged("it has one line"))? + 1;
    let mut sum = digest::Sha256::default();
    sum.update(&file[..end]);
    if decode(&body[end..])?.str_at(&["sha256"]) != sum.hex() {
        return Err(damaged("its end is missing, or something in it was changed"));
    }
    let count = header.get("objects").and_then(Value::as_int).and_then(|count| usize::try_from(count).ok());
    let mut done = TransferProgress { objects: 0, of: count.unwrap_or_default(), revision: 0 };
    let selection = &selection.resolve(&match selection.names_custom_resources() {
        true => definitions(&file[..end - 1]),
        false => vec![],
    });
    let mut objects = vec![];
    let mut keys = HashSet::new();
    for (number, line) in file[..end - 1].split(|b| *b == b'\n').enumerate().skip(1) {
        let at = |why: String| format!("line {}: {why}", number + 1);
        let (place, object) = parse(&decode(line).map_err(at)?, layout).map_err(at)?;
        if !keys.insert(place.bytes.clone()) {
            return Err(at(format!("the object {} is in the file twice", place.bytes.escape_ascii())));
        }
        if selection.has_key(&place.key) && selection.has_labels(&object) {
            let value = to_value(&place, &object, layout).map_err(at)?;
            objects.push((place, value));
        }
        done.objects += 1;
        progress(done);
    }
    if objects.is_empty() && !selection.is_everything() {
        return Err("no object of the file has the given namespace, resource and labels".to_owned());
    }
    Ok(Checked { objects })
}

/// The CustomResourceDefinitions of a file.
fn definitions(lines: &[u8]) -> Vec<Value> {
    let (group, plural) = DEFINITIONS;
    // an export begins lines with the group
    let start = format!("{{\"group\":\"{group}\",");
    let lines = lines.split(|b| *b == b'\n').filter(|line| line.starts_with(start.as_bytes()));
    let lines = lines.filter_map(|line| machinery::value::decode(line).ok());
    let lines = lines.filter(|line| line.str_at(&["resource"]) == plural);
    lines.filter_map(|line| line.get("object").cloned()).collect()
}

/// The object of a line, and where it belongs.
fn parse(line: &Value, layout: &Layout) -> Result<(Place, Value), String> {
    let text = |key: &str| Text::from(line.str_at(&[key]));
    let key = Key { group: text("group"), plural: text("resource"), path: text("path") };
    if key.plural.is_empty() || key.path.is_empty() {
        return Err("it has no resource or no path".to_owned());
    }
    Ok((layout.place(&key), line.get("object").cloned().unwrap_or(Value::Null)))
}

/// The encoded object, if the store can represent it: fields that its storage form does not have would be lost.
fn to_value(place: &Place, object: &Value, layout: &Layout) -> Result<Bytes, String> {
    let plain = Body::encode(object).bytes;
    let sealed = layout.seal(place, plain.clone()).map_err(|why| unreadable(place, &why))?;
    match layout.open(place, sealed) {
        Ok(opened) if opened.value == plain => Ok(plain),
        Ok(_) => Err(unreadable(place, "the store would change it")),
        Err(why) => Err(unreadable(place, &why)),
    }
}

struct PlannedWrite {
    place: Place,
    value: Bytes,
    expected: Expected,
}

/// Writes the objects of a file to a store, then reads them back and compares them. An interrupted import has written whole
/// objects only; the next one with [`Conflict::Skip`] or [`Conflict::Replace`] writes the others.
///
/// # Errors
///
/// One line: the store has objects and `conflict` is [`Conflict::Fail`], another process writes to the store, the store
/// fails, or an object is read back with another content.
pub async fn import(
    checked: Checked,
    storage: &Storage,
    conflict: Conflict,
    progress: Progress<'_>,
) -> Result<Imported, String> {
    let (steps, unchanged) = plan(checked, storage, conflict).await?;
    let mut done = TransferProgress { objects: 0, of: steps.len(), revision: 0 };
    if !steps.is_empty() {
        // before the first write, so that a caller without it knows that nothing was written
        progress(done);
    }
    let writes = steps.iter().map(|step| write(step, storage));
    let mut written = stream::iter(writes).buffer_unordered(limits::IMPORT_PARALLEL);
    while let Some(revision) = written.next().await {
        done.revision = done.revision.max(revision?);
        done.objects += 1;
        progress(done);
    }
    drop(written);
    let found = present(storage).await?;
    for PlannedWrite { place, value, .. } in &steps {
        let stored = found.get(&place.bytes).map(|entry| storage.layout.open(place, entry.value.clone()));
        if !stored.is_some_and(|opened| opened.is_ok_and(|opened| opened.value == value)) {
            return Err(format!("{} was not read back as it was written", place.bytes.escape_ascii()));
        }
    }
    Ok(Imported { written: done.objects, revision: done.revision, ..unchanged })
}

/// The writes that bring the objects of a file into a store, and the count of the objects that need none.
async fn plan(
    checked: Checked,
    storage: &Storage,
    conflict: Conflict,
) -> Result<(Vec<PlannedWrite>, Imported), String> {
    let found = present(storage).await?;
    if let (Conflict::Fail, Some(key)) = (conflict, found.keys().next()) {
        let (count, key) = (found.len(), key.escape_ascii());
        return Err(format!(
            "there are {count} objects already, such as {key}: an import needs a store without any, or --conflict skip or replace"
        ));
    }
    let mut unchanged = Imported { written: 0, same: 0, skipped: 0, revision: 0 };
    let mut steps = Vec::with_capacity(checked.objects.len());
    for (place, value) in checked.objects {
        let expected = match found.get(&place.bytes) {
            None => Expected::Absent,
            Some(entry) => {
                let opened =
                    storage.layout.open(&place, entry.value.clone()).map_err(|why| unreadable(&place, &why))?;
                if opened.value == value {
                    unchanged.same += 1;
                    continue;
                }
                if conflict == Conflict::Skip {
                    unchanged.skipped += 1;
                    continue;
                }
                Expected::At(entry.revision)
            }
        };
        steps.push(PlannedWrite { place, value, expected });
    }
    Ok((steps, unchanged))
}

async fn write(step: &PlannedWrite, storage: &Storage) -> Result<Revision, String> {
    let PlannedWrite { place, value, expected } = step;
    let sealed = storage.layout.seal(place, value.clone()).map_err(|why| unreadable(place, &why))?;
    let put = Put { key: place.bytes.clone(), expected: *expected, value: Some(sealed) };
    storage.store.commit(put).await.map_err(|refused| match refused {
        Refused::Conflict(_) => format!("another process has written {}", place.bytes.escape_ascii()),
        Refused::Failed(error) => error.to_string(),
    })
}

/// The current objects of a store, by key.
async fn present(storage: &Storage) -> Result<HashMap<Bytes, Entry>, String> {
    let snapshot = storage.store.snapshot().await.map_err(|error| error.to_string())?;
    let ours = snapshot.entries.into_iter().filter(|entry| storage.layout.find(&entry.key).is_some());
    Ok(ours.map(|entry| (entry.key.clone(), entry)).collect())
}
