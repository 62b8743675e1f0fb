"""Commands that write: create, apply, edit, patch, label, annotate, scale, replace, delete."""

from .client import MANIFESTS, has, same

FLEET = MANIFESTS / "fleet.yaml"
NAMES = ("nina", "pinta", "santa-maria")


def boat(name, sails, more="", metadata=""):
    return f"""apiVersion: harbor.example.com/v1
kind: Boat
metadata:
  name: {name}
{metadata}spec:
  sails: {sails}
{more}"""


def lines(names, result):
    """The output of kubectl: a line for each boat."""
    return "".join(f"boat.harbor.example.com/{name} {result}\n" for name in names)


def sails(kubectl, name="nina"):
    return kubectl("get", "boat", name, "-o", "jsonpath={.spec.sails}")


def create(kubectl):
    same(kubectl("create", "-f", FLEET, "--dry-run=server"), lines(NAMES, "created (server dry run)"))
    same(kubectl("create", "-f", FLEET), lines(NAMES, "created"))
    out = kubectl("create", "-f", FLEET, code=1)
    same(
        out.errors,
        "".join(f'Error from server (AlreadyExists): error when creating "{FLEET}": boats.harbor.example.com "{name}" already exists\n' for name in NAMES),
    )
    out = kubectl("create", "-f", "-", input=boat("victoria", 21, "  port: Cadiz\n"), code=1)
    has(
        out.errors,
        'The Boat "victoria" is invalid:',
        "spec.sails in body should be less than or equal to 20",
        'spec.port: Unsupported value: "Cadiz": supported values: "Palos", "Lisbon", "Genoa"',
    )
    out = kubectl("create", "-f", "-", input="apiVersion: harbor.example.com/v1\nkind: Boat\nmetadata: {name: Ünfit}\nspec: {sails: 1}\n", code=1)
    has(out.errors, "a lowercase RFC 1123 subdomain must consist of")
    out = kubectl("create", "-f", "-", input="apiVersion: harbor.example.com/v1\nkind: Raft\nmetadata: {name: r}\n", code=1)
    has(out.errors, 'no matches for kind "Raft" in version "harbor.example.com/v1" ensure CRDs are installed first')
    same(
        kubectl("create", "-f", "-", input="apiVersion: harbor.example.com/v1\nkind: Lighthouse\nmetadata: {name: %s}\n" % kubectl.namespace),
        f"lighthouse.harbor.example.com/{kubectl.namespace} created\n",
    )


def create_strict(kubectl):
    text = boat("victoria", 1, "  masts: 3\n")
    out = kubectl("create", "-f", "-", input=text, code=1)
    same(
        out.errors,
        'Error from server (BadRequest): error when creating "STDIN": Boat in version "v1" cannot be handled as a '
        'Boat: strict decoding error: unknown field "spec.masts"\n',
    )
    out = kubectl("create", "-f", "-", "--validate=warn", input=text)
    same((out, out.errors), (lines(["victoria"], "created"), 'Warning: unknown field "spec.masts"\n'))
    same(kubectl.json("get", "boat", "victoria")["spec"], {"sails": 1})


def apply(kubectl):
    same(kubectl("apply", "-f", FLEET, "--dry-run=server"), lines(NAMES, "created (server dry run)"))
    same(kubectl("apply", "-f", FLEET), lines(NAMES, "created"))
    same(kubectl("apply", "-f", FLEET), lines(NAMES, "unchanged"))
    text = FLEET.read_text().replace("{sails: 4, port: Palos,", "{sails: 6,")
    same(kubectl("apply", "-f", "-", input=text), lines(NAMES[:1], "unchanged") + lines(NAMES[1:2], "configured") + lines(NAMES[2:], "unchanged"))
    same(kubectl.json("get", "boat", "pinta")["spec"], {"replicas": 2, "sails": 6})
    has(kubectl("apply", "view-last-applied", "boat/pinta"), "kind: Boat", "spec: replicas: 2 sails: 6")
    managers = {entry["manager"]: entry["operation"] for entry in kubectl.json("get", "boat", "pinta", "--show-managed-fields")["metadata"]["managedFields"]}
    same(managers, {"kubectl-client-side-apply": "Update"})
    out = kubectl("apply", "-f", "-", input=text.replace("sails: 6", "sails: many"), code=1)
    has(out.errors, 'The Boat "pinta" is invalid: spec.sails: Invalid value: "string": spec.sails in body must be of type integer: "string"')
    out = kubectl("apply", "-f", "-", "--prune", "-l", "type=caravel", "--prune-allowlist=harbor.example.com/v1/Boat", input=text.split("---")[0])
    same(out, lines(NAMES[:1], "unchanged") + lines(NAMES[1:2], "pruned"))


