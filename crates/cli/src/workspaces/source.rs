//! A workspace from files and captures.

use client::{Failure, JsonClient, Method, Result, fail};
use embed::captures;
use machinery::{Text, Value, json, names, value};
use server::is_own;
use sources::{Plan, Planned};

use super::{delete, path, post, ready};
use crate::limits;
use crate::logs::print_error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    Empty,
    Workspace(&'a str),
    /// Sources of objects; of two objects with one name, that of the later one counts.
    Sources(&'a [String]),
}

impl<'a> Origin<'a> {
    /// The origin that the values of `--from` name: one name of a workspace, or sources. What cannot be the name of a workspace is a
    /// source.
    pub fn of(from: &'a [String]) -> Result<Origin<'a>> {
        let is_workspace = |text: &String| text != "kubeconfig" && names::dns1123_label(text).is_empty();
        match from {
            [] => Ok(Origin::Empty),
            [name] if is_workspace(name) => Ok(Origin::Workspace(name)),
            several => match several.iter().find(|text| is_workspace(text)) {
                Some(name) => fail(format!("--from: {name:?} is the name of a workspace; write ./{name} for a file")),
                None => Ok(Origin::Sources(several)),
            },
        }
    }
}

/// Creates the template `NAME-source` with the objects of sources as they are, and returns its name. `spec` is that of the workspace
/// that is going to be forked from it.
pub async fn template(client: &mut JsonClient, name: &str, spec: &Value, from: &[String]) -> Result<String> {
    let mut plan = captures::read(from, Ok::<_, Failure>)?;
    // a capture of Pintle has the definitions that every workspace has
    plan.objects.retain(|one| !is_own(&one.group) && (one.plural != "customresourcedefinitions" || !is_own(&one.path)));
    print_error(&plan.summary());
    plan.problems.lines().into_iter().for_each(|line| print_error(&format!("skipped: {line}")));
    let template = format!("{name}-source");
    let mut spec = spec.clone();
    spec.set_at(&["controllers"], Value::from("None"));
    post(client, &template, spec).await?.ok()?;
    let loaded = match ready(client, &template).await {
        Ok(_) => load(client, &template, plan).await,
        Err(why) => Err(why),
    };
    if let Err(why) = loaded {
        // ignored: the first error is the one to report
        let _ = delete(client, &template).await;
        return Err(why);
    }
    let sealed = json!({"spec": {"template": true}});
    client.call(Method::PATCH, &path(&template), "application/json", Some(&sealed)).await?.ok()?;
    Ok(template)
}

/// Sends the objects of a plan to a workspace, in pieces that a request may have.
async fn load(client: &mut JsonClient, name: &str, plan: Plan) -> Result<()> {
    let place = format!("/clusters/{name}/storage/objects");
    let (mut piece, mut bytes) = (vec![], 0);
    let mut objects = plan.objects.into_iter().peekable();
    while let Some(Planned { group, plural, path, object, .. }) = objects.next() {
        let text = |text: Text| Value::from(text.as_str());
        let object = value::decode(object.json()).unwrap_or_default();
        let one = json!({"group": (text(group)), "resource": (text(plural)), "path": (text(path)), "object": object});
        bytes += one.to_json().len();
        piece.push(one);
        if bytes >= limits::LOAD_BYTES || objects.peek().is_none() {
            let body = json!({"objects": (Value::Array(std::mem::take(&mut piece)))});
            client.call(Method::POST, &place, "application/json", Some(&body)).await?.ok()?;
            bytes = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_workspaces_are_no_sources() {
        let cases: [(&[&str], Option<Origin<'_>>); 6] = [
            (&[], Some(Origin::Empty)),
            (&["base"], Some(Origin::Workspace("base"))),
            (&["base", "other"], None),
            (&["a.tar.gz", "base"], None),
            (&["kubeconfig"], Some(Origin::Sources(&[]))),
            (&["./base", "git:HEAD:manifests"], Some(Origin::Sources(&[]))),
        ];
        for (given, want) in cases {
            let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
            let found = Origin::of(&given).ok();
            let found = found.map(|found| if let Origin::Sources(_) = found { Origin::Sources(&[]) } else { found });
            assert_eq!(found, want, "{given:?}");
        }
    }
}
