//! Compilation of the rules of a CustomResourceDefinition: checks, programs, costs.

use super::{DEFINITION_COST_MAX, EXPRESSION_COST_MAX, Options, Reason, Rule, RuleErrors, RuleNode, Rules};
use super::{Notation, resolve_field_path};
use crate::check::Checked;
use crate::cost::estimate::{Part, estimate, explain};
use crate::decl::types::Type;
use crate::decl::{self, Decl, DeclKind, REQUEST_BYTES_MAX, SchemaOf};
use crate::env::Environment;
use crate::node::Program;
use machinery::field::FieldErrorKind;
use machinery::value::write_json_string;
use machinery::{FieldError, FieldPath, Text, Value};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

const VALIDATIONS: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn rules(schema: &Value) -> &[Value] {
    schema.items_at(&[VALIDATIONS])
}

/// Schemas below a node, with their paths.
fn children<'s>(schema: &'s Value, path: &FieldPath) -> Vec<(FieldPath, &'s Value)> {
    let mut out = vec![];
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let below = path.child("properties");
        out.extend(properties.iter().map(|(name, property)| (below.key(name), property)));
    }
    out.extend(decl::additional(schema).map(|schema| (path.child("additionalProperties"), schema)));
    out.extend(decl::items(schema).map(|schema| (path.child("items"), schema)));
    out
}

/// Schemas below a node.
fn below(schema: &Value) -> impl Iterator<Item = &Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(machinery::Map::values);
    properties.chain(decl::additional(schema)).chain(decl::items(schema))
}

/// A set of nodes of a schema, by their address. It is made in one walk: to ask every node about its descendants would take time that
/// is quadratic in the depth of the schema.
type Nodes = HashSet<*const Value>;

/// Adds the nodes that have rules, or have descendants with rules. Returns whether this node is one of them.
fn with_rules(schema: &Value, found: &mut Nodes) -> bool {
    // `count` visits every child, unlike `any`
    let below = below(schema).filter(|child| with_rules(child, found)).count();
    let has_rules = below > 0 || !rules(schema).is_empty();
    if has_rules {
        found.insert(schema);
    }
    has_rules
}

/// Checks the fields of all rules. Nodes with errors, at or below them, are added to `malformed`.
fn check_all_fields(schema: &Value, path: &FieldPath, errors: &mut Vec<FieldError>, malformed: &mut Nodes) {
    let before = errors.len();
    children(schema, path).iter().for_each(|(path, child)| check_all_fields(child, path, errors, malformed));
    for (i, rule) in rules(schema).iter().enumerate() {
        check_fields(schema, rule, &path.child(VALIDATIONS).index(i), errors);
    }
    if errors.len() > before {
        malformed.insert(schema);
    }
}

fn has_newline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn check_fields(schema: &Value, rule: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let text = |key: &str| rule.str_at(&[key]);
    let invalid = |key: &str, detail: &str| FieldError::invalid(&path.child(key), &Value::from(text(key)), detail);
    let (expression, message) = (text("rule").trim(), text("message").trim());
    if expression.is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !text("message").is_empty() && message.is_empty() {
        errors.push(invalid("message", "must be non-empty if specified"));
    } else if has_newline(message) {
        errors.push(invalid("message", "must not contain line breaks"));
    } else if has_newline(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&path.child("message"), detail));
    }
    if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !reason.is_null())
        && !REASONS.contains(&reason.as_str().unwrap_or_default())
    {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
    }
    let field_path = text("fieldPath");
    if !field_path.is_empty() {
        if field_path.trim().is_empty() {
            errors.push(invalid("fieldPath", "must be non-empty if specified"));
        }
        if has_newline(field_path) {
            errors.push(invalid("fieldPath", "must not contain line breaks"));
        }
        if resolve_field_path(field_path, schema, Notation::Brackets).is_err() {
            errors.push(invalid("fieldPath", "must be a valid path"));
        }
    }
}

/// Whether rules apply to a node or to one of its ancestors, and whether these nodes have types in CEL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Outside,
    Typed,
    /// A node has no type, and so none below it has one.
    Untyped,
    /// The parent has a type without elements, such as a text with `items`.
    Elementless,
}