def apply_after_create(kubectl):
    kubectl("create", "-f", FLEET)
    out = kubectl("apply", "-f", FLEET)
    has(out.errors, "Warning: resource boats/nina is missing the kubectl.kubernetes.io/last-applied-configuration annotation")
    same(out, lines(NAMES, "configured"))


def apply_built_in(kubectl):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {sea: west, wind: east}\n"
    same(kubectl("apply", "-f", "-", input=text), "configmap/chart created\n")
    same(kubectl("apply", "-f", "-", input=text.replace(", wind: east", "")), "configmap/chart configured\n")
    same(kubectl.json("get", "cm", "chart")["data"], {"sea": "west"})
    same(kubectl("apply", "-f", MANIFESTS / "boats.yaml"), "customresourcedefinition.apiextensions.k8s.io/boats.harbor.example.com unchanged\n")


def apply_server_side(kubectl):
    same(kubectl("apply", "--server-side", "-f", FLEET), lines(NAMES, "serverside-applied"))
    same(kubectl("apply", "--server-side", "-f", FLEET), lines(NAMES, "serverside-applied"))
    out = kubectl("apply", "--server-side", "--field-manager=owner", "-f", "-", input=boat("nina", 8), code=1)
    has(out.errors, 'error: Apply failed with 1 conflict: conflict with "kubectl": .spec.sails Please review the fields above')
    out = kubectl("apply", "--server-side", "--field-manager=owner", "--force-conflicts", "-f", "-", input=boat("nina", 8))
    same((out, sails(kubectl)), (lines(["nina"], "serverside-applied"), "8"))
    managers = kubectl.json("get", "boat", "nina", "--show-managed-fields")["metadata"]["managedFields"]
    same({entry["manager"]: entry["fieldsV1"].get("f:spec") for entry in managers}, {"kubectl": {"f:port": {}, "f:replicas": {}}, "owner": {"f:sails": {}}})
    kubectl("apply", "--server-side", "-f", "-", input=boat("nina", 8))
    same(kubectl.json("get", "boat", "nina")["spec"], {"sails": 8})
    same(kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=boat("nina", 8)), lines(["nina"], "serverside-applied (server dry run)"))
    out = kubectl("apply", "--server-side", "-f", "-", input=boat("victoria", 1, "  masts: 3\n"), code=1)
    has(out.errors, "Error from server", "field not declared in schema")


def apply_from_client_to_server_side(kubectl):
    kubectl("apply", "-f", FLEET)
    same(kubectl("apply", "--server-side", "-f", FLEET), lines(NAMES, "serverside-applied"))
    managers = kubectl.json("get", "boat", "nina", "--show-managed-fields")["metadata"]["managedFields"]
    same([(entry["manager"], entry["operation"]) for entry in managers], [("kubectl", "Apply"), ("kubectl-last-applied", "Apply")])
    kubectl("apply", "--server-side", "-f", "-", input=boat("nina", 3))
    same(kubectl.json("get", "boat", "nina")["spec"], {"sails": 3})


