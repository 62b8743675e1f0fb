//! The names of CRDs, by group: the names that are taken, and the CRDs whose accepted names differ from their spec.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use machinery::{Text, Value};
use parking_lot::{Mutex, MutexGuard};
use schema::definition::{self, Naming, Taken};

/// The names of one CRD.
pub struct DefinitionNames {
    accepted: Value,
    /// `spec.names` differs from `status.acceptedNames`.
    wanting: bool,
    /// The served versions in the spec, while the CRD itself is not served.
    announced: Vec<Text>,
}

impl DefinitionNames {
    pub fn of(definition: &Value) -> DefinitionNames {
        let (wanted, accepted) = (definition.at(&["spec", "names"]), definition.at(&["status", "acceptedNames"]));
        let announced =
            if definition::is_condition_true(definition, "Established") { vec![] } else { served(definition) };
        DefinitionNames { accepted: accepted.cloned().unwrap_or_default(), wanting: wanted != accepted, announced }
    }
}

/// The CRDs of a group.
#[derive(Default)]
struct Group {
    taken: Taken,
    /// Accepted names by plural.
    accepted: HashMap<Text, Value>,
    wanting: BTreeSet<Text>,
    /// The served versions of CRDs that are not served themselves, by plural.
    announced: BTreeMap<Text, Vec<Text>>,
}

fn served(definition: &Value) -> Vec<Text> {
    let versions = definition.items_at(&["spec", "versions"]);
    let served = versions.iter().filter(|version| version.is_true_at(&["served"]));
    served.map(|version| Text::from(version.str_at(&["name"]))).collect()
}

/// The names of all CRDs.
#[derive(Default)]
pub struct Names(Mutex<HashMap<Text, Group>>);

impl Names {
    fn lock(&self) -> MutexGuard<'_, HashMap<Text, Group>> {
        self.0.lock()
    }

    /// Sets the names of the CRD of a group and plural; `None` removes them.
    pub fn set(&self, group: &Text, plural: &Text, named: Option<&DefinitionNames>) {
        let mut groups = self.lock();
        let names = groups.entry(group.clone()).or_default();
        if let Some(before) = names.accepted.remove(plural) {
            names.taken.remove(&before);
        }
        names.wanting.remove(plural);
        names.announced.remove(plural);
        if let Some(DefinitionNames { accepted, wanting, announced }) = named {
            if !announced.is_empty() {
                names.announced.insert(plural.clone(), announced.clone());
            }
            names.taken.add(accepted);
            names.accepted.insert(plural.clone(), accepted.clone());
            if *wanting {
                names.wanting.insert(plural.clone());
            }
        } else if names.accepted.is_empty() {
            groups.remove(group);
        }
    }

    /// Decides which names of a CRD are accepted, if the names in `others` are taken as well.
    pub fn decide(&self, definition: &Value, others: &Taken) -> Option<Naming> {
        let groups = self.lock();
        let own = groups.get(definition.str_at(&["spec", "group"])).map(|names| &names.taken);
        let taken: Vec<&Taken> = own.into_iter().chain([others]).collect();
        definition::naming(definition, &taken)
    }

    /// Groups and versions of CRDs that are not served. Discovery lists them nevertheless.
    pub fn announced(&self) -> BTreeSet<(Text, Text)> {
        let groups = self.lock();
        let pairs = groups.iter().flat_map(|(group, names)| {
            let versions = names.announced.values().flatten();
            versions.map(|version| (group.clone(), version.clone()))
        });
        pairs.collect()
    }

    /// The plurals of the CRDs of a group whose accepted names differ from their spec.
    pub fn wanting(&self, group: &str) -> Vec<Text> {
        self.lock().get(group).map(|names| names.wanting.iter().cloned().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn names_are_released_with_their_last_owner() {
        let definition = |accepted: Value| {
            let wanted = json!({"plural": "as", "singular": "x", "kind": "A", "listKind": "AList"});
            json!({"spec": {"group": "g", "names": wanted}, "status": {"acceptedNames": accepted}})
        };
        let (names, none) = (Names::default(), Taken::default());
        let taken = |named: &Names| {
            let naming = named.decide(&definition(json!({})), &none).unwrap();
            naming.names_accepted.status == "False"
        };
        let accepted = json!({"plural": "x", "kind": "X"});
        let named = DefinitionNames { accepted, wanting: true, announced: vec!["v1".into()] };
        assert!(!taken(&names));
        names.set(&"g".into(), &"b".into(), Some(&named));
        names.set(&"g".into(), &"c".into(), Some(&named));
        names.set(&"h".into(), &"d".into(), Some(&named));
        assert!(taken(&names));
        assert_eq!(names.wanting("g"), ["b", "c"]);
        names.set(&"g".into(), &"b".into(), None);
        assert!(taken(&names));
        names.set(
            &"g".into(),
            &"c".into(),
            Some(&DefinitionNames::of(&definition(json!({"plural": "z", "kind": "Z"})))),
        );
        assert!(!taken(&names));
        assert_eq!(names.wanting("g"), ["c"]);
        assert_eq!(names.announced(), [("h".into(), "v1".into())].into());
        names.set(&"g".into(), &"c".into(), None);
        assert!(names.wanting("g").is_empty());
    }
}
