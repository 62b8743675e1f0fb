//! Places in an object under validation. They make most checks one line.
//!
//! A validator walks through an object with [`At`], from a place to its fields and items, and reports errors at places. A
//! place refers to the one above it: only an error needs the whole path, and few objects have errors.
//!
//! `field…`, `item…` and `entry…` step down; `with_…`, `shown_…`, `in_stage` and `or_empty` return the same place with something
//! changed. A method that is named after an error (`invalid`, `duplicate`) always reports it, and with `_if` at its end if the
//! condition holds; one that is named after a requirement (`require…`, `check_…`, `one_of`, `within`, `immutable`) reports a
//! violation.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::RangeInclusive;

use machinery::field::{FieldError, FieldPath};
use machinery::types::internal_json;
use machinery::{Map, Release, Value};

/// The kind of check that found an error. Where several functions of kube-apiserver check one field, `order` in
/// `rules.txt` sorts their errors by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckStage {
    /// The checks of the field itself.
    #[default]
    Field,
    /// A rule of `rules.txt` for a field that Rust code checks too.
    Rule,
    /// A check of the field together with others.
    Across,
    /// The check of an immutable field. Its errors come last where no order names it.
    Change,
    /// Checks that only some kinds have, by the name that an order gives them.
    Of(&'static str),
}

impl CheckStage {
    /// The stages of every kind that an order can name.
    pub const NAMED: &[CheckStage] = &[CheckStage::Rule, CheckStage::Across, CheckStage::Change];

    pub fn name(self) -> &'static str {
        match self {
            CheckStage::Field => "field",
            CheckStage::Rule => "rule",
            CheckStage::Across => "across",
            CheckStage::Change => "change",
            CheckStage::Of(name) => name,
        }
    }
}

/// An error, and the check that found it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundError {
    pub error: FieldError,
    pub stage: CheckStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CheckedRules {
    All,
    /// Those that hold under a condition.
    Conditional,
}

/// The rules of types, for code that checks a part of an object by them.
pub trait TypeRules: Sync {
    /// Reports violations of the rules of a type.
    fn check(&'static self, at: At, go: &'static str, rules: CheckedRules);

    /// The fields of a struct of which one is to be set.
    fn union_of(&'static self, go: &'static str) -> &'static [&'static str];
}

/// The errors of an object and the warnings about it, in the order in which they are found.
struct Findings {
    rules: Option<&'static dyn TypeRules>,
    errors: RefCell<Vec<FoundError>>,
    warnings: RefCell<Vec<String>>,
    release: Release,
}

impl Findings {
    fn new(release: Release) -> Findings {
        Findings { rules: None, errors: RefCell::default(), warnings: RefCell::default(), release }
    }

    /// The place of the whole object. In an update, `old` is the object that it replaces.
    fn root<'p, 'v>(&'p self, value: &'v Value, old: Option<&'v Value>) -> At<'p, 'v> {
        At { value, old, place: Location::Root, findings: self, shown: ShownValue::Value, stage: CheckStage::Field }
    }

    fn into_errors(self) -> Vec<FieldError> {
        self.errors.into_inner().into_iter().map(|found| found.error).collect()
    }
}

/// The errors that `check` reports about an object.
pub fn errors_of(object: &Value, old: Option<&Value>, release: Release, check: impl FnOnce(At)) -> Vec<FieldError> {
    let findings = Findings::new(release);
    check(findings.root(object, old));
    findings.into_errors()
}

/// As [`errors_of`], with the check that found each error. `rules` are those of [`At::check_type`].
pub fn found_in(
    rules: &'static dyn TypeRules,
    object: &Value,
    old: Option<&Value>,
    release: Release,
    check: impl FnOnce(At),
) -> Vec<FoundError> {
    let findings = Findings { rules: Some(rules), ..Findings::new(release) };
    check(findings.root(object, old));
    findings.errors.into_inner()
}

/// The warnings that `check` gives about an object.
pub fn warnings_of(object: &Value, old: Option<&Value>, release: Release, check: impl FnOnce(At)) -> Vec<String> {
    let findings = Findings::new(release);
    check(findings.root(object, old));
    findings.warnings.into_inner()
}

/// The errors that `check` reports about an object at a path.
pub fn errors_at(
    path: &FieldPath,
    object: &Value,
    old: Option<&Value>,
    release: Release,
    check: impl FnOnce(At),
) -> Vec<FieldError> {
    errors_of(object, old, release, |at| check(at.with_path(path)))
}

