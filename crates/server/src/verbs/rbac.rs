//! Prevents privilege escalation: a user can write a role or a binding only with all the permissions that it grants.

use access::authorization::{AccessAttributes, PolicyRule, missing, require};
use base::request::{User, Verb};
use base::task;
use machinery::status::aggregate;
use machinery::value::{quote, quote_list};
use machinery::{Result, Status, Value};

use super::context::{Context, NeededRight};
use super::request::{Request, check_key};

/// Whether a write needs no check, because it grants nothing new or its user is in `system:masters`. `old` is the
/// stored object.
fn is_exempt(request: &Request, new: &Value, old: Option<&Value>) -> bool {
    request.authorized.user.in_group(User::MASTERS) || old.is_some_and(|old| only_collectable(new, old))
}

/// Fails unless the user may create the object: an update or an apply that creates one requires that, too.
pub async fn require_create(context: &Context, request: &Request, name: &str) -> Result<()> {
    let info = &request.authorized.info;
    if info.verb == Verb::Create {
        return Ok(());
    }
    require(&context.authorizer, &request.authorized.user, &AccessAttributes::of_resource(info, "create", name))
        .await
        .map(drop)
}

/// Fails if a higher layer's rule requires a right that the user does not have.
pub async fn check_rule(context: &Context, request: &Request, new: &Value, old: Option<&Value>) -> Result<()> {
    let needed = context.write_rules.get().and_then(|rules| (rules.needed_right)(&request.resource, new, old));
    let Some(NeededRight { verb, resource, name }) = needed else { return Ok(()) };
    let attributes = AccessAttributes {
        verb,
        is_resource: true,
        group: &request.resource.group,
        version: &request.version.name,
        resource,
        name: &name,
        ..AccessAttributes::default()
    };
    require(&context.authorizer, &request.authorized.user, &attributes).await.map(drop)
}

/// Whether two objects differ only in owner references, finalizers and their consequences.
fn only_collectable(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            object.remove_at(&["metadata", field]);
        }
        // an empty map is equal to a missing one
        for field in ["labels", "annotations"] {
            if object.at(&["metadata", field]).and_then(Value::as_object).is_some_and(machinery::Map::is_empty) {
                object.remove_at(&["metadata", field]);
            }
        }
        object
    };
    rest(new) == rest(old)
}

/// Fails if a role has rules that the user does not have. `old` is the stored object.
pub async fn check_role(context: &Context, request: &Request, new: &Value, old: Option<&Value>) -> Result<()> {
    if is_exempt(request, new, old) {
        return Ok(());
    }
    let info = &request.authorized.info;
    let escalate = AccessAttributes { subresource: "", ..AccessAttributes::of_resource(info, "escalate", &info.name) };
    if context.authorizer.decide(&request.authorized.user, &escalate).await.allowed() {
        return Ok(());
    }
    check_rules(context, request, new, &PolicyRule::of_role(new))?;
    let selectors = |role: &Value| role.at(&["aggregationRule", "clusterRoleSelectors"])?.as_array().map(<[_]>::len);
    let aggregates = |role: &Value| selectors(role).is_some_and(|count| count > 0);
    if aggregates(new) || old.is_some_and(aggregates) {
        let (owned, _) = context.authorizer.rbac().rules_of(&request.authorized.user, "");
        if task::blocking(|| missing(owned.iter().flat_map(|role| role.iter()), &PolicyRule::all())) != Ok(vec![]) {
            return Err(forbidden(request, new, "must have cluster-admin privileges to use the aggregationRule"));
        }
    }
    Ok(())
}