def edit(kubectl):
    kubectl("create", "-f", FLEET)
    out = kubectl("edit", "boat", "nina", env=kubectl.editor('sed -i "s/sails: 3/sails: 12/" "$1"'))
    same((out, sails(kubectl)), (lines(["nina"], "edited"), "12"))
    out = kubectl("edit", "boat", "nina", env=kubectl.editor("true"))
    same(out + out.errors, "Edit cancelled, no changes made.\n")
    env = kubectl.editor(
        'cp "$1" "$HOME/seen-$(ls "$HOME" | wc -l)"',
        'if grep -q "sails: 99" "$1"',
        'then sed -i "s/sails: 99/sails: 13/" "$1"',
        'else sed -i "s/sails: 12/sails: 99/" "$1"',
        "fi",
    )
    out = kubectl("edit", "boat", "nina", env=env)
    same((out, sails(kubectl)), (lines(["nina"], "edited"), "13"))
    again = max(kubectl.home.glob("seen-*"), key=lambda path: path.stat().st_mtime_ns).read_text()
    has(again, '# boats.harbor.example.com "nina" was not valid:', "# * spec.sails: Invalid value: 99: spec.sails in body should be less than or equal to 20")
    kubectl("edit", "boats", env=kubectl.editor('sed -i "s/replicas: [123]/replicas: 7/" "$1"'))
    same(kubectl("get", "boats", "-o", "jsonpath={.items[*].spec.replicas}"), "7 7 7")
    out = kubectl("edit", "boat", "nina", "--subresource=status", env=kubectl.editor('echo "status: {phase: Afloat}" >> "$1"'))
    same((out, kubectl.json("get", "boat", "nina")["status"]), (lines(["nina"], "edited"), {"phase": "Afloat"}))
    out = kubectl("edit", "boat", "nina", env=kubectl.editor('sed -i "s/name: nina/name: victoria/" "$1"'), code=1)
    has(out + out.errors, "At least one of apiVersion, kind and name was changed")


def patch(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"spec":{"sails":6,"port":null}}'), lines(["nina"], "patched"))
    same(kubectl.json("get", "boat", "nina")["spec"], {"replicas": 1, "sails": 6})
    same(kubectl("patch", "boat/nina", "--type=merge", "-p", '{"spec":{"sails":6}}'), lines(["nina"], "patched (no change)"))
    same(
        kubectl("patch", "bo", "nina", "--type=json", "-p", '[{"op":"test","path":"/spec/sails","value":6},{"op":"replace","path":"/spec/sails","value":2}]'),
        lines(["nina"], "patched"),
    )
    out = kubectl("patch", "bo", "nina", "--type=json", "-p", '[{"op":"remove","path":"/spec/nothing"}]', code=1)
    same(out.errors, "The request is invalid: the server rejected our request due to an error in our request\n")
    out = kubectl("patch", "boat", "nina", "-p", '{"spec":{"sails":6}}', code=1)
    same(
        out.errors,
        "error: application/strategic-merge-patch+json is not supported by harbor.example.com/v1, Kind=Boat: the "
        "body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\n",
    )
    kubectl("patch", "boat", "nina", "--subresource=status", "--type=merge", "-p", '{"spec":{"sails":1},"status":{"phase":"Afloat"}}')
    found = kubectl.json("get", "boat", "nina")
    same((found["spec"]["sails"], found["status"], found["metadata"]["generation"]), (2, {"phase": "Afloat"}, 3))
    out = kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"spec":{"sails":-1}}', code=1)
    same(out.errors, 'The Boat "nina" is invalid: spec.sails: Invalid value: -1: spec.sails in body should be greater than or equal to 0\n')
    kubectl("create", "configmap", "chart", "--from-literal=sea=west")
    same(kubectl("patch", "cm", "chart", "-p", '{"data":{"wind":"east"}}'), "configmap/chart patched\n")
    same(kubectl.json("get", "cm", "chart")["data"], {"sea": "west", "wind": "east"})


def label(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("label", "boat", "nina", "crew=24"), lines(["nina"], "labeled"))
    same(kubectl("label", "boat", "nina", "crew=24"), lines(["nina"], "not labeled"))
    same(kubectl("label", "boat", "nina", "crew=26", code=1).errors, "error: 'crew' already has a value (24), and --overwrite is false\n")
    same(kubectl("label", "--overwrite", "boat", "nina", "crew=26"), lines(["nina"], "labeled"))
    same(sorted(kubectl("label", "boat", "nina", "--list").split()), ["crew=26", "rig=lateen", "type=caravel"])
    same(kubectl("label", "boats", "-l", "type=caravel", "size=small"), lines(["nina", "pinta"], "labeled"))
    same(kubectl("label", "boat", "nina", "crew-"), lines(["nina"], "unlabeled"))
    out = kubectl("label", "boat", "nina", "crew=-bad-", code=1)
    has(out.errors, "a valid label must be an empty string or consist of alphanumeric characters")
    same(kubectl("get", "boats", "-l", "size=small,!crew", "-o", "name"), lines(["nina", "pinta"], "").replace(" ", ""))
    same(kubectl("label", "ns", kubectl.namespace, "sea=west"), f"namespace/{kubectl.namespace} labeled\n")


