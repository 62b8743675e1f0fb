//! Recorded exchanges.

use std::path::Path;

use machinery::value::decode;
use machinery::{Release, Value};

/// One request and its response.
pub struct Step {
    /// The release that was recorded.
    pub release: Release,
    pub id: String,
    pub method: String,
    pub path: String,
    pub query: String,
    pub content_type: String,
    pub body: Option<Value>,
    pub status: i64,
    pub response: Value,
    pub warnings: Vec<String>,
    pub ignore: Vec<String>,
}

pub struct Transcript {
    pub steps: Vec<Step>,
}

impl Transcript {
    pub fn read(file: &Path, release: Release) -> Transcript {
        let bytes = std::fs::read(file).expect("the transcript can be read");
        let document = decode(&bytes).expect("the transcript is JSON");
        let steps = document.get("steps").and_then(Value::as_array).expect("steps");
        Transcript {
            steps: steps
                .iter()
                .filter(|s| s.get("method").is_some())
                .map(|step| Step { release, ..Step::new(step) })
                .collect(),
        }
    }
}

impl Step {
    fn new(value: &Value) -> Step {
        let text = value.get("text").and_then(Value::as_str);
        let body = value.get("body").cloned().or_else(|| text.and_then(|t| decode(t.as_bytes()).ok()));
        let url = value.str_at(&["path"]);
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let headers = value.get("headers").and_then(Value::as_object);
        let content_type = headers
            .and_then(|h| h.iter().find(|(k, _)| k.eq_ignore_ascii_case("content-type")))
            .map(|(_, v)| v.as_str().unwrap_or_default().to_owned());
        let warning = value.at(&["answer", "headers", "warning"]);
        let warnings = match warning {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(one)) => vec![one.to_string()],
            _ => vec![],
        };
        let ignore = value.items_at(&["ignore"]);
        Step {
            release: Release::default(),
            id: value.str_at(&["id"]).to_owned(),
            method: value.str_at(&["method"]).to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            content_type: content_type.unwrap_or_else(|| default_type(value.str_at(&["method"])).to_owned()),
            body,
            status: value.int_at(&["answer", "status"]),
            response: value.at(&["answer", "body"]).cloned().unwrap_or_default(),
            warnings,
            ignore: ignore.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    pub fn ignores(&self, path: &str) -> bool {
        self.ignore.iter().any(|i| i == path)
    }
}

fn default_type(method: &str) -> &'static str {
    if method == "PATCH" { "application/merge-patch+json" } else { "application/json" }
}
