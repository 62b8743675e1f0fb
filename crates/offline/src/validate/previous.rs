//! The objects as they were before: in files, in a commit, or on a server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use machinery::Value;
use tokio::sync::Mutex;

use crate::engine::{Engine, Target};
use crate::sources::cluster::{self, Cluster};
use crate::sources::{Document, Input, Inputs, Object, TextPlace, Writer};

/// The group, kind, namespace and name of an object.
type Key = (String, String, String, String);

/// Where the previous objects are.
#[derive(Default)]
pub enum Previous {
    /// There are none: every object is new.
    #[default]
    None,
    Files(Index),
    Live(Mutex<Cluster>),
}

/// Where the objects of files are. Their texts are read again when they are needed: objects in memory would take a
/// hundred times as much.
#[derive(Default)]
pub struct Index {
    inputs: Vec<Input>,
    /// Copies of the items of lists, since reading a list again for each of its items would take quadratic time.
    items: Option<Writer>,
    /// By the hash of the key.
    places: HashMap<u64, ObjectPlace>,
    problems: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
struct ObjectPlace {
    /// The number of the input; `None` for the item of a list.
    input: Option<u32>,
    text: TextPlace,
}

fn key(object: &Value) -> Key {
    let version = object.str_at(&["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let namespace = match object.str_at(&["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    };
    let text = str::to_owned;
    (text(group), text(object.str_at(&["kind"])), text(namespace), text(object.str_at(&["metadata", "name"])))
}

fn hash(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Index {
    fn of(argument: &str) -> Index {
        let Inputs { inputs, problems } = Inputs::of(&[argument.to_owned()]);
        let mut index = Index { problems, ..Index::default() };
        for (number, input) in inputs.iter().enumerate() {
            match input.documents() {
                Ok(documents) => {
                    let added = documents.flatten().try_for_each(|document| index.add(number, &document));
                    let failed = |error| format!("cannot write a temporary file: {error}");
                    index.problems.extend(added.map_err(failed).err().map(|why| (input.name().to_string(), why)));
                }
                Err(why) => index.problems.push((input.name().to_string(), why)),
            }
        }
        Index { inputs, ..index }
    }

    /// What cannot be decoded was not an object before.
    fn add(&mut self, input: usize, document: &Document) -> std::io::Result<()> {
        for object in document.objects().map(|(objects, _)| objects).unwrap_or_default() {
            let place = match object.item {
                None => document.place().map(|text| ObjectPlace { input: u32::try_from(input).ok(), text }),
                Some(_) => {
                    let items = match &mut self.items {
                        Some(items) => items,
                        None => self.items.insert(Writer::new()?),
                    };
                    items.add(object.value.to_json().as_bytes())?.map(|text| ObjectPlace { input: None, text })
                }
            };
            if let Some(place) = place {
                self.places.insert(hash(&key(&object.value)), place);
            }
        }
        Ok(())
    }

    /// The object of a key. The error is one line.
    fn find(&self, wanted: &Key) -> Result<Option<Value>, String> {
        let Some(ObjectPlace { input, text }) = self.places.get(&hash(wanted)).copied() else { return Ok(None) };
        let document = match (input.and_then(|input| self.inputs.get(input as usize)), &self.items) {
            (Some(input), _) => input.document(text)?,
            (None, Some(items)) => Input::Part("--old".into(), items.part()).document(text)?,
            (None, None) => return Ok(None),
        };
        let found = document.objects().ok().and_then(|(objects, _)| objects.into_iter().next());
        let found = found.map(Object::into_value);
        // another key may have the same hash
        Ok(found.filter(|object| key(object) == *wanted))
    }
}

impl Previous {
    /// Reads the argument of `--old`. The error is one line.
    pub async fn read(argument: Option<&str>) -> Result<Previous, String> {
        let Some(argument) = argument else { return Ok(Previous::None) };
        if let Some(kubeconfigs) = cluster::kubeconfigs(argument) {
            return Ok(Previous::Live(Mutex::new(Cluster::connect(&kubeconfigs).await?)));
        }
        Ok(Previous::Files(Index::of(argument)))
    }

    /// The inputs that could not be read, with the reason.
    pub fn problems(&self) -> &[(String, String)] {
        if let Previous::Files(index) = self { &index.problems } else { &[] }
    }

    /// Whether previous objects are those of a server: they have the fields that the server and other clients have set.
    pub fn is_live(&self) -> bool {
        matches!(self, Previous::Live(_))
    }

    /// The previous object of an object. The error is one line.
    pub async fn of(&self, engine: &Engine, target: &Target, object: &Value) -> Result<Option<Value>, String> {
        match self {
            Previous::None => Ok(None),
            // an object in a version that is no longer served cannot be compared
            Previous::Files(index) => Ok(index.find(&key(object))?.filter(|old| engine.target(old).is_some())),
            Previous::Live(_) if target.name().is_empty() => Ok(None),
            Previous::Live(cluster) => cluster.lock().await.get(&target.path("")).await,
        }
    }
}