def annotate(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("annotate", "boat", "nina", "note=First of three"), lines(["nina"], "annotated"))
    same(kubectl("annotate", "--all", "boats", "example.com/kept=yes"), lines(NAMES, "annotated"))
    same(kubectl("annotate", "boat", "nina", "note-"), lines(["nina"], "annotated"))
    same(kubectl.json("get", "boat", "nina")["metadata"]["annotations"], {"example.com/kept": "yes"})
    same(kubectl.json("get", "boat", "nina")["metadata"]["generation"], 1)


def scale(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("scale", "--replicas=5", "boat/nina"), lines(["nina"], "scaled"))
    same(kubectl("get", "boat", "nina", "-o", "jsonpath={.spec.replicas} {.metadata.generation}"), "5 2")
    same(kubectl("scale", "--current-replicas=5", "--replicas=6", "boat/nina"), lines(["nina"], "scaled"))
    out = kubectl("scale", "--current-replicas=5", "--replicas=7", "boat/nina", code=1)
    has(out.errors, "error: Expected replicas to be 5, was 6")
    same(kubectl("scale", "--replicas=2", "boats", "--all"), lines(NAMES, "scaled"))
    same(kubectl("get", "boats", "-o", "jsonpath={.items[*].spec.replicas}"), "2 2 2")
    out = kubectl("scale", "--replicas=2", "boat/victoria", code=1)
    has(out.errors, 'boats.harbor.example.com "victoria" not found')
    out = kubectl("scale", "--replicas=2", "crd/boats.harbor.example.com", code=1)
    has(out.errors, "could not find the requested resource")


def replace(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("replace", "-f", "-", input=boat("nina", 11)), lines(["nina"], "replaced"))
    same(kubectl.json("get", "boat", "nina")["spec"], {"sails": 11})
    stale = kubectl("get", "boat", "nina", "-o", "yaml")
    kubectl("label", "boat", "nina", "changed=yes")
    out = kubectl("replace", "-f", "-", input=stale, code=1)
    same(
        out.errors,
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on '
        'boats.harbor.example.com "nina": the object has been modified; please apply your changes to the latest '
        "version and try again\n",
    )
    out = kubectl("replace", "-f", "-", input=boat("victoria", 1), code=1)
    same(out.errors, 'Error from server (NotFound): error when replacing "STDIN": boats.harbor.example.com "victoria" not found\n')
    before = kubectl.json("get", "boat", "nina")["metadata"]["uid"]
    out = kubectl("replace", "--force", "-f", "-", input=boat("nina", 1))
    has(out, 'boat.harbor.example.com "nina" deleted', "boat.harbor.example.com/nina replaced")
    assert kubectl.json("get", "boat", "nina")["metadata"]["uid"] != before
    kubectl("replace", "--subresource=status", "-f", "-", input=boat("nina", 9, "status: {phase: Afloat}\n"))
    found = kubectl.json("get", "boat", "nina")
    same((found["spec"]["sails"], found["status"]), (1, {"phase": "Afloat"}))


def delete(kubectl):
    kubectl("create", "-f", FLEET)
    has(kubectl("delete", "boat", "nina", "--dry-run=server"), 'boat.harbor.example.com "nina" deleted', "(server dry run)")
    has(kubectl("delete", "boat", "nina"), 'boat.harbor.example.com "nina" deleted')
    same(kubectl("delete", "boat", "nina", code=1).errors, 'Error from server (NotFound): boats.harbor.example.com "nina" not found\n')
    same(kubectl("delete", "boat", "nina", "--ignore-not-found"), "")
    has(kubectl("delete", "boats", "-l", "type=caravel"), '"pinta" deleted')
    has(kubectl("delete", "boat/santa-maria", "--grace-period=0", "--force"), '"santa-maria" force deleted')
    kubectl("create", "-f", FLEET)
    out = kubectl("delete", "-f", FLEET)
    same([line.split()[1] for line in out.splitlines()], [f'"{name}"' for name in NAMES])
    kubectl("create", "-f", FLEET)
    same(len(kubectl("delete", "boats", "--all").splitlines()), 3)
    same(kubectl("get", "boats").errors, f"No resources found in {kubectl.namespace} namespace.\n")


