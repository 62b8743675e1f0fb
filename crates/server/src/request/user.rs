//! Who asks.

use machinery::Text;

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

    /// Whoever shows no credentials.
    pub fn anonymous() -> User {
        User { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()], ..User::default() }
    }

    /// The server itself, for its controllers.
    pub fn system(name: &str) -> User {
        User { name: name.into(), groups: vec![Self::MASTERS.into()], ..User::default() }
    }

    /// A ServiceAccount.
    pub fn service_account(namespace: &str, name: &str) -> User {
        User {
            name: Text::from(format!("system:serviceaccount:{namespace}:{name}")),
            groups: vec!["system:serviceaccounts".into(), Text::from(format!("system:serviceaccounts:{namespace}"))],
            ..User::default()
        }
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Adds the group of everyone who has shown who they are.
    #[must_use]
    pub fn authenticated(mut self) -> User {
        if !self.in_group(Self::AUTHENTICATED) {
            self.groups.push(Self::AUTHENTICATED.into());
        }
        self
    }
}
