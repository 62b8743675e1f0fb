//! The objects of files as they were before. Only their places are kept: their texts are read again when they are needed,
//! since objects in memory would take a hundred times as much.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use machinery::Value;
use parking_lot::Mutex;

use crate::error::Error;
use sources::{Document, Input, InputPlace, Inputs, Object, TextPlace, Writer};

/// Whether objects of a kind are in namespaces. The namespace of a cluster-scoped object is ignored, as by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// The former state of an object.
#[derive(Debug, PartialEq)]
pub enum Counterpart {
    /// The object is new.
    None,
    One(Value),
    /// Several files have it, and none of them is the file of the object.
    Ambiguous(Vec<Arc<str>>),
}

const SCOPES: [Scope; 2] = [Scope::Namespaced, Scope::Cluster];

/// The places of objects.
#[derive(Default)]
pub struct Index {
    inputs: Vec<Input>,
    places: Vec<InputPlace>,
    /// Copies of the items of lists, since reading a list again for each of its items would take quadratic time.
    items: Option<Writer>,
    last: HashMap<Id, u32>,
    objects: Vec<ObjectPlace>,
    current: Current,
    problems: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
struct ObjectPlace {
    input: u32,
    /// The object before it with the same [`Id`], in each scope.
    previous: [Option<u32>; 2],
    text: TextPlace,
    is_item: bool,
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.str_at(path)
}

/// The group, kind and name of an object.
fn identity(object: &Value) -> (&str, &str, &str) {
    let version = text(object, &["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group, text(object, &["kind"]), text(object, &["metadata", "name"]))
}

fn namespace(object: &Value) -> &str {
    match text(object, &["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    }
}

/// A hash of what identifies an object in a scope.
type Id = u64;

fn id(object: &Value, scope: Scope) -> Id {
    let mut hasher = DefaultHasher::new();
    identity(object).hash(&mut hasher);
    if scope == Scope::Namespaced {
        namespace(object).hash(&mut hasher);
    }
    hasher.finish()
}

impl Index {
    /// Reads the argument of `--old`. `current` are the inputs that are compared with it.
    pub fn of(argument: &str, current: Arc<Inputs>) -> Index {
        let Inputs { inputs, places, problems } = Inputs::of(&[argument.to_owned()]);
        let mut index = Index { problems, current: Current::new(current), ..Index::default() };
        for (number, input) in inputs.iter().enumerate() {
            let failed = |error: sources::Error| (input.name().to_string(), error.to_string());
            match input.documents() {
                Ok(documents) => {
                    for document in documents {
                        let added = document.and_then(|document| {
                            let unwritten = |source| sources::Error::Temporary { act: "write", source };
                            index.add(number, &document).map_err(unwritten)
                        });
                        index.problems.extend(added.map_err(failed).err());
                    }
                }
                Err(error) => index.problems.push(failed(error)),
            }
        }
        Index { inputs, places, ..index }
    }

    /// The inputs that could not be read, with the reason.
    pub fn problems(&self) -> &[(String, String)] {
        &self.problems
    }

    /// What cannot be decoded was not an object before.
    fn add(&mut self, input: usize, document: &Document) -> std::io::Result<()> {
        let Ok(input) = u32::try_from(input) else { return Ok(()) };
        for object in document.objects().map(|(objects, _)| objects).unwrap_or_default() {
            let text = match object.item {
                None => document.place(),
                Some(_) => {
                    let items = match &mut self.items {
                        Some(items) => items,
                        None => self.items.insert(Writer::new()?),
                    };
                    items.add(object.value.to_json().as_bytes())?
                }
            };
            let (Some(text), Ok(number)) = (text, u32::try_from(self.objects.len())) else { continue };
            let previous = SCOPES.map(|scope| self.last.insert(id(&object.value, scope), number));
            self.objects.push(ObjectPlace { input, previous, text, is_item: object.item.is_some() });
        }
        Ok(())
    }

    /// The former state of an object of an input. The same file counts most; then a file from which the object has been
    /// moved. Fails with a one-line message.
    pub fn find(&self, object: &Value, scope: Scope, input: Option<usize>) -> Result<Counterpart, Error> {
        if text(object, &["metadata", "name"]).is_empty() {
            return Ok(Counterpart::None);
        }
        let id = id(object, scope);
        let candidates = self.candidates(id, scope);
        let place = input.and_then(|input| self.current.inputs.places.get(input));
        let same = place.and_then(|place| {
            let at = |candidate: &&ObjectPlace| self.places.get(candidate.input as usize);
            let path = |candidate: &&ObjectPlace| at(candidate).is_some_and(|other| other.path == place.path);
            let below = |candidate: &&ObjectPlace| at(candidate).is_some_and(|other| other.below == place.below);
            candidates.iter().find(path).or_else(|| candidates.iter().find(below))
        });
        if let Some(same) = same {
            return self.read(same, object);
        }
        let moved: Vec<&ObjectPlace> = candidates.iter().filter(|candidate| !self.is_kept(candidate, id)).collect();
        let near = |candidate: &ObjectPlace| match (place, self.places.get(candidate.input as usize)) {
            (Some(place), Some(other)) => place.common(other),
            _ => 0,
        };
        let nearest = moved.iter().map(|candidate| near(candidate)).max().unwrap_or_default();
        match moved.iter().filter(|candidate| near(candidate) == nearest).collect::<Vec<_>>()[..] {
            [] => Ok(Counterpart::None),
            [one] => self.read(one, object),
            ref several => {
                let names = several.iter().filter_map(|candidate| self.inputs.get(candidate.input as usize));
                Ok(Counterpart::Ambiguous(names.rev().map(Input::name).collect()))
            }
        }
    }

    /// The places of objects that may be the former state of an object, the last one of each input.
    fn candidates(&self, id: Id, scope: Scope) -> Vec<ObjectPlace> {
        let mut next = self.last.get(&id).copied();
        let mut found: Vec<ObjectPlace> = vec![];
        while let Some(place) = next.and_then(|number| self.objects.get(number as usize)) {
            if found.last().is_none_or(|last| last.input != place.input) {
                found.push(*place);
            }
            next = place.previous[scope as usize];
        }
        found
    }

    /// Whether the object of a place is still in its file.
    fn is_kept(&self, candidate: &ObjectPlace, id: Id) -> bool {
        self.places.get(candidate.input as usize).is_some_and(|place| self.current.has(place, id))
    }

    fn read(&self, place: &ObjectPlace, wanted: &Value) -> Result<Counterpart, Error> {
        let document = match (self.inputs.get(place.input as usize), &self.items) {
            (_, Some(items)) if place.is_item => Input::Part("--old".into(), items.part()).document(place.text)?,
            (Some(input), _) => input.document(place.text)?,
            (None, _) => return Ok(Counterpart::None),
        };
        let found = document.objects().ok().and_then(|(objects, _)| objects.into_iter().next());
        // another object may have the same hash
        let found = found.map(Object::into_value).filter(|object| identity(object) == identity(wanted));
        Ok(found.map_or(Counterpart::None, Counterpart::One))
    }
}

/// The objects that are in the inputs now, each of which is read at most once more for this.
#[derive(Default)]
struct Current {
    inputs: Arc<Inputs>,
    by_path: HashMap<String, usize>,
    by_below: HashMap<String, usize>,
    /// The objects of the inputs that were asked for.
    known: Mutex<HashMap<usize, Arc<HashSet<Id>>>>,
}

impl Current {
    fn new(inputs: Arc<Inputs>) -> Current {
        let numbered = |of: fn(&InputPlace) -> &String| {
            let places = inputs.places.iter().enumerate().filter(|(_, place)| !of(place).is_empty());
            places.map(|(number, place)| (of(place).clone(), number)).collect()
        };
        let (by_path, by_below) = (numbered(|place| &place.path), numbered(|place| &place.below));
        Current { inputs, by_path, by_below, known: Mutex::default() }
    }

    /// Whether the file of a place has an object now.
    fn has(&self, place: &InputPlace, id: Id) -> bool {
        let number = self.by_path.get(&place.path).or_else(|| self.by_below.get(&place.below)).copied();
        let Some((number, input)) = number.and_then(|number| Some((number, self.inputs.inputs.get(number)?))) else {
            return false;
        };
        let known = self.known.lock().get(&number).cloned();
        let known = known.unwrap_or_else(|| {
            let ids = Arc::new(ids_of(input));
            self.known.lock().insert(number, ids.clone());
            ids
        });
        known.contains(&id)
    }
}

/// The ids of the objects of an input, in both scopes.
fn ids_of(input: &Input) -> HashSet<Id> {
    let documents = input.documents().into_iter().flatten().filter_map(Result::ok);
    let objects = documents.flat_map(|document| document.objects().map(|(objects, _)| objects).unwrap_or_default());
    objects.flat_map(|object| SCOPES.map(|scope| id(&object.value, scope))).collect()
}
