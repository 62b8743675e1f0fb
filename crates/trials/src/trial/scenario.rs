//! Scenarios: a command that is started, the steps that then happen, and a check of the result.

use std::path::Path;
use std::time::Duration;

use cel::rules::CALL_COST_MAX;
use cel::{Decl, Environment, Program, Val, from_json};
use machinery::{Text, Value, yaml};

use crate::compare::Objects;

/// The course of a trial, from flags or from a file with the same fields.
#[derive(Clone, Default)]
pub struct Scenario {
    /// Sources of the objects that the server begins with.
    pub from: Vec<String>,
    /// Sets and files of Progress objects.
    pub progress: Vec<String>,
    /// Manifests that are applied before the command starts, such as its CRDs.
    pub setup: Vec<String>,
    /// The command under test, for `sh`.
    pub start: String,
    pub steps: Vec<Step>,
    pub check: Option<Check>,
    pub budget: Option<Duration>,
    pub seed: Option<u64>,
    /// The clients whose requests are disturbed, by the beginning of their user agents.
    pub clients: Vec<Text>,
    pub permissions: Permissions,
}

/// The rights of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    #[default]
    All,
    /// Each right that they use is also taken away, one at a time.
    MinusOne,
}

impl std::str::FromStr for Permissions {
    type Err = String;

    fn from_str(text: &str) -> Result<Permissions, String> {
        match text {
            "all" => Ok(Permissions::All),
            "minus-one" => Ok(Permissions::MinusOne),
            _ => Err(format!("permissions are all or minus-one, not {text:?}")),
        }
    }
}

/// A step: objects that are applied together, or a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Apply(Vec<Value>),
    Run(String),
}

impl Step {
    /// Reads a step: a command, an object, or a list of objects.
    fn read(value: &Value) -> Result<Step, String> {
        let is_object =
            |value: &Value| !value.str_at(&["kind"]).is_empty() && !value.str_at(&["apiVersion"]).is_empty();
        match value {
            Value::String(command) if !command.trim().is_empty() => Ok(Step::Run(command.to_string())),
            Value::Object(_) if value.str_at(&["kind"]) == "List" => {
                Ok(Step::Apply(value.items_at(&["items"]).to_vec()))
            }
            Value::Object(_) if is_object(value) => Ok(Step::Apply(vec![value.clone()])),
            Value::Array(items) if !items.is_empty() && items.iter().all(is_object) => Ok(Step::Apply(items.clone())),
            _ => Err("a step is a command, an object, or a list of objects".to_owned()),
        }
    }

    /// The steps of a text: a step for each document, or a list of them in one document.
    pub fn read_all(text: &str) -> Result<Vec<Step>, String> {
        let mut steps = vec![];
        for document in yaml::documents(text) {
            match yaml::decode(document.as_bytes()).map_err(|error| error.to_string())?.value {
                Value::Null => {}
                Value::Array(items) => steps.extend(items.iter().map(Step::read).collect::<Result<Vec<_>, _>>()?),
                value => steps.push(Step::read(&value)?),
            }
        }
        if steps.is_empty() { Err("there is no step".to_owned()) } else { Ok(steps) }
    }

    /// The steps of a flag: those of a file, or a command.
    pub fn of_flag(given: &str) -> Result<Vec<Step>, String> {
        let path = Path::new(given);
        let is_manifest =
            path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|one| ending == *one));
        if !is_manifest || given.contains(char::is_whitespace) {
            return Ok(vec![Step::Run(given.to_owned())]);
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{given}: {error}"))?;
        Step::read_all(&text).map_err(|why| format!("{given}: {why}"))
    }
}

/// A check of the objects after each step.
#[derive(Clone)]
pub enum Check {
    /// A command that fails if something is wrong, for `sh`.
    Command(String),
    /// A CEL expression on `objects`, which is true if all is well.
    Expression(String, std::sync::Arc<Program>),
}

