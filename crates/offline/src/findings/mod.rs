//! Findings, and the forms in which they are printed.

mod caret;
pub mod escapes;
mod github;
mod json;
mod junit;
mod kinds;
mod path;
mod rules;
mod sarif;
mod status;
mod text;

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use machinery::{Release, Value, json as object};

use crate::error::Error;
use crate::limits::IGNORED_FILES_SHOWN;

pub use path::{steps, steps_in};
pub use status::{UNKNOWN_FIELD, at_field, of_line, of_repeated_key, of_verdict, of_warning};

machinery::text_enum! {
    /// How bad a finding is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Nothing is wrong.
        Info = "info",
        /// The server would accept the object, with a warning.
        Warning = "warning",
        /// The server would reject the object, or the input has no object.
        Error = "error",
    }
}

/// A place in an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line and column in characters, counted from 1; a line of 0 is the whole input.
    pub line: usize,
    pub column: usize,
    /// The number of characters that the finding is about.
    pub width: usize,
    /// The text of the line.
    pub source: String,
}

/// Something that is wrong with an object, or with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The reason as a word, such as `FieldValueInvalid`.
    pub reason: String,
    /// The text of the server.
    pub message: String,
    /// The path of the field; empty if the finding is about the whole object.
    pub field: String,
    pub place: Place,
    /// The releases that have the finding; empty if all releases that were asked for have it.
    pub releases: Vec<Release>,
}

impl Finding {
    /// The path of the field, and the message.
    fn text(&self) -> String {
        match self.field.as_str() {
            "" => self.message.clone(),
            field => format!("{field}: {}", self.message),
        }
    }

    /// The note on releases; `None` if all have the finding.
    fn note(&self) -> Option<String> {
        let releases: Vec<String> = self.releases.iter().map(Release::to_string).collect();
        (!releases.is_empty()).then(|| format!("with Kubernetes {}", releases.join(", ")))
    }
}

/// An object, or an input without one, with its findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The name of the input.
    pub file: Arc<str>,
    /// The kind, namespace and name of an object, such as `Boat harbour/argo`; empty if there is none.
    pub object: String,
    pub findings: Vec<Finding>,
}

impl Checked {
    /// A finding about an input, or a document in it, that has no object.
    pub fn without_object(file: Arc<str>, finding: Finding) -> Checked {
        Checked { file, object: String::new(), findings: vec![finding] }
    }

    /// An input that cannot be read.
    pub fn unreadable(file: Arc<str>, why: impl fmt::Display) -> Checked {
        let finding = Finding {
            severity: Severity::Error,
            reason: "Unreadable".to_owned(),
            message: why.to_string(),
            field: String::new(),
            place: Place::default(),
            releases: vec![],
        };
        Checked::without_object(file, finding)
    }
}

/// The numbers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub files: usize,
    pub objects: usize,
    /// Objects with errors.
    pub invalid: usize,
    pub errors: usize,
    pub warnings: usize,
    /// Objects that were left out on request: without a definition, or of kinds to skip.
    pub skipped: usize,
    /// Files that were left out: no manifests, or to be ignored.
    pub ignored_files: usize,
}

impl Summary {
    pub fn count(&mut self, checked: &Checked) {
        self.objects += usize::from(!checked.object.is_empty());
        let of = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count();
        self.invalid += usize::from(!checked.object.is_empty() && of(Severity::Error) > 0);
        self.errors += of(Severity::Error);
        self.warnings += of(Severity::Warning);
    }

    fn to_value(self) -> Value {
        object!({
            "files": (self.files), "objects": (self.objects), "errors": (self.errors),
            "warnings": (self.warnings), "skipped": (self.skipped),
            "ignoredFiles": (self.ignored_files)
        })
    }
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people: the source line of each finding with a caret.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML, with a test case for each object.
    Junit,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions, which annotate the lines.
    Github,
    /// The numbers of objects with errors, by kind, with the reasons.
    Kinds,
}

/// How much of the findings a text shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    #[default]
    Everything,
    /// Errors only, and no totals.
    Errors,
    /// The numbers of each input that has findings, and the totals.
    Numbers,
}

/// Whether a text has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    #[default]
    Off,
    On,
}

/// The form of a report; the detail and the colours are those of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub form: Form,
    pub detail: Detail,
    pub colours: Colours,
}

impl From<Form> for Style {
    fn from(form: Form) -> Style {
        Style { form, ..Style::default() }
    }
}

/// The writer of one form.
trait Printer {
    fn begin(&mut self, _out: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }

    fn checked(&mut self, out: &mut dyn Write, checked: &Checked) -> std::io::Result<()>;

    /// An object that was left out, or a file if `object` is empty.
    fn left_out(&mut self, _out: &mut dyn Write, _file: &Arc<str>, _object: &str) -> std::io::Result<()> {
        Ok(())
    }

    /// Reports the number of files that were left out, and the first of them.
    fn ignored(&mut self, _out: &mut dyn Write, _first: &[Arc<str>], _count: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> std::io::Result<()>;
}

/// Prints findings as they are found. Its memory depends on neither their number nor that of the objects, except that JUnit
/// keeps those of one input.
pub struct Report<W: Write> {
    out: W,
    printer: Box<dyn Printer>,
    summary: Summary,
    /// The first files that were left out.
    ignored: Vec<Arc<str>>,
}

impl<W: Write> Report<W> {
    /// Begins a report. Fails with a one-line message.
    pub fn begin(style: Style, mut out: W) -> Result<Report<W>, Error> {
        let mut printer: Box<dyn Printer> = match style.form {
            Form::Text => Box::new(text::Text::new(style)),
            Form::Json => Box::new(json::Json::default()),
            Form::Junit => Box::new(junit::Junit::default()),
            Form::Sarif => Box::new(sarif::Sarif::default()),
            Form::Github => Box::new(github::Github::default()),
            Form::Kinds => Box::new(kinds::Kinds::default()),
        };
        printer.begin(&mut out).map_err(Error::Report)?;
        Ok(Report { out, printer, summary: Summary::default(), ignored: vec![] })
    }

    /// Prints what was checked.
    pub fn checked(&mut self, checked: &Checked) -> Result<(), Error> {
        self.summary.count(checked);
        self.printer.checked(&mut self.out, checked).map_err(Error::Report)
    }

    /// Whether no object was checked or left out, and nothing was found.
    pub fn is_empty(&self) -> bool {
        let Summary { objects, errors, skipped, ignored_files, .. } = self.summary;
        objects + errors + skipped + ignored_files == 0
    }

    /// Counts an input.
    pub fn file(&mut self) {
        self.summary.files += 1;
    }

    /// Counts a file that was left out.
    pub fn ignore(&mut self, name: Arc<str>) -> Result<(), Error> {
        self.summary.ignored_files += 1;
        self.printer.left_out(&mut self.out, &name, "").map_err(Error::Report)?;
        if self.ignored.len() < IGNORED_FILES_SHOWN {
            self.ignored.push(name);
        }
        Ok(())
    }

    pub fn left_out(&mut self, file: &Arc<str>, object: &str) -> Result<(), Error> {
        self.summary.skipped += 1;
        self.printer.left_out(&mut self.out, file, object).map_err(Error::Report)
    }

    pub fn end(mut self) -> Result<Summary, Error> {
        let Report { out, printer, summary, ignored } = &mut self;
        let ended = printer.ignored(out, ignored, summary.ignored_files).and_then(|()| printer.end(out, summary));
        ended.and_then(|()| out.flush()).map_err(Error::Report)?;
        Ok(self.summary)
    }
}
