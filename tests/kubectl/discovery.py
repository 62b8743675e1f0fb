"""Commands about the server: version, cluster-info, api-resources, api-versions, explain, auth whoami."""

from .client import MANIFESTS, has, same, table


def version(kubectl):
    served = kubectl.server.ok("GET", "/version")
    has(kubectl("version"), "Client Version: v1.", f"Server Version: {served['gitVersion']}")
    printed = kubectl.json("version")["serverVersion"]  # an older kubectl omits fields that it does not know
    same(printed, {key: value for key, value in served.items() if key in printed})


def cluster_info(kubectl):
    has(kubectl("cluster-info"), f"Kubernetes control plane is running at {kubectl.server.url}")


def api_resources(kubectl):
    rows = table(kubectl("api-resources"))
    same(rows[0], ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"])
    for row in (
        ["boats", "bo", "harbor.example.com/v1", "true", "Boat"],
        ["lighthouses", "harbor.example.com/v1", "false", "Lighthouse"],
        ["configmaps", "cm", "v1", "true", "ConfigMap"],
        ["namespaces", "ns", "v1", "false", "Namespace"],
        ["customresourcedefinitions", "crd,crds", "apiextensions.k8s.io/v1", "false", "CustomResourceDefinition"],
    ):
        assert row in rows, f"{row} is not among {rows}"
    rows = table(kubectl("api-resources", "--api-group=harbor.example.com", "-o", "wide", "--sort-by=name"))
    verbs = "delete,deletecollection,get,list,patch,create,update,watch"
    same(
        rows[1:],
        [["boats", "bo", "harbor.example.com/v1", "true", "Boat", verbs, "all,fleet"], ["lighthouses", "harbor.example.com/v1", "false", "Lighthouse", verbs]],
    )
    same(kubectl("api-resources", "--categories=fleet", "-o", "name"), "boats.harbor.example.com\n")
    same(kubectl("api-resources", "--namespaced=false", "--api-group=harbor.example.com", "-o", "name", "--verbs=list"), "lighthouses.harbor.example.com\n")


def api_versions(kubectl):
    lines = kubectl("api-versions").splitlines()
    for one in ("apiextensions.k8s.io/v1", "harbor.example.com/v1", "v1"):
        assert one in lines, f"{one} is not among {lines}"


def explain(kubectl):
    out = kubectl("explain", "boat")
    has(
        out,
        "GROUP: harbor.example.com",
        "KIND: Boat",
        "VERSION: v1",
        "A boat that lies in a harbour.",
        "apiVersion <string> Group and version of the schema",
        "metadata <ObjectMeta> Metadata that every object of the API has.",
        "spec <Object> What the owner wants.",
    )
    has(kubectl("explain", "bo.spec.sails"), "FIELD: sails <integer>", "How many sails it carries.")
    has(kubectl("explain", "boats.spec.port"), "FIELD: port <string>", "ENUM: Palos Lisbon Genoa")
    has(kubectl("explain", "boat.metadata.ownerReferences.uid"), "FIELD: uid <string>", "UID of the owner.")
    out = kubectl("explain", "boat.spec.nothing", code=1)
    has(out.errors, 'error: field "nothing" does not exist')


def explain_recursive(kubectl):
    out = kubectl("explain", "boat", "--recursive")
    has(
        out,
        "metadata <ObjectMeta> annotations <map[string]string>",
        "managedFields <[]ManagedFieldsEntry>",
        "ownerReferences <[]OwnerReference> apiVersion <string> -required- blockOwnerDeletion <boolean>",
        "spec <Object> crew <[]Object> name <string> rank <string> port <string> enum: Palos, Lisbon, Genoa "
        "replicas <integer> sails <integer> -required- status <Object> phase <string>",
    )


def explain_of_openapi_v2(kubectl):
    out = kubectl("explain", "boat.spec", "--output=plaintext-openapiv2")
    has(
        out,
        "KIND: Boat",
        "VERSION: harbor.example.com/v1",
        "RESOURCE: spec <Object>",
        "What the owner wants.",
        "crew <[]Object>",
        "sails <integer> -required- How many sails it carries.",
    )
    has(kubectl("explain", "boat", "--output=plaintext-openapiv2", "--recursive"), "finalizers <[]string>", "rank <string>")


def explain_definition(kubectl):
    has(
        kubectl("explain", "crd"),
        "GROUP: apiextensions.k8s.io",
        "KIND: CustomResourceDefinition",
        "metadata <ObjectMeta>",
        "spec <CustomResourceDefinitionSpec> -required-",
        "status <CustomResourceDefinitionStatus>",
    )


def explain_built_in(kubectl):
    has(kubectl("explain", "configmap"), "KIND: ConfigMap", "data <map[string]string>", "immutable <boolean>")
    has(kubectl("explain", "ns.spec.finalizers"), "FIELD: finalizers <[]string>")


def auth_whoami(kubectl):
    rows = table(kubectl("auth", "whoami"))
    same(rows[0], ["ATTRIBUTE", "VALUE"])
    assert rows[1][0] == "Username" and len(rows[1]) == 2, rows
    groups = [row for row in rows if row[0] == "Groups"]
    assert groups and "system:masters" in groups[0][1] and "system:authenticated" in groups[0][1], rows
    review = kubectl.json("auth", "whoami")
    same((review["apiVersion"], review["kind"]), ("authentication.k8s.io/v1", "SelfSubjectReview"))
    same(review["status"]["userInfo"]["username"], rows[1][1])
    out = kubectl(
        "auth", "whoami", "--token=plain-token", "--kubeconfig=" + anonymous(kubectl), "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}"
    )
    same(out, 'plain ["system:authenticated"]')


def anonymous(kubectl):
    """Writes a kubeconfig without a user, and returns its path."""
    path = kubectl.home / "anonymous.kubeconfig"
    kubectl("config", "set-cluster", "here", f"--server={kubectl.server.url}", "--insecure-skip-tls-verify", f"--kubeconfig={path}")
    kubectl("config", "set-context", "here", "--cluster=here", f"--kubeconfig={path}")
    kubectl("config", "use-context", "here", f"--kubeconfig={path}")
    return str(path)


def forbidden(kubectl):
    kubectl("create", "-f", MANIFESTS / "fleet.yaml")
    out = kubectl("get", "boats", "nina", "--token=plain-token", "--kubeconfig=" + anonymous(kubectl), code=1)
    same(
        out.errors,
        'Error from server (Forbidden): boats.harbor.example.com "nina" is forbidden: User "plain" cannot get '
        f'resource "boats" in API group "harbor.example.com" in the namespace "{kubectl.namespace}"\n',
    )
    out = kubectl("get", "boats", "--token=wrong", "--kubeconfig=" + anonymous(kubectl), code=1)
    has(out.errors, "error: You must be logged in to the server")


CASES = [
    version,
    cluster_info,
    api_resources,
    api_versions,
    explain,
    explain_recursive,
    explain_of_openapi_v2,
    explain_definition,
    explain_built_in,
    auth_whoami,
    forbidden,
]
