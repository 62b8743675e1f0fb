"""Commands that read: get with output formats, selectors and names, watches, describe, diff and wait."""

import json

from .client import MANIFESTS, has, same, table
from .writes import boat

FLEET = MANIFESTS / "fleet.yaml"


def get(kubectl):
    same(kubectl("get", "boats").errors, f"No resources found in {kubectl.namespace} namespace.\n")
    kubectl("create", "-f", FLEET)
    same(table(kubectl("get", "boats")), [["NAME", "SAILS", "AGE"], ["nina", "3", "AGE"], ["pinta", "4", "AGE"], ["santa-maria", "5", "AGE"]])
    same(table(kubectl("get", "boats", "pinta", "--no-headers")), [["pinta", "4", "AGE"]])
    same(table(kubectl("get", "boats/nina", "boats/pinta")), [["NAME", "SAILS", "AGE"], ["nina", "3", "AGE"], ["pinta", "4", "AGE"]])
    out = kubectl("get", "boats", "victoria", code=1)
    same(out.errors, 'Error from server (NotFound): boats.harbor.example.com "victoria" not found\n')
    same(kubectl("get", "boats", "victoria", "--ignore-not-found"), "")
    same(kubectl("get", "ships", code=1).errors, 'error: the server doesn\'t have a resource type "ships"\n')
    same(table(kubectl("get", "boats", "--show-labels", "-L", "rig"))[1], ["nina", "3", "AGE", "lateen", "rig=lateen,type=caravel"])
    same(table(kubectl("get", "boats", "--sort-by={.spec.port}", "--no-headers"))[0], ["santa-maria", "5", "AGE"])
    same(kubectl("get", "boats", "--chunk-size=1", "-o", "name").splitlines(), [f"boat.harbor.example.com/{name}" for name in ("nina", "pinta", "santa-maria")])
    same(table(kubectl("get", "boats", "--chunk-size=2", "--no-headers"))[2], ["santa-maria", "5", "AGE"])


def get_o_wide(kubectl):
    kubectl("create", "-f", FLEET)
    same(table(kubectl("get", "boats", "-o", "wide"))[:2], [["NAME", "SAILS", "PORT", "AGE"], ["nina", "3", "Palos", "AGE"]])


def get_o_yaml(kubectl):
    kubectl("create", "-f", FLEET)
    out = kubectl("get", "boat", "nina", "-o", "yaml")
    lines = out.splitlines()
    same(
        [line for line in lines if not line.startswith(("  creationTimestamp: ", "  uid: ", "  resourceVersion: "))],
        [
            "apiVersion: harbor.example.com/v1",
            "kind: Boat",
            "metadata:",
            "  generation: 1",
            "  labels:",
            "    rig: lateen",
            "    type: caravel",
            "  name: nina",
            f"  namespace: {kubectl.namespace}",
            "spec:",
            "  port: Palos",
            "  replicas: 1",
            "  sails: 3",
        ],
    )
    same(len(lines), 16)
    has(kubectl("get", "boats", "-o", "yaml"), "apiVersion: v1 items: - apiVersion: harbor.example.com/v1", 'kind: List metadata: resourceVersion: ""')
    has(
        kubectl("get", "boat", "nina", "-o", "yaml", "--show-managed-fields"),
        "managedFields: - apiVersion: harbor.example.com/v1 fieldsType: FieldsV1 fieldsV1: f:metadata:",
        "manager: kubectl-create operation: Update time:",
    )


def get_o_json(kubectl):
    kubectl("create", "-f", FLEET)
    found = kubectl.json("get", "boats")
    same((found["kind"], [item["metadata"]["name"] for item in found["items"]]), ("List", ["nina", "pinta", "santa-maria"]))
    one = kubectl.json("get", "boats", "pinta", "--show-managed-fields")
    path = f"/apis/harbor.example.com/v1/namespaces/{kubectl.namespace}/boats/pinta"
    same(one, kubectl.server.ok("GET", path))
    same(json.loads(kubectl("get", "--raw", path)), one)


def get_o_name(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("get", "boats", "-o", "name"), "".join(f"boat.harbor.example.com/{n}\n" for n in ("nina", "pinta", "santa-maria")))
    same(kubectl("get", "ns", "default", "-o", "name"), "namespace/default\n")


