//! Options of requests, from query and body: ListOptions, Create-, Update-, Patch- and DeleteOptions.
//!
//! Numbers that don't parse are 400, values that are not allowed 422.

use machinery::field::{FieldError, FieldPath};
use machinery::selector::{FieldSelector, LabelSelector};
use machinery::{Status, Text, Value};
use schema::shape;

use super::query::Query;
use super::{Feature, FeatureGates};
use crate::limits;

/// `fieldValidation`: how unknown and duplicate fields are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_manager: Text,
    pub field_validation: FieldValidation,
    /// Whether the request specifies `fieldValidation`.
    pub field_validation_given: bool,
    /// Apply only: whether conflicts with other field managers are overridden.
    pub force: bool,
}

pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid("meta.k8s.io", kind, "", errors)
}

fn dry_run_error(values: &[&str]) -> Option<FieldError> {
    let wrong = !values.is_empty() && values.iter().any(|v| *v != "All");
    let list: Value = values.iter().map(|v| Value::from(*v)).collect();
    wrong.then(|| FieldError::not_supported(&FieldPath::new("dryRun"), &list, &["All"]))
}

fn manager_error(manager: &str) -> Option<FieldError> {
    let path = FieldPath::new("fieldManager");
    if manager.len() > limits::FIELD_MANAGER_BYTES_MAX {
        return Some(FieldError::too_long(&path, limits::FIELD_MANAGER_BYTES_MAX));
    }
    let (at, c) = manager.char_indices().find(|(_, c)| c.is_control())?;
    let why = format!("invalid character U+{:04X} (at position {at})", c as u32);
    Some(FieldError::invalid(&path, &Value::from(manager), why))
}

/// The writes whose options differ in what is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteVerb {
    /// The kind of the options, as errors name it.
    fn options_kind(self) -> &'static str {
        match self {
            WriteVerb::Create => "CreateOptions",
            WriteVerb::Update => "UpdateOptions",
            WriteVerb::Patch | WriteVerb::Apply => "PatchOptions",
        }
    }
}

impl WriteOptions {
    /// Reads the query. The error is the 422 of kube-apiserver.
    pub fn parse(query: &Query, verb: WriteVerb) -> Result<WriteOptions, Status> {
        let mut errors = vec![];
        let manager = query.get("fieldManager").unwrap_or_default();
        let is_apply = verb == WriteVerb::Apply;
        if verb == WriteVerb::Patch && query.has("force") {
            errors.push(FieldError::forbidden(&FieldPath::new("force"), "may not be specified for non-apply patch"));
        }
        if is_apply && manager.is_empty() {
            errors.push(FieldError::required(&FieldPath::new("fieldManager"), "is required for apply patch"));
        }
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let manager_error = manager_error(manager);
        // kube-apiserver checks both fields of a patch in the other order
        if matches!(verb, WriteVerb::Patch | WriteVerb::Apply) {
            errors.extend(manager_error);
            errors.extend(dry_run_error(&dry_run));
        } else {
            errors.extend(dry_run_error(&dry_run));
            errors.extend(manager_error);
        }
        let field_validation = match query.get("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            other => {
                let path = FieldPath::new("fieldValidation");
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&path, &Value::from(other), &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(verb.options_kind(), &errors));
        }
        let force = is_apply && query.flag("force");
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_manager: manager.into(),
            field_validation,
            field_validation_given: query.get("fieldValidation").is_some_and(|given| !given.is_empty()),
            force,
        })
    }
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub label_selector: LabelSelector,
    pub field_selector: FieldSelector,
    /// The text of `shardSelector`; empty if there is none.
    pub shard_selector: Text,
    pub resource_version: Text,
    pub version_match: Option<VersionMatch>,
    pub timeout_seconds: Option<i64>,
    /// 0 for no limit.
    pub limit: i64,
    pub continue_token: Text,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

/// An integer as Go's `strconv.ParseInt` reads it, with its error.
pub fn parse_int(text: &str) -> Result<i64, Status> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let quoted = machinery::value::quote(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Status::bad_request(format!("strconv.ParseInt: parsing {quoted}: invalid syntax")));
    }
    text.parse().map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {quoted}: value out of range")))
}

