//! Users.

use machinery::{Map, Text, Value};

/// An identity and its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: Text,
    pub uid: Text,
    pub groups: Vec<Text>,
    pub extra: Vec<(Text, Vec<Text>)>,
}

impl User {
    pub const MASTERS: &str = "system:masters";
    pub const AUTHENTICATED: &str = "system:authenticated";

    /// Whether the request had no credentials.
    pub fn is_anonymous(&self) -> bool {
        self.name == "system:anonymous" || self.in_group("system:unauthenticated")
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> User {
        User { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()], ..User::default() }
    }

    /// The server itself, in the group `system:masters`, for its controllers.
    pub fn system(name: &str) -> User {
        User { name: name.into(), groups: vec![Self::MASTERS.into()], ..User::default() }
    }

    pub fn service_account(namespace: &str, name: &str) -> User {
        User {
            name: Text::from(format!("system:serviceaccount:{namespace}:{name}")),
            groups: vec!["system:serviceaccounts".into(), Text::from(format!("system:serviceaccounts:{namespace}"))],
            ..User::default()
        }
    }

    /// Reads a `UserInfo`, or the spec of a review; `name` is the field with the user name.
    pub fn from_value(value: &Value, name: &str) -> User {
        let extra = value.fields_at(&["extra"]);
        User {
            name: value.str_at(&[name]).into(),
            uid: value.str_at(&["uid"]).into(),
            groups: value.text_list_at(&["groups"]),
            extra: extra.map(|(key, values)| (key.clone(), values.text_list_at(&[]))).collect(),
        }
    }

    /// The `UserInfo` of reviews, without empty fields; `name` is the field for the user name.
    pub fn to_value(&self, name: &str) -> Value {
        let texts = |values: &[Text]| -> Value { values.iter().map(Value::from).collect() };
        let mut out = Map::new();
        for (key, text) in [(name, &self.name), ("uid", &self.uid)].into_iter().filter(|(_, text)| !text.is_empty()) {
            out.insert(key, Value::from(text));
        }
        if !self.groups.is_empty() {
            out.insert("groups", texts(&self.groups));
        }
        if !self.extra.is_empty() {
            let mut extra = Map::new();
            self.extra.iter().for_each(|(key, values)| drop(extra.insert(key.clone(), texts(values))));
            out.insert("extra", Value::Object(extra));
        }
        Value::Object(out)
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Adds the group `system:authenticated`.
    #[must_use]
    pub fn authenticated(mut self) -> User {
        if !self.in_group(Self::AUTHENTICATED) {
            self.groups.push(Self::AUTHENTICATED.into());
        }
        self
    }
}
