//! `pintle validate`: the verdict of the server on every object of the inputs.
//!
//! Definitions come first, in two passes over the inputs: what other objects depend on (CRDs, policies and their parameters,
//! namespaces) is created, whatever its place. Then all objects are checked, on all cores, a few documents at a time.

mod check;
mod decoding;
mod definitions;
mod index;
mod previous;
mod removed;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use machinery::Release;
use tokio::task::JoinHandle;

use crate::engine::{Engine, Options};
use crate::error::Error;
use crate::findings::{Checked, Report, Style, Summary};
use crate::limits::{CHUNK_BYTES, CHUNKS_PER_CORE};
use check::Checker;
use definitions::Definitions;
use previous::Previous;
use sources::{Document, Inputs, Neighbours, Patterns};

/// What is checked, and against what.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Files, directories, globs, `-` for stdin, `git:REF[:PATH]`.
    pub inputs: Vec<String>,
    /// Inputs with CRDs, or a server: `kubeconfig`, `kubeconfig:FILE`.
    pub crds: Vec<String>,
    /// Inputs with policies.
    pub policies: Vec<String>,
    /// Where the objects were before: an input, or a server.
    pub old: Option<String>,
    /// The releases to emulate; the newest one if there is none.
    pub releases: Vec<Release>,
    pub feature_gates: Vec<String>,
    pub runtime_config: Vec<String>,
    /// Whether objects of unknown kinds are left out.
    pub ignores_missing: bool,
    /// Kinds of objects that are left out, in any case.
    pub skipped_kinds: Vec<String>,
    /// Patterns of files that are left out.
    pub ignored: Vec<String>,
    pub others: Others,
    pub empty: Empty,
    pub style: Style,
}

/// Decides about files of directories that are not manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    #[default]
    LeftOut,
    Reported,
}

/// Whether inputs may have no objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    #[default]
    IsAnError,
    Allowed,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub summary: Summary,
    /// Whether an input could not be read.
    pub is_incomplete: bool,
}

/// Checks all inputs and writes the report. The error is one line: nothing could be checked.
pub async fn run(settings: &Settings, out: impl Write) -> Result<Outcome, Error> {
    let (inputs, ignored) = selected(settings)?;
    check(settings, inputs, ignored, out).await
}

/// As [`run`], with inputs that have been found, and the names of those that are left out.
pub async fn check(
    settings: &Settings,
    inputs: Inputs,
    ignored: Vec<Arc<str>>,
    out: impl Write,
) -> Result<Outcome, Error> {
    let mut report = Report::begin(settings.style, out)?;
    let mut is_incomplete = false;
    let mut unreadable = |report: &mut Report<_>, (file, why): &(String, String)| {
        is_incomplete = true;
        report.checked(&Checked::unreadable(file.as_str().into(), why))
    };
    let engines = engines(settings).await?;
    ignored.into_iter().try_for_each(|name| report.ignore(name))?;
    let inputs = Arc::new(inputs.preloaded());
    let environment = definitions::environment(settings).await?;
    let previous = Previous::read(settings.old.as_deref(), &inputs).await?;
    let mut definitions = Definitions::default();
    let undefined = definitions.collect(&environment, &inputs);
    for found in inputs.problems.iter().chain(&environment.problems).chain(&undefined).chain(previous.problems()) {
        unreadable(&mut report, found)?;
    }
    let defined = definitions.define(&engines, &previous).await;
    for checked in &defined.of_environment {
        report.checked(checked)?;
    }
    let checker = Checker {
        engines,
        defined: defined.of_inputs,
        previous,
        ignores_missing: settings.ignores_missing,
        skipped_kinds: settings.skipped_kinds.iter().map(|kind| kind.to_lowercase()).collect(),
    };
    let mut chunks = Chunks::new(Arc::new(checker));
    for (i, input) in inputs.inputs.iter().enumerate() {
        match input.documents() {
            Ok(documents) => {
                for (number, document) in documents.enumerate() {
                    match document {
                        Ok(document) => chunks.add((i, number), document, &mut report).await?,
                        Err(error) => {
                            chunks.finish(&mut report).await?;
                            unreadable(&mut report, &(input.name().to_string(), error.to_string()))?;
                        }
                    }
                }
                report.file();
            }
            Err(error) => {
                chunks.finish(&mut report).await?;
                unreadable(&mut report, &(input.name().to_string(), error.to_string()))?;
            }
        }
    }
    chunks.finish(&mut report).await?;
    if report.is_empty() && settings.empty == Empty::IsAnError {
        // such as the output of a command that has failed
        let why = "there are no objects; with --allow-empty, this is no error".to_owned();
        unreadable(&mut report, &(settings.inputs.join(" "), why))?;
    }
    Ok(Outcome { summary: report.end()?, is_incomplete })
}

