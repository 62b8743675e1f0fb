"""Admission that is configured by manifests: policies and webhooks in files, which come before those of the API."""

import json
import pathlib

import pytest

from commands import refused
from hooks import Hooks, patch
from metrics import metrics_of, value
from objects import ADMISSION, MAPS, named, webhook
from objects import rule as any_rule
from pintle import eventually

pytestmark = pytest.mark.webhooks

GROUP = "admissionregistration.k8s.io"
SUFFIX = ".static.k8s.io"
LOADS = "apiserver_manifest_admission_config_controller_automatic_reloads_total"
HASHES = "apiserver_manifest_admission_config_controller_last_config_info"
KINDS = {
    "ValidatingAdmissionPolicy": "ValidatingAdmissionPolicyConfiguration",
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicyConfiguration",
    "ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration",
    "MutatingAdmissionWebhook": "WebhookAdmissionConfiguration",
}


class Directories:
    """A directory of manifests for each plugin, and the flag that names them."""

    def __init__(self, place, plugins=KINDS):
        self.place = pathlib.Path(place)
        self.configuration = self.place / "admission.json"
        entries = []
        for name in plugins:
            (self.place / name).mkdir(parents=True, exist_ok=True)
            settings = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": KINDS[name], "staticManifestsDir": str(self.place / name)}
            entries.append({"name": name, "configuration": settings})
        head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
        self.configuration.write_text(json.dumps({**head, "plugins": entries}))
        self.flag = f"--admission-control-config-file={self.configuration}"

    def write(self, plugin, name, *objects):
        """Writes a file of objects, or of a text, as a whole."""
        documents = [one if isinstance(one, str) else json.dumps(one) for one in objects]
        temporary = self.place / "unfinished"
        temporary.write_text("\n---\n".join(documents))
        temporary.rename(self.place / plugin / name)

    def remove(self, plugin, name):
        (self.place / plugin / name).unlink()


def rule(*resources, group=""):
    return any_rule("CREATE", resources=resources, groups=[group])


def bound(kind, name, spec, **binding):
    """A policy of manifests and its binding."""
    head, metadata = {"apiVersion": GROUP + "/v1"}, {"name": name + SUFFIX}
    return [
        {**head, "kind": kind, "metadata": metadata, "spec": spec},
        {**head, "kind": kind + "Binding", "metadata": metadata, "spec": {"policyName": name + SUFFIX, **binding}},
    ]


def for_api(policy, binding):
    """The same policy and binding as objects of the API."""
    return json.loads(json.dumps([policy, binding]).replace(SUFFIX, ""))


def refusing(name, expression, message, *resources, group=""):
    """A policy of manifests and its binding."""
    spec = {"matchConstraints": {"resourceRules": [rule(*resources, group=group)]}, "validations": [{"expression": expression, "message": message}]}
    return bound("ValidatingAdmissionPolicy", name, spec, validationActions=["Deny"])


