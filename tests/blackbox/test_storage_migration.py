"""Objects that lie in an older version are written again, online: by `pintle storage migrate`, and by the controller of
StorageVersionMigrations."""
import subprocess
import tempfile
import threading

import pytest

import encryption
import transcripts
from boats import BOATS, DEFINITIONS, boat, boats, convert_boats
from hooks import Hooks
from pintle import eventually

pytestmark = pytest.mark.migration

V1, V2 = BOATS.format("v1"), BOATS.format("v2")
NAME = "/boats.harbor.example.com"
WISHES = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
SERVED = "--runtime-config=storagemigration.k8s.io/v1beta1=true"


def migrate(server, *words, code=0):
    command = [server.binary, "storage", "migrate", *words, "--kubeconfig", server.kubeconfig]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def store_v2(server, hook, **more):
    definition = boats(hook, storage="v2")
    server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": definition["spec"]["versions"], **more}})


def stored_versions(server):
    return server.ok("GET", DEFINITIONS + NAME)["status"]["storedVersions"]


def test_migration_online(launch):
    with launch(storage="embedded") as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        server.ok("POST", DEFINITIONS, boats(hook))
        for i in range(1200):
            server.ok("POST", V1, boat("v1", f"dinghy-{i}", sails=i))
        store_v2(server, hook)
        newer = server.ok("POST", V2, boat("v2", "newer", rig={"sails": 1}))
        before = {item["metadata"]["name"]: item for item in server.ok("GET", V1)["items"]}
        out = migrate(server, "harbor.example.com", "--dry-run")
        assert "objects may be stored in v1, v2; they would be stored in v2" in out and "nothing has been changed" in out, out
        assert stored_versions(server) == ["v1", "v2"]

        stop, written = threading.Event(), []
        def write():
            while not stop.is_set():
                server.ok("PATCH", f"{V1}/dinghy-{len(written) % 1200}", {"spec": {"sails": -1}})
                written.append(1)
        writer = threading.Thread(target=write)
        writer.start()
        out = migrate(server, "boats.harbor.example.com")
        stop.set()
        writer.join()
        assert written and "of 500 objects written; 701 to go" in out, out
        assert "of 1201 objects written; all are stored in v2" in out, out
        assert stored_versions(server) == ["v2"]
        asked = len(hooks.requests("/convert"))
        after = server.ok("GET", V2)["items"]
        assert len(hooks.requests("/convert")) == asked, "all lie in v2"
        for item in after:
            old = before[item["metadata"]["name"]]
            assert item["metadata"]["uid"] == old["metadata"]["uid"], item
            assert item["spec"]["rig"]["sails"] in (old["spec"]["sails"], -1), item
        assert server.ok("GET", V2 + "/newer")["metadata"]["resourceVersion"] == newer["metadata"]["resourceVersion"], "as it was"
        # now the old version can be removed
        server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": boats(hook, storage="v2")["spec"]["versions"][1:]}})
        server.restart()
        assert len(server.ok("GET", V2)["items"]) == 1201
        assert "all objects are stored in v2" in migrate(server, "--all")


def test_migration_refused(launch):
    with launch() as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        assert "there is no CustomResourceDefinition boats" in migrate(server, "boats", code=1)
        server.ok("POST", DEFINITIONS, boats(hook))
        for i in range(3):
            server.ok("POST", V1, boat("v1", f"gig-{i}", sails=i))
        store_v2(server, hook)
        # objects that cannot be converted are kept and reported, and storedVersions keeps the old version
        hooks.on("/convert", lambda request: {"result": {"status": "Failure", "message": "sunk"}})
        out = migrate(server, "--all", code=1)
        assert "Kind=Boat failed: sunk" in out and "1 of 1 resources are not migrated" in out, out
        assert stored_versions(server) == ["v1", "v2"]
        hooks.on("/convert", convert_boats)
        # one object that a rule refuses
        policy = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        rule = {"apiGroups": ["harbor.example.com"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["boats"]}
        deny = hooks.on("/deny", lambda request: {"allowed": request["name"] != "gig-1"})
        server.ok("POST", policy, {"metadata": {"name": "deny"}, "webhooks": [
            {"name": "deny.hooks.example.com", "clientConfig": deny, "rules": [rule], "sideEffects": "None",
             "admissionReviewVersions": ["v1"]}]})
        out = migrate(server, "--all", code=1)
        assert "default/boats/gig-1: admission webhook" in out and "1 object is refused, so status.storedVersions stays v1, v2" in out, out
        assert stored_versions(server) == ["v1", "v2"]
        server.ok("DELETE", policy + "/deny")
        assert "1 of 3 objects written; all are stored in v2" in migrate(server, "--all"), "it goes on where it stopped"
        assert stored_versions(server) == ["v2"]


def wish(server, name, plural, group="", path=WISHES):
    server.ok("POST", path, {"metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": plural}}})


def ended(server, name, path=WISHES):
    """The status of a migration once it has ended; its conditions as (type, status, reason, message)."""
    def of(status):
        return [tuple(c[k] for k in ("type", "status", "reason", "message")) for c in status.get("conditions", [])]
    status = lambda: server.ok("GET", f"{path}/{name}")["status"]
    eventually(lambda: any(c[:2] in (("Succeeded", "True"), ("Failed", "True")) for c in of(status())))
    return status(), of(status())


RAN = ("Running", "False", "StorageVersionMigrationInProgress", "")
SUCCEEDED = [RAN, ("Succeeded", "True", "StorageVersionMigrationSucceeded", "")]


