"""ThirdPartyResources, and their migration to CRDs, which preserves the objects."""

import contextlib
import json
import re
import threading

import pytest

from kubectl.client import Kubectl, has, same, table
from legacy import CRONTABS, crontab
from objects import DEFINITIONS, definition
from pintle import eventually
from watch import Watch

pytestmark = pytest.mark.legacy

THIRD = "--runtime-config=extensions/v1beta1=true"
RESOURCES = "/apis/extensions/v1beta1/thirdpartyresources"
EVERYWHERE = "/apis/stable.example.com/v1/crontabs"


def registration(name="cron-tab.stable.example.com", versions=("v1",), **more):
    return {
        "apiVersion": "extensions/v1beta1",
        "kind": "ThirdPartyResource",
        "metadata": {"name": name},
        "description": "A specification of a Pod to run on a cron style schedule",
        "versions": [{"name": version} for version in versions],
        **more,
    }


def test_third_party_deletion(launch):
    with launch(THIRD, storage="embedded") as server:
        name = RESOURCES + "/cron-tab.stable.example.com"
        server.ok("POST", RESOURCES, registration(versions=["v1", "v2"]))
        server.ok("POST", CRONTABS, crontab())
        # deleting a namespace deletes its objects
        server.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "more"}})
        server.ok("POST", CRONTABS.replace("default", "more"), crontab("c"))
        server.ok("DELETE", "/api/v1/namespaces/more")
        eventually(lambda: server.request("GET", "/api/v1/namespaces/more")[0] == 404)
        assert all(item["metadata"]["namespace"] == "default" for item in server.ok("GET", EVERYWHERE)["items"])
        server.ok("POST", CRONTABS, crontab("held", metadata={"name": "held", "finalizers": ["example.com/hold"]}))
        server.ok("PUT", name, registration(versions=["v2"]))
        older = CRONTABS.replace("/v1/", "/v2/")
        assert server.request("GET", CRONTABS)[0] == 404
        assert server.ok("GET", older + "/a")["apiVersion"] == "stable.example.com/v2", "objects stored in a removed version are served"
        server.restart()
        assert len(server.ok("GET", older)["items"]) == 2
        events = Watch(server, older + "?watch=1")
        server.ok("DELETE", name)
        eventually(lambda: any('"DELETED"' in line for line in events.lines))
        eventually(lambda: len(server.ok("GET", older)["items"]) == 1)
        status, response, _ = server.request("POST", older, crontab("late", apiVersion="stable.example.com/v2"))
        assert status == 403 and "terminating" in response["message"], response
        server.restart()
        assert server.ok("GET", name)["metadata"]["deletionTimestamp"]
        server.ok("PATCH", older + "/held", {"metadata": {"finalizers": None}})
        eventually(lambda: server.request("GET", name)[0] == 404)
        assert server.request("GET", older)[0] == 404
        server.ok("POST", RESOURCES, registration())
        assert server.ok("GET", CRONTABS)["items"] == [], "a new ThirdPartyResource has no objects"
        status, response, _ = server.request("DELETE", RESOURCES, None)
        assert status == 200 and len(response["items"]) == 1, response
        eventually(lambda: server.ok("GET", RESOURCES)["items"] == [])


def test_third_party_kubectl(launch, each_kubectl):
    with launch(THIRD) as server, Kubectl(each_kubectl, server, "default") as kubectl:
        file = kubectl.file("cron-tab.yaml", json.dumps(registration()))
        out = kubectl("create", "-f", file)
        same(out, "thirdpartyresource.extensions/cron-tab.stable.example.com created\n")
        same(
            table(kubectl("get", "thirdpartyresources")),
            [["NAME", "DESCRIPTION", "VERSION(S)"], ["cron-tab.stable.example.com", registration()["description"], "v1"]],
        )
        object_file = kubectl.file("mine.yaml", json.dumps(crontab("mine", cronSpec="* * * * /5")))
        same(kubectl("create", "-f", object_file), "crontab.stable.example.com/mine created\n")
        for word in ("crontab", "crontabs", "CronTab", "crontabs.v1.stable.example.com"):
            same(table(kubectl("get", word)), [["NAME", "AGE"], ["mine", "AGE"]])
        has(kubectl("get", "crontab", "mine", "-o", "yaml"), "cronSpec: '* * * * /5'", "kind: CronTab")
        kubectl("label", "crontab", "mine", "a=b")
        same(table(kubectl("get", "crontab", "-l", "a=b", "--no-headers")), [["mine", "AGE"]])
        has(kubectl("apply", "-f", object_file), "configured")
        same(kubectl("patch", "crontab", "mine", "--type=merge", "-p", '{"image":"x"}'), "crontab.stable.example.com/mine patched\n")
        has(kubectl("edit", "crontab", "mine", env=kubectl.editor("sed -i s/image:.x/image:\\ other/ $1")), "edited")
        same(kubectl("get", "crontab", "mine", "-o", "jsonpath={.image}"), "other")
        has(kubectl("delete", "crontabs", "mine"), 'crontab.stable.example.com "mine" deleted')
        kubectl("create", "-f", object_file)
        has(kubectl("delete", "thirdpartyresource", "cron-tab.stable.example.com"), '"cron-tab.stable.example.com" deleted')
        kubectl("get", "--raw", EVERYWHERE, code=1)
        same(kubectl("get", "thirdpartyresources").errors, "No resources found\n")