/// A place in an object.
#[derive(Clone, Copy)]
pub struct At<'p, 'v> {
    /// The value at the place; null if it is absent.
    pub value: &'v Value,
    /// The value that the old object has there, null if it is absent. `None` in a new object, and in items of lists and
    /// [`At::entries_of`], unless [`At::with_old`] has set it.
    pub old: Option<&'v Value>,
    place: Location<'p, 'v>,
    findings: &'p Findings,
    shown: ShownValue<'p>,
    stage: CheckStage,
}

/// How errors show the value.
#[derive(Clone, Copy)]
enum ShownValue<'p> {
    Value,
    /// The value as the JSON of a Go type.
    Go(&'static str),
    /// This text, quoted like the value of a string.
    Text(&'p str),
    /// This text, without quotes.
    Verbatim(&'p str),
}

#[derive(Clone, Copy)]
enum Location<'p, 'v> {
    Root,
    Path(&'p FieldPath),
    Field(&'p At<'p, 'v>, &'p str),
    Index(&'p At<'p, 'v>, usize),
    /// An item of a list field.
    Item(&'p At<'p, 'v>, &'p str, usize),
    Key(&'p At<'p, 'v>, &'p str),
    /// An entry of a map field.
    Entry(&'p At<'p, 'v>, &'p str, &'p str),
}

const INTERNAL_STRING: &str = "string";

/// A text in the form in which [`At::shown_as_json`] shows it.
pub fn json_text(text: &str) -> String {
    internal_json(&Value::from(text), INTERNAL_STRING)
}

static NOTHING: Value = Value::Null;
static ZERO: Value = Value::Int(0);
static NO_TEXT: Value = Value::String(machinery::Text::new_static(""));

/// The value at a path of fields, separated by dots; null if it is absent.
pub fn find<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').try_fold(value, |value, name| value.get(name)).unwrap_or(&NOTHING)
}

/// Steps to other places.
impl<'p, 'v> At<'p, 'v> {
    fn below<'q>(&'q self, place: Location<'q, 'v>, value: &'v Value, old: Option<&'v Value>) -> At<'q, 'v> {
        At { value, old, place, findings: self.findings, shown: ShownValue::Value, stage: self.stage }
    }

    /// The place of a field. `name` may be a path, such as `spec.selector`.
    pub fn field<'q>(&'q self, name: &'q str) -> At<'q, 'v> {
        self.below(Location::Field(self, name), find(self.value, name), self.old.map(|old| find(old, name)))
    }

    /// The place of a field whose name may contain dots.
    pub fn field_with_dots<'q>(&'q self, name: &'q str) -> At<'q, 'v> {
        At { place: Location::Field(self, name), ..self.entry(name) }
    }

    /// As [`At::field`], for a string: Go has no absent strings, so errors show an empty one.
    pub fn field_or_empty<'q>(&'q self, name: &'q str) -> At<'q, 'v> {
        self.field(name).or_empty()
    }

    /// As [`At::field`], for a number: Go has no absent numbers, so errors show zero.
    pub fn field_or_zero<'q>(&'q self, name: &'q str) -> At<'q, 'v> {
        let at = self.field(name);
        if at.is_given() { at } else { at.with_value(&ZERO) }
    }

    /// The place of a field, if it is set.
    pub fn field_if_given<'q>(&'q self, name: &'q str) -> Option<At<'q, 'v>> {
        Some(self.field(name)).filter(At::is_given)
    }

    /// The place of an item of a list.
    pub fn item(&self, index: usize) -> At<'_, 'v> {
        let value = self.value.as_array().and_then(|items| items.get(index)).unwrap_or(&NOTHING);
        self.below(Location::Index(self, index), value, None)
    }

    /// The place of an entry of a map.
    pub fn entry<'q>(&'q self, key: &'q str) -> At<'q, 'v> {
        let old = self.old.map(|old| old.get(key).unwrap_or(&NOTHING));
        self.below(Location::Key(self, key), self.value.get(key).unwrap_or(&NOTHING), old)
    }

    /// The places of the items of a list field.
    pub fn items_of<'q>(&'q self, name: &'q str) -> impl DoubleEndedIterator<Item = At<'q, 'v>> + use<'q, 'p, 'v> {
        let items = self.list(name).iter().enumerate();
        items.map(move |(i, value)| self.below(Location::Item(self, name, i), value, None))
    }

    /// The places of the items of this list.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = At<'_, 'v>> + ExactSizeIterator {
        (0..self.value.as_array().map_or(0, <[Value]>::len)).map(|i| self.item(i))
    }

    /// The keys and places of the entries of a map field.
    pub fn entries_of<'q>(&'q self, name: &'q str) -> impl Iterator<Item = (&'v str, At<'q, 'v>)> + use<'q, 'p, 'v> {
        find(self.value, name)
            .as_object()
            .into_iter()
            .flat_map(Map::iter)
            .map(move |(key, value)| (key.as_str(), self.below(Location::Entry(self, name, key.as_str()), value, None)))
    }

    /// This place with another value.
    pub fn with_value(self, value: &'v Value) -> At<'p, 'v> {
        At { value, ..self }
    }

    /// This place, but errors are reported at `path`.
    pub fn with_path<'q>(&self, path: &'q FieldPath) -> At<'q, 'v>
    where
        'p: 'q,
    {
        At { place: Location::Path(path), ..*self }
    }

    /// This place of a string, with an empty one if it is absent.
    pub fn or_empty(self) -> At<'p, 'v> {
        let or_empty = |value: &'v Value| if value.is_null() { &NO_TEXT } else { value };
        self.with_value(or_empty(self.value)).with_old(self.old.map(or_empty))
    }

    /// This place with another old value, such as that of the item which had the same key.
    pub fn with_old(self, old: Option<&'v Value>) -> At<'p, 'v> {
        At { old, ..self }
    }

    /// This field, under another name in errors: kube-apiserver does not always use that of the JSON. Items and entries keep theirs.
    pub fn with_name(self, name: &'p str) -> At<'p, 'v> {
        match self.place {
            Location::Field(above, _) => At { place: Location::Field(above, name), ..self },
            _ => self,
        }
    }

    /// This place, in whose errors the value is shown as the JSON of a Go type.
    pub fn shown_as_go(self, go: &'static str) -> At<'p, 'v> {
        At { shown: ShownValue::Go(go), ..self }
    }

    /// This place of a string of a named Go type, such as `type Operator string`, which errors show as JSON.
    pub fn shown_as_json(self) -> At<'p, 'v> {
        self.shown_as_go(INTERNAL_STRING)
    }

    /// This place, whose errors show this text instead of the value.
    pub fn shown_as_text<'q>(&self, text: &'q str) -> At<'q, 'v>
    where
        'p: 'q,
    {
        At { shown: ShownValue::Text(text), ..*self }
    }

    /// This place, whose errors show `text` without quotes instead of the value; nothing if it is empty.
    pub fn shown_verbatim<'q>(&self, text: &'q str) -> At<'q, 'v>
    where
        'p: 'q,
    {
        At { shown: ShownValue::Verbatim(text), ..*self }
    }

    /// This place, whose errors are those of a stage.
    pub fn in_stage(self, stage: CheckStage) -> At<'p, 'v> {
        At { stage, ..self }
    }
}