/// A number as Go's `strconv.ParseUint` reads it, which takes no sign, with its error.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let why = if digits { "value out of range" } else { "invalid syntax" };
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or_else(|| format!("strconv.ParseUint: parsing {}: {why}", machinery::value::quote(text)))
}

impl ListOptions {
    pub fn of_list(query: &Query) -> Result<ListOptions, Status> {
        ListOptions::parse(query, |options, given| options.list_errors(given))
    }

    /// Reads the query of a watch. A watch that is requested by its path alone (`/watch/…`) follows the rules of a
    /// list, as in kube-apiserver.
    pub fn of_watch(query: &Query, gates: &FeatureGates) -> Result<ListOptions, Status> {
        if !query.flag("watch") {
            return ListOptions::of_list(query);
        }
        ListOptions::parse(query, |options, given| options.watch_errors(given, gates.has(Feature::WatchList)))
    }

    /// Reads the query; `check` has the rules of the verb for `resourceVersionMatch`.
    fn parse(
        query: &Query,
        check: impl FnOnce(&mut ListOptions, &str) -> Vec<FieldError>,
    ) -> Result<ListOptions, Status> {
        let mut options = ListOptions::read(query)?;
        let given = query.get("resourceVersionMatch").unwrap_or_default();
        let errors = check(&mut options, given);
        if !errors.is_empty() {
            return Err(invalid_options("ListOptions", &errors));
        }
        options.version_match = match given {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    /// Reads the query without `resourceVersionMatch`. Fails if a number or a selector cannot be parsed.
    pub fn read(query: &Query) -> Result<ListOptions, Status> {
        let int = |key: &str| query.get(key).map(parse_int).transpose();
        let timeout_seconds = int("timeoutSeconds")?;
        let limit = int("limit")?.unwrap_or_default();
        let text = |key: &str| query.get(key).unwrap_or_default();
        let label_selector = LabelSelector::parse(text("labelSelector")).map_err(Status::bad_request)?;
        let field_selector = FieldSelector::parse(text("fieldSelector")).map_err(Status::bad_request)?;
        Ok(ListOptions {
            label_selector,
            field_selector,
            shard_selector: text("shardSelector").into(),
            resource_version: text("resourceVersion").into(),
            version_match: None,
            timeout_seconds,
            limit: limit.max(0),
            continue_token: text("continue").into(),
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents")),
        })
    }

    fn list_errors(&self, given: &str) -> Vec<FieldError> {
        let path = FieldPath::new("resourceVersionMatch");
        let forbidden = |why: &str| FieldError::forbidden(&path, why);
        let mut errors = vec![];
        if self.send_initial_events.is_some() {
            let path = FieldPath::new("sendInitialEvents");
            errors.push(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        if given.is_empty() {
            return errors;
        }
        if self.resource_version.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !self.continue_token.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(given, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&path, &Value::from(given), &["Exact", "NotOlderThan", ""]));
        }
        if given == "Exact" && self.resource_version == "0" {
            errors.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
        errors
    }

    fn watch_errors(&mut self, given: &str, watch_list: bool) -> Vec<FieldError> {
        let path = FieldPath::new("resourceVersionMatch");
        let forbidden = |why: &str| FieldError::forbidden(&path, why);
        let mut given = given;
        // A watch without a version starts with the current state (1.34).
        let implied = watch_list
            && given.is_empty()
            && self.send_initial_events.is_none()
            && matches!(self.resource_version.as_str(), "" | "0");
        if implied {
            self.send_initial_events = Some(true);
            given = "NotOlderThan";
        }
        let mut errors = vec![];
        match (self.send_initial_events, given) {
            (Some(_), "NotOlderThan") => {}
            (Some(_), _) => {
                errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
            }
            (None, "") => {}
            (None, _) => errors
                .push(forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")),
        }
        if self.send_initial_events.is_some() && !watch_list {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(FieldError::forbidden(&FieldPath::new("sendInitialEvents"), why));
        }
        if !matches!(given, "" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&path, &Value::from(given), &["NotOlderThan"]));
        }
        if !given.is_empty() && !self.continue_token.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        errors
    }
}

/// The option that deletes an object which cannot be read.
pub const IGNORE_READ_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

fn read_errors(why: String) -> FieldError {
    FieldError::invalid(&FieldPath::new(IGNORE_READ_ERRORS), &Value::Bool(true), why)
}

fn valid((options, errors): (DeleteOptions, Vec<FieldError>)) -> Result<DeleteOptions, Status> {
    if errors.is_empty() { Ok(options) } else { Err(invalid_options("DeleteOptions", &errors)) }
}

#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub uid: Option<Text>,
    pub resource_version: Option<Text>,
    pub orphan_dependents: Option<bool>,
    /// `Foreground`, `Background` or `Orphan`.
    pub propagation_policy: Option<Text>,
    pub grace_period_seconds: Option<i64>,
    /// Whether an object that cannot be decoded may be deleted (KEP-3926).
    pub ignore_read_errors: bool,
    /// Whether preconditions are given. In a body, empty preconditions count as well.
    pub has_preconditions: bool,
}

impl DeleteOptions {
    pub fn from_query(query: &Query, gates: &FeatureGates) -> Result<DeleteOptions, Status> {
        let text = |key: &str| query.get(key).filter(|v| !v.is_empty()).map(Text::from);
        let grace = query.get("gracePeriodSeconds").map(parse_int).transpose()?;
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        let options = DeleteOptions {
            grace_period_seconds: grace,
            has_preconditions: uid.is_some() || resource_version.is_some(),
            uid,
            resource_version,
            orphan_dependents: query.has("orphanDependents").then(|| query.flag("orphanDependents")),
            propagation_policy: query.get("propagationPolicy").map(Text::from),
            dry_run: false,
            ignore_read_errors: query.has(IGNORE_READ_ERRORS)
                && query.flag(IGNORE_READ_ERRORS)
                && gates.has(Feature::UnsafeDeletion),
        };
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        valid(options.checked(&dry_run))
    }