def migrate(launch, server, *arguments, code=0):
    return launch.run("migrate", "third-party-resource", *arguments, "--kubeconfig", server.kubeconfig, status=code)


def uids(server, path=EVERYWHERE):
    return {(item["metadata"]["namespace"], item["metadata"]["name"]): item["metadata"]["uid"] for item in server.ok("GET", path)["items"]}


def replacement(*versions, kind="CronTab", scope="Namespaced"):
    crd = definition("crontabs", "stable.example.com", {"x-kubernetes-preserve-unknown-fields": True}, scope)
    (version,), crd["spec"]["names"]["kind"] = crd["spec"]["versions"], kind
    crd["spec"]["versions"] = [{**version, "name": name, "storage": i == 0} for i, name in enumerate(versions)]
    return crd


@contextlib.contextmanager
def writing(server):
    """Writes and reads in the background, which must succeed. Yields the responses to the writes."""
    stop, written, found = threading.Event(), [], []

    def repeat(responses, send):
        while not stop.is_set():
            responses.append(send(len(responses)))

    write = lambda i: server.request("POST", CRONTABS, crontab(f"written-{i}", n=i))
    read = lambda _: server.request("GET", CRONTABS + "/a")
    threads = [threading.Thread(target=repeat, args=each) for each in ((written, write), (found, read))]
    try:
        [thread.start() for thread in threads]
        yield written
    finally:
        stop.set()
        [thread.join() for thread in threads]
    assert not [response for response in written + found if response[0] not in (200, 201)]


def test_migration(launch):
    """Objects are served throughout, and no write in flight is lost."""
    with launch(THIRD, storage="embedded") as server:
        server.ok("POST", RESOURCES, registration(versions=["v1", "v2"]))
        for i in range(700):
            server.ok("POST", CRONTABS, crontab(f"many-{i}", n=i))
        metadata = {"name": "a", "finalizers": ["example.com/hold"], "labels": {"x": "y"}}
        created = server.ok("POST", CRONTABS, crontab("a", top={"a": [1, None]}, status={"s": 1}, metadata=metadata))
        before = uids(server)
        out = migrate(launch, server, "cron-tab.stable.example.com", "--dry-run")
        assert "serves CronTab in stable.example.com, v1, v2: 701 objects in 1 namespace" in out, out
        assert "would be created" in out and "nothing has been changed" in out, out
        assert server.request("GET", DEFINITIONS + "/crontabs.stable.example.com")[0] == 404
        watch = Watch(server, CRONTABS + "?watch=1")
        with writing(server) as written:
            eventually(lambda: len(written) > 5)
            out = migrate(launch, server, "cron-tab.stable.example.com")
            before_end = len(written)
            eventually(lambda: len(written) > before_end + 5)
        assert "is created" in out and "is established" in out and "is deleted" in out, out
        assert re.search(r"(\d+) of \1 have kept their uid", out), out
        assert watch.ended.wait(20) and not any('"DELETED"' in line for line in watch.lines), "watches end without deletions"
        assert server.request("GET", RESOURCES + "/cron-tab.stable.example.com")[0] == 404
        for _ in range(2):
            after = uids(server)
            assert after.items() >= before.items() and len(after) == len(before) + len(written), (len(after), len(before))
            migrated = server.ok("GET", CRONTABS + "/a")
            assert migrated == created, migrated
            assert server.ok("GET", DEFINITIONS + "/crontabs.stable.example.com")["status"]["storedVersions"] == ["v1"]
            server.restart()
        # it is an ordinary CRD now
        status, response, _ = server.request("PUT", CRONTABS + "/a", crontab(metadata={"name": "a"}))
        assert status == 422 and "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in response["message"]
        assert "not found" in migrate(launch, server, "cron-tab.stable.example.com", code=1)