def test_storage_version_migrations_run(launch):
    """Objects of a definition, while others write, and over a restart; what is newer stays as it is."""
    with launch(SERVED, storage="embedded") as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        server.ok("POST", DEFINITIONS, boats(hook))
        for i in range(1200):
            server.ok("POST", V1, boat("v1", f"dinghy-{i}", sails=i))
        store_v2(server, hook)
        newer = server.ok("POST", V2, boat("v2", "newer", rig={"sails": 1}))
        before = {item["metadata"]["name"]: item for item in server.ok("GET", V1)["items"]}
        wish(server, "boats", "boats", "harbor.example.com")
        for i in range(20):
            server.ok("PATCH", f"{V1}/dinghy-{i}", {"spec": {"sails": -1}})
        server.restart()
        status, conditions = ended(server, "boats")
        assert conditions == SUCCEEDED and int(status["resourceVersion"]) >= int(newer["metadata"]["resourceVersion"]), status
        asked = len(hooks.requests("/convert"))
        after = server.ok("GET", V2)["items"]
        assert len(hooks.requests("/convert")) == asked, "all lie in v2"
        assert len(after) == 1201
        for item in after:
            old = before[item["metadata"]["name"]]
            assert item["metadata"]["uid"] == old["metadata"]["uid"], item
            assert item["metadata"]["managedFields"] == old["metadata"]["managedFields"] or item["spec"]["rig"]["sails"] == -1, item
            assert item["spec"]["rig"]["sails"] in (old["spec"]["sails"], -1), item
        assert server.ok("GET", V2 + "/newer")["metadata"]["resourceVersion"] == newer["metadata"]["resourceVersion"], "as it was"
        # who asked for it can now forget the old version
        server.ok("PATCH", DEFINITIONS + NAME + "/status", {"status": {"storedVersions": ["v2"]}})
        server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": boats(hook, storage="v2")["spec"]["versions"][1:]}})


def test_migrations_of_built_in_kinds(launch):
    """Secrets are encrypted with the new key afterwards; objects that already are, are not written."""
    secrets, maps = encryption.SECRETS, encryption.MAPS
    with tempfile.TemporaryDirectory() as directory:
        configuration = lambda *keys: encryption.configuration(directory, {"aescbc": list(keys)})
        flag = f"--encryption-provider-config={configuration(('one', 1))}"
        both = "--runtime-config=api/all=true"
        with launch(flag, both, "--controllers=-svm", storage="embedded") as server:
            first = server.ok("POST", secrets, encryption.secret("kept"))
            plain = server.ok("POST", maps, {"metadata": {"name": "plain"}})
            wish(server, "secrets", "secrets")
            in_v1 = WISHES.replace("v1beta1", "v1")
            wish(server, "maps", "configmaps", path=in_v1)
            configuration(("two", 2), ("one", 1))
            assert server.ok("GET", in_v1 + "/secrets")["status"] == {}, "nobody has looked at it"
            server.flags = tuple(flag for flag in server.flags if "controllers" not in flag)
            server.restart()
            assert ended(server, "secrets", in_v1)[1] == SUCCEEDED and ended(server, "maps")[1] == SUCCEEDED
            found = server.ok("GET", secrets + "/kept")
            assert found["metadata"].pop("resourceVersion") != first["metadata"].pop("resourceVersion") and found == first
            assert server.ok("GET", maps + "/plain") == plain
            configuration(("two", 2))
            server.restart()
            assert server.ok("GET", secrets + "/kept")["data"] == first["data"], "the old key is not needed any more"


def test_migrations_that_fail(launch):
    with launch() as server:
        assert server.request("GET", WISHES)[0] == 404, "it is off by default"
    with launch(SERVED) as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        # there is nothing yet, and then there is
        wish(server, "early", "boats", "harbor.example.com")
        server.ok("POST", DEFINITIONS, boats(hook))
        assert ended(server, "early")[1] == SUCCEEDED
        wish(server, "reviews", "tokenreviews", "authentication.k8s.io")
        why = 'resource "authentication.k8s.io/v1, Resource=tokenreviews" does not support discovery operations: [update patch list]'
        assert ended(server, "reviews")[1] == [("Failed", "True", "StorageVersionMigrationFailed", why)]
        server.ok("POST", V1, boat("v1", "gig", sails=1))
        store_v2(server, hook)
        rule = {"apiGroups": ["harbor.example.com"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["boats"]}
        deny = hooks.on("/deny", lambda request: {"allowed": False})
        policy = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        server.ok("POST", policy, {"metadata": {"name": "deny"}, "webhooks": [
            {"name": "deny.hooks.example.com", "clientConfig": deny, "rules": [rule], "sideEffects": "None",
             "admissionReviewVersions": ["v1"]}]})
        wish(server, "refused", "boats", "harbor.example.com")
        why = ('migration encountered unhandled error: admission webhook "deny.hooks.example.com" denied the request without '
               "explanation")
        assert ended(server, "refused")[1] == [RAN, ("Failed", "True", "StorageVersionMigrationFailed", why)]
        asked = hooks.requests("/deny")[-1]
        assert asked["userInfo"]["username"] == "system:serviceaccount:kube-system:storage-version-migrator-controller", asked
        server.ok("DELETE", policy + "/deny")
        wish(server, "again", "boats", "harbor.example.com")
        assert ended(server, "again")[1] == SUCCEEDED


def test_migrations_are_objects(launch):
    """Recorded from a kube-apiserver 1.37, which does not run their controller."""
    with launch("--controllers=-storage-version-migrator-controller") as server:
        transcripts.check(server, transcripts.OWN / "switched" / "storage-migrations.json")
