//! The objects that others depend on: CRDs, policies and their parameters, namespaces.

use std::collections::{HashMap, HashSet};

use machinery::Value;

use super::check::{self, merged, name_of};
use super::index::Counterpart;
use super::previous::Previous;
use super::{Number, Settings};
use crate::engine::{Content, Engine, RequestOptions};
use crate::error::Error;
use crate::findings::{self, Checked, Finding};
use sources::cluster::{self, Cluster};
use sources::{Document, Input, InputPlace, Inputs, Neighbours, Object, Undecodable};

/// The kinds that others depend on, in the order in which they are created.
const KINDS: [&str; 7] = [
    "Namespace",
    "LimitRange",
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
];

/// The path of all CRDs of a server.
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The inputs of `--crds` and `--policies`. Fails with a one-line message.
pub async fn environment(settings: &Settings) -> Result<Inputs, Error> {
    let mut found = Inputs::default();
    for argument in settings.crds.iter().chain(&settings.policies) {
        if let Some(kubeconfigs) = cluster::kubeconfigs(argument) {
            let list = Cluster::connect(&kubeconfigs).await?.list(CRDS).await?;
            let list =
                machinery::json!({"apiVersion": "v1", "kind": "List", "items": (list.into_iter().collect::<Value>())});
            found.inputs.push(Input::Read(argument.as_str().into(), list.to_json().into()));
            found.places.push(InputPlace::default());
            continue;
        }
        let Inputs { inputs, places, problems } = Inputs::of(std::slice::from_ref(argument));
        // as among the manifests: of a directory, what is no manifest is left out
        let mut neighbours = Neighbours::default();
        let named = inputs.into_iter().zip(places);
        let (inputs, places): (Vec<_>, Vec<_>) =
            named.filter(|(input, place)| place.below.is_empty() || input.is_manifest(&mut neighbours)).unzip();
        found.inputs.extend(inputs);
        found.places.extend(places);
        found.problems.extend(problems);
    }
    Ok(found)
}

/// An object that others depend on.
struct Definition {
    /// The number of its document, unless it is part of the environment.
    number: Option<Number>,
    document: Document,
    object: Object,
}

/// Why inputs are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Their objects only exist: `--crds` and `--policies`.
    Environment,
    /// Their objects are checked as well.
    Checked,
}

/// The objects that others depend on.
#[derive(Default)]
pub struct Definitions(Vec<Definition>);

/// The findings of these objects.
#[derive(Default)]
pub struct Defined {
    pub of_environment: Vec<Checked>,
    pub of_inputs: HashMap<(Number, Option<usize>), Vec<Finding>>,
}

impl Definitions {
    /// Finds them in the inputs. Returns the inputs of the environment that cannot be read, and why; what cannot be read
    /// of the others is reported when all objects are checked.
    pub fn collect(&mut self, environment: &Inputs, inputs: &Inputs) -> Vec<(String, String)> {
        let is_kind = |kind: &str| KINDS.contains(&kind);
        self.visit(environment, Purpose::Environment, &is_kind, &KINDS);
        self.visit(inputs, Purpose::Checked, &is_kind, &KINDS);
        let mut parameters = HashSet::new();
        for Definition { object, .. } in &self.0 {
            let kind = object.value.str_at(&["spec", "paramKind", "kind"]);
            if !kind.is_empty() && !is_kind(kind) {
                parameters.insert(kind.to_owned());
            }
        }
        self.0.sort_by_key(|found| KINDS.iter().position(|kind| *kind == found.object.value.str_at(&["kind"])));
        if !parameters.is_empty() {
            let words: Vec<&str> = parameters.iter().map(String::as_str).collect();
            let is_parameter = |kind: &str| parameters.contains(kind);
            self.visit(environment, Purpose::Environment, &is_parameter, &words);
            self.visit(inputs, Purpose::Checked, &is_parameter, &words);
        }
        problems_of(environment)
    }

