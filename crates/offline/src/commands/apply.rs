//! Server-side apply of one file onto another.

use machinery::Value;

use super::{CommandInputs, Patch, RequestOptions, drop_system_fields, objects, of_inputs, stored};
use crate::error::Error;
use sources::Inputs;

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// The object with its managedFields.
    Object(Value),
    /// The conflicts: the fields and the managers that own them.
    Refused(String),
}

/// Applies the objects of the inputs as a field manager, each onto the object of its kind and name in `live`, if there is one. The
/// error is one line.
pub async fn apply(
    settings: &CommandInputs,
    live: &[String],
    manager: &str,
    force: bool,
) -> Result<Vec<Applied>, Error> {
    let (engine, configurations) = objects(settings).await?;
    let before = of_inputs(&engine, &Inputs::of(live))?;
    for (target, object) in &before {
        stored(&engine, target, object).await?;
    }
    let mut all = vec![];
    for (target, configuration) in &configurations {
        let options = RequestOptions { field_manager: manager.to_owned(), force, ..RequestOptions::strict() };
        let verdict = engine.patch(target, "", Patch::Apply, configuration, &options).await;
        all.push(match verdict.object() {
            Ok(mut object) => {
                let managed = object.remove_at(&["metadata", "managedFields"]);
                drop_system_fields(&mut object, configuration);
                managed.into_iter().for_each(|managed| object.set_at(&["metadata", "managedFields"], managed));
                Applied::Object(object)
            }
            Err(status) => Applied::Refused(status.message.clone()),
        });
    }
    Ok(all)
}
