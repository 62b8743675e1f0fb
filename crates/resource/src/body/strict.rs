//! Duplicate and unknown fields of a body, in kube-apiserver's order and wording.

use machinery::value::{KeyOrder, STRICT_ERRORS_MAX, key_order, quote};
use machinery::{Result, Status};
use schema::DefaultsTooLarge;
use schema::shape::Keys;

use super::{Document, Format};

/// Duplicate and unknown fields that strict decoding found.
#[derive(Debug, Default)]
pub struct Strict {
    pub duplicates: Vec<String>,
    pub unknown: Vec<String>,
    /// Whether the unknown fields are those of a Go type, whose errors quote paths as Go does.
    typed: bool,
    keys: Keys,
    /// The texts of both kinds in the order of the fields, for a typed body.
    ordered: Option<Vec<String>>,
    /// Set if defaulting stopped because the object became too large to be stored.
    pub too_large: Option<DefaultsTooLarge>,
}

/// The form in which findings of strict decoding are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StrictReport {
    /// One error, in which the duplicates of a YAML body form a block.
    Error,
    /// A warning each.
    Warnings,
}

impl Strict {
    /// Starts with the duplicate fields that parsing found.
    pub fn of(duplicates: Vec<String>) -> Strict {
        Strict { duplicates, ..Strict::default() }
    }

    /// Leaves the keys of maps and escapes out of the paths of unknown fields that are found from now on, as in
    /// those of a strategic merge patch.
    pub fn omit_keys(&mut self) {
        self.keys = Keys::Omitted;
    }

    /// Whether paths of unknown fields have the keys of maps.
    pub fn keys(&self) -> Keys {
        self.keys
    }

    /// Adds the unknown fields that were found when a Go type was read.
    pub fn extend_typed(&mut self, unknown: Vec<String>) {
        self.unknown.extend(unknown);
        self.typed = true;
    }

    /// Sorts the findings of typed decoding in the order of the document, and keeps the first [`STRICT_ERRORS_MAX`].
    pub fn in_order(mut self, document: &Document) -> Strict {
        if document.format == Format::Json && self.unknown.len() + self.duplicates.len() > 1 {
            self.ordered = Some(self.texts_in_order(&key_order(document.bytes())));
        }
        self.unknown.truncate(STRICT_ERRORS_MAX);
        self
    }

    /// Rejects an object that defaults made too large, with the error of storing it.
    pub fn check_size(&self) -> Result<()> {
        self.too_large.as_ref().map_or(Ok(()), |why| Err(Status::untyped(500, why.to_string())))
    }

    fn texts(&self, format: Format, report: StrictReport) -> Vec<String> {
        if let Some(ordered) = &self.ordered {
            return ordered.clone();
        }
        let mut texts: Vec<String> = match format {
            Format::Json | Format::Protobuf | Format::Cbor => {
                self.duplicates.iter().map(|path| format!("duplicate field {}", quote(path))).collect()
            }
            Format::Yaml if report == StrictReport::Error && !self.duplicates.is_empty() => {
                let lines: Vec<String> = self.duplicates.iter().map(|line| format!("  {line}")).collect();
                vec![format!("yaml: unmarshal errors:\n{}", lines.join("\n"))]
            }
            Format::Yaml => self.duplicates.clone(),
        };
        texts.extend(self.unknown.iter().map(|path| self.unknown_text(path)));
        texts
    }

    fn unknown_text(&self, path: &str) -> String {
        let is_quoted = self.typed && self.keys == Keys::Included;
        if is_quoted { format!("unknown field {}", quote(path)) } else { format!("unknown field \"{path}\"") }
    }

    fn texts_in_order(&self, order: &KeyOrder) -> Vec<String> {
        let duplicates = self.duplicates.iter().map(|path| (order.again(path), "duplicate", path));
        let unknown = self.unknown.iter().map(|path| (order.first(path), "unknown", path));
        let mut found: Vec<(Option<u32>, &str, &String)> = duplicates.chain(unknown).collect();
        found.sort_by_key(|(place, ..)| *place);
        found.truncate(STRICT_ERRORS_MAX);
        found.into_iter().map(|(_, kind, path)| format!("{kind} field {}", quote(path))).collect()
    }

    /// `strict decoding error: …`, if anything was found.
    pub fn error(&self, format: Format) -> Option<String> {
        let texts = self.texts(format, StrictReport::Error);
        (!texts.is_empty()).then(|| format!("strict decoding error: {}", texts.join(", ")))
    }

    /// The errors of the result of a patch, one for each field.
    pub fn errors_of_patched(&self) -> Vec<String> {
        self.texts(Format::Json, StrictReport::Error)
    }

    /// The warnings of a lenient decode.
    pub fn warnings(&self, format: Format) -> Vec<String> {
        self.texts(format, StrictReport::Warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_fields_of_typed_bodies_in_their_order() {
        let bytes = bytes::Bytes::from(r#"{"z":1,"a":{"y":1,"n":1,"n":2,"b":1},"z":2}"#);
        let document = Document::new(bytes, Format::Json);
        let found = |order: fn(Strict, &Document) -> Strict| {
            let unknown = ["a.b", "a.y", "z"].map(str::to_owned).to_vec();
            let strict = Strict { duplicates: vec!["a.n".to_owned()], unknown, ..Strict::default() };
            order(strict, &document).texts(Format::Json, StrictReport::Error)
        };
        let ordered =
            ["unknown field \"z\"", "unknown field \"a.y\"", "duplicate field \"a.n\"", "unknown field \"a.b\""];
        assert_eq!(found(Strict::in_order), ordered);
        let apart =
            ["duplicate field \"a.n\"", "unknown field \"a.b\"", "unknown field \"a.y\"", "unknown field \"z\""];
        assert_eq!(found(|strict, _| strict), apart);
    }

    #[test]
    fn paths_are_quoted_as_in_go() {
        let of = |typed| Strict {
            duplicates: vec!["\n".to_owned()],
            unknown: vec!["a.\n\"".to_owned()],
            typed,
            ..Strict::default()
        };
        assert_eq!(
            of(true).texts(Format::Json, StrictReport::Error),
            [r#"duplicate field "\n""#, r#"unknown field "a.\n\"""#]
        );
        assert_eq!(
            of(false).texts(Format::Json, StrictReport::Error),
            [r#"duplicate field "\n""#, "unknown field \"a.\n\"\""]
        );
    }

    /// A quadratic search took more than 90 s for this many fields.
    #[test]
    fn strict_errors_of_typed_bodies_are_the_first_hundred() {
        let fields = |from: usize| (from..200_000).map(|i| format!("\"u{i}\":1,")).collect::<String>();
        let bytes = bytes::Bytes::from(format!("{{\"z\":1,{}\"a\":1}}", fields(0)));
        let document = Document::new(bytes, Format::Json);
        let mut unknown: Vec<String> = (0..200_000).map(|i| format!("u{i}")).chain(["a".into(), "z".into()]).collect();
        unknown.sort();
        let strict = Strict { unknown: unknown.clone(), ..Strict::default() }.in_order(&document);
        let texts = strict.texts(Format::Json, StrictReport::Error);
        assert_eq!(
            (texts.len(), texts[0].as_str(), texts[99].as_str()),
            (100, "unknown field \"z\"", "unknown field \"u98\"")
        );
        let yaml = Document::new(bytes::Bytes::new(), Format::Yaml);
        assert_eq!(
            Strict { unknown, ..Strict::default() }.in_order(&yaml).texts(Format::Yaml, StrictReport::Error).len(),
            100
        );
    }
}
