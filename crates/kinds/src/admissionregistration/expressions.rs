//! Validation of the CEL expressions of admission objects: their variables and their errors.

use std::sync::{Arc, LazyLock};

use cel::{Decl, Environment, ObjectType, Type};
use machinery::{FieldError, Text};

use schema::at::At;

/// Minor version of Kubernetes whose CEL libraries new expressions may use.
pub const MINOR: u32 = 36;

/// The variables of an expression besides object, oldObject, namespaceObject and request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    pub params: bool,
    pub authorizer: bool,
    /// The variables of a policy, if it has any.
    pub variables: Option<&'a [(Text, Type)]>,
    /// Whether the expression is a mutation.
    pub mutations: bool,
}

impl Scope<'_> {
    /// The scope of match conditions of webhooks.
    pub const WEBHOOK: Scope<'static> = Scope { params: false, authorizer: true, variables: None, mutations: false };

    pub fn environment(&self) -> Environment {
        let env = Environment::kubernetes(MINOR).variable("object", Type::Dyn).variable("oldObject", Type::Dyn);
        self.completed(env)
    }

    /// The environment for objects and params of known types.
    pub fn environment_for(&self, object: &Arc<Decl>, params: Option<&Arc<Decl>>) -> Environment {
        let env = Environment::kubernetes(MINOR).declared("object", object).declared("oldObject", object);
        let env = params.into_iter().fold(env, |env, params| env.declared("params", params));
        self.completed(env)
    }

    fn completed(&self, env: Environment) -> Environment {
        let mut env = env.variable("namespaceObject", NAMESPACE.clone()).variable("request", REQUEST.clone());
        if self.mutations {
            env = env.with_mutations();
        }
        if self.params {
            env = env.variable("params", Type::Dyn);
        }
        if self.authorizer {
            env = env
                .variable("authorizer", Type::Named("kubernetes.authorization.Authorizer"))
                .variable("authorizer.requestResource", Type::Named("kubernetes.authorization.ResourceCheck"));
        }
        let Some(variables) = self.variables else { return env };
        let env = env.variable("variables", object("kubernetes.variables", variables.to_vec()));
        // each variable is also declared separately, so that it is evaluated lazily
        variables.iter().fold(env, |env, (name, of)| env.variable(&format!("variables.{name}"), of.clone()))
    }
}

fn object(name: &'static str, fields: Vec<(Text, Type)>) -> Type {
    Type::Object(Arc::new(ObjectType::of_types(name, fields)))
}

