//! The checks: the severity of each kind of change, who is affected, and what to do about it.

use super::Affected::{self, Readers, Stored, Writers};
use super::Severity::{self, Breaking, Info, Warning};

/// A kind of change.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// The name, which never changes.
    pub name: &'static str,
    /// The severity of a change that nothing mitigates.
    pub severity: Severity,
    /// Who is affected.
    pub affects: &'static [Affected],
    /// Advice for the owner of the definition.
    pub advice: &'static str,
}

const ALL: &[Affected] = &[Stored, Writers, Readers];
const TIGHTER: &[Affected] = &[Stored, Writers];

const fn breaking(name: &'static str, affects: &'static [Affected], advice: &'static str) -> Check {
    Check { name, severity: Breaking, affects, advice }
}

const fn warning(name: &'static str, affects: &'static [Affected], advice: &'static str) -> Check {
    Check { name, severity: Warning, affects, advice }
}

const fn info(name: &'static str, affects: &'static [Affected], advice: &'static str) -> Check {
    Check { name, severity: Info, affects, advice }
}

const NEW_DEFINITION: &str = "create a new CustomResourceDefinition beside the old one, and copy the objects";
const NEW_VERSION: &str = "make the change in a new version with a conversion webhook, or keep what is there";
const RATCHET: &str = "stored objects that violate it can be updated only where they do not change the value; \
                       try it on real objects with --objects";
const READERS: &str = "make sure that clients cope with values that they have not seen before";
const KEEP: &str = "keep it, deprecated in its description, until no client uses it";
const NONE: &str = "";

pub const GROUP_CHANGED: Check = breaking("group-changed", ALL, NEW_DEFINITION);
pub const PLURAL_CHANGED: Check = breaking("plural-changed", ALL, NEW_DEFINITION);
pub const KIND_CHANGED: Check = breaking("kind-changed", ALL, NEW_DEFINITION);
pub const SCOPE_CHANGED: Check = breaking("scope-changed", ALL, NEW_DEFINITION);
pub const LIST_KIND_CHANGED: Check =
    warning("list-kind-changed", &[Readers], "make sure that no client compares the kind of lists");
pub const NAME_REMOVED: Check = warning("name-removed", &[Readers], "keep the name, scripts with kubectl may use it");
pub const REFUSED: Check = breaking("refused", &[Writers], "the API server refuses this update; correct it first");

pub const VERSION_REMOVED: Check = breaking(
    "version-removed",
    &[Writers, Readers],
    "serve the version, deprecated, until no client uses it, then set served to false for a release",
);
pub const UNSERVED_VERSION_REMOVED: Check = info("unserved-version-removed", &[], NONE);
pub const STORED_VERSION_REMOVED: Check = breaking(
    "stored-version-removed",
    &[Stored],
    "rewrite the objects in the new storage version first, for example with pintle storage migrate",
);
pub const VERSION_NOT_SERVED: Check =
    breaking("version-not-served", &[Writers, Readers], "serve the version, deprecated, until no client uses it");
pub const VERSION_DEPRECATED: Check = warning("version-deprecated", &[Writers, Readers], "name the successor in it");
pub const VERSION_ADDED: Check = info("version-added", &[], NONE);
pub const STORAGE_VERSION_CHANGED: Check = warning(
    "storage-version-changed",
    &[Stored],
    "rewrite the stored objects afterwards, for example with pintle storage migrate, and keep the former version until then",
);
pub const CONVERSION_REMOVED: Check = breaking(
    "conversion-removed",
    ALL,
    "without a webhook, only the apiVersion of objects is changed between versions: keep the webhook",
);
pub const CONVERSION_ADDED: Check =
    warning("conversion-added", ALL, "no object can be read in another version while the webhook is not available");
pub const CONVERSION_CHANGED: Check = info("conversion-changed", &[], NONE);

pub const STATUS_ADDED: Check = breaking(
    "status-added",
    &[Writers],
    "writes of the object ignore its status from now on: controllers have to write the subresource",
);
pub const STATUS_REMOVED: Check =
    breaking("status-removed", &[Writers], "controllers that write the subresource fail: keep it");
pub const SCALE_ADDED: Check = info("scale-added", &[], NONE);
pub const SCALE_REMOVED: Check =
    breaking("scale-removed", &[Writers, Readers], "autoscalers and kubectl scale fail: keep the subresource");
pub const SCALE_CHANGED: Check =
    warning("scale-changed", &[Writers, Readers], "autoscalers see other fields: roll out with care");
pub const COLUMN_ADDED: Check = info("column-added", &[], NONE);
pub const COLUMN_REMOVED: Check = warning("column-removed", &[Readers], "scripts may read the output of kubectl get");
pub const COLUMN_CHANGED: Check = warning("column-changed", &[Readers], "scripts may read the output of kubectl get");
pub const SELECTABLE_FIELD_ADDED: Check = info("selectable-field-added", &[], NONE);
pub const SELECTABLE_FIELD_REMOVED: Check =
    breaking("selectable-field-removed", &[Readers], "lists and watches with this field selector fail: keep it");

pub const FIELD_ADDED: Check = info("field-added", &[], NONE);
pub const FIELD_REMOVED: Check = breaking("field-removed", ALL, KEEP);
pub const FIELD_RENAMED: Check = breaking("field-renamed", ALL, KEEP);
pub const FIELD_UNDECLARED: Check =
    warning("field-undeclared", &[Readers], "the field is kept, but no longer checked, defaulted or explained");
pub const FIELD_DECLARED: Check = warning("field-declared", TIGHTER, RATCHET);
pub const REQUIRED_ADDED: Check =
    breaking("required-added", TIGHTER, "give the field a default, or make it optional and check it in the controller");
