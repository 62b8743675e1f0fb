//! Inputs: files, directories, globs, stdin, commits and archives.
//!
//! An input that cannot be read is a problem of one line; the other inputs are still read.

mod assertions;
mod git;
mod glob;
mod ignore;
mod kustomize;
mod place;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::archive;
use crate::document::{Document, Documents, Object, TextPlace, Undecodable, check_text, is_wide};
use crate::error::Error;
use crate::limits::{PRELOADED_BYTES, PRELOADED_FILE_BYTES_MAX, STDIN_IN_MEMORY_BYTES};
use crate::problems::Problems;
use crate::spool::{self, Part};
use assertions::Assertions;
pub use git::Revision;
pub use ignore::Patterns;
use kustomize::Kustomizations;
pub use place::InputPlace;

/// The endings of the names of manifests.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Files with the name of a manifest that configure other tools.
const NOT_MANIFESTS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// Files of other tools, with the endings of manifests. Other files are judged by their content.
const OF_OTHER_TOOLS: [&str; 12] = [
    "Chart.yaml", "values.yaml", "package.json", "package-lock.json", "tsconfig.json", "docker-compose.yaml",
    "docker-compose.yml", "compose.yaml", "compose.yml", ".pre-commit-config.yaml", "chainsaw-test.yaml",
    "kuttl-test.yaml",
];

pub const STDIN: &str = "-";

/// The file of a directory into which a capture is being written: otherwise a part of it would be taken for the whole.
pub const UNFINISHED: &str = "UNFINISHED";
/// Its text.
pub const UNFINISHED_CAPTURE: &[u8] = b"capture\n";

/// A text with documents.
#[derive(Clone, Debug)]
pub enum Input {
    File(PathBuf),
    /// A text that has been read already, such as a short one from stdin.
    Read(Arc<str>, Bytes),
    /// A text in a file that has another name, or none, such as a file of a commit.
    Part(Arc<str>, Part),
}

impl Input {
    /// The name in findings.
    pub fn name(&self) -> Arc<str> {
        match self {
            Input::File(path) => path.to_string_lossy().into(),
            Input::Read(name, _) | Input::Part(name, _) => name.clone(),
        }
    }

    /// It as a part of a file; `None` if it is in memory, or cannot be opened.
    pub fn part(&self) -> Option<Part> {
        match self {
            Input::File(path) => File::open(path).and_then(Part::whole).ok(),
            Input::Part(_, part) => Some(part.clone()),
            Input::Read(..) => None,
        }
    }

    /// Its documents.
    pub fn documents(&self) -> Result<Documents, Error> {
        let reader: Box<dyn BufRead + Send> = match self {
            Input::File(path) => Box::new(BufReader::new(File::open(path).map_err(|error| self.unreadable(error))?)),
            Input::Read(_, text) => Box::new(Cursor::new(text.clone())),
            Input::Part(_, part) => Box::new(BufReader::new(part.clone())),
        };
        Ok(Documents::new(self.name(), reader))
    }

    /// Reads all its objects, with their documents.
    pub fn objects(&self) -> Result<Vec<(Document, Object)>, Error> {
        let mut found = vec![];
        for document in self.documents()? {
            let document = document?;
            let named = |Undecodable { line, why }| Error::Undecodable { name: self.name().to_string(), line, why };
            let (objects, _) = document.objects().map_err(named)?;
            found.extend(objects.into_iter().map(|object| (document.clone(), object)));
        }
        Ok(found)
    }

    /// Its text, or the beginning of it.
    pub fn text(&self, bytes_max: u64) -> Result<Bytes, Error> {
        let mut text = vec![];
        let read = match self {
            Input::Read(_, text) => return Ok(text.clone()),
            Input::File(path) => File::open(path).and_then(|file| file.take(bytes_max).read_to_end(&mut text)),
            Input::Part(_, part) => part.clone().take(bytes_max).read_to_end(&mut text),
        };
        read.map(|_| text.into()).map_err(|error| self.unreadable(error))
    }

    /// Whether the input has an object of Kubernetes, or what may be one: something that cannot be read or decoded. The files
    /// beside it that decide are read once for all inputs with the same `neighbours`.
    pub fn is_manifest(&self, neighbours: &mut Neighbours) -> bool {
        let name = self.name();
        let name = name.rsplit('/').next().unwrap_or_default();
        if OF_OTHER_TOOLS.contains(&name) || self.is_of_chart() || self.is_part(neighbours) {
            return false;
        }
        let Ok(mut documents) = self.documents() else { return true };
        let mut is_empty = true;
        let found = documents.any(|document| {
            is_empty = false;
            document.is_ok_and(|document| document.is_manifest())
        });
        found || is_empty
    }