fn texts(names: &[&'static str]) -> Vec<(Text, Type)> {
    names.iter().map(|name| (Text::new_static(name), Type::String)).collect()
}

fn with_fields(mut fields: Vec<(Text, Type)>, more: &[(&'static str, Type)]) -> Vec<(Text, Type)> {
    fields.extend(more.iter().map(|(name, of)| (Text::new_static(name), of.clone())));
    fields
}

static REQUEST: LazyLock<Type> = LazyLock::new(request_type);
static NAMESPACE: LazyLock<Type> = LazyLock::new(namespace_type);

pub fn user_info_type() -> Type {
    let list = Type::list(Type::String);
    let extra = Type::map(Type::String, list.clone());
    object("kubernetes.UserInfo", with_fields(texts(&["username", "uid"]), &[("groups", list), ("extra", extra)]))
}

/// The type of the spec of a SubjectAccessReview.
pub fn access_review_type() -> Type {
    let list = Type::list(Type::String);
    let requirement =
        object("kubernetes.SelectorRequirement", with_fields(texts(&["key", "operator"]), &[("values", list.clone())]));
    let selector = |name| {
        let requirements = Type::list(requirement.clone());
        object(name, with_fields(texts(&["rawSelector"]), &[("requirements", requirements)]))
    };
    let plain = texts(&["namespace", "verb", "group", "version", "resource", "subresource", "name"]);
    let selectors = [
        ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
        ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
    ];
    let typed = [
        ("resourceAttributes", object("kubernetes.ResourceAttributes", with_fields(plain, &selectors))),
        ("nonResourceAttributes", object("kubernetes.NonResourceAttributes", texts(&["path", "verb"]))),
        ("groups", list.clone()),
        ("extra", Type::map(Type::String, list)),
    ];
    object("kubernetes.SubjectAccessReviewSpec", with_fields(texts(&["user", "uid"]), &typed))
}

fn request_type() -> Type {
    let kind = object("kubernetes.GroupVersionKind", texts(&["group", "version", "kind"]));
    let resource = object("kubernetes.GroupVersionResource", texts(&["group", "version", "resource"]));
    let plain = texts(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    let typed = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("userInfo", user_info_type()),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    object("kubernetes.AdmissionRequest", with_fields(plain, &typed))
}

fn namespace_type() -> Type {
    let list = Type::list(Type::String);
    let map = Type::map(Type::String, Type::String);
    let condition =
        with_fields(texts(&["status", "type", "message", "reason"]), &[("lastTransitionTime", Type::Timestamp)]);
    let conditions = Type::list(object("kubernetes.NamespaceCondition", condition));
    let plain = texts(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    let typed = [
        ("labels", map.clone()),
        ("annotations", map),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("finalizers", list.clone()),
    ];
    let metadata = object("kubernetes.NamespaceMetadata", with_fields(plain, &typed));
    let spec = object("kubernetes.NamespaceSpec", with_fields(vec![], &[("finalizers", list)]));
    let status = object("kubernetes.NamespaceStatus", with_fields(texts(&["phase"]), &[("conditions", conditions)]));
    object("kubernetes.Namespace", with_fields(vec![], &[("metadata", metadata), ("spec", spec), ("status", status)]))
}

/// The name of a type in the messages of kube-apiserver.
pub fn type_name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Any => "google.protobuf.Any".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(item) => format!("list({})", type_name(item)),
        Type::Map(pair) => format!("map({}, {})", type_name(&pair.0), type_name(&pair.1)),
        Type::Opaque(name, params) if !params.is_empty() => {
            format!("{name}({})", params.iter().map(type_name).collect::<Vec<_>>().join(", "))
        }
        Type::Type(Some(of)) => format!("type({})", type_name(of)),
        other => other.format(""),
    }
}

/// The error of an expression.
pub enum Fault {
    /// The expression does not compile.
    Invalid(String),
    /// No program can be built; kube-apiserver reports an internal error.
    Internal(String),
}

impl Fault {
    /// Reports the error of an expression.
    pub fn report(self, text: &str, at: At) {
        match self {
            Fault::Invalid(why) => at.shown_as_text(text).invalid(why),
            Fault::Internal(why) => at.push(FieldError::internal(&at.path(), why)),
        }
    }
}

/// Compiles an expression and returns its type.
pub fn compile(text: &str, scope: Scope<'_>) -> Result<Type, Fault> {
    let env = scope.environment();
    let checked = env.check(text).map_err(|error| Fault::Invalid(format!("compilation failed: {error}")))?;
    cel::Program::new(&env, &checked)
        .map_err(|error| Fault::Internal(format!("program instantiation failed: {error}")))?;
    Ok(checked.output_type().clone())
}

/// Validates an expression whose type must be one of `wanted`.
pub fn expression(at: At, text: &str, scope: Scope<'_>, wanted: &[Type]) {
    let found = match compile(text, scope) {
        Err(fault) => return fault.report(text, at),
        Ok(found) if wanted.contains(&found) => return,
        Ok(found) => type_name(&found),
    };
    let names: Vec<String> = wanted.iter().map(type_name).collect();
    let wanted = if let [one] = names.as_slice() { one.clone() } else { format!("one of [{}]", names.join(" ")) };
    at.shown_as_text(text).invalid(format!("must evaluate to {wanted} but got {found}"));
}