def delete_waits_for_finalizers(kubectl):
    kubectl("create", "-f", "-", input=boat("nina", 1, metadata="  finalizers: [harbor.example.com/moored]\n"))
    with kubectl.lines("delete", "boat", "nina") as deleting:
        has(deleting.expect(1)[0], 'boat.harbor.example.com "nina" deleted')
        assert deleting.process.poll() is None, "delete did not wait for the finalizer"
        assert "deletionTimestamp" in kubectl.json("get", "boat", "nina")["metadata"]
        kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        same(deleting.process.wait(timeout=30), 0)
    kubectl("get", "boat", "nina", code=1)


def delete_keeps_other_finalizers(kubectl):
    """An object with another finalizer exists until that is removed, whatever the cascade."""
    kubectl("create", "-f", FLEET)
    for name, cascade in (("nina", "orphan"), ("pinta", "foreground")):
        kubectl("patch", "boat", name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
        has(kubectl("delete", "boat/" + name, "--cascade=" + cascade, "--now", "--wait=false"), f'"{name}" deleted')
        found = kubectl.json("get", "boat", name)["metadata"]
        same(("example.com/hold" in found["finalizers"], found["deletionGracePeriodSeconds"]), (True, 0))
        kubectl("patch", "boat", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        kubectl("get", "boat", name, code=1)


def namespace(kubectl):
    name = kubectl.namespace + "-more"
    same(kubectl("create", "ns", name), f"namespace/{name} created\n")
    kubectl("create", "-f", FLEET, "--namespace=" + name)
    kubectl("create", "configmap", "chart", "--namespace=" + name, "--from-literal=a=b")
    same(kubectl("delete", "ns", name), f'namespace "{name}" deleted\n')
    same(kubectl("get", "ns", name, code=1).errors, f'Error from server (NotFound): namespaces "{name}" not found\n')
    assert name not in kubectl("get", "boats,cm", "-A", "--no-headers"), "the objects of a deleted namespace exist"
    out = kubectl("create", "-f", "-", "--namespace=" + name, input=boat("nina", 1), code=1)
    has(out.errors, f'Error from server (NotFound): error when creating "STDIN": namespaces "{name}" not found')


def terminating_namespace(kubectl):
    name = kubectl.namespace + "-more"
    kubectl("create", "ns", name)
    text = boat("nina", 1, metadata="  finalizers: [harbor.example.com/moored]\n")
    kubectl("create", "-f", "-", "--namespace=" + name, input=text)
    kubectl("delete", "ns", name, "--wait=false")
    same([row.split()[1] for row in kubectl("get", "ns", name, "--no-headers").splitlines()], ["Terminating"])
    kubectl("wait", "--for=condition=NamespaceFinalizersRemaining", "ns/" + name, "--timeout=30s")
    out = kubectl("create", "-f", "-", "--namespace=" + name, input=boat("pinta", 1), code=1)
    has(
        out.errors,
        f'Error from server (Forbidden): error when creating "STDIN": boats.harbor.example.com "pinta" is forbidden: '
        f"unable to create new content in namespace {name} because it is being terminated",
    )
    kubectl("patch", "boat", "nina", "--namespace=" + name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", "ns/" + name, "--timeout=30s")


CASES = [
    create,
    create_strict,
    apply,
    apply_after_create,
    apply_built_in,
    apply_server_side,
    apply_from_client_to_server_side,
    edit,
    patch,
    label,
    annotate,
    scale,
    replace,
    delete,
    delete_waits_for_finalizers,
    delete_keeps_other_finalizers,
    namespace,
    terminating_namespace,
]
