//! `pintle cel eval`: the value of an expression, and of its parts.

use std::fmt::Write as _;

use ::cel::rules::CALL_COST_MAX;
use ::cel::{Decl, Environment, Program, Traced, Type, Val, from_json, shown, trace};
use clap::Args;
use client::{Context as _, Result, fail};
use machinery::{Release, Value, json};

use crate::values::{TextOrJson, release};
use crate::{logs, manifests};

#[derive(Args)]
pub struct Eval {
    /// The expression, such as 'self.spec.replicas <= 5'.
    #[arg(value_name = "EXPRESSION")]
    pub expression: String,

    /// File with the object, YAML or JSON, that is self; - for stdin. A ValidatingAdmissionPolicy calls it object, which is
    /// possible as well.
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<String>,

    /// File with the object before an update: oldSelf, or oldObject.
    #[arg(long, value_name = "FILE", requires = "filename")]
    pub old: Option<String>,

    /// File with the CustomResourceDefinition of the object, whose schema has the types; without it, all values are dynamic.
    #[arg(long, value_name = "FILE", requires = "filename")]
    pub crd: Option<String>,

    /// Release of Kubernetes whose functions the expression may use: 1.35, 1.36 or 1.37 [default: 1.37].
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub kubernetes_version: Option<Release>,

    /// The form of the result.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: TextOrJson,
}

/// Prints value, type, cost and the values of the parts. The error is that of the files or of the expression.
pub fn run(task: &Eval) -> Result<()> {
    let object = task.filename.as_deref().map(only).transpose()?;
    let old = task.old.as_deref().map(only).transpose()?;
    let decl = match (&task.crd, &object) {
        (Some(crd), Some(object)) => Decl::from_resource_schema(&schema_of(crd, object)?),
        _ => Decl::json().clone(),
    };
    let mut env = Environment::kubernetes(task.kubernetes_version.unwrap_or_default().minor());
    let mut values = vec![];
    for (names, value) in [(["self", "object"], &object), (["oldSelf", "oldObject"], &old)] {
        let Some(value) = value else { continue };
        for name in names {
            env = env.declared(name, &decl);
            values.push((name, from_json(value, &decl).context(name)?));
        }
    }
    let checked = env.check(&task.expression)?;
    let program = Program::new(&env, &checked)?;
    let outcome = program.eval(&values, CALL_COST_MAX);
    let parts = trace(&env, &checked, &values, CALL_COST_MAX);
    let result = Evaluated { output: checked.output_type(), value: outcome.result.as_ref(), cost: outcome.cost, parts };
    let text = match task.output {
        TextOrJson::Text => result.text(),
        TextOrJson::Json => result.json().to_json() + "\n",
    };
    logs::print(text.as_bytes())?;
    outcome.result.map(|_| ()).context("the expression fails")
}

/// The only object of a file.
fn only(file: &str) -> Result<Value> {
    let mut objects = manifests::objects(file)?;
    match objects.len() {
        1 => Ok(objects.remove(0)),
        0 => fail(format!("{file}: there is no object")),
        _ => fail(format!("{file}: there is more than one object")),
    }
}

fn schema_of(file: &str, object: &Value) -> Result<Value> {
    let (group, version) = object.str_at(&["apiVersion"]).split_once('/').unwrap_or_default();
    let objects = manifests::objects(file)?;
    let is_of = |definition: &&Value| {
        definition.str_at(&["kind"]) == "CustomResourceDefinition"
            && definition.str_at(&["spec", "group"]) == group
            && definition.str_at(&["spec", "names", "kind"]) == object.str_at(&["kind"])
    };
    let definition = objects.iter().find(is_of).ok_or_else(|| {
        let kind = object.str_at(&["kind"]);
        format!("{file}: there is no CustomResourceDefinition of {kind} in group {group:?}")
    })?;
    let versions = definition.items_at(&["spec", "versions"]);
    let found = versions.iter().find(|found| found.str_at(&["name"]) == version);
    let schema = found.and_then(|version| version.at(&["schema", "openAPIV3Schema"]));
    Ok(schema.cloned().ok_or_else(|| format!("{file}: version {version:?} has no schema"))?)
}