def get_o_jsonpath(kubectl):
    kubectl("create", "-f", FLEET)
    same(kubectl("get", "boats", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.sails};{end}"), "nina=3;pinta=4;santa-maria=5;")
    same(kubectl("get", "boat/nina", "-o", "go-template={{.spec.port}}"), "Palos")


def get_o_custom_columns(kubectl):
    kubectl("create", "-f", FLEET)
    same(
        table(kubectl("get", "boats", "-o", "custom-columns=BOAT:.metadata.name,FROM:.spec.port,CREW:.spec.crew")),
        [["BOAT", "FROM", "CREW"], ["nina", "Palos", "<none>"], ["pinta", "Palos", "<none>"], ["santa-maria", "Lisbon", "<none>"]],
    )


def get_w(kubectl):
    kubectl("create", "-f", FLEET)
    with kubectl.lines("get", "boats", "-w") as watch:
        same(table("\n".join(watch.expect(4)))[3], ["santa-maria", "5", "AGE"])
        kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"spec":{"sails":9}}')
        same(table(watch.expect(5)[4]), [["nina", "9", "AGE"]])
        kubectl("delete", "boat", "pinta")
        same(table(watch.expect(6)[5]), [["pinta", "4", "AGE"]])
    with kubectl.lines("get", "boat", "nina", "-w", "-o", "name") as watch:
        watch.expect(1)
        kubectl("label", "boat", "santa-maria", "seen=no")
        kubectl("label", "boat", "nina", "seen=yes")
        same(watch.expect(2), ["boat.harbor.example.com/nina"] * 2)
    with kubectl.lines("get", "boats", "-w", "--output-watch-events", "-o", "jsonpath={.type} {.object.metadata.name}{'\\n'}", "-l", "type=caravel") as watch:
        same(watch.expect(1), ["ADDED nina"])
        kubectl("label", "boat", "santa-maria", "type=caravel", "--overwrite")
        kubectl("label", "boat", "santa-maria", "type-")
        same(watch.expect(3)[1:], ["ADDED santa-maria", "DELETED santa-maria"])
    with kubectl.lines("get", "boats", "--watch-only", "-A", "--no-headers") as watch:
        while not watch.seen and not watch.ended:
            kubectl("annotate", "boat", "nina", "again=yes")
            kubectl("annotate", "boat", "nina", "again-")
        same(table(watch.expect(1)[0]), [[kubectl.namespace, "nina", "9", "AGE"]])


def get_l(kubectl):
    kubectl("create", "-f", FLEET)
    for selector, want in (
        ("type=caravel", ["nina", "pinta"]),
        ("type!=caravel", ["santa-maria"]),
        ("rig", ["nina", "pinta"]),
        ("!rig", ["santa-maria"]),
        ("type in (carrack,nao)", ["santa-maria"]),
        ("type=caravel,rig notin (lateen)", ["pinta"]),
    ):
        out = kubectl("get", "boats", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}")
        same((selector, out.split()), (selector, want))


def get_field_selector(kubectl):
    kubectl("create", "-f", FLEET)
    for selector, want in (
        ("metadata.name=pinta", ["pinta"]),
        ("metadata.name!=pinta", ["nina", "santa-maria"]),
        ("spec.port=Palos", ["nina", "pinta"]),
        ("spec.port=Palos,metadata.name=nina", ["nina"]),
        (f"metadata.namespace={kubectl.namespace},spec.port!=Palos", ["santa-maria"]),
    ):
        out = kubectl("get", "boats", "--field-selector", selector, "-o", "jsonpath={.items[*].metadata.name}")
        same((selector, out.split()), (selector, want))
    out = kubectl("get", "boats", "--field-selector=spec.sails=3", code=1)
    has(
        out.errors,
        'Error from server (BadRequest): Unable to find "harbor.example.com/v1, Resource=boats" that match label '
        'selector "", field selector "spec.sails=3": field label not supported: spec.sails',
    )