/// The position in the schema.
struct WalkPlace<'p> {
    path: &'p FieldPath,
    /// The declaration of this node, if a rule is here or above.
    decl: Option<Arc<Decl>>,
    /// The scope of the parent.
    scope: Scope,
    /// The greatest number of values; `None` if it is unbounded.
    cardinality: Option<u64>,
    /// The enclosing node below which old values cannot be correlated.
    uncorrelatable: Option<&'p FieldPath>,
    schema_of: SchemaOf,
}

impl<'p> WalkPlace<'p> {
    fn root(path: &'p FieldPath, schema_of: SchemaOf) -> WalkPlace<'p> {
        WalkPlace { path, decl: None, scope: Scope::Outside, cardinality: Some(1), uncorrelatable: None, schema_of }
    }
}

/// The error of rules at a value without a type.
const UNTYPED: &str = "failed to convert to declType for CEL validation rules";

impl RuleNode {
    /// Marks an element of a value whose type has no elements. Its rules fail instead of being ignored: a stored value may have
    /// another type, and then it has elements.
    fn in_elementless(mut self) -> RuleNode {
        if !self.rules.is_empty() {
            self.broken = Some(UNTYPED);
        }
        self
    }
}

/// The purpose of a walk over the rules of a schema.
#[derive(Clone, Copy)]
enum Purpose<'o> {
    /// To report their errors and costs.
    Check(&'o Checks<'o>),
    /// To run them on objects.
    Run(Functions),
}

/// The functions that an expression may use.
#[derive(Clone, Copy)]
struct Functions {
    minor: u32,
    has_legacy: bool,
}

impl Functions {
    /// Those of Kubernetes 1.`minor`, on a server that emulates 1.`served`. Before 1.37, servers also had cel-go's older functions.
    fn of(minor: u32, served: u32) -> Functions {
        Functions { minor, has_legacy: served < 37 }
    }
}

/// The context of a check: the whole schema and its options.
struct Checks<'o> {
    options: &'o Options,
    stored: HashSet<&'o str>,
    malformed: Nodes,
}

impl Checks<'_> {
    fn functions(&self, expression: &str) -> Functions {
        let Options { stored_minor, new_minor, .. } = *self.options;
        Functions::of(if self.stored.contains(expression) { stored_minor } else { new_minor }, stored_minor)
    }
}

struct RuleCompiler<'o> {
    purpose: Purpose<'o>,
    with_rules: Nodes,
    errors: Vec<FieldError>,
    total: u64,
    expensive: Vec<(FieldPath, u64)>,
    /// The costs of all expressions.
    observed: Vec<Observed>,
}

/// The estimated cost of an expression.
#[derive(Debug)]
pub(super) struct Observed {
    pub path: FieldPath,
    /// The cost of one evaluation.
    pub cost: u64,
    /// The greatest number of values that it is evaluated for.
    pub times: u64,
    pub parts: Vec<Part>,
}

/// The rules of a schema, to run them. Each is compiled when a value is first tested by it.
pub(super) fn running(schema: &Value, schema_of: SchemaOf, minor: u32) -> Option<Rules> {
    let mut compiler = RuleCompiler::new(schema, Purpose::Run(Functions::of(minor, minor)))?;
    let schema_of = match schema_of {
        SchemaOf::Resource => SchemaOf::Resource,
        SchemaOf::Value => SchemaOf::node(schema),
    };
    let root = compiler.node(schema, &WalkPlace::root(&FieldPath::root(), schema_of));
    root.map(|root| Rules { root })
}

/// Compiles the rules. Returns their errors, and the cost of each expression.
pub(super) fn check(schema: &Value, path: &FieldPath, options: &Options) -> (RuleErrors, Vec<Observed>) {
    let (mut fields, mut malformed) = (vec![], Nodes::new());
    check_all_fields(schema, path, &mut fields, &mut malformed);
    let checks = Checks { options, stored: options.stored.iter().map(Text::as_str).collect(), malformed };
    let Some(mut compiler) = RuleCompiler::new(schema, Purpose::Check(&checks)) else { return Default::default() };
    compiler.node(schema, &WalkPlace::root(path, SchemaOf::Resource));
    compiler.finish(path);
    (RuleErrors { fields, expressions: compiler.errors }, compiler.observed)
}