    /// The options of a body with this text, before validation.
    pub fn read(body: &Value, text: &[u8]) -> Result<Value, Status> {
        let read = shape::read(body, shape::named("meta.v1.DeleteOptions"));
        let error = shape::first_error_in(&read.errors, text).or(read.error);
        error.map_or(Ok(read.value), |error| Err(Status::bad_request(error)))
    }

    /// The options of a body that [`Self::read`] has decoded.
    pub fn of(given: &Value, gates: &FeatureGates) -> Result<DeleteOptions, Status> {
        valid(DeleteOptions::unvalidated(given, gates))
    }

    /// As [`Self::of`], with the errors of the options: an eviction acts before kube-apiserver validates them.
    pub fn unvalidated(given: &Value, gates: &FeatureGates) -> (DeleteOptions, Vec<FieldError>) {
        let text = |path: &[&str]| given.at(path).and_then(Value::as_str).map(Text::from);
        let options = DeleteOptions {
            grace_period_seconds: given.get("gracePeriodSeconds").and_then(Value::as_int),
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            orphan_dependents: given.get("orphanDependents").and_then(Value::as_bool),
            propagation_policy: text(&["propagationPolicy"]),
            dry_run: false,
            ignore_read_errors: given.is_true_at(&[IGNORE_READ_ERRORS]) && gates.has(Feature::UnsafeDeletion),
            has_preconditions: given.get("preconditions").is_some(),
        };
        let dry_run = given.items_at(&["dryRun"]);
        let dry_run: Vec<&str> = dry_run.iter().filter_map(Value::as_str).collect();
        options.checked(&dry_run)
    }