impl Check {
    /// What compiles as an expression is one, and anything else is a command. Fails if it has a call or a field of `objects`, which no
    /// command has, and does not compile.
    pub fn read(text: &str) -> Result<Check, String> {
        let env = Environment::kubernetes(machinery::Release::default().minor()).declared("objects", Decl::json());
        let checked = env.check(text).map_err(|error| error.to_string());
        match checked.and_then(|checked| Program::new(&env, &checked).map_err(|error| error.to_string())) {
            Ok(program) => Ok(Check::Expression(text.to_owned(), std::sync::Arc::new(program))),
            Err(error) if ["objects.", "objects[", "(objects"].iter().any(|part| text.contains(part)) => {
                let why = error.lines().next().unwrap_or_default();
                Err(format!("the check {text:?} is no CEL expression: {why}"))
            }
            Err(_) => Ok(Check::Command(text.to_owned())),
        }
    }
}

/// Evaluates an expression. Fails with a line that names it and its result.
pub fn evaluate(text: &str, program: &Program, objects: &Objects) -> Result<(), String> {
    let all: Value = objects.values().cloned().collect();
    let value = from_json(&all, Decl::json()).map_err(|error| error.to_string())?;
    match program.eval(&[("objects", value)], CALL_COST_MAX).result {
        Ok(Val::Bool(true)) => Ok(()),
        Ok(Val::Bool(false)) => Err(format!("{text} is false")),
        Ok(_) => Err(format!("{text} is not a boolean")),
        Err(error) => Err(format!("{text} fails: {error}")),
    }
}

const FIELDS: [&str; 10] =
    ["from", "progress", "setup", "start", "steps", "check", "budget", "seed", "clients", "permissions"];

impl Scenario {
    /// Reads a file. Paths in it are relative to the working directory, as those of commands are.
    pub fn read(path: &str) -> Result<Scenario, String> {
        let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let value = yaml::decode(&text).map_err(|error| format!("{path}: {error}"))?.value;
        Scenario::of(&value).map_err(|why| format!("{path}: {why}"))
    }

    fn of(value: &Value) -> Result<Scenario, String> {
        let Value::Object(fields) = value else {
            return Err("a scenario is an object with start and steps".to_owned());
        };
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(format!("unknown field {unknown:?}: the fields are {}", FIELDS.join(", ")));
        }
        let wrong = |name: &str, wanted: &str| format!("{name} has to be {wanted}");
        let text = |name: &str| match value.get(name) {
            None => Ok(""),
            Some(text) => text.as_str().ok_or_else(|| wrong(name, "a text")),
        };
        let list = |name: &str| match value.get(name) {
            None => Ok(vec![]),
            Some(Value::String(one)) => Ok(vec![one.to_string()]),
            Some(Value::Array(items)) if items.iter().all(|item| item.as_str().is_some()) => {
                Ok(value.texts_at(&[name]).map(str::to_owned).collect())
            }
            Some(_) => Err(wrong(name, "a text or a list of texts")),
        };
        let seed = |seed: &Value| {
            let seed = seed.as_int().and_then(|seed| u64::try_from(seed).ok());
            seed.ok_or_else(|| wrong("seed", "a number that is not negative"))
        };
        let steps = match value.get("steps") {
            None => vec![],
            Some(Value::String(file)) => Step::of_flag(file)?,
            Some(Value::Array(steps)) => steps.iter().map(Step::read).collect::<Result<_, _>>()?,
            Some(_) => return Err(wrong("steps", "a list of steps, or a file")),
        };
        let budget = match text("budget")? {
            "" => None,
            text => Some(machinery::time::parse_duration(text).map_err(|error| format!("budget: {error}"))?),
        };
        Ok(Scenario {
            from: list("from")?,
            progress: list("progress")?,
            setup: list("setup")?,
            start: text("start")?.to_owned(),
            steps,
            check: Some(text("check")?).filter(|text| !text.is_empty()).map(Check::read).transpose()?,
            budget,
            seed: value.get("seed").map(seed).transpose()?,
            clients: list("clients")?.iter().map(Text::from).collect(),
            permissions: match text("permissions")? {
                "" => Permissions::All,
                text => text.parse()?,
            },
        })
    }
}
