//! Texts that mean the same in two forks.

use std::collections::{HashMap, HashSet};

use machinery::Text;

use super::Pair;

/// The uids and generated names of paired objects, of which each pair has two.
pub struct Renamed(HashMap<Text, Text>, Vec<(Text, Text)>);

impl Renamed {
    /// Objects that existed before the forks keep their uids, so a reference to another one is a difference.
    pub fn of(pairs: &[Pair<'_>], kept: &HashSet<Text>) -> Renamed {
        let (mut whole, mut parts) = (HashMap::new(), vec![]);
        for (before, after) in pairs {
            let (Some((old_key, old)), Some((new_key, new))) = (before, after) else { continue };
            let [from, to] = [old, new].map(|object| Text::from(object.str_at(&["metadata", "uid"])));
            if from != to && !from.is_empty() && !kept.contains(&from) {
                parts.push((from.clone(), to.clone()));
                whole.insert(from, to);
            }
            if old_key.name != new_key.name {
                parts.push((old_key.name.clone(), new_key.name.clone()));
                whole.insert(old_key.name.clone(), new_key.name.clone());
            }
        }
        Renamed(whole, parts)
    }

    /// Whether a text means the same in both forks.
    pub fn are_equal(&self, old: &str, new: &str) -> bool {
        if old == new || self.0.get(old).is_some_and(|to| to == new) {
            return true;
        }
        // names of other objects may contain generated ones
        let mut text = old.to_owned();
        for (from, to) in self.1.iter().filter(|(_, to)| new.contains(to.as_str())) {
            text = text.replace(from.as_str(), to);
        }
        text == new
    }
}