/// The declaration of a child of a declared node.
fn child_decl(parent: &Decl, name: Option<&str>) -> Option<Arc<Decl>> {
    match (&parent.kind, name) {
        (DeclKind::Object(object), Some(name)) => {
            object.named(name).filter(|field| field.escaped.is_some()).map(|field| field.decl.clone())
        }
        (DeclKind::List { item, .. }, None) => item.clone(),
        (DeclKind::Map(value), None) => Some(value.clone()),
        _ => None,
    }
}

/// The greatest number of elements of a node; `None` if it is unbounded.
fn elements_max(schema: &Value) -> Option<u64> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_float).map(|n| n.max(0.0) as u64);
    match schema.str_at(&["type"]) {
        "object" if schema.get("additionalProperties").is_some() => bound("maxProperties"),
        "array" => bound("maxItems"),
        _ => Some(1),
    }
}

fn multiplied(cost: u64, by: u64) -> u64 {
    cost.saturating_mul(by)
}

fn exceeded(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

impl<'o> RuleCompiler<'o> {
    /// `None` if the schema has no rules.
    fn new(schema: &Value, purpose: Purpose<'o>) -> Option<RuleCompiler<'o>> {
        let mut found = Nodes::new();
        let has_rules = with_rules(schema, &mut found);
        let (errors, expensive, observed) = (vec![], vec![], vec![]);
        has_rules.then_some(RuleCompiler { purpose, with_rules: found, errors, total: 0, expensive, observed })
    }

    /// The release whose rules derive declarations from schemas.
    fn minor(&self) -> u32 {
        match self.purpose {
            Purpose::Check(checks) => checks.options.stored_minor,
            Purpose::Run(functions) => functions.minor,
        }
    }

    fn node(&mut self, schema: &Value, place: &WalkPlace<'_>) -> Option<RuleNode> {
        if !self.with_rules.contains(&std::ptr::from_ref(schema)) {
            return None;
        }
        let has_rules = !rules(schema).is_empty();
        let decl =
            (place.decl.clone()).or_else(|| has_rules.then(|| Decl::of_minor(schema, place.schema_of, self.minor())));
        let below = place.cardinality.and_then(|n| Some(multiplied(n, elements_max(schema)?)));
        let map_type = schema.get("x-kubernetes-map-type").and_then(Value::as_str);
        let correlatable_map = matches!(map_type, None | Some("granular" | "atomic"));
        let list_type = schema.str_at(&["x-kubernetes-list-type"]);
        let mut node = RuleNode {
            decl: decl.clone().unwrap_or_else(|| Decl::json().clone()),
            schema_type: Text::new(schema.str_at(&["type"])),
            broken: None,
            rules: LazyLock::new(Box::new(Vec::new)),
            properties: vec![],
            own_properties: vec![],
            additional: None,
            items: None,
            list_keys: (list_type == "map").then(|| {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
                keys.iter().filter_map(Value::as_str).map(Text::new).collect()
            }),
            correlatable_map,
        };
        let inside = |name: Option<&str>| decl.as_ref().and_then(|decl| child_decl(decl, name));
        let is_typed = || decl.as_ref().map_or_else(|| decl::has_type(schema), |decl| decl.exposed.is_some());
        let scope = match place.scope {
            Scope::Outside if schema.get(VALIDATIONS).is_none() => Scope::Outside,
            Scope::Outside | Scope::Typed if is_typed() => Scope::Typed,
            _ => Scope::Untyped,
        };
        let untyped = decl::is_untyped(schema);
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties.iter() {
                let path = place.path.child("properties").key(name);
                let uncorrelatable = place.uncorrelatable.or(if correlatable_map { None } else { Some(place.path) });
                let place = WalkPlace {
                    path: &path,
                    decl: inside(Some(name)),
                    scope,
                    cardinality: below,
                    uncorrelatable,
                    schema_of: SchemaOf::node(property),
                };
                let inner = self.node(property, &place);
                // upstream looks a field up in the type of its parent: it skips fields without a type, and all fields of a parent
                // without one. It does not look up a name that cannot be escaped, so that such a field needs only a type of its own.
                let is_reached = decl::has_declaration(property) && (!untyped || decl::escape(name).is_none());
                let properties = if is_reached { &mut node.properties } else { &mut node.own_properties };
                properties.extend(inner.map(|node| (name.clone(), node)));
            }
        }
        let has_elements = decl::has_elements(schema);
        let mut inner = |schema: Option<&Value>, path: FieldPath, uncorrelatable| {
            let scope = if scope == Scope::Typed && !has_elements { Scope::Elementless } else { scope };
            let (schema, decl) = (schema?, inside(None));
            let schema_of = SchemaOf::node(schema);
            let place = WalkPlace { path: &path, decl, scope, cardinality: below, uncorrelatable, schema_of };
            let inner = self.node(schema, &place)?;
            Some(Box::new(if has_elements { inner } else { inner.in_elementless() }))
        };
        let items_uncorrelatable = place.uncorrelatable.or(if list_type == "map" { None } else { Some(place.path) });
        node.additional =
            inner(decl::additional(schema), place.path.child("additionalProperties"), place.uncorrelatable);
        node.items = inner(decl::items(schema), place.path.child("items"), items_uncorrelatable);
        self.rules(schema, place, decl.as_ref(), &mut node);
        Some(node)
    }

    fn rules(&mut self, schema: &Value, place: &WalkPlace<'_>, decl: Option<&Arc<Decl>>, node: &mut RuleNode) {
        let own_rules = rules(schema);
        if own_rules.is_empty() {
            return;
        }
        let path = place.path.child(VALIDATIONS);
        if place.scope == Scope::Elementless {
            self.errors.push(FieldError::internal(&path, UNTYPED));
            node.broken = Some(UNTYPED);
            return;
        }
        let Some(decl) = decl.filter(|decl| decl.exposed.is_some() && place.scope != Scope::Untyped) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            self.errors.push(FieldError::internal(&path, detail));
            node.broken = Some(UNTYPED);
            return;
        };
        match self.purpose {
            Purpose::Run(functions) => node.rules = LazyLock::new(compile_rules(schema, decl.clone(), functions)),
            Purpose::Check(checks) if !checks.malformed.contains(&std::ptr::from_ref(schema)) => {
                for (i, rule) in own_rules.iter().enumerate() {
                    self.rule(rule, &path.index(i), place, decl, checks);
                }
            }
            Purpose::Check(_) => {}
        }
    }

    /// Adds a cost to the total, and keeps the four highest that are at least a hundredth of the limit, which upstream lists.
    fn add_to_total(&mut self, path: FieldPath, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < DEFINITION_COST_MAX / 100 {
            return;
        }
        self.expensive.push((path, cost));
        self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.expensive.truncate(4);
    }

    fn finish(&mut self, path: &FieldPath) {
        if self.total <= DEFINITION_COST_MAX {
            return;
        }
        for (path, _) in std::mem::take(&mut self.expensive) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(&path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(path, exceeded(name, self.total, DEFINITION_COST_MAX)));
    }

    fn record_cost(&mut self, path: FieldPath, name: &str, estimate: (u64, Vec<Part>), times: u64, options: &Options) {
        let (cost, parts) = estimate;
        self.observed.push(Observed { path: path.clone(), cost, times, parts });
        let cost = multiplied(cost, times);
        if !options.expensive_expressions && cost > EXPRESSION_COST_MAX {
            self.errors.push(FieldError::forbidden(&path, exceeded(name, cost, EXPRESSION_COST_MAX)));
        }
        self.add_to_total(path, cost);
    }

    /// Checks a rule whose fields are well formed.
    fn rule(&mut self, rule: &Value, path: &FieldPath, place: &WalkPlace<'_>, decl: &Arc<Decl>, checks: &Checks<'_>) {
        let options = checks.options;
        let (compiled, findings) = compile_rule(rule, decl, &|text| checks.functions(text), options.parts);
        let Some(compiled) = compiled else { return };
        let cardinality = place.cardinality.unwrap_or((REQUEST_BYTES_MAX / (decl.bytes_min + 1).max(1)) as u64);
        self.record_cost(path.child("rule"), "estimated rule cost", findings.cost, cardinality, options);
        if let Err(detail) = &compiled.program {
            self.errors.push(invalid_rule(&path.child("rule"), rule, detail));
        }
        let message_path = path.child("messageExpression");
        if let Some(detail) = &findings.message_error {
            self.errors.push(invalid_rule(&message_path, rule, detail));
        } else if compiled.message_program.is_some() {
            // kube-apiserver does not multiply it by the number of values
            self.record_cost(message_path, "estimated messageExpression cost", findings.message_cost, 1, options);
        }
        if findings.uses_old_self {
            if let Some(within) = place.uncorrelatable {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
                let value = Value::from(rule.str_at(&["rule"]));
                self.errors.push(FieldError::invalid(&path.child("rule"), &value, detail));
            }
        } else if let Some(optional) = rule.get("optionalOldSelf").filter(|v| !v.is_null()) {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(&path.child("optionalOldSelf"), optional, detail));
        }
    }
}