def test_rejected_migrations(launch):
    with launch(THIRD) as server:
        name, third = "cron-tab.stable.example.com", RESOURCES + "/cron-tab.stable.example.com"
        assert "expected at least <kind>.<domain>.<tld>" in migrate(launch, server, "foo", code=1)
        assert "not found" in migrate(launch, server, name, code=1)
        server.ok("POST", RESOURCES, registration(versions=["v1", "v2"]))
        server.ok("POST", CRONTABS, crontab())
        before = server.ok("GET", CRONTABS)["items"]
        # a CRD of the same name that would not preserve the objects
        for crd, reason in (
            (replacement("v1", "v2", scope="Cluster"), 'spec.scope is "Cluster", not "Namespaced"'),
            (replacement("v1", "v2", kind="Cron"), 'spec.names.kind is "Cron", not "CronTab"'),
            (replacement("v1"), 'version "v2" is not served'),
        ):
            server.ok("POST", DEFINITIONS, crd)
            for more in ((), ("--dry-run",)):
                out = migrate(launch, server, name, *more, code=1)
                assert f"CustomResourceDefinition crontabs.stable.example.com already exists and does not match: {reason}" in out, out
            status, response, _ = server.request("DELETE", third)
            assert status == 409 and reason in response["message"], response
            # the deletion of this CRD does not delete the objects
            server.ok("DELETE", DEFINITIONS + "/crontabs.stable.example.com")
            eventually(lambda: server.request("GET", DEFINITIONS + "/crontabs.stable.example.com")[0] == 404)
            assert server.ok("GET", CRONTABS)["items"] == before
        # a matching CRD is used
        server.ok("POST", DEFINITIONS, replacement("v2", "v1", "v3"))
        assert server.ok("GET", CRONTABS)["items"] == before
        server.ok("DELETE", third + "?dryRun=All")
        assert "deletionTimestamp" not in server.ok("GET", third)["metadata"]
        assert server.ok("GET", DEFINITIONS + "/crontabs.stable.example.com")["status"]["storedVersions"] == ["v2"]
        assert "already exists and matches" in migrate(launch, server, name)
        assert server.ok("GET", CRONTABS)["items"] == before
        assert server.ok("GET", DEFINITIONS + "/crontabs.stable.example.com")["status"]["storedVersions"] == ["v2", "v1"]
        server.ok("POST", RESOURCES, registration("boat.harbor.example.com", versions=[]))
        assert "has no versions" in migrate(launch, server, "boat.harbor.example.com", code=1)
    with launch() as server:
        assert "start it with --runtime-config=extensions/v1beta1=true" in migrate(launch, server, name, code=1)


def test_migration_by_hand(launch, each_kubectl):
    """A migration with kubectl, first by a copy of the objects, then without one."""
    with launch(THIRD) as server, Kubectl(each_kubectl, server, "default") as kubectl:

        def create_objects():
            kubectl("create", "-f", "-", input=json.dumps(registration()))
            kubectl("create", "-f", "-", input=json.dumps(crontab("mine", cronSpec="*", list=[1])))

        create_objects()
        data = kubectl.file("data.yaml", kubectl("get", "crontabs", "--all-namespaces", "-o", "yaml"))
        kubectl("delete", "crontabs", "--all", "--cascade=orphan", "--wait=false")
        for item in server.ok("GET", EVERYWHERE)["items"]:
            kubectl("patch", "crontab", item["metadata"]["name"], "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        kubectl("delete", "thirdpartyresource", "cron-tab.stable.example.com")
        file = kubectl.file("definition.yaml", json.dumps(replacement("v1")))
        kubectl("create", "-f", file)
        kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=30s")
        kubectl("create", "-f", data)
        same([kubectl.json("get", "crontab", "mine")[key] for key in ("cronSpec", "list")], ["*", [1]])
        kubectl("delete", "-f", file)

        create_objects()
        before = uids(server)
        kubectl("create", "-f", file)
        kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=30s")
        kubectl("delete", "thirdpartyresource", "cron-tab.stable.example.com")
        same(uids(server), before)
        has(kubectl("delete", "-f", file), "deleted")