/// The value at the place.
impl<'v> At<'_, 'v> {
    /// Whether the place has a value.
    pub fn is_given(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether the place is the whole object.
    pub fn is_root(&self) -> bool {
        match self.place {
            Location::Root => true,
            Location::Path(path) => path.as_str().is_empty(),
            _ => false,
        }
    }

    /// Whether a field is set.
    pub fn has(&self, name: &str) -> bool {
        !find(self.value, name).is_null()
    }

    /// The text at this place; empty if there is none.
    pub fn as_text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text of a field; empty if there is none.
    pub fn text(&self, name: &str) -> &'v str {
        find(self.value, name).as_str().unwrap_or_default()
    }

    /// The number of a field.
    pub fn int(&self, name: &str) -> Option<i64> {
        find(self.value, name).as_int()
    }

    /// Whether a field is true.
    pub fn is_true(&self, name: &str) -> bool {
        find(self.value, name).as_bool() == Some(true)
    }

    /// The items of a list field; none if it is absent.
    pub fn list(&self, name: &str) -> &'v [Value] {
        find(self.value, name).as_array().unwrap_or_default()
    }

    /// The texts that a field has in the items of a list.
    pub fn texts<C: FromIterator<&'v str>>(&self, list: &str, field: &str) -> C {
        self.list(list).iter().map(|item| item.str_at(&[field])).collect()
    }

    /// The text that the old object has here; empty if there is none.
    pub fn old_text(&self) -> &'v str {
        self.old.and_then(Value::as_str).unwrap_or_default()
    }

    /// The items of the list that the old object has here; none if there is no list.
    pub fn old_items(&self) -> &'v [Value] {
        self.old.and_then(Value::as_array).unwrap_or_default()
    }

    /// The items of this list as Go prints them; `null` if there is no list.
    pub fn printed_items(&self, go: &str) -> String {
        let print = |items: &[Value]| items.iter().map(|item| internal_json(item, go)).collect::<Vec<_>>().join(",");
        self.value.as_array().map_or_else(|| "null".to_owned(), |items| format!("[{}]", print(items)))
    }

    /// Whether there is something to compare with: false in a new object, and where [`At::old`] is `None`.
    pub fn is_update(&self) -> bool {
        self.old.is_some()
    }

    /// The release whose rules apply.
    pub fn release(&self) -> Release {
        self.findings.release
    }

    /// The path of the place.
    pub fn path(&self) -> FieldPath {
        match self.place {
            Location::Root => FieldPath::root(),
            Location::Path(path) => path.clone(),
            Location::Field(above, name) => above.path().child(name),
            Location::Index(above, i) => above.path().index(i),
            Location::Item(above, name, i) => above.path().child(name).index(i),
            Location::Key(above, key) => above.path().key(key),
            Location::Entry(above, name, key) => above.path().child(name).key(key),
        }
    }
}

