//! The objects that tokens are bound to (KEP-1205, KEP-4193): a token is invalid without its object.

use machinery::{Text, Value, json};
use objects::{Objects, Stored};

use crate::limits;

/// A name and a uid in the claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    pub name: Text,
    pub uid: Text,
}

impl Reference {
    fn of_claim(claims: &Value, kind: &str) -> Option<Reference> {
        let claim = claims.get(kind).filter(|claim| !claim.is_null())?;
        Some(Reference { name: claim.str_at(&["name"]).into(), uid: claim.str_at(&["uid"]).into() })
    }

    /// The claim; the uid is left out for a Node that does not exist.
    fn to_claim(&self) -> Value {
        let mut claim = json!({"name": (self.name.clone())});
        claim.put_text(&["uid"], &self.uid);
        claim
    }

    /// The attributes of a user that name the object.
    fn extra(&self, kind: &str) -> impl Iterator<Item = (Text, Vec<Text>)> {
        let attribute = |field: &str, value: &Text| {
            let key = Text::from(format!("authentication.kubernetes.io/{kind}-{field}"));
            (!value.is_empty()).then(|| (key, vec![value.clone()]))
        };
        attribute("name", &self.name).into_iter().chain(attribute("uid", &self.uid))
    }
}

/// The object that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    Secret(Reference),
    /// A Pod, and the Node that it runs on. The Node is only stated in the claims; it does not limit the token.
    Pod {
        pod: Reference,
        node: Option<Reference>,
    },
    Node(Reference),
}

impl Bound {
    /// Adds the claims of the object to `claims`, the private claims of a token.
    pub fn add_to(&self, claims: &mut Value) {
        let mut add = |kind: &str, reference: &Reference| claims.set_at(&[kind], reference.to_claim());
        match self {
            Bound::Secret(secret) => add("secret", secret),
            Bound::Node(node) => add("node", node),
            Bound::Pod { pod, node } => {
                add("pod", pod);
                node.iter().for_each(|node| add("node", node));
            }
        }
    }

    /// The object that a token with these private claims is bound to. No API server binds a token to more than one
    /// object.
    pub fn of_claims(claims: &Value) -> Option<Bound> {
        let claim = |kind| Reference::of_claim(claims, kind);
        if let Some(secret) = claim("secret") {
            return Some(Bound::Secret(secret));
        }
        match (claim("pod"), claim("node")) {
            (Some(pod), node) => Some(Bound::Pod { pod, node }),
            (None, node) => node.map(Bound::Node),
        }
    }

    /// Refuses a token whose object does not exist, has another uid, or has a deletionTimestamp more than a minute in the
    /// past. `namespace` is the account's.
    pub fn check(&self, objects: &Objects, namespace: &str, now: i64) -> Result<(), String> {
        let in_namespace = |name: &Text| format!("{namespace}/{name}");
        let (kind, plural, reference, path) = match self {
            Bound::Secret(secret) => ("secret", "secrets", secret, in_namespace(&secret.name)),
            Bound::Pod { pod, .. } => ("pod", "pods", pod, in_namespace(&pod.name)),
            Bound::Node(node) => ("node", "nodes", node, node.name.to_string()),
        };
        let object = objects.collection(&Text::default(), &Text::new_static(plural)).get(&path);
        let invalidated = || "service account token has been invalidated".to_owned();
        let object = object.ok_or_else(invalidated)?;
        let (actual_uid, claimed_uid) = (&object.meta.uid, &reference.uid);
        if actual_uid != claimed_uid {
            return Err(format!(
                "{kind} UID ({actual_uid}) does not match service account {kind} ref claim ({claimed_uid})"
            ));
        }
        if long_deleted(&object, now) { Err(invalidated()) } else { Ok(()) }
    }

    /// The attributes of a user whose token is bound to the object, in the order of their keys.
    pub fn extra(&self) -> Vec<(Text, Vec<Text>)> {
        match self {
            Bound::Secret(_) => vec![],
            Bound::Node(node) => node.extra("node").collect(),
            Bound::Pod { pod, node } => {
                node.iter().flat_map(|node| node.extra("node")).chain(pod.extra("pod")).collect()
            }
        }
    }
}

/// Whether an object's deletionTimestamp is more than a minute in the past. That of a Pod includes the grace period, so it
/// may be in the future.
pub fn long_deleted(object: &Stored, now: i64) -> bool {
    if !object.meta.deleting {
        return false;
    }
    let value = object.body.to_value(0);
    let deleted_at = machinery::time::parse_rfc3339(value.str_at(&["metadata", "deletionTimestamp"]));
    deleted_at.is_some_and(|(seconds, _)| seconds < now - limits::ACCOUNT_LEEWAY)
}