/// Fails if the role of a binding has rules that the user does not have. `old` is the stored object.
pub async fn check_binding(context: &Context, request: &Request, new: &Value, old: Option<&Value>) -> Result<()> {
    if is_exempt(request, new, old) {
        return Ok(());
    }
    let (kind, name) = (new.str_at(&["roleRef", "kind"]), new.str_at(&["roleRef", "name"]));
    let namespace = request.namespace();
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => "",
    };
    let bind = AccessAttributes {
        verb: "bind",
        is_resource: true,
        group: new.str_at(&["roleRef", "apiGroup"]),
        resource,
        namespace,
        name,
        ..AccessAttributes::default()
    };
    if !resource.is_empty() && context.authorizer.decide(&request.authorized.user, &bind).await.allowed() {
        return Ok(());
    }
    check_reference(kind, namespace, name)?;
    let rules = context
        .authorizer
        .rbac()
        .rules_of_role(kind, namespace, name)
        .ok_or_else(|| request.resource.not_found(name))?;
    check_rules(context, request, new, &rules)
}

/// Checks a role reference. As in kube-apiserver, the role is looked up before the binding is validated, so an
/// invalid reference fails with the error of that lookup.
fn check_reference(kind: &str, namespace: &str, name: &str) -> Result<()> {
    if !matches!(kind, "Role" | "ClusterRole") {
        return Err(Status::untyped(500, format!("unsupported role reference kind: {}", quote(kind))));
    }
    check_key((kind == "Role").then_some(namespace), name)
}

fn check_rules(context: &Context, request: &Request, new: &Value, needed: &[PolicyRule]) -> Result<()> {
    let user = &request.authorized.user;
    let (owned, unresolved) = context.authorizer.rbac().rules_of(user, request.namespace());
    let Ok(missing) = task::blocking(|| missing(owned.iter().flat_map(|role| role.iter()), needed)) else {
        return Err(forbidden(
            request,
            new,
            "the rules grant too many permissions to compare them with those of the user",
        ));
    };
    if missing.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    lines.sort();
    lines.dedup();
    let (name, groups) = (quote(&user.name), quote_list(&user.groups));
    let lines = lines.join("\n");
    let mut why =
        format!("user {name} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{lines}");
    // as in kube-apiserver, a missing role is reported with the resource of the request
    let errors: Vec<String> =
        unresolved.iter().map(|role| request.resource.not_found(&role.name).message.clone()).collect();
    if !errors.is_empty() {
        why.push_str(&format!("; resolution errors: [{}]", aggregate(&errors)));
    }
    Err(forbidden(request, new, &why))
}

fn forbidden(request: &Request, new: &Value, why: &str) -> Status {
    let name = new.str_at(&["metadata", "name"]);
    Status::forbidden(&request.resource.group, &request.resource.plural, name, why)
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    #[test]
    fn missing_role_references_report_lookup_errors() {
        let refused = |kind: &str, namespace: &str, name: &str| {
            let status = check_reference(kind, namespace, name).unwrap_err();
            (status.code, status.message.clone())
        };
        assert_eq!(refused("", "n", "r"), (500, "unsupported role reference kind: \"\"".to_owned()));
        assert_eq!(refused("Role", "", "r"), (400, "Namespace parameter required.".to_owned()));
        assert_eq!(refused("Role", "n", ""), (400, "Name parameter required.".to_owned()));
        assert_eq!(refused("ClusterRole", "", "a/b").1, "Name parameter invalid: \"a/b\": may not contain '/'");
        assert!(check_reference("ClusterRole", "", "system:x").is_ok());
    }

    #[test]
    fn finalizer_and_owner_changes_skip_escalation_check() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "rules": []});
        let cases = [
            (json!({"metadata": {"name": "a", "finalizers": ["x/y"], "resourceVersion": "2"}, "rules": []}), true),
            (json!({"metadata": {"name": "a", "labels": {}, "annotations": {}}, "rules": []}), true),
            (json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "rules": []}), false),
            (json!({"metadata": {"name": "a"}, "rules": [{}]}), false),
        ];
        for (new, expected) in cases {
            assert_eq!(only_collectable(&new, &old), expected, "{}", new.to_json());
        }
    }
}