    /// Adds the objects of some kinds. Documents without any of the words are not decoded.
    fn visit(&mut self, inputs: &Inputs, purpose: Purpose, is_kind: &dyn Fn(&str) -> bool, words: &[&str]) {
        for (i, input) in inputs.inputs.iter().enumerate() {
            let Ok(documents) = input.documents() else { continue };
            for (number, document) in documents.enumerate() {
                let Some(document) = document.ok().filter(|found| words.iter().any(|word| found.mentions(word))) else {
                    continue;
                };
                let Ok((objects, _)) = document.objects() else { continue };
                for object in objects.into_iter().filter(|object| is_kind(object.value.str_at(&["kind"]))) {
                    let number = (purpose == Purpose::Checked).then_some((i, number));
                    self.0.push(Definition { number, document: document.clone(), object });
                }
            }
        }
    }

    /// Creates the definitions, and returns the findings about them.
    pub async fn define(self, engines: &[Engine], previous: &Previous) -> Defined {
        let mut defined = Defined::default();
        for Definition { number, document, object } in self.0 {
            let mut all = vec![];
            for engine in engines {
                all.push((
                    engine.release(),
                    define(engine, previous, number.map(|(input, _)| input), &document, &object).await,
                ));
            }
            if all.iter().all(|(_, found)| found.is_none()) {
                // no engine serves its kind, which is reported when all objects are checked
                continue;
            }
            let missing = || vec![check::missing(&document, &object)];
            let all = all.into_iter().map(|(release, found)| (release, found.unwrap_or_else(missing))).collect();
            let findings = merged(all, engines.len());
            match number {
                Some(number) => drop(defined.of_inputs.insert((number, object.item), findings)),
                None if findings.is_empty() => {}
                None => {
                    let object = name_of(&object.value);
                    defined.of_environment.push(Checked { file: document.file, object, findings });
                }
            }
        }
        defined
    }
}

/// The inputs of the environment without objects, and those that cannot be read or decoded: what they were to define would
/// be missing in silence.
fn problems_of(environment: &Inputs) -> Vec<(String, String)> {
    let mut problems = vec![];
    for (i, input) in environment.inputs.iter().enumerate() {
        // other files of a directory, such as templates, may be no manifests
        let is_named = environment.places.get(i).is_none_or(|place| place.below.is_empty());
        let mut problem = |why: String| problems.push((input.name().to_string(), why));
        let documents = match input.documents() {
            Ok(documents) => documents,
            Err(error) => {
                problem(error.to_string());
                continue;
            }
        };
        let mut is_empty = true;
        for document in documents {
            is_empty = false;
            match document {
                Ok(document) if is_named || KINDS.iter().any(|kind| document.mentions(kind)) => {
                    if let Err(Undecodable { line, why }) = document.objects() {
                        problem(format!("{}:{line}: {why}", input.name()));
                    }
                }
                Ok(_) => {}
                Err(error) => problem(error.to_string()),
            }
        }
        if is_empty && is_named {
            problem(format!("{}: there are no objects", input.name()));
        }
    }
    problems
}

/// Creates an object, which is in an input unless it is part of the environment. `None` if its kind is not served.
async fn define(
    engine: &Engine,
    previous: &Previous,
    input: Option<usize>,
    document: &Document,
    object: &Object,
) -> Option<Vec<Finding>> {
    let target = engine.target(&object.value)?;
    let mut found = vec![];
    if let Ok(Counterpart::One(old)) = previous.of(engine, &target, input, &object.value).await {
        let former = (&old, Previous::origin(&old));
        let verdict = engine.update_of(&target, former, &object.value, &RequestOptions::verdict()).await;
        found = check::of(document, object, &verdict);
    }
    let verdict = engine.define_as(&target, Content::of(object), &object.value).await;
    if found.is_empty() {
        found = check::of(document, object, &verdict);
    }
    if found.iter().any(|finding| finding.reason == findings::UNKNOWN_FIELD) {
        // store it without its unknown fields, since other objects are checked against it
        let lenient = engine.create(&target, Content::of(object), &RequestOptions::default()).await;
        found.extend(lenient.outcome.err().iter().flat_map(|status| findings::of_verdict(document, object, status)));
    }
    Some(found)
}
