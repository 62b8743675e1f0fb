//! The token file.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::request::User;
use machinery::Text;

/// Users by their tokens, which are valid only for this server's audiences.
#[derive(Clone, Debug, Default)]
pub struct StaticTokens(Arc<ArcSwap<HashMap<String, User>>>);

impl StaticTokens {
    /// Reads the lines `token,user,uid[,"group1,group2"]` of a token file.
    pub fn parse(text: &str) -> Result<StaticTokens, String> {
        let mut tokens = HashMap::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let fields = csv(line);
            let [token, name, uid, groups @ ..] = fields.as_slice() else {
                return Err(format!("line {}: expected at least token,user,uid", i + 1));
            };
            let groups = groups.iter().flat_map(|g| g.split(',')).map(str::trim).filter(|g| !g.is_empty());
            let user = User {
                name: name.trim().into(),
                uid: uid.trim().into(),
                groups: groups.map(Text::from).collect(),
                extra: vec![],
            };
            tokens.insert(token.trim().to_owned(), user.authenticated());
        }
        Ok(StaticTokens(Arc::new(ArcSwap::from_pointee(tokens))))
    }

    pub fn user(&self, token: &str) -> Option<User> {
        self.0.load().get(token).cloned()
    }

    /// Replaces the tokens by those of another file.
    pub fn replace(&self, others: StaticTokens) {
        self.0.store(others.0.load_full());
    }
}

/// The fields of a line; quotes keep commas together.
fn csv(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}