/// An error that shows the whole rule, as Go encodes the internal type `ValidationRule`.
fn invalid_rule(path: &FieldPath, rule: &Value, detail: &str) -> FieldError {
    let mut json = b"{".to_vec();
    let fields = [
        ("Rule", "rule"),
        ("Message", "message"),
        ("MessageExpression", "messageExpression"),
        ("Reason", "reason"),
        ("FieldPath", "fieldPath"),
    ];
    for (name, key) in fields {
        json.extend_from_slice(format!("\"{name}\":").as_bytes());
        match rule.get(key) {
            Some(Value::String(text)) => write_json_string(text, &mut json),
            _ if name == "Reason" => json.extend_from_slice(b"null"),
            _ => json.extend_from_slice(b"\"\""),
        }
        json.push(b',');
    }
    let optional = rule.get("optionalOldSelf").unwrap_or(&Value::Null).to_json();
    json.extend_from_slice(format!("\"OptionalOldSelf\":{optional}}}").as_bytes());
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: path.as_str().to_owned(),
        value: String::from_utf8(json).unwrap_or_default(),
        detail: detail.to_owned(),
    }
}

/// The result of the compilation of a rule.
#[derive(Default)]
struct Findings {
    cost: (u64, Vec<Part>),
    message_cost: (u64, Vec<Part>),
    message_error: Option<String>,
    uses_old_self: bool,
}

