"""The tutorial on CustomResourceDefinitions in Kubernetes' documentation: the commands of each section, and their results.

A case applies the definition of a section, waits until it is established, runs the commands of the section and deletes the
definition. All definitions have the name crontabs.stable.example.com, so that every case also starts after a deletion.
"""

import contextlib

from .client import MANIFESTS, has, same, table

NAME = "crontab.stable.example.com/my-new-cron-object"
CRD = "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com"


def crontab(spec, more=""):
    fields = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    return f"""apiVersion: "stable.example.com/v1"
kind: CronTab
metadata:
  name: my-new-cron-object
{more}spec:
{fields}"""


def example(**more):
    return crontab({"cronSpec": '"* * * * */5"', "image": "my-awesome-cron-image", **more})


@contextlib.contextmanager
def defined(kubectl, name):
    file = kubectl.manifests / f"crontabs-{name}.yaml"
    same(kubectl("apply", "-f", file), CRD + " created\n")
    try:
        kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
        yield file
    finally:
        same(kubectl("delete", "--ignore-not-found", "-f", file, "--timeout=30s").split()[-1:] in ([], ["deleted"]), True)


def tutorial_create_and_delete(kubectl):
    with defined(kubectl, "plain") as definition:
        file = kubectl.file("my-crontab.yaml", example())
        same(kubectl("apply", "-f", file), NAME + " created\n")
        for word in ("crontab", "crontabs", "ct", "CronTab", "CRONTABS"):
            same((word, table(kubectl("get", word))), (word, [["NAME", "AGE"], ["my-new-cron-object", "AGE"]]))
        out = kubectl("get", "ct", "-o", "yaml")
        has(
            out,
            "apiVersion: v1 items: - apiVersion: stable.example.com/v1 kind: CronTab",
            "generation: 1",
            f"name: my-new-cron-object namespace: {kubectl.namespace}",
            "spec: cronSpec: '* * * * */5' image: my-awesome-cron-image kind: List",
        )
        path = f"/apis/stable.example.com/v1/namespaces/{kubectl.namespace}/crontabs"
        has(kubectl("get", "--raw", path), '"kind":"CronTabList"')
        same(kubectl("delete", "-f", definition), 'customresourcedefinition.apiextensions.k8s.io "crontabs.stable.example.com" deleted\n')
        out = kubectl("get", "crontabs", code=1)  # with cached discovery, as in the tutorial
        same(
            out.errors,
            'Error from server (NotFound): Unable to list "stable.example.com/v1, Resource=crontabs": the server '
            "could not find the requested resource (get crontabs.stable.example.com)\n",
        )
        kubectl("api-resources")  # renews the discovery cache
        same(kubectl("get", "crontabs", code=1).errors, 'error: the server doesn\'t have a resource type "crontabs"\n')
        same(kubectl("get", "--raw", path, code=1).errors, "Error from server (NotFound): the server could not find the requested resource\n")
    with defined(kubectl, "plain"):
        same(kubectl("get", "crontabs").errors, f"No resources found in {kubectl.namespace} namespace.\n")
        same(kubectl("get", "crontabs", "-A").errors, "No resources found\n")


def tutorial_pruning(kubectl):
    with defined(kubectl, "pruning"):
        file = kubectl.file("my-crontab.yaml", example(someRandomField=42))
        out = kubectl("create", "-f", file, code=1)
        has(out.errors, 'CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: unknown field "spec.someRandomField"')
        out = kubectl("create", "--validate=false", "-f", file, "-o", "yaml")
        has(out, "spec: cronSpec: '* * * * */5' image: my-awesome-cron-image")
        assert "someRandomField" not in out, out
        text = (
            example()
            + """json:
  spec: {foo: abc, bar: def, something: x}
  status: {something: x}
"""
        )
        out = kubectl("replace", "--validate=false", "-f", "-", "-o", "jsonpath={.json}", input=text)
        same(out, '{"spec":{"bar":"def","foo":"abc"},"status":{"something":"x"}}')
        for port in ("8080", '"http"'):
            kubectl("replace", "-f", "-", input=example() + f"port: {port}\n")
        has(kubectl("replace", "-f", "-", input=example() + "port: [1]\n", code=1).errors, 'The CronTab "my-new-cron-object" is invalid:', "port")
        text = example() + "embedded: {apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}, spec: {x: [1]}}\n"
        same(
            kubectl("replace", "-f", "-", "-o", "jsonpath={.embedded.kind} {.embedded.metadata} {.embedded.spec}", input=text),
            'Pod {"labels":{"a":"b"},"name":"p"} {"x":[1]}',
        )
        text = example() + "embedded: {apiVersion: v1, metadata: {name: p}}\n"
        has(kubectl("replace", "-f", "-", input=text, code=1).errors, "embedded.kind: Required value")


