//! Reads the objects of a file, and finds its errors.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use machinery::Value;
use offline::findings::{self, Checked, Finding, Report, Severity, Style};
use sources::{Document, Input, Neighbours, Object};

use crate::limits;

/// Distinguishes versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    pub bytes: u64,
}

impl Stamp {
    /// That of a file; `None` if it is gone.
    pub fn of(path: &Path) -> Option<Stamp> {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Stamp { modified, changed: (found.ctime(), found.ctime_nsec()), inode: found.ino(), bytes: found.len() })
    }
}

/// An object of a file.
pub struct Item {
    pub document: Arc<Document>,
    pub object: Object,
}

impl Item {
    pub fn value(&self) -> &Value {
        &self.object.value
    }

    pub fn error(&self, reason: &str, field: &str, message: &str) -> Finding {
        findings::at_field(&self.document, &self.object, Severity::Error, reason, field, message)
    }

    /// The findings about the object, for a report.
    pub fn checked(&self, findings: Vec<Finding>) -> Checked {
        let [kind, namespace, name] =
            [&["kind"][..], &["metadata", "namespace"], &["metadata", "name"]].map(|path| self.value().str_at(path));
        let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        Checked { file: self.document.file.clone(), object: format!("{kind} {namespace}{name}"), findings }
    }
}

/// Reads the objects of a file, or returns its errors. Files of other tools have no objects.
pub fn read(path: &Path) -> Result<Vec<Item>, Vec<Checked>> {
    let name: Arc<str> = path.to_string_lossy().into();
    let unreadable = |error: sources::Error| vec![Checked::unreadable(name.clone(), error)];
    let text = Input::File(path.to_owned()).text(limits::FOLLOWED_BYTES_MAX).map_err(unreadable)?;
    let input = Input::Read(name.clone(), text);
    if !input.is_manifest(&mut Neighbours::default()) {
        return Ok(vec![]);
    }
    let (mut items, mut wrong) = (vec![], vec![]);
    for document in input.documents().map_err(unreadable)? {
        let document = Arc::new(document.map_err(unreadable)?);
        match document.objects() {
            Err(undecodable) => {
                let finding = findings::of_line(&document, "NotAnObject", undecodable.line, &undecodable.why);
                wrong.push(Checked::without_object(name.clone(), finding));
            }
            Ok((objects, repeated)) => {
                let of_document: Vec<Item> =
                    objects.into_iter().map(|object| Item { document: document.clone(), object }).collect();
                wrong.extend(repeated.iter().filter_map(|key| {
                    let item = of_document.iter().find(|item| item.object.item == key.item).or(of_document.first())?;
                    Some(item.checked(vec![findings::of_repeated_key(&document, &item.object, key)]))
                }));
                items.extend(of_document);
            }
        }
    }
    wrong.extend(items.iter().filter_map(|item| {
        let required: [&[&str]; 3] = [&["apiVersion"], &["kind"], &["metadata", "name"]];
        let missing = required.iter().find(|path| item.value().str_at(path).is_empty())?;
        let finding = item.error("NotAnObject", "", &format!("{}: Required value", missing.join(".")));
        Some(item.checked(vec![finding]))
    }));
    if wrong.is_empty() { Ok(items) } else { Err(wrong) }
}

/// Prints findings as `pintle validate` does.
pub fn excerpt(wrong: &[Checked]) -> String {
    let mut text = vec![];
    let style = Style { detail: findings::Detail::Errors, ..Style::default() };
    let printed = Report::begin(style, &mut text)
        .and_then(|mut report| wrong.iter().try_for_each(|checked| report.checked(checked)));
    printed.map_or_else(|error| error.to_string(), |()| String::from_utf8_lossy(&text).trim_end().to_owned())
}
