"""Bodies of objects that many tests create, and the requests that create them."""

CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"
SECRETS = f"{CORE}/secrets"
ACCOUNTS = f"{CORE}/serviceaccounts"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
REVIEWS = "/apis/authentication.k8s.io/v1"
TESTING = "/apis/testing.pintle.dev/v1alpha1"
WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
# a schema that accepts any fields
ANY = {"x-kubernetes-preserve-unknown-fields": True}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def definition(plural, group, schema=None, scope="Namespaced", **version):
    """A CustomResourceDefinition with one version; `version` are its further fields."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", **(schema or {})}}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": plural[:-1].capitalize()}, "versions": [version]},
    }


def named(items):
    """The names of objects, in order."""
    return [item["metadata"]["name"] for item in items]


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def workspace(server, name, **spec):
    """Creates a workspace. Returns the prefix of its paths."""
    server.ok("POST", WORKSPACES, {"apiVersion": "workspaces.pintle.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec})
    return f"/clusters/{name}"


def create_testing(server, kind, name, prefix="", **spec):
    """Creates an object of the group of `--testing`. Returns it."""
    body = {"apiVersion": "testing.pintle.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return server.ok("POST", f"{prefix}{TESTING}/{kind.lower()}s", body)


def rule(*operations, resources=("configmaps",), groups=("",)):
    """A rule of a webhook or policy."""
    return {"apiGroups": list(groups), "apiVersions": ["*"], "operations": list(operations or ["*"]), "resources": list(resources)}


def webhook(name, client, *operations, **more):
    """A webhook for ConfigMaps, unless `more` has rules."""
    fixed = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule(*operations)]}
    return {"name": f"{name}.hooks.example.com", "clientConfig": client, **fixed, **more}


def register(server, kind, *webhooks, name="all", prefix=""):
    """Creates a configuration of webhooks in place of the one of the same name; `kind` is validating or mutating."""
    path = f"{prefix}{ADMISSION}/{kind}webhookconfigurations"
    server.request("DELETE", f"{path}/{name}")
    server.ok("POST", path, {"metadata": {"name": name}, "webhooks": list(webhooks)})


def policy(server, kind, name, actions=("Deny",), rules=None, **spec):
    """Creates a policy and its binding; `kind` is validating or mutating."""
    bound = {"validationActions": list(actions)} if kind == "validating" else {}
    server.ok("POST", f"{ADMISSION}/{kind}admissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name, **bound}})
    constraints = {"matchConstraints": {"resourceRules": [rules or rule("CREATE", "UPDATE")]}}
    return server.ok("POST", f"{ADMISSION}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": {**constraints, **spec}})


def grant(server, name, *rules, subject=("User", "plain"), role=None, prefix=""):
    """Binds a subject to a new ClusterRole with these rules, or to the one that is named."""
    if not role:
        server.ok("POST", f"{prefix}{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    kind, of = subject
    subject = {"kind": kind, "name": of, **({"namespace": "default"} if kind == "ServiceAccount" else {})}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": {"kind": "ClusterRole", "name": role or name}}
    server.ok("POST", f"{prefix}{RBAC}/clusterrolebindings", binding)


def account(server, name, prefix=""):
    """Creates a ServiceAccount."""
    return server.ok("POST", prefix + ACCOUNTS, {"metadata": {"name": name}})["metadata"]


def token_of(server, name, prefix="", **spec):
    """A token of a ServiceAccount."""
    return server.ok("POST", f"{prefix}{ACCOUNTS}/{name}/token", {"spec": spec})["status"]["token"]


def whoami(server, **options):
    """Creates a SelfSubjectReview. Returns the status, and the userInfo or the error."""
    status, response, _ = server.request("POST", REVIEWS + "/selfsubjectreviews", {}, **options)
    return status, response["status"]["userInfo"] if status == 201 else response


def token_review(server, token, prefix="", **spec):
    """The status of a TokenReview."""
    return server.ok("POST", f"{prefix}{REVIEWS}/tokenreviews", {"spec": {"token": token, **spec}})["status"]
