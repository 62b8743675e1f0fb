//! Uids and resourceVersions, which differ between two correct servers, and the mapping between those of both.

use std::collections::{BTreeMap, HashMap, HashSet};

use machinery::Value;

/// The placeholders for uids and resourceVersions.
enum Form {
    /// Tokens in the order of their first appearance, such as `<uid:1>` and `<rv:2>`.
    Numbered { uids: HashMap<String, usize>, versions: HashMap<String, usize> },
    /// Marks with the value, such as `<uid=...>`, which [`Bindings`] replaces by tokens.
    Marked,
}

/// The placeholders for what a server chooses itself.
pub struct Placeholders {
    form: Form,
    /// The generated names so far, and their prefixes.
    generated: BTreeMap<String, String>,
}

impl Placeholders {
    pub fn numbered() -> Placeholders {
        let form = Form::Numbered { uids: HashMap::new(), versions: HashMap::new() };
        Placeholders { form, generated: BTreeMap::new() }
    }

    pub fn marked() -> Placeholders {
        Placeholders { form: Form::Marked, generated: BTreeMap::new() }
    }

    pub fn uid(&mut self, uid: &str) -> String {
        match &mut self.form {
            Form::Numbered { uids, .. } => format!("<uid:{}>", number(uids, uid)),
            Form::Marked => format!("<uid={uid}>"),
        }
    }

    pub fn version(&mut self, version: &str) -> String {
        match &mut self.form {
            _ if ["", "0"].contains(&version) => version.to_owned(),
            Form::Numbered { versions, .. } => format!("<rv:{}>", number(versions, version)),
            Form::Marked => format!("<rv={version}>"),
        }
    }

    pub fn generated(&mut self, prefix: &str, name: &str) {
        self.generated.insert(name.to_owned(), prefix.to_owned());
    }

    /// The text with placeholders for the parts of names that were generated.
    pub fn without_generated(&self, text: String) -> String {
        self.generated.iter().fold(text, |text, (name, prefix)| match text.contains(name) {
            true => text.replace(name, &format!("{prefix}<generated>")),
            false => text,
        })
    }
}

fn number(known: &mut HashMap<String, usize>, text: &str) -> usize {
    let next = known.len() + 1;
    *known.entry(text.to_owned()).or_insert(next)
}

/// Maps marks of this server to recorded tokens, one to one: a mark to the token at the place where the mark was first
/// found.
#[derive(Default)]
pub struct Bindings {
    bound: HashSet<String>,
    tokens: HashMap<String, String>,
}

impl Bindings {
    /// A response of this server with its marks replaced by tokens.
    pub fn rename(&mut self, recorded: &Value, found: &Value) -> Value {
        match found {
            Value::Object(fields) => fields
                .iter()
                .map(|(name, field)| (name.clone(), self.rename(recorded.get(name).unwrap_or(&Value::Null), field)))
                .collect::<machinery::Map>()
                .into(),
            Value::Array(items) => {
                let pairs = recorded.as_array().filter(|of| of.len() == items.len());
                let pair = |index: usize| pairs.and_then(|pairs| pairs.get(index)).unwrap_or(&Value::Null);
                items.iter().enumerate().map(|(index, item)| self.rename(pair(index), item)).collect()
            }
            Value::String(text) => Value::from(self.renamed(recorded.as_str().unwrap_or_default(), text)),
            other => other.clone(),
        }
    }

    fn renamed(&mut self, recorded: &str, found: &str) -> String {
        let (tokens, marks) = (placeholders(recorded, ':'), placeholders(found, '='));
        if tokens.len() == marks.len() {
            for (token, mark) in tokens.iter().zip(&marks) {
                let is_same_kind = token.split(':').next() == mark.split('=').next();
                if is_same_kind && !self.bound.contains(*token) && !self.tokens.contains_key(*mark) {
                    self.bound.insert((*token).to_owned());
                    self.tokens.insert((*mark).to_owned(), (*token).to_owned());
                }
            }
        }
        marks.iter().fold(found.to_owned(), |text, mark| match self.tokens.get(*mark) {
            Some(token) => text.replace(mark, token),
            None => text,
        })
    }
}

/// The tokens or marks in a text.
fn placeholders(text: &str, separator: char) -> Vec<&str> {
    let starts = ["<uid", "<rv"].map(|kind| format!("{kind}{separator}"));
    let mut found = vec![];
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        match rest.find('>').filter(|_| starts.iter().any(|start| rest.starts_with(start))) {
            Some(end) => {
                found.push(&rest[..=end]);
                rest = &rest[end..];
            }
            None => rest = &rest[1..],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn values_are_bound_one_for_one() {
        let mut bindings = Bindings::default();
        let (recorded, found) = (json!({"a": "<uid:1>", "b": ["<rv:1>"]}), json!({"a": "<uid=x>", "b": ["<rv=5>"]}));
        assert_eq!(bindings.rename(&recorded, &found).to_json(), recorded.to_json());
        let again = bindings.rename(&json!({"a": "is <uid:1>"}), &json!({"a": "is <uid=x>"}));
        assert_eq!(again.str_at(&["a"]), "is <uid:1>");
        let other = bindings.rename(&json!({"a": "<uid:1>"}), &json!({"a": "<uid=y>"}));
        assert_eq!(other.str_at(&["a"]), "<uid=y>", "another object than the recorded one");
        let kind = bindings.rename(&json!({"a": "<uid:2>"}), &json!({"a": "<rv=9>"}));
        assert_eq!(kind.str_at(&["a"]), "<rv=9>");
    }

    #[test]
    fn numbers_are_in_the_order_of_appearance() {
        let mut names = Placeholders::numbered();
        let all = [names.uid("x"), names.uid("y"), names.uid("x"), names.version("7"), names.version("0")];
        assert_eq!(all, ["<uid:1>", "<uid:2>", "<uid:1>", "<rv:1>", "0"]);
    }
}
