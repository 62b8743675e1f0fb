//! The writes of clients, one by one. They are kept once a report has asked for them.

use machinery::{Text, Value, json};
use store::Revision;

use super::observing::Exchange;
use super::resource_name;
use crate::http::RequestEnding;
use crate::limits;

#[derive(Clone)]
struct EndedWrite {
    agent: Text,
    verb: &'static str,
    resource: String,
    namespace: Text,
    name: Text,
    /// The code of the response; 0 if the connection has ended instead.
    code: u16,
    /// Why it was refused, if it was.
    message: Text,
    /// The revision of the object in the response, if there is one.
    revision: Option<Revision>,
}

/// Writes, in the order in which they have ended.
#[derive(Default)]
pub struct Writes {
    all: Vec<EndedWrite>,
    pub is_truncated: bool,
}

impl Writes {
    pub fn add(&mut self, exchange: &Exchange, ending: &RequestEnding) {
        if self.all.len() >= limits::REPORT_WRITES_MAX {
            self.is_truncated = true;
            return;
        }
        let info = &exchange.info;
        let length = ending.message.floor_char_boundary(limits::REPORT_MESSAGE_BYTES);
        self.all.push(EndedWrite {
            agent: exchange.agent.clone(),
            verb: info.verb.as_str(),
            resource: resource_name(&info.group, &info.resource, &info.subresource),
            namespace: info.namespace.clone(),
            name: if info.name.is_empty() { ending.name.clone() } else { info.name.clone() },
            code: ending.code,
            message: Text::from(&ending.message[..length]),
            revision: ending.revision,
        });
    }

    /// A copy with the writes of the selected user agents.
    pub fn copy(&self, selects: impl Fn(&str) -> bool) -> Writes {
        let selected = self.all.iter().filter(|write| selects(&write.agent));
        Writes { all: selected.cloned().collect(), is_truncated: self.is_truncated }
    }

    pub fn value(&self) -> Value {
        self.all.iter().map(EndedWrite::value).collect()
    }
}

impl EndedWrite {
    fn value(&self) -> Value {
        let mut value = json!({"userAgent": (self.agent.as_str()), "verb": (self.verb),
            "resource": (self.resource.as_str()), "code": (i64::from(self.code))});
        for (field, text) in [("namespace", &self.namespace), ("name", &self.name), ("message", &self.message)] {
            value.put_text(&[field], text.as_str());
        }
        if let Some(revision) = self.revision {
            value.set_at(&["resourceVersion"], Value::from(revision.to_string()));
        }
        value
    }
}
