//! Turns recorded steps into a transcript: what requests repeat of earlier responses, such as a resourceVersion, becomes a
//! variable.

use std::collections::{BTreeMap, HashMap};

use machinery::{Map, Value, json};

use super::names::Placeholders;
use super::normal::{is_uid, normalized};

/// Seconds that a replay waits for the events of a watch.
const EVENT_SECONDS: i64 = 5;

/// Where a response had a value: the index of its step, and the path in the body.
type Origin = (usize, String);

/// The values of the responses so far that requests may repeat.
#[derive(Default)]
struct Known {
    versions: HashMap<String, Origin>,
    /// Uids, generated names and continue tokens.
    others: HashMap<String, Origin>,
    variables: BTreeMap<Origin, String>,
}

pub fn transcript(name: &str, recorded: &[Value]) -> Value {
    let (mut known, mut names) = (Known::default(), Placeholders::numbered());
    let (mut steps, mut collects) = (vec![], vec![]);
    for step in recorded {
        let mut step = step.clone();
        known.substitute(&mut step);
        let response = step.remove_at(&["answer"]).unwrap_or_default();
        if step.get("watch").is_some() {
            collects.push((step.str_at(&["watch"]).to_owned(), response));
            steps.push(step);
            continue;
        }
        if let Some(body) = response.get("body") {
            known.learn(body, steps.len(), &mut vec![]);
        }
        let mut shown = response.clone();
        if let Some(body) = response.get("body") {
            shown.set_at(&["body"], normalized(body, &mut names, ""));
        }
        step.set_at(&["answer"], shown);
        steps.push(step);
    }
    for ((index, path), variable) in &known.variables {
        steps[*index].set_at(&["save", variable], Value::from(path.as_str()));
    }
    // events come at times of their own, so they are compared at the end
    for (watch, response) in collects {
        let events = response.as_array().into_iter().flatten().filter(|event| !is_bookmark(event));
        let response: Vec<Value> = events.map(|event| normalized(event, &mut names, "")).collect();
        steps.push(json!({"id": (format!("{watch}-events")), "collect": (watch.as_str()),
            "events": (response.len()), "seconds": EVENT_SECONDS,
            "answer": (Value::Array(response))}));
    }
    json!({"name": name, "about": "Recorded by pintle record.", "steps": (Value::Array(steps))})
}

/// Whether an event is a bookmark whose time the server chooses.
pub fn is_bookmark(event: &Value) -> bool {
    let annotations = ["object", "metadata", "annotations", "k8s.io/initial-events-end"];
    event.str_at(&["type"]) == "BOOKMARK" && event.at(&annotations).is_none()
}

