//! The behaviour of a kind that the facts in its row do not determine.

use std::sync::LazyLock;

use machinery::{Release, Value, names};
use schema::apply::FieldSet;

use super::defaults::restore;
use crate::rules::Deletion;
use schema::at::At;

/// The functions of a kind, or of one version of it, made by a chain of calls: `Behaviour::of("v1/Pod").default(…)`.
pub struct Behaviour {
    /// `GROUP/KIND`, or `GROUP/VERSION/KIND` for one version; the core group has no name, but a version.
    pub of: &'static str,
    /// Where objects are.
    pub objects: Objects,
    /// Sets defaults that the table of rules does not have.
    pub default: fn(&mut Value),
    /// Changes an object before it is validated. The second argument is the stored object.
    pub prepare: fn(&mut Value, Option<&Value>),
    /// Before an object is stored, sets the defaults that depend on what was prepared. kube-apiserver sets them when it
    /// reads the stored object.
    pub complete_stored: fn(&mut Value),
    /// The object to validate, if it is not the object itself.
    pub validated: fn(&Value) -> Option<Value>,
    /// The errors that the table of rules does not report.
    pub validate: fn(At),
    /// Warnings about fields and values that are accepted but discouraged.
    pub warnings: fn(At),
    /// Warnings about a new object before it is prepared. They are sent even if the object is refused.
    pub early_warnings: fn(At),
    /// The problems of a name.
    pub name: fn(&str, Release) -> Vec<String>,
    /// The fields that the main endpoint resets, if these are not just the status.
    pub resets: Option<fn() -> &'static FieldSet>,
    /// The conditions of an object's row in a table.
    pub row_conditions: fn(&Value) -> Option<Value>,
    /// The status endpoint.
    pub status: Part,
    /// The other subresources that write a part of the object, by name.
    pub parts: &'static [(&'static str, Part)],
    /// The conversion to the version in which objects are stored, if more than the name of the version differs.
    pub conversion: Option<StoredAs>,
    pub deletion: Deletion,
    /// Additional work of the verbs around writes.
    pub hooks: Hooks,
}

/// Where the objects of a kind are.
#[derive(Clone, Copy)]
pub enum Objects {
    Stored,
    /// Nowhere: this review handles a POST.
    Reviewed(Review),
    /// They are computed when they are read.
    Computed(fn() -> Vec<Value>),
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
    pub rules: PartRules,
}

/// Selects the rules of the Go types that a subresource checks besides its own `validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartRules {
    None,
    /// Those of all fields but the status, as the main endpoint does.
    Whole,
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

/// Methods of a type that set a field of it.
macro_rules! setters {
    ($of:ident $($field:ident: $type:ty),*) => {
        impl $of {
            $(pub const fn $field(mut self, $field: $type) -> $of {
                self.$field = $field;
                self
            })*
        }
    };
}

setters!(Behaviour
    default: fn(&mut Value), prepare: fn(&mut Value, Option<&Value>), complete_stored: fn(&mut Value),
    validated: fn(&Value) -> Option<Value>, validate: fn(At), warnings: fn(At), early_warnings: fn(At),
    name: fn(&str, Release) -> Vec<String>, row_conditions: fn(&Value) -> Option<Value>, status: Part,
    parts: &'static [(&'static str, Part)], deletion: Deletion, hooks: Hooks
);
setters!(Part prepare: fn(&mut Value, &Value), validate: fn(At), warnings: fn(At));

impl Behaviour {
    /// The behaviour of a kind without functions of its own.
    pub const fn of(of: &'static str) -> Behaviour {
        Behaviour {
            of,
            objects: Objects::Stored,
            default: |_| {},
            prepare: |_, _| {},
            complete_stored: |_| {},
            validated: |_| None,
            validate: |_| {},
            warnings: |_| {},
            early_warnings: |_| {},
            name: |name, _| names::dns1123_subdomain(name),
            resets: None,
            row_conditions: |_| None,
            status: Part::PLAIN,
            parts: &[],
            conversion: None,
            deletion: Deletion::DEFAULT,
            hooks: Hooks::None,
        }
    }

    /// The same functions for another kind or version.
    pub const fn like(mut self, of: &'static str) -> Behaviour {
        self.of = of;
        self
    }

    pub const fn review(mut self, review: Review) -> Behaviour {
        self.objects = Objects::Reviewed(review);
        self
    }

    pub const fn computed(mut self, all: fn() -> Vec<Value>) -> Behaviour {
        self.objects = Objects::Computed(all);
        self
    }

    pub const fn resets(mut self, fields: fn() -> &'static FieldSet) -> Behaviour {
        self.resets = Some(fields);
        self
    }

    pub const fn conversion(mut self, conversion: StoredAs) -> Behaviour {
        self.conversion = Some(conversion);
        self
    }
}

impl Part {
    pub const PLAIN: Part =
        Part { prepare: |_, _| {}, validate: |_| {}, warnings: |_| {}, reset: None, rules: PartRules::None };

    pub const fn reset(mut self, fields: fn() -> &'static FieldSet) -> Part {
        self.reset = Some(fields);
        self
    }

    pub const fn rules(mut self, rules: PartRules) -> Part {
        self.rules = rules;
        self
    }
}

impl StoredAs {
    pub const fn new(to_stored: fn(Value) -> Value, to_shown: fn(Value) -> Value) -> StoredAs {
        StoredAs { to_stored, to_shown, is_canonical: false, checked_path: None }
    }
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Part")
    }
}

/// How the server itself writes what follows from a posted object, such as a binding.
pub static AS_SERVER: Part = Part::PLAIN.prepare(keep_owners).reset(|| &NO_RESETS);

/// Keeps managedFields as they are, since writes by the server itself have no field manager.
fn keep_owners(object: &mut Value, old: &Value) {
    restore(object, old, &["metadata", "managedFields"]);
}

pub static NO_RESETS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(&[]));