/// The inputs that are checked, and the names of those that are left out. Fails with a one-line message.
fn selected(settings: &Settings) -> Result<(Inputs, Vec<Arc<str>>), Error> {
    let patterns = Patterns::read(&settings.ignored)?;
    let Inputs { inputs, places, problems } = Inputs::of(&settings.inputs);
    let (mut kept, mut ignored) = (Inputs { problems, ..Inputs::default() }, vec![]);
    let mut neighbours = Neighbours::default();
    for (input, place) in inputs.into_iter().zip(places) {
        // what was named is meant, unless it is to be ignored
        let is_other =
            settings.others == Others::LeftOut && !place.below.is_empty() && !input.is_manifest(&mut neighbours);
        if is_other || patterns.ignore(&place.path) {
            ignored.push(input.name());
        } else {
            kept.inputs.push(input);
            kept.places.push(place);
        }
    }
    Ok((kept, ignored))
}

/// Creates the definitions that objects of the inputs depend on, and returns the findings about them. Fails with a one-line message.
pub async fn prepare(engines: &[Engine], crds: &[String], inputs: &Inputs) -> Result<Vec<Checked>, Error> {
    let settings = Settings { crds: crds.to_vec(), ..Settings::default() };
    let environment = definitions::environment(&settings).await?;
    environment.complete()?;
    let mut definitions = Definitions::default();
    if let Some((_, why)) = definitions.collect(&environment, inputs).into_iter().next() {
        return Err(why.into());
    }
    let defined = definitions.define(engines, &Previous::None).await;
    let of_inputs = defined.of_inputs.into_iter().filter(|(_, findings)| !findings.is_empty());
    let of_inputs = of_inputs.map(|(((input, _), _), findings)| {
        let file = inputs.inputs.get(input).map_or_else(|| "".into(), sources::Input::name);
        Checked { file, object: String::new(), findings }
    });
    Ok(defined.of_environment.into_iter().chain(of_inputs).collect())
}

/// An engine for each release.
async fn engines(settings: &Settings) -> Result<Vec<Engine>, Error> {
    let newest = [Release::NEWEST];
    let releases = if settings.releases.is_empty() { &newest[..] } else { &settings.releases };
    let mut engines = vec![];
    for release in releases {
        let (feature_gates, runtime_config) = (settings.feature_gates.clone(), settings.runtime_config.clone());
        let options = Options { release: *release, feature_gates, runtime_config, ..Options::default() };
        engines.push(Engine::start(&options).await?);
    }
    Ok(engines)
}

/// The number of an input, and that of a document in it.
type Number = (usize, usize);

/// What became of an object.
enum Done {
    Checked(Checked),
    /// The file and the name of an object that was left out.
    LeftOut(Arc<str>, String),
}

/// Documents that are being checked, in tasks of several documents. Results are reported in the order of the documents.
struct Chunks {
    checker: Arc<Checker>,
    next: Vec<(Number, Document)>,
    bytes: usize,
    running: VecDeque<JoinHandle<Vec<Done>>>,
    running_max: usize,
}

impl Chunks {
    fn new(checker: Arc<Checker>) -> Chunks {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let running_max = cores * CHUNKS_PER_CORE;
        Chunks { checker, next: vec![], bytes: 0, running: VecDeque::new(), running_max }
    }

    async fn add<W: Write>(&mut self, number: Number, document: Document, report: &mut Report<W>) -> Result<(), Error> {
        self.bytes += document.text.len();
        self.next.push((number, document));
        if self.bytes < CHUNK_BYTES {
            return Ok(());
        }
        self.spawn();
        if self.running.len() > self.running_max { self.report_first(report).await } else { Ok(()) }
    }

    fn spawn(&mut self) {
        let (documents, checker) = (std::mem::take(&mut self.next), self.checker.clone());
        self.bytes = 0;
        let checks = async move {
            let mut done = vec![];
            for (number, document) in documents {
                checker.document(number, &document, &mut done).await;
            }
            done
        };
        self.running.push_back(base::task::spawn("validation", checks));
    }

    async fn report_first<W: Write>(&mut self, report: &mut Report<W>) -> Result<(), Error> {
        let Some(first) = self.running.pop_front() else { return Ok(()) };
        let done = first.await?;
        done.iter().try_for_each(|done| match done {
            Done::Checked(checked) => report.checked(checked),
            Done::LeftOut(file, object) => report.left_out(file, object),
        })
    }

    /// Waits for everything that was added.
    async fn finish<W: Write>(&mut self, report: &mut Report<W>) -> Result<(), Error> {
        if !self.next.is_empty() {
            self.spawn();
        }
        while !self.running.is_empty() {
            self.report_first(report).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