impl Known {
    /// Remembers the values of a response.
    fn learn(&mut self, value: &Value, step: usize, path: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                self.learn_fields(fields, step, path);
                for (name, field) in fields.iter() {
                    path.push(name.to_string());
                    self.learn(field, step, path);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(index.to_string());
                    self.learn(item, step, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    fn learn_fields(&mut self, fields: &Map, step: usize, path: &[String]) {
        let at = |name: &str| {
            // a name with a dot has no path
            let is_plain = path.iter().all(|part| !part.contains('.'));
            is_plain.then(|| (step, path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")))
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some((version, origin)) = text("resourceVersion").zip(at("resourceVersion")) {
            self.versions.entry(version.to_owned()).or_insert(origin);
        }
        let generated = text("name").filter(|_| text("generateName").is_some());
        let uid = text("uid").filter(|uid| is_uid(uid));
        for (name, value) in [("uid", uid), ("continue", text("continue")), ("name", generated)] {
            if let Some((value, origin)) = value.zip(at(name)) {
                self.others.entry(value.to_owned()).or_insert(origin);
            }
        }
    }

    /// The variable of a value that a response had.
    fn variable(&mut self, origin: Origin) -> String {
        let next = self.variables.len() + 1;
        format!("${{{}}}", self.variables.entry(origin).or_insert_with(|| format!("v{next}")))
    }

    fn version(&mut self, version: &str) -> Option<String> {
        let origin = self.versions.get(version)?.clone();
        Some(self.variable(origin))
    }

    fn other(&mut self, value: &str) -> Option<String> {
        let origin = self.others.get(value)?.clone();
        Some(self.variable(origin))
    }

    /// Replaces known values of a request by variables.
    fn substitute(&mut self, step: &mut Value) {
        let path = self.path(step.str_at(&["path"]));
        step.set_at(&["path"], Value::from(path));
        if let Some(body) = step.get_mut("body") {
            self.substitute_in(body, "");
        }
        if let Ok(mut body) = machinery::value::decode(step.str_at(&["text"]).as_bytes()) {
            let before = body.clone();
            self.substitute_in(&mut body, "");
            let mut text = step.str_at(&["text"]).to_owned();
            replaced(&before, &body, "", &mut text);
            step.set_at(&["text"], Value::from(text));
        }
    }

    fn path(&mut self, path: &str) -> String {
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        let mut parts: Vec<String> = vec![];
        for part in place.split('/') {
            parts.push(self.other(part).unwrap_or_else(|| part.to_owned()));
        }
        let place = parts.join("/");
        if query.is_empty() {
            return place;
        }
        let mut parameters = vec![];
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let variable = if name == "resourceVersion" { self.version(value) } else { self.other(value) };
            let named = variable.or_else(|| {
                let object = value.strip_prefix("metadata.name%3D").or_else(|| value.strip_prefix("metadata.name="))?;
                Some(format!("metadata.name%3D{}", self.other(object)?))
            });
            parameters.push(named.map_or_else(|| parameter.to_owned(), |value| format!("{name}={value}")));
        }
        format!("{place}?{}", parameters.join("&"))
    }

    fn substitute_in(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| self.substitute_in(field, name)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.substitute_in(item, key)),
            Value::String(text) => {
                let variable = if key == "resourceVersion" { self.version(text) } else { self.other(text) };
                if let Some(variable) = variable {
                    *value = Value::from(variable);
                }
            }
            _ => {}
        }
    }
}

/// Makes the changes of an object in its text.
fn replaced(before: &Value, after: &Value, key: &str, text: &mut String) {
    match (before, after) {
        (Value::Object(fields), after) => {
            for (name, field) in fields.iter() {
                replaced(field, after.get(name).unwrap_or(&Value::Null), name, text);
            }
        }
        (Value::Array(items), after) => {
            let others = after.as_array().into_iter().flatten();
            items.iter().zip(others).for_each(|(item, other)| replaced(item, other, key, text));
        }
        (Value::String(old), Value::String(new)) if old != new => {
            let fields = if key == "resourceVersion" {
                vec![format!("\"{key}\":"), format!("\"{key}\": ")]
            } else {
                vec![String::new()]
            };
            for field in fields {
                *text = text.replace(&format!("{field}\"{old}\""), &format!("{field}\"{new}\""));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_what_responses_had() {
        let uid = "3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab";
        let metadata = json!({"generateName": "a-", "name": "a-x7k2p", "uid": uid, "resourceVersion": "7"});
        let listed = json!({"metadata": {"resourceVersion": "8", "continue": "token"}, "items": []});
        let event = json!({"type": "ADDED", "object": {"metadata": (metadata.clone())}});
        let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}});
        let owner = json!({"metadata": {"ownerReferences": [{"uid": uid, "name": "a-x7k2p"}], "resourceVersion": "7"}});
        let steps = [
            json!({"id": "1", "method": "POST", "path": "/m", "answer": {"status": 201, "body": {"metadata": metadata}}}),
            json!({"id": "2", "method": "GET", "path": "/m?limit=1", "answer": {"status": 200, "body": listed}}),
            json!({"id": "3", "watch": "w", "path": "/m?watch=1&resourceVersion=8", "answer": [event, bookmark]}),
            json!({"id": "5", "method": "PUT", "path": "/m/x", "text": (format!("{{\"uid\":\"{uid}\",\"resourceVersion\":\"7\",\"n\":\"7\"}}")),
                "answer": {"status": 409}}),
            json!({"id": "4", "method": "PUT", "path": "/m/a-x7k2p?continue=token&x=7", "body": owner,
                "answer": {"status": 200}}),
        ];
        let found = transcript("t", &steps);
        let wanted = [
            r#"{"id":"1","method":"POST","path":"/m","answer":{"status":201,"body":{"metadata":{"generateName":"a-","name":"a-<generated>","resourceVersion":"<rv:1>","uid":"<uid:1>"}}},"save":{"v2":"metadata.resourceVersion","v3":"metadata.uid","v4":"metadata.name"}}"#,
            r#"{"id":"2","method":"GET","path":"/m?limit=1","answer":{"status":200,"body":{"items":[],"metadata":{"continue":"<continue>","resourceVersion":"<rv:2>"}}},"save":{"v1":"metadata.resourceVersion","v5":"metadata.continue"}}"#,
            r#"{"id":"3","watch":"w","path":"/m?watch=1&resourceVersion=${v1}"}"#,
            r#"{"id":"5","method":"PUT","path":"/m/x","text":"{\"uid\":\"${v3}\",\"resourceVersion\":\"${v2}\",\"n\":\"7\"}","answer":{"status":409}}"#,
            r#"{"id":"4","method":"PUT","path":"/m/${v4}?continue=${v5}&x=7","body":{"metadata":{"ownerReferences":[{"uid":"${v3}","name":"${v4}"}],"resourceVersion":"${v2}"}},"answer":{"status":200}}"#,
            r#"{"id":"w-events","collect":"w","events":1,"seconds":5,"answer":[{"object":{"metadata":{"generateName":"a-","name":"a-<generated>","resourceVersion":"<rv:1>","uid":"<uid:1>"}},"type":"ADDED"}]}"#,
        ];
        for (found, wanted) in found.items_at(&["steps"]).iter().zip(wanted) {
            let wanted = machinery::value::decode(wanted.as_bytes()).unwrap();
            assert_eq!(found.to_json(), wanted.to_json());
        }
        assert_eq!(found.items_at(&["steps"]).len(), wanted.len());
    }
}