def labelling(name, expression):
    """A policy of manifests that changes ConfigMaps, and its binding."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {"matchConstraints": {"resourceRules": [rule("configmaps")]}, "reinvocationPolicy": "Never", "mutations": [mutation]}
    return bound("MutatingAdmissionPolicy", name, spec)


def calling(kind, name, client, *rules):
    """A configuration of one webhook."""
    hook = webhook(name, client, rules=list(rules), timeoutSeconds=5)
    return {"apiVersion": GROUP + "/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [hook]}


def create(server, name="a", **metadata):
    """A dry run of a ConfigMap. Returns its status code and the message or the object."""
    body = {"metadata": {"name": name, **metadata}}
    status, answer, _ = server.request("POST", MAPS + "?dryRun=All", body)
    return status, answer["message"] if status >= 400 else answer


def loads(server, plugin):
    """How often the manifests of a plugin have been loaded, and how often they could not be."""
    samples, _, _ = metrics_of(server)
    counts = {labels["status"]: count for name, labels, count in samples if name == LOADS and labels["plugin"] == plugin}
    return counts.get("success", 0), counts.get("failure", 0)


def policies_of_manifests(server, directories):
    """What policies of manifests do, in any server that `directories` has been given to with the policy `labels`."""
    plugin = "ValidatingAdmissionPolicy"
    status, message = create(server, labels={"bad": "1"})
    denied = "ValidatingAdmissionPolicy 'labels.static.k8s.io' with binding 'labels.static.k8s.io' denied request: no bad labels"
    assert (status, message) == (422, f'configmaps "a" is forbidden: {denied}')
    assert create(server)[0] == 201
    assert server.ok("GET", f"{ADMISSION}/validatingadmissionpolicies")["items"] == []
    name = {"metadata": {"name": "labels.static.k8s.io"}}
    status, answer, _ = server.request("POST", f"{ADMISSION}/validatingwebhookconfigurations", name)
    assert status == 422 and "are reserved for static manifest-based configurations" in answer["message"], answer

    # their own kinds are theirs to judge, reviews are not
    directories.write(plugin, "own.json", *refusing("own", "false", "no", "*", group="*"))
    names = list(samples())
    refused = "denied request: no"
    eventually(lambda: refused in create(server)[1], 90)
    for plural in names:
        status, answer, _ = server.request("POST", f"{ADMISSION}/{plural}?dryRun=All", samples()[plural])
        assert status == 422 and refused in answer["message"], (plural, status, answer)
    review = {"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    server.ok("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    directories.remove(plugin, "own.json")
    eventually(lambda: create(server)[0] == 201, 90)

    # policies of the API see webhook configurations, but no policies
    for plural, body in zip(names, for_api(*refusing("own", "false", "no", "*", group=GROUP))):
        server.ok("POST", f"{ADMISSION}/{plural}", body)

    def codes():
        return [server.request("POST", f"{ADMISSION}/{plural}?dryRun=All", samples()[plural])[0] for plural in names]

    eventually(lambda: codes() == [201] * 4 + [422] * 2)
    server.ok("DELETE", f"{ADMISSION}/{names[0]}/own")
    server.ok("DELETE", f"{ADMISSION}/{names[1]}/own")
    eventually(lambda: codes() == [201] * 6)


def samples():
    """An object of each kind."""
    specs = {
        "validatingadmissionpolicies": refusing("x", "true", "m", "configmaps")[0]["spec"],
        "validatingadmissionpolicybindings": {"policyName": "p", "validationActions": ["Deny"]},
        "mutatingadmissionpolicies": labelling("x", "Object{}")[0]["spec"],
        "mutatingadmissionpolicybindings": {"policyName": "p"},
    }
    hooks = {f"{kind}webhookconfigurations": {"metadata": {"name": "sample"}} for kind in ("validating", "mutating")}
    return {plural: {"metadata": {"name": "sample"}, "spec": spec} for plural, spec in specs.items()} | hooks


def test_policies(launch, tmp_path):
    directories = Directories(tmp_path)
    plugin = "ValidatingAdmissionPolicy"
    labels = refusing("labels", "!('bad' in object.metadata.?labels.orValue({}))", "no bad labels", "configmaps")
    directories.write(plugin, "labels.yaml", *labels)
    with launch(directories.flag) as server:
        policies_of_manifests(server, directories)


def test_broken_files_change_nothing(launch, tmp_path):
    directories, plugin = Directories(tmp_path), "ValidatingAdmissionPolicy"
    directories.write(plugin, "a.json", *refusing("a", "object.metadata.name != 'a'", "not a", "configmaps"))
    with launch(directories.flag) as server:
        assert "not a" in create(server)[1]
        assert value(metrics_of(server)[0], HASHES, plugin=plugin) == 1 and loads(server, plugin) == (1, 0)
        directories.write(plugin, "b.json", *refusing("a", "true", "twice", "configmaps"))
        eventually(lambda: loads(server, plugin) == (1, 1))
        assert "not a" in create(server)[1]
        log = server.stderr()
        assert 'duplicate name "a.static.k8s.io" found in file' in log.replace("\\", ""), log
        directories.write(plugin, "b.json", *refusing("b", "object.metadata.name != 'b'", "not b", "configmaps"))
        eventually(lambda: "not b" in create(server, "b")[1])
        assert "not a" in create(server)[1]
        assert loads(server, plugin) == (2, 1)
        assert value(metrics_of(server)[0], HASHES, plugin=plugin) == 1, "the former hash is gone"
        (tmp_path / plugin).rename(tmp_path / "elsewhere")
        eventually(lambda: loads(server, plugin) == (2, 2))
        assert "not a" in create(server)[1]


def webhooks_of_manifests(server, directories, hooks):
    """What webhooks of manifests do, in any server that `directories` has been given to."""
    asked = []

    def respond(name, answer):
        def on(request):
            asked.append((name, request["resource"]["resource"]))
            return answer(request)

        return hooks.on("/" + name, on)

    def labelled(name):
        operation = {"op": "add", "path": f"/metadata/annotations/{name}", "value": "x"}
        return respond(name, lambda request: patch(operation) if request["name"] else {"allowed": True})

    own = rule("validatingwebhookconfigurations", group=GROUP)
    first = calling("MutatingWebhookConfiguration", "z.static.k8s.io", labelled("first"), rule("configmaps"), own)
    directories.write("MutatingAdmissionWebhook", "a.json", first)
    api = calling("MutatingWebhookConfiguration", "a", labelled("second"), rule("configmaps"), own)
    server.ok("POST", f"{ADMISSION}/mutatingwebhookconfigurations", api)

    annotated = {"annotations": {"a": "b"}}

    def annotations():
        answer = create(server, **annotated)[1]
        return answer.get("metadata", {}).get("annotations") if isinstance(answer, dict) else None

    eventually(lambda: annotations() == {"a": "b", "first": "x", "second": "x"}, 90)
    asked.clear()
    assert annotations() == {"a": "b", "first": "x", "second": "x"}
    assert asked == [("first", "configmaps"), ("second", "configmaps")]

    # only those of manifests are called for configurations of admission
    asked.clear()
    body = {"metadata": {"name": "sample", **annotated}}
    answer = server.ok("POST", f"{ADMISSION}/validatingwebhookconfigurations?dryRun=All", body)
    assert answer["metadata"]["annotations"] == {"a": "b", "first": "x"}
    assert asked == [("first", "validatingwebhookconfigurations")]
    refusal = respond("refuse", lambda _: {"allowed": False, "status": {"message": "no"}})
    directories.write("ValidatingAdmissionWebhook", "b.yaml", calling("ValidatingWebhookConfiguration", "b.static.k8s.io", refusal, rule("configmaps"), own))
    wanted = (400, 'admission webhook "b.static.k8s.io.hooks.example.com" denied the request: no')
    eventually(lambda: create(server, **annotated) == wanted, 90)
    status, answer, _ = server.request("POST", f"{ADMISSION}/validatingwebhookconfigurations?dryRun=All", body)
    assert (status, answer["message"]) == wanted
    directories.remove("ValidatingAdmissionWebhook", "b.yaml")
    directories.remove("MutatingAdmissionWebhook", "a.json")
    eventually(lambda: annotations() == {"a": "b", "second": "x"}, 90)
    for kind, there in (("validating", []), ("mutating", ["a"])):
        assert named(server.ok("GET", f"{ADMISSION}/{kind}webhookconfigurations")["items"]) == there
    server.ok("DELETE", f"{ADMISSION}/mutatingwebhookconfigurations/a")
    eventually(lambda: annotations() == {"a": "b"}, 90)


def test_webhooks(launch, tmp_path):
    directories = Directories(tmp_path)
    with launch(directories.flag) as server, Hooks(server) as hooks:
        webhooks_of_manifests(server, directories, hooks)


def mutations_of_manifests(server, directories):
    """What mutating policies of manifests do: they come before those of the API."""

    def labels():
        answer = create(server)[1]
        return answer["metadata"].get("labels") if isinstance(answer, dict) else None

    expression = "Object{metadata: Object.metadata{labels: {'first': string(size(object.metadata.?labels.orValue({})))}}}"
    directories.write("MutatingAdmissionPolicy", "a.json", *labelling("z", expression))
    policy, binding = for_api(*labelling("a", expression.replace("first", "second")))
    server.ok("POST", f"{ADMISSION}/mutatingadmissionpolicies", policy)
    server.ok("POST", f"{ADMISSION}/mutatingadmissionpolicybindings", binding)
    eventually(lambda: labels() == {"first": "0", "second": "1"}, 90)
    directories.remove("MutatingAdmissionPolicy", "a.json")
    eventually(lambda: labels() == {"second": "0"}, 90)


def test_mutating_policies(launch, tmp_path):
    directories = Directories(tmp_path)
    with launch(directories.flag) as server:
        mutations_of_manifests(server, directories)


def test_a_start_with_a_bad_file_fails(launch, tmp_path):
    directories = Directories(tmp_path, ["ValidatingAdmissionPolicy"])
    file = tmp_path / "ValidatingAdmissionPolicy" / "a.json"
    policy, binding = refusing("a", "object.", "x", "configmaps")
    for objects, why in [
        ([policy], 'Invalid value: "object.": compilation failed'),
        ([binding], "which does not exist"),
        (["a: b"], "Object 'Kind' is missing"),
    ]:
        directories.write("ValidatingAdmissionPolicy", "a.json", *objects)
        errors = refused(launch, directories.flag)
        assert why in errors and 'failed to initialize admission plugin "ValidatingAdmissionPolicy"' in errors, errors
    file.unlink()
    errors = refused(launch, directories.flag, "--feature-gates=ManifestBasedAdmissionControlConfig=false")
    assert "requires the ManifestBasedAdmissionControlConfig feature gate" in errors, errors
    file.parent.rmdir()
    assert "unable to read" in refused(launch, directories.flag)


def test_names_are_reserved_with_the_gate(launch):
    path, body = f"{ADMISSION}/validatingwebhookconfigurations", {"metadata": {"name": "a.static.k8s.io"}}
    why = 'names ending with ".static.k8s.io" are reserved'
    with launch("--feature-gates", "ManifestBasedAdmissionControlConfig=false") as server:
        status, _, headers = server.request("POST", path, body)
        assert status == 201 and why in headers["warning"].replace("\\", ""), headers
    with launch() as server:
        status, answer, _ = server.request("POST", path, body)
        assert status == 422 and why in answer["message"], answer