fn environment(decl: &Arc<Decl>, optional: bool, functions: Functions) -> Environment {
    let mut env = Environment::kubernetes(functions.minor).declared("self", decl);
    if functions.has_legacy {
        env = env.with_legacy();
    }
    env = if optional {
        env.variable("oldSelf", Type::optional(decl.exposed.clone().unwrap_or(Type::Dyn)))
    } else {
        env.declared("oldSelf", decl)
    };
    env.scope = declared_path(decl).unwrap_or_default();
    env
}

/// The path of an object, or of the objects in a list or map.
fn declared_path(decl: &Decl) -> Option<Text> {
    match &decl.kind {
        DeclKind::Object(object) => Some(object.path.clone()),
        DeclKind::List { item: Some(item), .. } => {
            declared_path(item).map(|path| Text::new(path.strip_suffix(".@idx").unwrap_or(&path)))
        }
        DeclKind::Map(value) => {
            declared_path(value).map(|path| Text::new(path.strip_suffix(".@elem").unwrap_or(&path)))
        }
        _ => None,
    }
}

/// The checked form of an expression, and its program unless compilation fails.
type Compiled = (Checked, Result<Program, String>);

fn compile_expression(env: &Environment, text: &str, output: &Type, what: &str) -> Result<Compiled, String> {
    let (prefix, wrong) = match output {
        Type::Bool => ("", "cel expression must evaluate to a bool"),
        _ => ("messageExpression ", "messageExpression must evaluate to a string"),
    };
    let checked = env.check(text).map_err(|error| format!("{prefix}compilation failed: {error}"))?;
    if checked.output_type() != output {
        return Err(wrong.to_owned());
    }
    let program = Program::new(env, &checked).map_err(|error| format!("{what} instantiation failed: {error}"));
    Ok((checked, program))
}