pub const REQUIRED_WITH_DEFAULT: Check = warning(
    "required-with-default",
    &[Writers],
    "the default satisfies the API server; clients with generated types have to set the field",
);
pub const REQUIRED_REMOVED: Check =
    info("required-removed", &[Readers], "make sure that clients cope with an absent field");
pub const TYPE_CHANGED: Check = breaking("type-changed", ALL, NEW_VERSION);

pub const BOUND_ADDED: Check = breaking("bound-added", TIGHTER, RATCHET);
pub const BOUND_TIGHTENED: Check = breaking("bound-tightened", TIGHTER, RATCHET);
pub const BOUND_LOOSENED: Check = info("bound-loosened", &[Readers], READERS);
pub const ENUM_ADDED: Check = breaking("enum-added", TIGHTER, RATCHET);
pub const ENUM_REMOVED: Check = warning("enum-removed", &[Readers], READERS);
pub const ENUM_VALUE_ADDED: Check = warning("enum-value-added", &[Readers], READERS);
pub const ENUM_VALUE_REMOVED: Check = breaking("enum-value-removed", TIGHTER, RATCHET);
pub const FORMAT_ADDED: Check = breaking("format-added", TIGHTER, RATCHET);
pub const FORMAT_CHANGED: Check = breaking("format-changed", TIGHTER, RATCHET);
pub const FORMAT_REMOVED: Check = info("format-removed", &[Readers], READERS);
pub const PATTERN_ADDED: Check = breaking("pattern-added", TIGHTER, RATCHET);
pub const PATTERN_CHANGED: Check = breaking("pattern-changed", TIGHTER, RATCHET);
pub const PATTERN_REMOVED: Check = warning("pattern-removed", &[Readers], READERS);
pub const COMBINATION_ADDED: Check = breaking("combination-added", TIGHTER, RATCHET);
pub const COMBINATION_CHANGED: Check = breaking("combination-changed", TIGHTER, RATCHET);
pub const COMBINATION_REMOVED: Check = info("combination-removed", &[Readers], READERS);
pub const NULLABLE_ADDED: Check = warning("nullable-added", &[Readers], "make sure that clients cope with null");
pub const NULLABLE_REMOVED: Check = breaking("nullable-removed", TIGHTER, RATCHET);

pub const DEFAULT_ADDED: Check =
    warning("default-added", ALL, "stored objects without the field are read with the default from now on");
pub const DEFAULT_CHANGED: Check = breaking(
    "default-changed",
    ALL,
    "objects that were stored before keep the former value, new ones get the other: make the change in a new version",
);
pub const DEFAULT_REMOVED: Check =
    breaking("default-removed", &[Writers, Readers], "make sure that clients cope with an absent field");
pub const DESCRIPTION_CHANGED: Check =
    warning("description-changed", &[Writers, Readers], "make sure that the meaning of the field is the same");

pub const UNKNOWN_FIELDS_PRUNED: Check = breaking(
    "unknown-fields-pruned",
    ALL,
    "declare the fields that objects have; all others are dropped when an object is written",
);
pub const UNKNOWN_FIELDS_PRESERVED: Check = info("unknown-fields-preserved", &[Readers], READERS);
pub const EMBEDDED_RESOURCE_ADDED: Check = breaking("embedded-resource-added", TIGHTER, RATCHET);
pub const EMBEDDED_RESOURCE_REMOVED: Check = warning("embedded-resource-removed", &[Readers], READERS);
pub const LIST_TYPE_CHANGED: Check = breaking(
    "list-type-changed",
    TIGHTER,
    "sets and maps have no duplicates, and server-side apply merges their items: check both, or add a new field",
);
pub const LIST_KEYS_CHANGED: Check =
    breaking("list-keys-changed", TIGHTER, "items are merged and compared by other keys: add a new field instead");
pub const MAP_TYPE_CHANGED: Check =
    warning("map-type-changed", &[Writers], "server-side apply merges or replaces the object as a whole from now on");

pub const RULE_ADDED: Check = breaking("rule-added", TIGHTER, RATCHET);
pub const RULE_TIGHTENED: Check = breaking("rule-tightened", TIGHTER, RATCHET);
pub const RULE_CHANGED: Check = breaking("rule-changed", TIGHTER, RATCHET);
pub const RULE_LOOSENED: Check = info("rule-loosened", &[Readers], READERS);
pub const RULE_REMOVED: Check = info("rule-removed", &[Readers], READERS);
pub const RULE_MESSAGE_CHANGED: Check = info("rule-message-changed", &[Writers], NONE);
pub const RULE_REASON_CHANGED: Check =
    warning("rule-reason-changed", &[Writers], "clients may act on the reason and the field of the error");
pub const RULE_COST_RAISED: Check = info("rule-cost-raised", &[Writers], NONE);

pub const DEFINITION_ADDED: Check = info("definition-added", &[], NONE);
pub const DEFINITION_REMOVED: Check =
    breaking("definition-removed", ALL, "the removal of a definition deletes all of its objects");

pub const OBJECT_REFUSED: Check = breaking(
    "object-refused",
    &[Stored, Writers],
    "the object cannot be updated any more, not even where it is valid: correct it first, or keep the schema",
);
pub const OBJECT_NOT_SERVED: Check = breaking("object-not-served", ALL, "write the object in a version that is served");
pub const OBJECT_INVALID: Check = warning(
    "object-invalid",
    &[Stored, Writers],
    "the object can be updated where its invalid values stay, but could not be created again, as after a restore",
);
pub const OBJECT_PRUNED: Check =
    breaking("object-pruned", ALL, "the fields are dropped when the object is written: declare them, or move the data");
