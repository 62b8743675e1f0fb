//! Small commands over the engine, which print what the server makes of objects in files.

mod apply;
mod explain;
mod table;

use machinery::{Map, Release, Value};

use crate::engine::{Engine, Options, Patch, RequestOptions, Target, Verdict};
use crate::error::Error;
use crate::findings::{Report, Style};
use crate::validate::prepare;
use sources::Inputs;

pub use apply::{Applied, apply};
pub use explain::explain;
pub use table::table;

#[derive(Clone, Debug, Default)]
pub struct CommandInputs {
    /// Files, directories, globs, `-` for stdin, `git:REF[:PATH]`.
    pub inputs: Vec<String>,
    /// Inputs with CRDs, or a server. CRDs among `inputs` are found anyway.
    pub crds: Vec<String>,
    pub release: Release,
}

/// The engine with the definitions, and the objects of the inputs, without these definitions. The error is one line, or the text
/// of a report on the definitions.
async fn objects(settings: &CommandInputs) -> Result<(Engine, Vec<(Target, Value)>), Error> {
    let inputs = Inputs::of(&settings.inputs);
    inputs.complete()?;
    let engine = Engine::start(&Options { release: settings.release, ..Options::default() }).await?;
    let engines = [engine];
    let wrong = prepare(&engines, &settings.crds, &inputs).await?;
    if !wrong.is_empty() {
        let mut text = vec![];
        let mut report = Report::begin(Style::default(), &mut text)?;
        wrong.iter().try_for_each(|checked| report.checked(checked))?;
        report.end()?;
        return Err(format!("a definition is invalid:\n{}", String::from_utf8_lossy(&text).trim_end()).into());
    }
    let [engine] = engines;
    let found = of_inputs(&engine, &inputs)?;
    Ok((engine, found))
}

/// The objects of inputs, without CRDs.
fn of_inputs(engine: &Engine, inputs: &Inputs) -> Result<Vec<(Target, Value)>, Error> {
    let mut found = vec![];
    for (document, object) in inputs.objects()? {
        let (version, kind) = (object.value.str_at(&["apiVersion"]), object.value.str_at(&["kind"]));
        if kind == "CustomResourceDefinition" {
            continue;
        }
        let unknown = || format!("{}: no matches for kind {kind:?} in version {version:?}", document.file);
        let target = engine.target(&object.value).ok_or_else(unknown)?;
        found.push((target, object.into_value()));
    }
    Ok(found)
}

/// Takes the object out of a verdict. The error names the object that was asked for.
fn shown(target: &Target, verdict: &Verdict) -> Result<Value, Error> {
    let (kind, name) = (target.kind().to_string(), target.name().to_owned());
    verdict.object().map_err(|status| Error::Object { kind, name, status })
}

/// Stores an object as it is and reads it, so that it is pruned and defaulted but not validated.
async fn stored(engine: &Engine, target: &Target, object: &Value) -> Result<Value, Error> {
    shown(target, &engine.deposit(target, object).await)
}

/// The objects with their defaults and without unknown fields. Fails with a one-line message.
pub async fn defaulted(settings: &CommandInputs) -> Result<Vec<Value>, Error> {
    let (engine, objects) = objects(settings).await?;
    let mut all = vec![];
    for (target, object) in &objects {
        let mut shown = stored(&engine, target, object).await?;
        drop_system_fields(&mut shown, object);
        all.push(shown);
    }
    Ok(all)
}

/// The objects without unknown fields. Fails with a one-line message.
pub async fn pruned(settings: &CommandInputs) -> Result<Vec<Value>, Error> {
    let (engine, objects) = objects(settings).await?;
    let mut all = vec![];
    for (target, object) in &objects {
        all.push(common(object, &stored(&engine, target, object).await?));
    }
    Ok(all)
}

/// The objects in another version of their kinds. Fails with a one-line message.
pub async fn converted(settings: &CommandInputs, version: &str) -> Result<Vec<Value>, Error> {
    let (engine, objects) = objects(settings).await?;
    let mut all = vec![];
    for (target, object) in &objects {
        stored(&engine, target, object).await?;
        let api_version = match object.str_at(&["apiVersion"]).split_once('/') {
            Some((group, _)) => format!("{group}/{version}"),
            None => version.to_owned(),
        };
        let missing = || format!("no matches for kind {:?} in version {api_version:?}", target.kind());
        let mapping = engine.mapping(&api_version, target.kind()).ok_or_else(missing)?;
        let other = Target::new(mapping, target.namespace(), target.name());
        let mut shown = shown(target, &engine.get(&other).await)?;
        drop_system_fields(&mut shown, object);
        all.push(shown);
    }
    Ok(all)
}

/// Removes the fields that the server has set, unless the input has them.
fn drop_system_fields(shown: &mut Value, input: &Value) {
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace"] {
        if input.at(&["metadata", field]).is_none() {
            shown.remove_at(&["metadata", field]);
        }
    }
}

/// The part of a value that another value has, too: fields by their names, items by their indexes.
fn common(value: &Value, other: &Value) -> Value {
    match (value, other) {
        (Value::Object(fields), Value::Object(kept)) => {
            let both = |(name, field): (&machinery::Text, &Value)| Some((name.clone(), common(field, kept.get(name)?)));
            let mut out = Map::new();
            for (name, field) in fields.iter().filter_map(both) {
                out.insert(name, field);
            }
            Value::Object(out)
        }
        (Value::Array(items), Value::Array(kept)) => {
            Value::Array(items.iter().zip(kept).map(|(item, kept)| common(item, kept)).collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests;