/// Reports of errors.
impl<'v> At<'_, 'v> {
    pub fn push(&self, error: FieldError) {
        self.findings.errors.borrow_mut().push(FoundError { error, stage: self.stage });
    }

    pub fn extend(&self, errors: impl IntoIterator<Item = FieldError>) {
        errors.into_iter().for_each(|error| self.push(error));
    }

    /// Calls `check` with this place and another value for errors to show. Unlike with [`At::with_value`], the
    /// value need not outlive the call.
    pub fn showing(&self, value: &Value, check: impl FnOnce(At)) {
        check(At { value, old: None, ..*self });
    }

    /// The number of errors of the object so far.
    pub fn count(&self) -> usize {
        self.findings.errors.borrow().len()
    }

    /// Reports violations of the rules of a type, if there are rules.
    pub fn check_type(&self, go: &'static str) {
        self.findings.rules.into_iter().for_each(|rules| rules.check(*self, go, CheckedRules::All));
    }

    /// As [`At::check_type`], but only of the rules that hold under a condition.
    pub fn check_conditions(&self, go: &'static str) {
        self.findings.rules.into_iter().for_each(|rules| rules.check(*self, go, CheckedRules::Conditional));
    }

    /// The fields of a struct of which one is to be set.
    pub fn union_of(&self, go: &'static str) -> &'static [&'static str] {
        self.findings.rules.map_or(&[], |rules| rules.union_of(go))
    }

    /// The errors that `check` finds at this place, returned instead of reported.
    pub fn apart(&self, check: impl FnOnce(At<'_, 'v>)) -> Vec<FieldError> {
        let findings = Findings { rules: self.findings.rules, ..Findings::new(self.findings.release) };
        check(At { findings: &findings, ..*self });
        findings.into_errors()
    }

    /// Reports an error about a value, in the form in which the place shows it.
    fn about(&self, error: impl FnOnce(&FieldPath, &Value) -> FieldError) {
        let path = self.path();
        self.push(match self.shown {
            ShownValue::Value => error(&path, self.value),
            ShownValue::Go(go) => FieldError { value: internal_json(self.value, go), ..error(&path, &NOTHING) },
            ShownValue::Text(text) => error(&path, &Value::from(text)),
            ShownValue::Verbatim(text) => FieldError { value: text.to_owned(), ..error(&path, &NOTHING) },
        });
    }

    pub fn required(&self, why: impl Into<String>) {
        self.push(FieldError::required(&self.path(), why));
    }

    pub fn forbidden(&self, why: impl Into<String>) {
        self.push(FieldError::forbidden(&self.path(), why));
    }

    pub fn invalid(&self, why: impl Into<String>) {
        self.about(|path, value| FieldError::invalid(path, value, why));
    }

    /// As [`At::required`], if the condition holds.
    pub fn required_if(&self, is_wrong: bool, why: &str) {
        if is_wrong {
            self.required(why);
        }
    }

    /// As [`At::forbidden`], if the condition holds.
    pub fn forbidden_if(&self, is_wrong: bool, why: &str) {
        if is_wrong {
            self.forbidden(why);
        }
    }

    /// As [`At::invalid`], if the condition holds.
    pub fn invalid_if(&self, is_wrong: bool, why: &str) {
        if is_wrong {
            self.invalid(why);
        }
    }

    /// Reports each of these problems.
    pub fn invalid_each(&self, problems: impl IntoIterator<Item = String>) {
        problems.into_iter().for_each(|why| self.invalid(why));
    }

    pub fn duplicate(&self) {
        self.about(FieldError::duplicate);
    }

    pub fn duplicate_because(&self, why: &str) {
        self.about(|path, value| FieldError { detail: why.to_owned(), ..FieldError::duplicate(path, value) });
    }

    pub fn not_found(&self) {
        self.about(FieldError::not_found);
    }

    pub fn unsupported(&self, known: &[&str]) {
        self.about(|path, value| FieldError::not_supported(path, value, known));
    }

    pub fn too_many(&self, count: usize, items_max: usize) {
        self.push(FieldError::too_many(&self.path(), count, items_max));
    }

    pub fn too_long(&self, bytes_max: usize) {
        self.push(FieldError::too_long(&self.path(), bytes_max));
    }
}