struct Evaluated<'e> {
    output: &'e Type,
    value: Result<&'e Val<'e>, &'e ::cel::Error>,
    cost: u64,
    parts: Vec<Traced>,
}

impl Evaluated<'_> {
    /// The type at run time where the checker knows none.
    fn type_name(&self) -> String {
        match (self.output, self.value) {
            (Type::Dyn, Ok(value)) => value.type_of().format(""),
            (output, _) => output.format(""),
        }
    }

    fn text(&self) -> String {
        let value = self.value.map_or_else(|error| format!("error: {error}"), shown);
        let mut out = format!("value: {value}\ntype:  {}\ncost:  {}\n", self.type_name(), self.cost);
        if !self.parts.is_empty() {
            out.push_str("trace:\n");
        }
        for part in &self.parts {
            let value = part.value.clone().unwrap_or_else(|error| format!("error: {error}"));
            let text = part.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = write!(out, "{}{text} = {}", "  ".repeat(part.depth + 1), shortened(&value));
            // the variables of loops cost nothing
            let cost = if part.cost == 0 { String::new() } else { format!(" (cost {})", part.cost) };
            let _ = writeln!(out, "{cost}");
        }
        out
    }

    fn json(&self) -> Value {
        let outcome = |value: Result<String, String>| match value {
            Ok(text) => ("value", machinery::value::decode(text.as_bytes()).unwrap_or_else(|_| Value::from(text))),
            Err(error) => ("error", Value::from(error)),
        };
        let part = |part: &Traced| {
            let mut row = json!({"depth": (part.depth), "expression": (part.text.as_str()), "cost": (part.cost)});
            let (key, value) = outcome(part.value.clone());
            row.set_at(&[key], value);
            row
        };
        let parts: Value = self.parts.iter().map(part).collect();
        let mut row = json!({"type": (self.type_name()), "cost": (self.cost), "trace": parts});
        let (key, value) = outcome(self.value.map(shown).map_err(ToString::to_string));
        row.set_at(&[key], value);
        row
    }
}

/// The beginning of a long value.
fn shortened(text: &str) -> String {
    const LETTERS_MAX: usize = 100;
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(expression: &str, with_crd: bool) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_string_lossy().into_owned()
        };
        let filename = at("boat.yaml", "apiVersion: example.com/v1\nkind: Boat\nspec: {crew: 5}\n");
        let crd = at(
            "crd.yaml",
            "kind: CustomResourceDefinition\nspec: {group: example.com, names: {kind: Boat}, versions: [{name: v1, schema: \
             {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {crew: {type: integer}}}}}}}]}\n",
        );
        let task = Eval {
            expression: expression.to_owned(),
            filename: Some(filename),
            old: None,
            crd: with_crd.then_some(crd),
            kubernetes_version: None,
            output: TextOrJson::Text,
        };
        Ok(run(&task)?)
    }

    #[test]
    fn schemas_have_types() {
        assert_eq!(eval("self.spec.crew + 1", true), Ok(()));
        assert_eq!(eval("object.spec.crew + 1", false), Ok(()));
        let error = eval("self.spec.sails", true);
        assert!(error.unwrap_err().contains("undefined field 'sails'"));
        let error = eval("self.spec.sails", false);
        assert_eq!(error, Err("the expression fails: no such key: sails".to_owned()));
        let error = eval("oldSelf", false);
        assert!(error.unwrap_err().contains("undeclared reference to 'oldSelf'"));
    }

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(shortened("é"), "é");
        assert_eq!(shortened(&"é".repeat(101)).chars().count(), 101);
    }
}