/// The estimate, and its parts if they are asked for.
fn estimated(env: &Environment, checked: &Checked, parts: bool) -> (u64, Vec<Part>) {
    if !parts {
        return (estimate(env, checked).max, vec![]);
    }
    let (cost, parts) = explain(env, checked);
    (cost.max, parts)
}

/// Returns a closure that compiles the rules of a node. It holds the rules and their normalized field paths, not the schema.
fn compile_rules(schema: &Value, decl: Arc<Decl>, functions: Functions) -> super::CompileRules {
    let normalized = |path: &str| {
        let (path, _) = resolve_field_path(path, schema, Notation::Brackets).ok()?;
        Some(path.as_str().to_owned())
    };
    let source = |rule: &Value| (rule.clone(), normalized(rule.str_at(&["fieldPath"])));
    let sources: Vec<(Value, Option<String>)> = rules(schema).iter().map(source).collect();
    Box::new(move || {
        let compiled = |(rule, field_path): (Value, Option<String>)| {
            let (compiled, findings) = compile_rule(&rule, &decl, &|_| functions, false);
            // as upstream, which ignores `fieldPath` if the message expression does not compile
            let field_path = field_path.filter(|_| findings.message_error.is_none()).unwrap_or_default();
            compiled.map(|rule| Rule { field_path, ..rule })
        };
        sources.into_iter().filter_map(compiled).collect()
    })
}

/// Compiles a rule, all but its field path. `functions` returns those that an expression may use.
fn compile_rule(
    rule: &Value,
    decl: &Arc<Decl>,
    functions: &dyn Fn(&str) -> Functions,
    parts: bool,
) -> (Option<Rule>, Findings) {
    let text = |key: &str| rule.str_at(&[key]);
    let expression = text("rule");
    let mut findings = Findings::default();
    if expression.trim().is_empty() {
        return (None, findings);
    }
    let optional_old_self = rule.is_true_at(&["optionalOldSelf"]);
    let env = environment(decl, optional_old_self, functions(expression));
    let compiled = compile_expression(&env, expression, &Type::Bool, "program");
    let mut message_program = None;
    findings.uses_old_self = compiled.as_ref().is_ok_and(|(checked, _)| checked.uses("oldSelf"));
    let program = compiled.and_then(|(checked, program)| {
        let program = program?;
        findings.cost = estimated(&env, &checked, parts);
        let message = text("messageExpression");
        if !message.is_empty() {
            let env = environment(decl, optional_old_self, functions(message));
            let compiled = compile_expression(&env, message, &Type::String, "messageExpression");
            match compiled.and_then(|(checked, program)| Ok((checked, program?))) {
                Ok((checked, program)) => {
                    findings.message_cost = estimated(&env, &checked, parts);
                    message_program = Some(program);
                }
                Err(error) => findings.message_error = Some(error),
            }
        }
        Ok(program)
    });
    let message = text("message");
    let reason = match text("reason") {
        "FieldValueForbidden" => Reason::Forbidden,
        "FieldValueRequired" => Reason::Required,
        "FieldValueDuplicate" => Reason::Duplicate,
        _ => Reason::Invalid,
    };
    let rule = Rule {
        name: if message.is_empty() { expression.trim().to_owned() } else { message.trim().to_owned() },
        message: (!message.is_empty()).then(|| message.trim().to_owned()),
        message_expression: Text::new(text("messageExpression")),
        reason,
        field_path: String::new(),
        optional_old_self,
        uses_old_self: findings.uses_old_self,
        program,
        message_program,
    };
    (Some(rule), findings)
}