def get_A(kubectl):
    kubectl("create", "-f", FLEET)
    rows = table(kubectl("get", "boats", "-A"))
    same(rows[0], ["NAMESPACE", "NAME", "SAILS", "AGE"])
    assert [kubectl.namespace, "nina", "3", "AGE"] in rows, rows


def get_names_and_categories(kubectl):
    kubectl("create", "-f", FLEET)
    for word in ("boats", "boat", "bo", "Boat", "BOATS", "boats.harbor.example.com", "boats.v1.harbor.example.com", "Boat.harbor.example.com"):
        same((word, kubectl("get", word, "nina", "-o", "name")), (word, "boat.harbor.example.com/nina\n"))
    kubectl("create", "configmap", "chart", "--from-literal=sea=west")
    same(table(kubectl("get", "fleet"))[:2], [["NAME", "SAILS", "AGE"], ["nina", "3", "AGE"]])
    rows = table(kubectl("get", "all"))  # names include the kind, since there are several kinds
    same(rows[:2], [["NAME", "SAILS", "AGE"], ["boat.harbor.example.com/nina", "3", "AGE"]])
    out = kubectl("get", "bo,cm", "-o", "name").split()
    same(out, ["boat.harbor.example.com/nina", "boat.harbor.example.com/pinta", "boat.harbor.example.com/santa-maria", "configmap/chart"])


def get_built_in(kubectl):
    kubectl("create", "configmap", "chart", "--from-literal=sea=west", "--from-literal=wind=east")
    kubectl("create", "secret", "generic", "route", "--from-literal=course=270")
    same(table(kubectl("get", "configmap", "chart")), [["NAME", "DATA", "AGE"], ["chart", "2", "AGE"]])
    same(table(kubectl("get", "secrets")), [["NAME", "TYPE", "DATA", "AGE"], ["route", "Opaque", "1", "AGE"]])
    same(table(kubectl("get", "ns", "default")), [["NAME", "STATUS", "AGE"], ["default", "Active", "AGE"]])
    rows = table(kubectl("get", "crd", "boats.harbor.example.com"))
    same((rows[0], rows[1][0]), (["NAME", "SCOPE", "VERSIONS", "CREATED AT"], "boats.harbor.example.com"))
    same(kubectl("get", "secret", "route", "-o", "jsonpath={.data.course}"), "Mjcw")


def get_subresource(kubectl):
    kubectl("create", "-f", FLEET)
    scale = kubectl.json("get", "boat", "pinta", "--subresource=scale")
    same((scale["apiVersion"], scale["kind"], scale["spec"]), ("autoscaling/v1", "Scale", {"replicas": 2}))
    same(kubectl("get", "boat", "pinta", "--subresource=status", "-o", "name"), "boat.harbor.example.com/pinta\n")


def describe(kubectl):
    kubectl("create", "-f", FLEET)
    out = kubectl("describe", "boat", "nina")
    has(
        out,
        f"Name: nina Namespace: {kubectl.namespace} Labels: rig=lateen type=caravel Annotations: <none> "
        "API Version: harbor.example.com/v1 Kind: Boat Metadata: Creation Timestamp:",
        "Spec: Port: Palos Replicas: 1 Sails: 3",
    )
    same(kubectl("describe", "boats").count("API Version:  harbor.example.com/v1"), 3)
    same(kubectl("describe", "bo", "-l", "type=carrack").count("Kind:         Boat"), 1)
    out = kubectl("describe", "boat", "victoria", code=1)
    same(out.errors, 'Error from server (NotFound): boats.harbor.example.com "victoria" not found\n')


def describe_events(kubectl):
    kubectl("create", "-f", FLEET)
    has(kubectl("describe", "boat", "nina"), "Sails: 3 Events: <none>")


def describe_configmap(kubectl):
    kubectl("create", "configmap", "chart", "--from-literal=sea=west")
    has(kubectl("describe", "cm", "chart"), "Name: chart", "Data ==== sea: ---- west")