    /// Whether the file has parts of objects only: a patch, or what a test expects.
    fn is_part(&self, Neighbours { kustomizations, assertions }: &mut Neighbours) -> bool {
        matches!(self, Input::File(path) if kustomizations.has_patch(path) || assertions.contain(path))
    }

    /// Whether the file is a template of a Helm chart, or one that templates read, and no YAML before it is rendered.
    fn is_of_chart(&self) -> bool {
        let Input::File(path) = self else { return false };
        let of_chart = |directory: &Path| {
            directory.file_name().is_some_and(|name| name == "templates" || name == "files")
                && directory.with_file_name("Chart.yaml").is_file()
        };
        path.ancestors().skip(1).any(of_chart)
            && self.text(PRELOADED_FILE_BYTES_MAX).is_ok_and(|text| text.windows(2).any(|two| two == b"{{"))
    }

    /// A document at a place that [`Document::place`] has named.
    pub fn document(&self, place: TextPlace) -> Result<Document, Error> {
        let TextPlace { offset, length } = place;
        let read = |path: &Path| {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = vec![0; length as usize];
            file.read_exact(&mut bytes)?;
            Ok(bytes.into())
        };
        let text = match self {
            Input::File(path) => read(path),
            Input::Read(_, text) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                Ok(text.slice(start..text.len().min(start + length as usize)))
            }
            Input::Part(_, part) => part.slice(offset, length as usize).map(Bytes::from),
        };
        let text = text.map_err(|error| self.unreadable(error))?;
        Ok(Document::alone(self.name(), text))
    }

    fn unreadable(&self, source: std::io::Error) -> Error {
        Error::Unreadable { name: self.name().to_string(), source }
    }
}

/// The files of other tools by which the files beside them are judged.
#[derive(Debug, Default)]
pub struct Neighbours {
    kustomizations: Kustomizations,
    assertions: Assertions,
}

#[derive(Clone, Debug)]
pub struct SourceFile {
    pub path: String,
    pub input: Input,
    /// When it was written, in seconds since the Unix epoch, if its archive says so.
    pub modified: Option<i64>,
}