/// Warnings.
impl At<'_, '_> {
    /// Warns about the value of the place.
    pub fn warn(&self, why: impl std::fmt::Display) {
        self.warn_text(format!("{}: {why}", self.path()));
    }

    /// Adds a warning that does not begin with the path.
    pub fn warn_text(&self, warning: impl Into<String>) {
        self.findings.warnings.borrow_mut().push(warning.into());
    }

    /// The number of warnings about the object so far.
    pub fn count_warnings(&self) -> usize {
        self.findings.warnings.borrow().len()
    }
}

/// Checks.
impl<'v> At<'_, 'v> {
    /// Requires a text that is not empty. `why` is the detail of the error.
    pub fn require_text(&self, why: &str) {
        if self.as_text().is_empty() {
            self.required(why);
        }
    }

    /// Requires a value.
    pub fn require(&self, why: impl Into<String>) {
        if !self.is_given() {
            self.required(why);
        }
    }

    /// Forbids a value.
    pub fn forbid(&self, why: impl Into<String>) {
        if self.is_given() {
            self.forbidden(why);
        }
    }

    /// Requires one of these texts, if the place has a value.
    pub fn one_of(&self, known: &[&str]) {
        if self.is_given() && !known.contains(&self.as_text()) {
            self.unsupported(known);
        }
    }

    /// Requires one of these texts. An empty one is reported as missing.
    pub fn require_one_of(&self, known: &[&str]) {
        if self.as_text().is_empty() { self.required("") } else { self.one_of(known) }
    }

    /// Reports each problem that `problems` finds in the text, which may be empty.
    pub fn check_text(&self, problems: impl FnOnce(&str) -> Vec<String>) {
        self.or_empty().invalid_each(problems(self.as_text()));
    }

    /// As [`At::check_text`], if the place has a value.
    pub fn check_text_if_given(&self, problems: impl FnOnce(&str) -> Vec<String>) {
        if self.is_given() {
            self.check_text(problems);
        }
    }

    pub fn check_text_unless_empty(&self, problems: impl FnOnce(&str) -> Vec<String>) {
        if !self.as_text().is_empty() {
            self.check_text(problems);
        }
    }

    /// As [`At::check_text`], but an empty text is reported as missing.
    pub fn check_required_text(&self, problems: impl FnOnce(&str) -> Vec<String>) {
        if self.as_text().is_empty() { self.required("") } else { self.check_text(problems) }
    }

    /// Requires a number that is not less than `min`, if the place has a number.
    pub fn at_least(&self, min: i64, why: &str) {
        if self.value.as_int().is_some_and(|number| number < min) {
            self.invalid(why);
        }
    }

    /// Requires a number in a range, if the place has a value.
    pub fn within(&self, range: RangeInclusive<i64>) {
        if self.is_given() && !self.value.as_int().is_some_and(|number| range.contains(&number)) {
            self.invalid(format!("must be between {} and {}, inclusive", range.start(), range.end()));
        }
    }

    /// Requires a text of at most this many bytes.
    pub fn max_bytes(&self, bytes_max: usize) {
        if self.as_text().len() > bytes_max {
            self.too_long(bytes_max);
        }
    }

    /// Requires a list of at most this many items, and returns whether it is that short.
    pub fn max_items(&self, items_max: usize) -> bool {
        let count = self.value.as_array().map_or(0, <[Value]>::len);
        if count > items_max {
            self.too_many(count, items_max);
        }
        count <= items_max
    }

    /// Requires a text that is not in `known`, and adds it.
    pub fn unique(&self, known: &mut HashSet<&'v str>) {
        if !known.insert(self.as_text()) {
            self.duplicate();
        }
    }

    /// Forbids updates to change the value.
    pub fn immutable(&self) {
        if self.old.is_some_and(|old| old != self.value) {
            self.in_stage(CheckStage::Change).invalid("field is immutable");
        }
    }
}
