//! The behaviour of a kind that the facts in its row do not determine.

use std::sync::LazyLock;

use machinery::{FieldError, Release, Value, names};
use schema::apply::FieldSet;

use super::at::At;
use super::defaults::restore;
use crate::rules::Deletion;

/// The functions of a kind, or of one version of it.
pub struct Behaviour {
    /// `GROUP/KIND`, or `GROUP/VERSION/KIND` for one version; the core group has no name, but a version.
    pub of: &'static str,
    /// Sets defaults that the table of rules does not have.
    pub default: fn(&mut Value),
    /// Changes an object before it is validated. The second argument is the stored object.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// The errors that the table of rules does not report.
    pub validate: fn(At),
    /// Warnings about fields and values that are accepted but discouraged.
    pub warnings: fn(At),
    /// The problems of a name.
    pub name: fn(&str, Release) -> Vec<String>,
    /// The status endpoint.
    pub status: Part,
    /// The other subresources that write a part of the object, by name.
    pub parts: &'static [(&'static str, Part)],
    /// The conversion to the version in which objects are stored, if more than the name of the version differs.
    pub conversion: Option<StoredAs>,
    pub deletion: Deletion,
    /// Additional work of the verbs around writes.
    pub hooks: Hooks,
    /// The review that handles a POST, if objects of the kind are not stored.
    pub review: Option<Review>,
    pub further: Further,
}

/// The strategy of a subresource that writes a part of the object.
pub struct Part {
    /// Changes an object before it is validated, and restores the fields that the endpoint does not write. The second
    /// argument is the stored object.
    pub prepare: fn(&mut Value, &Value),
    pub validate: fn(At),
    pub warnings: fn(At),
    /// The fields that the endpoint does not write, so that managedFields do not record them. For a status, `None`
    /// means those that follow from the facts of the kind.
    pub reset: Option<fn() -> &'static FieldSet>,
}

/// The conversion between a version and the one in which its objects are stored.
pub struct StoredAs {
    pub to_stored: fn(Value) -> Value,
    pub to_shown: fn(Value) -> Value,
    /// Whether a changed object is converted to the stored form and back before its fields get owners.
    pub is_canonical: bool,
    /// Converts the path of a field to the stored form, if objects are prepared and validated in that form.
    pub checked_path: Option<fn(&str) -> String>,
}

/// Additional work of the verbs around writes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    None,
    /// Reserves cluster IPs and node ports.
    Service,
    /// Prevents privilege escalation: authors can only grant permissions that they have.
    Role,
    RoleBinding,
    /// Names and establishes what a CRD defines.
    Definition,
    ThirdPartyResource,
    /// Sets the user of a certificate signing request.
    CertificateRequest,
    /// Requires a permission for the signer to write the status.
    PodCertificateRequest,
    /// Restricts administrative access to devices.
    ResourceClaim,
}

/// The handler in the verbs of a POST of a kind that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    SelfSubject,
    Access,
    SelfAccess,
    SelfRules,
    Token,
    TokenRequest,
    /// Assigns a Pod to a Node.
    Binding,
    /// Deletes a Pod unless a budget forbids it.
    Eviction,
}

/// Behaviour that only a few kinds have.
pub struct Further {
    /// Rejects the body of a create or an update before any of its fields are reset.
    pub check_body: fn(&Value) -> Option<FieldError>,
    /// Further values of `apiVersion` that a body may have: versions with the same fields, of which nothing is stored.
    pub also_posted_as: &'static [&'static str],
    /// Warnings about a new object before it is prepared. They are sent even if the object is refused.
    pub early_warnings: fn(At),
    /// The object to validate, if it is not the object itself.
    pub validated: fn(&Value) -> Option<Value>,
    /// Before an object is stored, sets the defaults that depend on what was prepared. kube-apiserver sets them when it
    /// reads the stored object.
    pub complete_stored: fn(&mut Value),
    /// The fields that the main endpoint resets, if these are not just the status.
    pub resets: Option<fn() -> &'static FieldSet>,
    /// The objects of a kind whose objects are computed when they are read.
    pub computed: Option<fn() -> Vec<Value>>,
    /// The conditions of an object's row in a table.
    pub row_conditions: fn(&Value) -> Option<Value>,
}

impl Behaviour {
    pub const NONE: Behaviour = Behaviour {
        of: "",
        default: |_| {},
        prepare: |_, _| {},
        validate: |_| {},
        warnings: |_| {},
        name: |name, _| names::dns1123_subdomain(name),
        status: Part::PLAIN,
        parts: &[],
        conversion: None,
        deletion: Deletion::DEFAULT,
        hooks: Hooks::None,
        review: None,
        further: Further::NONE,
    };
}

impl Part {
    pub const PLAIN: Part = Part { prepare: |_, _| {}, validate: |_| {}, warnings: |_| {}, reset: None };
}

impl StoredAs {
    pub const fn new(to_stored: fn(Value) -> Value, to_shown: fn(Value) -> Value) -> StoredAs {
        StoredAs { to_stored, to_shown, is_canonical: false, checked_path: None }
    }
}

impl Further {
    pub const NONE: Further = Further {
        check_body: |_| None,
        also_posted_as: &[],
        early_warnings: |_| {},
        validated: |_| None,
        complete_stored: |_| {},
        resets: None,
        computed: None,
        row_conditions: |_| None,
    };
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Part")
    }
}

/// How the server itself writes what follows from a posted object, such as a binding.
pub static AS_SERVER: Part = Part { prepare: keep_owners, reset: Some(|| &NO_RESETS), ..Part::PLAIN };

/// Keeps managedFields as they are, since writes by the server itself have no field manager.
fn keep_owners(object: &mut Value, old: &Value) {
    restore(object, old, &["metadata", "managedFields"]);
}

pub static NO_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[]));