/// An input that can be read only once, such as stdin or a pipe. It is needed twice, so a long text is copied to a file.
fn once(name: &str, shown: &str, reader: &mut impl std::io::Read) -> Result<Input, Error> {
    let failed = |source| Error::Unreadable { name: shown.to_owned(), source };
    let mut text = vec![];
    reader.by_ref().take(STDIN_IN_MEMORY_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if !archive::is_archive(&text) {
        check_text(&text, is_wide(&text)).map_err(failed)?;
    }
    if text.len() as u64 <= STDIN_IN_MEMORY_BYTES {
        return Ok(Input::Read(name.into(), text.into()));
    }
    Ok(Input::Part(name.into(), spool::copied(&text, reader).map_err(failed)?))
}

fn stdin() -> Result<Input, Error> {
    once("<stdin>", "stdin", &mut std::io::stdin().lock())
}

/// The inputs that arguments name.
#[derive(Debug, Default)]
pub struct Inputs {
    pub inputs: Vec<Input>,
    /// The place of each input of arguments.
    pub places: Vec<InputPlace>,
    /// The arguments that could not be read, and why, in one line each.
    pub problems: Vec<(String, String)>,
}

impl Inputs {
    /// Resolves arguments: `-`, files, archives and directories with everything below them, globs, `git:REF` and `git:REF:PATH`.
    /// Inputs are in the order of the arguments, and sorted by name in a directory.
    pub fn of(arguments: &[String]) -> Inputs {
        let mut found = Inputs::default();
        for argument in arguments {
            let mut problems = Problems::default();
            let resolved = resolve(argument, &mut problems);
            found.problems.extend(problems.lines().into_iter().map(|line| (argument.clone(), line)));
            match resolved {
                Ok(inputs) => {
                    found.places.extend(inputs.iter().map(|input| InputPlace::of(argument, input)));
                    found.inputs.extend(inputs);
                }
                Err(error) => found.problems.push((argument.clone(), error.to_string())),
            }
        }
        found
    }

    /// Fails with the first argument that could not be read.
    pub fn complete(&self) -> Result<(), Error> {
        self.problems.first().map_or(Ok(()), |(_, why)| Err(Error::Problem(why.clone())))
    }

    /// Reads all objects, with their documents, of arguments that all could be read.
    pub fn objects(&self) -> Result<Vec<(Document, Object)>, Error> {
        self.complete()?;
        let read = self.inputs.iter().map(Input::objects).collect::<Result<Vec<_>, _>>()?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Reads short files into memory, up to a total size, since inputs are read twice.
    pub fn preloaded(mut self) -> Inputs {
        let mut left = PRELOADED_BYTES;
        for input in &mut self.inputs {
            let Input::File(path) = &*input else { continue };
            let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
            let length = found.map_or(u64::MAX, |found| found.len());
            if length > left.min(PRELOADED_FILE_BYTES_MAX) {
                continue;
            }
            // what cannot be read is reported when its documents are
            if let Ok(text) = std::fs::read(path) {
                left = left.saturating_sub(text.len() as u64);
                *input = Input::Read(input.name(), text.into());
            }
        }
        self
    }
}

/// Every file of a source: of a directory or an archive all that is in it, else the inputs that the argument names. Adds to
/// `problems` what cannot be read of an archive.
pub fn files(argument: &str, problems: &mut Problems) -> Result<Vec<SourceFile>, Error> {
    let path = Path::new(argument);
    if path.is_dir() {
        let mut files = vec![];
        walk(path, &mut |file| {
            let below = file.strip_prefix(path).unwrap_or(file).to_string_lossy().into_owned();
            files.push(SourceFile { path: below, input: Input::File(file.to_owned()), modified: None });
        })?;
        return Ok(files);
    }
    let mut files = vec![];
    for input in named(argument)? {
        match entries(&input, problems)? {
            Some(entries) => files.extend(entries),
            None => files.push(SourceFile { path: input.name().to_string(), input, modified: None }),
        }
    }
    Ok(files)
}

fn entries(input: &Input, problems: &mut Problems) -> Result<Option<Vec<SourceFile>>, Error> {
    let name = input.name();
    let part = match input {
        Input::Read(_, text) if archive::is_archive(text) => {
            spool::copied(text, &mut std::io::empty()).map_err(|error| input.unreadable(error))?
        }
        _ => match input.part() {
            Some(part) => part,
            // if it cannot be opened, the reader of its documents reports that
            None => return Ok(None),
        },
    };
    if !part.head(archive::HEAD_BYTES).is_ok_and(|head| archive::is_archive(&head)) {
        return Ok(None);
    }
    let entries = archive::read(&name, &part, problems)?;
    let file = |archive::Entry { path, part, modified }| {
        let input = Input::Part(format!("{name}/{path}").into(), part);
        SourceFile { path, input, modified }
    };
    Ok(Some(entries.into_iter().map(file).collect()))
}

/// The manifests that an argument names, also those in archives.
fn resolve(argument: &str, problems: &mut Problems) -> Result<Vec<Input>, Error> {
    let mut inputs = vec![];
    for input in named(argument)? {
        let Some(entries) = entries(&input, problems)? else {
            inputs.push(input);
            continue;
        };
        let manifests = entries.into_iter().filter(|file| is_manifest(Path::new(&file.path)));
        let before = inputs.len();
        inputs.extend(manifests.map(|file| file.input));
        if inputs.len() == before {
            return Err(Error::NoManifests { name: input.name().to_string(), place: "archive" });
        }
    }
    Ok(inputs)
}

/// The inputs that an argument names: archives as they are.
fn named(argument: &str) -> Result<Vec<Input>, Error> {
    if argument == STDIN {
        return Ok(vec![stdin()?]);
    }
    if let Some(revision) = Revision::parse(argument) {
        let files: BTreeMap<String, Part> = revision.files(is_manifest)?;
        let name = |name: String| format!("{}{}:{name}", git::PREFIX, revision.reference);
        return Ok(files.into_iter().map(|(file, part)| Input::Part(name(file).into(), part)).collect());
    }
    let path = Path::new(argument);
    let paths = if path.is_dir() {
        let mut paths = vec![];
        walk(path, &mut |path| paths.push(path.to_owned()))?;
        paths.retain(|path| is_manifest(path));
        if paths.is_empty() {
            return Err(Error::NoManifests { name: argument.to_owned(), place: "directory" });
        }
        paths
    } else if !path.exists() && glob::is_pattern(argument) {
        let paths = glob::matches(argument)?;
        if paths.is_empty() {
            return Err(Error::NoMatch { pattern: argument.to_owned() });
        }
        paths
    } else if path.exists() && !path.is_file() {
        let mut file = File::open(path).map_err(|error| cannot_read(path, error))?;
        return Ok(vec![once(argument, argument, &mut file)?]);
    } else {
        vec![path.to_owned()]
    };
    Ok(paths.into_iter().map(Input::File).collect())
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let name = path.file_name().and_then(|name| name.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && name.is_some_and(|name| !NOT_MANIFESTS.contains(&name))
}

/// The manifests that an argument of a program that follows files names, sorted by name in a directory. Each directory is passed to
/// `enter` before it is read, so that nothing is missed if it is watched from then on.
pub fn manifests(argument: &Path, enter: &mut dyn FnMut(&Path)) -> Result<Vec<PathBuf>, Error> {
    if !argument.is_dir() {
        enter(argument.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
        let found = std::fs::metadata(argument);
        return found.map(|_| vec![argument.to_owned()]).map_err(|error| cannot_read(argument, error));
    }
    let mut paths = vec![];
    walk_entering(argument, enter, &mut |path| paths.push(path.to_owned()))?;
    paths.retain(|path| is_manifest(path));
    Ok(paths)
}

fn cannot_read(path: &Path, source: std::io::Error) -> Error {
    Error::Unreadable { name: path.display().to_string(), source }
}

/// Visits the files below a directory, sorted. As with kubectl, links to directories are not followed; directories whose names
/// begin with a dot are left out.
fn walk(directory: &Path, visit: &mut dyn FnMut(&Path)) -> Result<(), Error> {
    walk_entering(directory, &mut |_| {}, visit)
}

fn walk_entering(directory: &Path, enter: &mut dyn FnMut(&Path), visit: &mut dyn FnMut(&Path)) -> Result<(), Error> {
    enter(directory);
    if std::fs::read(directory.join(UNFINISHED)).is_ok_and(|text| text == UNFINISHED_CAPTURE) {
        return Err(Error::Unfinished { path: directory.to_owned() });
    }
    let failed = |error| cannot_read(directory, error);
    let entries = std::fs::read_dir(directory).map_err(failed)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = if directory == Path::new(".") { entry.file_name().into() } else { entry.path() };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                walk_entering(&path, enter, visit)?;
            }
        } else if kind.is_file() || path.is_file() {
            // a pipe would be waited for, and a device may have no end
            visit(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_resolved_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        for name in ["b.yaml", "a.json", "notes.txt", "sub/c.yml", ".git/d.yaml", "sub/kustomization.yaml"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "a: 1").unwrap();
        }
        std::fs::create_dir(directory.path().join("empty")).unwrap();
        let mut archive = tar::Builder::new(vec![]);
        archive.append_path_with_name(at("a.json"), "in/d.json").unwrap();
        archive.append_path_with_name(at("notes.txt"), "notes.txt").unwrap();
        std::fs::write(at("bundle"), archive.into_inner().unwrap()).unwrap();
        let no_such = at("none.yaml");
        for (argument, want) in [
            (at(""), vec![at("a.json"), at("b.yaml"), at("sub/c.yml")]),
            (at("notes.txt"), vec![at("notes.txt")]),
            (at("*/*.yml"), vec![at("sub/c.yml")]),
            (at("bundle"), vec![at("bundle/in/d.json")]),
            (at("**/*.y*ml"), vec![at("b.yaml"), at("sub/c.yml"), at("sub/kustomization.yaml")]),
            (at("?.{json"), vec![]),
            (at("empty"), vec![]),
            (no_such.clone(), vec![no_such.clone()]),
        ] {
            let found = Inputs::of(std::slice::from_ref(&argument));
            let names: Vec<String> = found.inputs.iter().map(|input| input.name().to_string()).collect();
            assert_eq!(names, want, "{argument}: {:?}", found.problems);
            assert_eq!(found.problems.len(), usize::from(want.is_empty()), "{argument}");
        }
        let all = |argument: &str| -> Vec<String> {
            let files = files(argument, &mut Problems::default()).unwrap();
            files.into_iter().map(|file| file.path).collect()
        };
        assert_eq!(all(&at("bundle")), ["in/d.json", "notes.txt"]);
        assert_eq!(all(&at("sub")), ["c.yml", "kustomization.yaml"]);
        let why = Input::File(no_such.clone().into()).documents().map(drop).unwrap_err().to_string();
        assert!(why.starts_with(&format!("cannot read {no_such}: No such file")), "{why}");
    }

    #[test]
    fn neighbours_are_read_once() {
        let place = tempfile::tempdir().unwrap();
        let files = [
            ("kustomization.yaml", "patches: [{path: ./part.yaml}]\n"),
            ("chainsaw-test.yaml", "spec: {steps: [{try: [{assert: {file: ./expected.yaml}}]}]}\n"),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(place.path().join(name), text).unwrap());
        let mut neighbours = Neighbours::default();
        let mut is_part = |name: &str| Input::File(place.path().join(name)).is_part(&mut neighbours);
        assert!(is_part("part.yaml") && is_part("expected.yaml") && !is_part("map.yaml"));
        files.iter().for_each(|(name, _)| std::fs::remove_file(place.path().join(name)).unwrap());
        assert!(
            is_part("part.yaml") && is_part("expected.yaml") && is_part("unused_patch.yaml") && !is_part("map.yaml")
        );
    }
}