def tutorial_structural(kubectl):
    plain = (MANIFESTS / "crontabs-plain.yaml").read_text()
    head = plain[: plain.index("        type: object")]
    root = "spec.validation.openAPIV3Schema"
    for schema, messages in (
        (
            "{type: object, allOf: [{properties: {foo: {type: string}}}]}",
            [
                f"{root}.properties[foo]: Required value: because it is defined in {root}.allOf[0].properties[foo]",
                f"{root}.allOf[0].properties[foo].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            "{type: object, allOf: [{items: {properties: {foo: {minimum: 1}}}}]}",
            [f"{root}.items: Required value: because it is defined in {root}.allOf[0].items"],
        ),
        (
            "{properties: {foo: {pattern: abc}, metadata: {type: object, properties: {finalizers: {type: array, items: {type: string}}}}}}",
            [
                f"{root}.type: Required value: must not be empty at the root",
                f"{root}.properties[foo].type: Required value: must not be empty for specified object fields",
                f"{root}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
    ):
        out = kubectl("create", "-f", "-", input=f"{head}        {schema}\n", code=1)
        has(out.errors, 'The CustomResourceDefinition "crontabs.stable.example.com" is invalid:', *messages)
    out = kubectl("create", "-f", "-", input=plain.replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"), code=1)
    has(out.errors, 'no matches for kind "CustomResourceDefinition" in version "apiextensions.k8s.io/v1beta1"')


def tutorial_finalizers(kubectl):
    with defined(kubectl, "plain"):
        text = crontab({"image": "x"}, "  finalizers: [stable.example.com/finalizer]\n")
        same(kubectl("apply", "-f", "-", input=text), NAME + " created\n")
        has(kubectl("delete", "ct", "my-new-cron-object", "--wait=false"), '"my-new-cron-object" deleted')
        assert kubectl("get", "ct", "my-new-cron-object", "-o", "jsonpath={.metadata.deletionTimestamp}"), "no deletionTimestamp"
        out = kubectl(
            "patch", "ct", "my-new-cron-object", "--type=merge", "-p", '{"metadata":{"finalizers":["a.example/x","stable.example.com/finalizer"]}}', code=1
        )
        has(
            out.errors,
            'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a.example/x"}',
        )
        kubectl("patch", "ct", "my-new-cron-object", "--type=merge", "-p", '{"metadata":{"finalizers":[]}}')
        kubectl("get", "ct", "my-new-cron-object", code=1)


def tutorial_validation(kubectl):
    with defined(kubectl, "validation"):
        bad = crontab({"cronSpec": '"* * * *"', "image": "my-awesome-cron-image", "replicas": 15})
        out = kubectl("apply", "-f", "-", input=bad, code=1)
        has(
            out.errors,
            'The CronTab "my-new-cron-object" is invalid: * spec.cronSpec: Invalid value: "* * * *": spec.cronSpec in body '
            r"should match '^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$' * spec.replicas: Invalid value: 15: "
            "spec.replicas in body should be less than or equal to 10",
        )
        same(kubectl("apply", "-f", "-", input=example(replicas=5)), NAME + " created\n")


def tutorial_defaulting(kubectl):
    with defined(kubectl, "defaults"):
        out = kubectl("apply", "-f", "-", "-o", "jsonpath={.spec}", input=crontab({"image": "my-awesome-cron-image"}))
        same(out, '{"cronSpec":"5 0 * * *","image":"my-awesome-cron-image","replicas":1}')
        has(kubectl("get", "ct", "-o", "yaml"), "spec: cronSpec: 5 0 * * * image: my-awesome-cron-image replicas: 1")


def tutorial_defaults_on_reading(kubectl):
    with defined(kubectl, "validation"):
        kubectl("apply", "-f", "-", input=crontab({"image": "old"}))
        same(kubectl.json("get", "ct", "my-new-cron-object")["spec"], {"image": "old"})
        same(kubectl("apply", "-f", MANIFESTS / "crontabs-defaults.yaml"), CRD + " configured\n")
        same(kubectl.json("get", "ct", "my-new-cron-object")["spec"], {"cronSpec": "5 0 * * *", "image": "old", "replicas": 1})


def tutorial_explain(kubectl):
    with defined(kubectl, "defaults"):
        has(kubectl("explain", "ct.spec"), "KIND: CronTab", "cronSpec <string>", "image <string>", "replicas <integer>")


def tutorial_printer_columns(kubectl):
    with defined(kubectl, "columns"):
        kubectl("apply", "-f", "-", input=crontab({"cronSpec": '"* * * * *"', "image": "x", "replicas": 1}))
        same(table(kubectl("get", "crontab", "my-new-cron-object")), [["NAME", "SPEC", "REPLICAS", "AGE"], ["my-new-cron-object", "* * * * *", "1", "AGE"]])
        out = kubectl("patch", "ct", "my-new-cron-object", "--type=merge", "-p", '{"spec":{"replicas":null}}')
        same(out, NAME + " patched\n")
        has(kubectl("get", "crontab", "--no-headers"), "my-new-cron-object * * * * * ")


def tutorial_subresources(kubectl):
    with defined(kubectl, "subresources"):
        kubectl("apply", "-f", "-", input=example(replicas=3))
        same(kubectl("scale", "--replicas=5", "crontabs/my-new-cron-object"), NAME + " scaled\n")
        same(kubectl("get", "crontabs", "my-new-cron-object", "-o", "jsonpath={.spec.replicas}"), "5")
        path = f"/apis/stable.example.com/v1/namespaces/{kubectl.namespace}/crontabs/my-new-cron-object"
        has(kubectl("get", "--raw", path + "/scale"), '"kind":"Scale"', '"spec":{"replicas":5}', '"status":{"replicas":0}')
        patch = '{"spec":{"replicas":9},"status":{"replicas":4,"labelSelector":"app=cron"}}'
        kubectl("patch", "ct", "my-new-cron-object", "--type=merge", "-p", patch, "--subresource=status")
        has(kubectl("get", "--raw", path + "/scale"), '"spec":{"replicas":5}', '"status":{"replicas":4,"selector":"app=cron"}')
        kubectl("patch", "ct", "my-new-cron-object", "--type=merge", "-p", patch.replace("4", "6"))
        found = kubectl.json("get", "ct", "my-new-cron-object")
        same((found["spec"]["replicas"], found["status"]["replicas"], found["metadata"]["generation"]), (9, 4, 3))
        kubectl("patch", "ct", "my-new-cron-object", "--type=merge", "-p", '{"spec":{"replicas":null}}')
        has(
            kubectl("get", "--raw", path + "/scale", code=1).errors,
            'Error from server (InternalError): Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
        )


def tutorial_categories(kubectl):
    with defined(kubectl, "categories"):
        kubectl("apply", "-f", "-", input=example())
        same(table(kubectl("get", "all")), [["NAME", "AGE"], [NAME, "AGE"]])


def tutorial_namespace_deletion(kubectl):
    with defined(kubectl, "plain"):
        name = kubectl.namespace + "-x"
        kubectl("create", "ns", name)
        kubectl("apply", "--namespace=" + name, "-f", "-", input=example())
        kubectl("apply", "-f", "-", input=example())
        same(kubectl("delete", "ns", name, "--timeout=30s"), f'namespace "{name}" deleted\n')
        same(kubectl("get", "ct", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"), kubectl.namespace)


CASES = [
    tutorial_create_and_delete,
    tutorial_pruning,
    tutorial_structural,
    tutorial_finalizers,
    tutorial_validation,
    tutorial_defaulting,
    tutorial_defaults_on_reading,
    tutorial_explain,
    tutorial_printer_columns,
    tutorial_subresources,
    tutorial_categories,
    tutorial_namespace_deletion,
]