def describe_built_in(kubectl):
    kubectl("create", "secret", "generic", "route", "--from-literal=course=270")
    has(kubectl("describe", "secret", "route"), "Name: route", "Type: Opaque Data ==== course: 3 bytes")
    has(kubectl("describe", "ns", kubectl.namespace), f"Name: {kubectl.namespace} Labels: kubernetes.io/metadata.name={kubectl.namespace}", "Status: Active")
    has(
        kubectl("describe", "crd", "boats.harbor.example.com"),
        "Kind: CustomResourceDefinition",
        "Short Names: bo",
        "Reason: InitialNamesAccepted Status: True Type: Established",
        "Stored Versions: v1",
    )


def diff(kubectl):
    kubectl("apply", "-f", FLEET)
    same(kubectl("diff", "-f", FLEET), "")
    text = FLEET.read_text().replace("sails: 4", "sails: 7")
    out = kubectl("diff", "-f", "-", input=text, code=1)
    has(out, "-  generation: 1", "+  generation: 2", "-  sails: 4 +  sails: 7")
    same(
        [line for line in out.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")],
        ["-  generation: 1", "+  generation: 2", "-  sails: 4", "+  sails: 7"],
    )
    out = kubectl("diff", "--server-side", "--force-conflicts", "-f", "-", input=text, code=1)
    has(out, "-  sails: 4 +  sails: 7")
    out = kubectl("diff", "-f", "-", input=boat("victoria", 6), code=1)
    has(out, "+kind: Boat", "+  name: victoria", "+  sails: 6")
    same(kubectl("get", "boats", "-o", "jsonpath={.items[*].spec.sails}"), "3 4 5")


def wait_for_condition(kubectl):
    same(
        kubectl("wait", "--for=condition=Established", "crd/boats.harbor.example.com", "crd/lighthouses.harbor.example.com"),
        "".join(f"customresourcedefinition.apiextensions.k8s.io/{n}.harbor.example.com condition met\n" for n in ("boats", "lighthouses")),
    )
    kubectl("create", "-f", FLEET)
    wait_times_out(kubectl, "--for=jsonpath={.status.phase}=Afloat", "nina")
    with kubectl.lines("wait", "--for=jsonpath={.status.phase}=Afloat", "boat/nina", "--timeout=60s") as waiting:
        kubectl("patch", "boat", "nina", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Afloat"}}')
        same(waiting.expect(1), ["boat.harbor.example.com/nina condition met"])
    with kubectl.lines("wait", "--for=create", "boat/victoria", "--timeout=60s") as waiting:
        kubectl("create", "-f", "-", input=boat("victoria", 1))
        same(waiting.expect(1), ["boat.harbor.example.com/victoria condition met"])


def wait_for_delete(kubectl):
    kubectl("create", "-f", FLEET)
    kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"metadata":{"finalizers":["harbor.example.com/moored"]}}')
    same(kubectl("delete", "boat", "nina", "--wait=false"), 'boat.harbor.example.com "nina" deleted' + suffix(kubectl) + "\n")
    with kubectl.lines("wait", "--for=delete", "boat/nina", "--timeout=60s", "-v=6") as waiting:
        waiting.until("watch=true")
        kubectl("patch", "boat", "nina", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
        waiting.until("boat.harbor.example.com/nina condition met")
    kubectl("wait", "--for=delete", "boat/nina")
    wait_times_out(kubectl, "--for=delete", "pinta")


def wait_times_out(kubectl, condition, name):
    """Checks that kubectl ends with a timeout. 1.32 may log a warning before, if little time was left for its watch."""
    out = kubectl("wait", condition, "boat/" + name, "--timeout=2s", code=1)
    same(out.errors.splitlines()[-1:], ["error: timed out waiting for the condition on boats/" + name])


def suffix(kubectl):
    """The namespace as kubectl prints it after a deleted object, since 1.33."""
    minor = int(kubectl.json("version", "--client")["clientVersion"]["minor"].rstrip("+"))
    return f" from {kubectl.namespace} namespace" if minor >= 33 else ""


CASES = [
    get,
    get_o_wide,
    get_o_yaml,
    get_o_json,
    get_o_name,
    get_o_jsonpath,
    get_o_custom_columns,
    get_w,
    get_l,
    get_field_selector,
    get_A,
    get_names_and_categories,
    get_built_in,
    get_subresource,
    describe,
    describe_events,
    describe_configmap,
    describe_built_in,
    diff,
    wait_for_condition,
    wait_for_delete,
]
