//! The format of suites: that of openshift/api, with additions. `schema.json` describes it.
//!
//! A case becomes a list of steps: the forms `onCreate`, `onUpdate` and `onConvert` are short for common lists.

use std::path::{Path, PathBuf};

use machinery::patch::{Unknown, json_patch};
use machinery::{Value, yaml};
use server::User;

use super::fixtures;

/// A suite: what exists, and the cases.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    pub file: PathBuf,
    pub name: String,
    /// The name of the definition that is tested, if there are several in the files.
    pub definition: String,
    /// The files or directories with definitions, relative to the suite. If there are none, they are searched for as
    /// openshift/api does.
    pub definitions: Vec<PathBuf>,
    pub feature_gates: Vec<String>,
    /// The only version of the definition that the suite tests; empty for all.
    pub version: String,
    /// Files with objects that exist in every case, such as policies with their bindings.
    pub files: Vec<PathBuf>,
    /// Objects that exist in every case.
    pub given: Vec<Value>,
    pub cases: Vec<Case>,
    /// Fields that the format does not have, one line each.
    pub notes: Vec<String>,
}

impl Suite {
    /// Whether the suite has policies for built-in kinds, and no definition.
    pub fn is_of_policies(&self) -> bool {
        self.definition.is_empty() && self.definitions.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// The list of the case and its index in it.
    pub place: (&'static str, usize),
    /// The namespace of the objects; `default` if it is empty.
    pub namespace: String,
    /// Objects that exist in this case only.
    pub given: Vec<Value>,
    /// The steps, or why there are none.
    pub steps: Result<Vec<Step>, String>,
}

impl Default for Step {
    fn default() -> Step {
        Step {
            action: Action::Read(String::new()),
            user: None,
            error: None,
            warnings: None,
            expected: None,
            ends: false,
            index: None,
        }
    }
}

/// A request, and what is expected of its response.
#[derive(Clone, Debug)]
pub struct Step {
    pub action: Action,
    pub user: Option<User>,
    /// A part of the message of the expected error.
    pub error: Option<String>,
    pub warnings: Option<Warnings>,
    /// The object that is stored afterwards.
    pub expected: Option<Value>,
    /// Whether the case ends with an expected error.
    pub ends: bool,
    /// The index in the steps of a scenario.
    pub index: Option<usize>,
}

/// The expected warnings of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warnings {
    /// These and no others.
    All(Vec<String>),
    /// None of a policy.
    NoneOfPolicies,
    /// One that contains a text.
    Containing(String),
}

#[derive(Clone, Debug)]
pub enum Action {
    Create(Value),
    Update(Value),
    /// Updates the status of the object as the last response shows it.
    UpdateStatus(Value),
    /// A merge patch.
    Patch(Value),
    Apply {
        object: Value,
        manager: String,
        force: bool,
    },
    Delete,
    /// Reads the object, in another version if one is given.
    Read(String),
    /// Replaces the definition by a patched one, or by the one of its file if there are no operations.
    Define(json_patch::JsonPatch),
}

const SUITE: [&str; 12] = [
    "apiVersion", "name", "crdName", "crd", "crds", "featureGates", "version", "files", "given", "tests", "kind",
    "$schema",
];
const COMMON: [&str; 4] = ["name", "namespace", "given", "as"];

/// Reads a suite; `None` for a document without tests. Fails with a one-line message.
pub fn read(file: &Path, text: &[u8]) -> Result<Option<Suite>, String> {
    let mut value = yaml::decode(text).map_err(|error| error.to_string())?.value;
    if value.get("tests").is_none() {
        return Ok(None);
    }
    fixtures::insert(file, &mut value)?;
    let texts = |key: &str| -> Result<Vec<String>, String> {
        list(&value, key)?.iter().map(|item| text_of(item, key)).collect()
    };
    let paths =
        |key: &str| -> Result<Vec<PathBuf>, String> { Ok(texts(key)?.into_iter().map(PathBuf::from).collect()) };
    let mut definitions = paths("crds")?;
    definitions.extend(optional_text(&value, "crd")?.map(PathBuf::from));
    let mut suite = Suite {
        file: file.to_owned(),
        name: optional_text(&value, "name")?.unwrap_or_default(),
        definition: optional_text(&value, "crdName")?.unwrap_or_default(),
        definitions,
        feature_gates: texts("featureGates")?,
        version: optional_text(&value, "version")?.unwrap_or_default(),
        files: paths("files")?,
        given: objects(&value, "given")?,
        cases: vec![],
        notes: unknown(&value, &[&SUITE]).map(|key| format!("the field {key:?} has no effect")).collect(),
    };
    let tests = value.get("tests").unwrap_or(&Value::Null);
    let forms = ["onCreate", "onUpdate", "onConvert", "scenarios", "verdicts"];
    suite.notes.extend(unknown(tests, &[&forms]).map(|key| format!("the field tests.{key} has no effect")));
    for (form, steps) in [
        ("onCreate", on_create as fn(&Value) -> Result<Vec<Step>, String>),
        ("onUpdate", on_update),
        ("onConvert", on_convert),
        ("scenarios", scenario),
    ] {
        for (index, case) in list(tests, form)?.iter().enumerate() {
            suite.cases.push(self::case((form, index), case, steps)?);
        }
    }
    for (index, row) in list(tests, "verdicts")?.iter().enumerate() {
        suite.cases.extend(row_of_table(index, row).map_err(|why| format!("verdicts[{index}]: {why}"))?);
    }
    let is_of_definition = suite.cases.iter().any(|case| !["scenarios", "verdicts"].contains(&case.place.0));
    let has_policies = !suite.files.is_empty() || !suite.given.is_empty();
    if suite.is_of_policies() && (is_of_definition || !has_policies) {
        return Err("the suite names no definition: it has neither crdName nor crds".to_owned());
    }
    Ok(Some(suite))
}

fn case(
    place: (&'static str, usize),
    value: &Value,
    steps: fn(&Value) -> Result<Vec<Step>, String>,
) -> Result<Case, String> {
    let name = optional_text(value, "name")?.unwrap_or_default();
    let at = |why: String| format!("{}[{}]: {why}", place.0, place.1);
    let user = user(value).map_err(at)?;
    let steps = steps(value).map(|mut steps| {
        steps.iter_mut().for_each(|step| step.user = step.user.take().or_else(|| user.clone()));
        steps
    });
    let namespace = optional_text(value, "namespace").map_err(at)?.unwrap_or_default();
    Ok(Case { name, place, namespace, given: objects(value, "given").map_err(at)?, steps })
}

/// The cases of a row of the table: one for each of its objects.
fn row_of_table(index: usize, row: &Value) -> Result<Vec<Case>, String> {
    known(row, &[&COMMON, &["object", "objects", "verdict", "message"]], "the row")?;
    let mut objects = objects(row, "objects")?;
    if row.get("object").is_some() {
        objects.push(object(row, "object")?);
    }
    if objects.is_empty() {
        return Err("the row has neither object nor objects".to_owned());
    }
    let message = optional_text(row, "message")?.unwrap_or_default();
    let (error, warnings) = match optional_text(row, "verdict")?.unwrap_or_default().as_str() {
        "allowed" => (None, Some(Warnings::NoneOfPolicies)),
        "warned" => (None, Some(Warnings::Containing(message))),
        "denied" => (Some(message), None),
        other => return Err(format!("the verdict is {other:?}; wanted allowed, warned or denied")),
    };
    let (name, user) = (optional_text(row, "name")?.unwrap_or_default(), user(row)?);
    let namespace = optional_text(row, "namespace")?;
    let given = self::objects(row, "given")?;
    let case = |object: Value| {
        let kind = format!("{} {}", object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
        let name = if name.is_empty() { kind.trim_end().to_owned() } else { format!("{name}: {}", kind.trim_end()) };
        let own = object.str_at(&["metadata", "namespace"]).to_owned();
        let create =
            Step { user: user.clone(), warnings: warnings.clone(), ..step(Action::Create(object), error.clone()) };
        let namespace = namespace.clone().unwrap_or(own);
        Case { name, place: ("verdicts", index), namespace, given: given.clone(), steps: Ok(vec![create]) }
    };
    Ok(objects.into_iter().map(case).collect())
}

fn on_create(case: &Value) -> Result<Vec<Step>, String> {
    known(case, &[&COMMON, &["initial", "expected", "expectedError", "expectedWarnings"]], "the case")?;
    let create = Action::Create(object(case, "initial")?);
    let step = Step { warnings: warnings(case)?, ..step(create, error(case, "expectedError")?) };
    finished(vec![step], case)
}

fn on_update(case: &Value) -> Result<Vec<Step>, String> {
    const OWN: [&str; 8] = [
        "initialCRDPatches", "initial", "updatedCRDPatches", "updated", "expected", "expectedError",
        "expectedStatusError", "expectedWarnings",
    ];
    known(case, &[&COMMON, &OWN], "the case")?;
    let (initial, updated) = (object(case, "initial")?, object(case, "updated")?);
    let mut steps = vec![];
    let before = operations(case, "initialCRDPatches")?;
    let after = operations(case, "updatedCRDPatches")?;
    let is_patched = !before.operations.is_empty();
    if is_patched {
        steps.push(step(Action::Define(before), None));
    }
    steps.push(step(Action::Create(initial.clone()), None));
    if let Some(status) = initial.get("status").filter(|status| !status.is_null()) {
        steps.push(step(Action::UpdateStatus(status.clone()), None));
    }
    if is_patched || !after.operations.is_empty() {
        steps.push(step(Action::Define(after), None));
    }
    let update = step(Action::Update(updated.clone()), error(case, "expectedError")?);
    steps.push(Step { warnings: warnings(case)?, ..update });
    if let Some(status) = updated.get("status").filter(|status| !status.is_null()) {
        steps.push(step(Action::UpdateStatus(status.clone()), error(case, "expectedStatusError")?));
    }
    finished(steps, case)
}

fn on_convert(case: &Value) -> Result<Vec<Step>, String> {
    known(case, &[&COMMON, &["initial", "to", "expected", "expectedError"]], "the case")?;
    let to = optional_text(case, "to")?.ok_or("to is missing: the version to read")?;
    let read = step(Action::Read(to), error(case, "expectedError")?);
    finished(vec![step(Action::Create(object(case, "initial")?), None), read], case)
}

/// Adds what is stored in the end, unless an error ends the case.
fn finished(mut steps: Vec<Step>, case: &Value) -> Result<Vec<Step>, String> {
    if steps.iter().any(|step| step.ends) {
        return Ok(steps);
    }
    let expected = match case.get("expected") {
        Some(Value::String(text)) if text.is_empty() => None,
        Some(_) => Some(object(case, "expected")?),
        None => None,
    };
    let missing = Value::Null;
    if let Some(last) = steps.last_mut() {
        last.expected = Some(expected.unwrap_or(missing));
    }
    Ok(steps)
}

fn scenario(case: &Value) -> Result<Vec<Step>, String> {
    known(case, &[&COMMON, &["steps"]], "the scenario")?;
    let steps = list(case, "steps")?.iter().enumerate();
    steps.map(|(i, value)| scenario_step(i, value).map_err(|why| format!("steps[{i}]: {why}"))).collect()
}

fn scenario_step(index: usize, value: &Value) -> Result<Step, String> {
    const ACTIONS: [&str; 8] = ["create", "update", "updateStatus", "patch", "apply", "delete", "read", "patchCRD"];
    const MORE: [&str; 6] = ["as", "fieldManager", "force", "expected", "expectedError", "expectedWarnings"];
    known(value, &[&ACTIONS, &MORE], "the step")?;
    let given: Vec<&str> = ACTIONS.into_iter().filter(|action| value.get(action).is_some()).collect();
    let [name] = given.as_slice() else {
        return Err(format!("a step has one of {}", ACTIONS.join(", ")));
    };
    let action = match *name {
        "create" => Action::Create(object(value, name)?),
        "update" => Action::Update(object(value, name)?),
        "updateStatus" => Action::UpdateStatus(object(value, name)?),
        "patch" => Action::Patch(object(value, name)?),
        "apply" => Action::Apply {
            object: object(value, name)?,
            manager: optional_text(value, "fieldManager")?.unwrap_or_else(|| "pintle".to_owned()),
            force: value.is_true_at(&["force"]),
        },
        "delete" => Action::Delete,
        "read" => Action::Read(optional_text(value, name)?.unwrap_or_default()),
        _ => Action::Define(operations(value, name)?),
    };
    let expected = value.get("expected").map(|_| object(value, "expected")).transpose()?;
    let error = error(value, "expectedError")?;
    Ok(Step {
        action,
        user: user(value)?,
        error,
        warnings: warnings(value)?,
        expected,
        ends: false,
        index: Some(index),
    })
}

fn step(action: Action, error: Option<String>) -> Step {
    Step { action, ends: error.is_some(), error, ..Step::default() }
}

/// Refuses fields that the format does not have, which would be expectations that nothing checks.
fn known(value: &Value, groups: &[&[&str]], what: &str) -> Result<(), String> {
    if value.as_object().is_none() {
        return Err(format!("{what} is not a map"));
    }
    match unknown(value, groups).next() {
        Some(key) => Err(format!("{what} has an unknown field {key:?}")),
        None => Ok(()),
    }
}

fn unknown<'a>(value: &'a Value, groups: &'a [&[&str]]) -> impl Iterator<Item = &'a str> {
    let fields = value.as_object().into_iter().flat_map(machinery::Map::keys).map(machinery::Text::as_str);
    fields.filter(|key| !groups.iter().any(|group| group.contains(key)))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{key} is not a list")),
    }
}

fn text_of(value: &Value, key: &str) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{key} is not a text"))
}

fn optional_text(value: &Value, key: &str) -> Result<Option<String>, String> {
    value.get(key).filter(|value| !value.is_null()).map(|value| text_of(value, key)).transpose()
}

/// A text that an error contains; an empty one expects no error.
fn error(value: &Value, key: &str) -> Result<Option<String>, String> {
    Ok(optional_text(value, key)?.filter(|text| !text.is_empty()))
}

fn warnings(value: &Value) -> Result<Option<Warnings>, String> {
    let key = "expectedWarnings";
    let texts = || list(value, key)?.iter().map(|item| text_of(item, key)).collect::<Result<_, String>>();
    value.get(key).map(|_| Ok(Warnings::All(texts()?))).transpose()
}

/// An object, as a map or as a text of YAML.
fn object(value: &Value, key: &str) -> Result<Value, String> {
    match value.get(key) {
        Some(Value::String(text)) => match yaml::decode(text.as_bytes()) {
            Ok(decoded) if decoded.value.as_object().is_some() => Ok(decoded.value),
            Ok(_) => Err(format!("{key} is not an object")),
            Err(error) => Err(format!("{key}: {error}")),
        },
        Some(object @ Value::Object(_)) => Ok(object.clone()),
        Some(_) => Err(format!("{key} is not an object")),
        None => Err(format!("{key} is missing")),
    }
}

fn objects(value: &Value, key: &str) -> Result<Vec<Value>, String> {
    list(value, key)?.iter().map(|item| object(&Value::from([(key, item.clone())]), key)).collect()
}

fn operations(value: &Value, key: &str) -> Result<json_patch::JsonPatch, String> {
    let list: Value = list(value, key)?.iter().cloned().collect();
    json_patch::decode_patch(list.to_json().as_bytes(), Unknown::Ignored).map_err(|error| format!("{key}: {error}"))
}

fn user(value: &Value) -> Result<Option<User>, String> {
    let Some(user) = value.get("as") else { return Ok(None) };
    known(user, &[&["user", "uid", "groups", "extra"]], "as")?;
    let texts = |value: &Value, key: &str| -> Result<Vec<machinery::Text>, String> {
        list(value, key)?.iter().map(|item| Ok(text_of(item, key)?.into())).collect()
    };
    let extra = user.get("extra").unwrap_or(&Value::Null);
    let keys = extra.as_object().into_iter().flat_map(|extra| extra.keys().cloned().collect::<Vec<_>>());
    Ok(Some(User {
        name: optional_text(user, "user")?.ok_or("as has no user")?.into(),
        uid: optional_text(user, "uid")?.unwrap_or_default().into(),
        groups: texts(user, "groups")?,
        extra: keys.map(|key| Ok((key.clone(), texts(extra, &key)?))).collect::<Result<_, String>>()?,
    }))
}