    fn checked(mut self, dry_run: &[&str]) -> (DeleteOptions, Vec<FieldError>) {
        let mut errors = vec![];
        let path = FieldPath::new("propagationPolicy");
        if let (Some(policy), Some(_)) = (&self.propagation_policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, &Value::from(policy), why));
        }
        if let Some(policy) = &self.propagation_policy
            && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
        {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(&path, &Value::from(policy), &supported));
        }
        errors.extend(dry_run_error(dry_run));
        errors.extend(self.conflicts_with_ignored_read_errors());
        self.dry_run = !dry_run.is_empty();
        // as in kube-apiserver, a negative grace period is one second
        self.grace_period_seconds = self.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        (self, errors)
    }

    /// The errors of options that cannot be combined with ignoring read errors.
    fn conflicts_with_ignored_read_errors(&self) -> impl Iterator<Item = FieldError> {
        let given = [
            ("propagationPolicy", self.propagation_policy.is_some()),
            ("orphanDependents", self.orphan_dependents.is_some()),
            ("gracePeriodSeconds", self.grace_period_seconds.is_some()),
            ("preconditions", self.has_preconditions),
        ];
        let given = given.into_iter().filter(|(_, given)| self.ignore_read_errors && *given);
        given.map(|(name, _)| read_errors(format!("cannot be set together with .{name}")))
    }

    /// The error of a deletecollection that ignores read errors.
    pub fn check_collection(&self) -> Result<(), Status> {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        match self.ignore_read_errors {
            true => Err(invalid_options("DeleteOptions", &[read_errors(why.to_owned())])),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn delete_options_of_wrong_types_are_refused() {
        let wrong = |what: &str, field: &str, wanted: &str| {
            format!("json: cannot unmarshal {what} into Go struct field {field} of type {wanted}")
        };
        let (grace, uid) = ("DeleteOptions.gracePeriodSeconds", "Preconditions.preconditions.uid");
        for (body, why) in [
            (json!({"gracePeriodSeconds": "5"}), wrong("string", grace, "int64")),
            (json!({"gracePeriodSeconds": 1.5}), wrong("number 1.5", grace, "int64")),
            (json!({"preconditions": {"uid": 5}}), wrong("number", uid, "types.UID")),
            (json!({"preconditions": []}), wrong("array", "DeleteOptions.preconditions", "v1.Preconditions")),
            (json!({"dryRun": "All"}), wrong("string", "DeleteOptions.dryRun", "[]string")),
            (json!({"dryRun": [1]}), wrong("number", "DeleteOptions.dryRun", "string")),
        ] {
            assert_eq!(
                DeleteOptions::read(&body, &[])
                    .and_then(|given| DeleteOptions::of(&given, &FeatureGates::default()))
                    .map(|_| ())
                    .map_err(|e| e.message.clone()),
                Err(why),
                "{body}"
            );
        }
        let read =
            DeleteOptions::of(&json!({"dryRun": ["All"], "preconditions": {"uid": "a"}}), &FeatureGates::default())
                .unwrap();
        assert!(read.dry_run && read.uid.as_deref() == Some("a") && read.resource_version.is_none());
    }

    #[test]
    fn empty_values_of_a_query_are_no_preconditions() {
        let read = |query: &str| {
            let gates = FeatureGates::default();
            DeleteOptions::from_query(&Query::parse(query), &gates).unwrap().has_preconditions
        };
        assert_eq!(["uid=&resourceVersion=", "uid=a", "resourceVersion=1"].map(read), [false, true, true]);
    }

    #[test]
    fn watch_paths_have_the_rules_of_lists() {
        let list = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list";
        let watch =
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        let cases = [
            ("sendInitialEvents=true", Some(list)),
            ("sendInitialEvents=true&watch=false", Some(list)),
            ("sendInitialEvents=true&watch=1", Some(watch)),
            ("resourceVersion=0&resourceVersionMatch=NotOlderThan", None),
            ("limit=1&continue=x", None),
        ];
        for (query, why) in cases {
            let read = ListOptions::of_watch(&Query::parse(query), &FeatureGates::default());
            let found = read.as_ref().err().map(|status| status.message.to_string());
            let wanted = why.map(|why| format!("ListOptions.meta.k8s.io \"\" is invalid: {why}"));
            assert_eq!(found, wanted, "{query}");
            // nothing implies initial events
            assert!(read.is_err() || read.is_ok_and(|options| options.send_initial_events.is_none()), "{query}");
        }
    }

    #[test]
    fn numbers_parse_like_go() {
        assert_eq!([parse_uint("0"), parse_uint("007")], [Ok(0), Ok(7)]);
        for (text, why) in [
            ("", "invalid syntax"),
            ("+5", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("1_0", "invalid syntax"),
            ("18446744073709551616", "value out of range"),
        ] {
            assert_eq!(parse_uint(text), Err(format!("strconv.ParseUint: parsing \"{text}\": {why}")));
        }
    }
}
