"""Objects that are stored in an older version are rewritten online, by `pintle storage migrate` and by the controller of
StorageVersionMigrations."""

import threading

import pytest

import commands
import encryption
import transcripts
from boats import BOATS, boat, boats, convert_boats
from hooks import Hooks
from objects import ADMISSION, DEFINITIONS, MAPS, SECRETS, register, rule, webhook
from pintle import eventually

pytestmark = pytest.mark.migration

V1, V2 = BOATS.format("v1"), BOATS.format("v2")
NAME = "/boats.harbor.example.com"
MIGRATIONS = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
RUNTIME_CONFIG = "--runtime-config=storagemigration.k8s.io/v1beta1=true"


def migrate(server, *arguments, code=0):
    return commands.run(server.binary, "storage", "migrate", *arguments, "--kubeconfig", server.kubeconfig, status=code, lines=None, timeout=120)


def store_v2(server, hook, **more):
    definition = boats(hook, storage="v2")
    server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": definition["spec"]["versions"], **more}})


def stored_versions(server):
    return server.ok("GET", DEFINITIONS + NAME)["status"]["storedVersions"]


DENIAL = ADMISSION + "/validatingwebhookconfigurations/deny"


def deny_updates(server, client):
    hook = webhook("deny", client, rules=[rule("UPDATE", resources=["boats"], groups=["harbor.example.com"])])
    register(server, "validating", hook, name="deny")


def check_migrated(server, hooks, before, newer):
    """Checks that all objects are stored in v2, and that the one that was before is not written again."""
    calls = len(hooks.requests("/convert"))
    after = server.ok("GET", V2)["items"]
    assert len(hooks.requests("/convert")) == calls, "all objects are stored in v2"
    assert len(after) == len(before)
    for item in after:
        old = before[item["metadata"]["name"]]
        assert item["metadata"]["uid"] == old["metadata"]["uid"], item
        assert item["metadata"]["managedFields"] == old["metadata"]["managedFields"] or item["spec"]["rig"]["sails"] == -1, item
        assert item["spec"]["rig"]["sails"] in (old["spec"]["sails"], -1), item
    assert server.ok("GET", V2 + "/newer")["metadata"]["resourceVersion"] == newer["metadata"]["resourceVersion"], "a current object is not rewritten"


def fill(server, hook, count):
    """Creates objects in v1 and one in v2, the storage version from then on. Returns that one, and all in v1 by name."""
    server.ok("POST", DEFINITIONS, boats(hook))
    for i in range(count):
        server.ok("POST", V1, boat("v1", f"dinghy-{i}", sails=i))
    store_v2(server, hook)
    newer = server.ok("POST", V2, boat("v2", "newer", rig={"sails": 1}))
    return newer, {item["metadata"]["name"]: item for item in server.ok("GET", V1)["items"]}


def test_migration_online(launch):
    with launch(storage="embedded") as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        newer, before = fill(server, hook, 600)
        out = migrate(server, "harbor.example.com", "--dry-run")
        assert "objects may be stored in v1, v2; they would be stored in v2" in out and "nothing has been changed" in out, out
        assert stored_versions(server) == ["v1", "v2"]

        stop, written = threading.Event(), []

        def write():
            while not stop.is_set():
                server.ok("PATCH", f"{V1}/dinghy-{len(written) % 600}", {"spec": {"sails": -1}})
                written.append(1)

        writer = threading.Thread(target=write)
        writer.start()
        out = migrate(server, "boats.harbor.example.com")
        stop.set()
        writer.join()
        assert written and "of 500 objects written; 101 to go" in out, out
        assert "of 601 objects written; all are stored in v2" in out, out
        assert stored_versions(server) == ["v2"]
        check_migrated(server, hooks, before, newer)
        # now the old version can be removed
        server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": boats(hook, storage="v2")["spec"]["versions"][1:]}})
        server.restart()
        assert len(server.ok("GET", V2)["items"]) == 601
        assert "all objects are stored in v2" in migrate(server, "--all")


def test_failing_migration(launch):
    with launch() as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        assert "there is no CustomResourceDefinition boats" in migrate(server, "boats", code=1)
        server.ok("POST", DEFINITIONS, boats(hook))
        for i in range(3):
            server.ok("POST", V1, boat("v1", f"gig-{i}", sails=i))
        store_v2(server, hook)
        # objects that cannot be converted are reported and not changed, and storedVersions keeps the old version
        hooks.on("/convert", lambda request: {"result": {"status": "Failure", "message": "sunk"}})
        out = migrate(server, "--all", code=1)
        assert "Kind=Boat failed: sunk" in out and "1 of 1 resource is not migrated" in out, out
        assert stored_versions(server) == ["v1", "v2"]
        hooks.on("/convert", convert_boats)
        # a webhook denies the update of one object
        deny_updates(server, hooks.on("/deny", lambda request: {"allowed": request["name"] != "gig-1"}))
        out = migrate(server, "--all", code=1)
        assert "default/boats/gig-1: admission webhook" in out and "1 object is refused, so status.storedVersions stays v1, v2" in out, out
        assert stored_versions(server) == ["v1", "v2"]
        server.ok("DELETE", DENIAL)
        assert "1 of 3 objects written; all are stored in v2" in migrate(server, "--all"), "the remaining object is written"
        assert stored_versions(server) == ["v2"]


def create_migration(server, name, plural, group="", path=MIGRATIONS):
    server.ok("POST", path, {"metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": plural}}})


def wait_until_ended(server, name, path=MIGRATIONS):
    """Waits for the end of a migration. Returns its status, and its conditions as (type, status, reason, message)."""

    def conditions(status):
        return [tuple(c[k] for k in ("type", "status", "reason", "message")) for c in status.get("conditions", [])]

    status = lambda: server.ok("GET", f"{path}/{name}")["status"]
    eventually(lambda: any(c[:2] in (("Succeeded", "True"), ("Failed", "True")) for c in conditions(status())))
    return status(), conditions(status())


WAS_RUNNING = ("Running", "False", "StorageVersionMigrationInProgress", "")
SUCCEEDED = [WAS_RUNNING, ("Succeeded", "True", "StorageVersionMigrationSucceeded", "")]


def test_storage_version_migrations_run(launch):
    """Custom resources are migrated during other writes and across a restart; current objects are not rewritten."""
    with launch(RUNTIME_CONFIG, storage="embedded") as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        newer, before = fill(server, hook, 60)
        create_migration(server, "boats", "boats", "harbor.example.com")
        for i in range(20):
            server.ok("PATCH", f"{V1}/dinghy-{i}", {"spec": {"sails": -1}})
        server.restart()
        status, conditions = wait_until_ended(server, "boats")
        assert conditions == SUCCEEDED and int(status["resourceVersion"]) >= int(newer["metadata"]["resourceVersion"]), status
        check_migrated(server, hooks, before, newer)
        # now the old version can be removed from storedVersions
        server.ok("PATCH", DEFINITIONS + NAME + "/status", {"status": {"storedVersions": ["v2"]}})
        server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": boats(hook, storage="v2")["spec"]["versions"][1:]}})


def test_migrations_of_built_in_kinds(launch, tmp_path):
    """Secrets are encrypted with the new key afterwards; current objects are not rewritten."""
    configuration = lambda *keys: encryption.configuration(tmp_path, {"aescbc": list(keys)})
    flag = f"--encryption-provider-config={configuration(('one', 1))}"
    with launch(flag, "--runtime-config=api/all=true", "--controllers=-svm", storage="embedded") as server:
        first = server.ok("POST", SECRETS, encryption.secret("kept"))
        plain = server.ok("POST", MAPS, {"metadata": {"name": "plain"}})
        create_migration(server, "secrets", "secrets")
        in_v1 = MIGRATIONS.replace("v1beta1", "v1")
        create_migration(server, "maps", "configmaps", path=in_v1)
        configuration(("two", 2), ("one", 1))
        assert server.ok("GET", in_v1 + "/secrets")["status"] == {}, "the controller is off"
        server.flags = tuple(flag for flag in server.flags if "controllers" not in flag)
        server.restart()
        assert wait_until_ended(server, "secrets", in_v1)[1] == SUCCEEDED and wait_until_ended(server, "maps")[1] == SUCCEEDED
        migrated = server.ok("GET", SECRETS + "/kept")
        assert migrated["metadata"].pop("resourceVersion") != first["metadata"].pop("resourceVersion") and migrated == first
        assert server.ok("GET", MAPS + "/plain") == plain
        configuration(("two", 2))
        server.restart()
        assert server.ok("GET", SECRETS + "/kept")["data"] == first["data"], "the old key is no longer needed"


def test_migrations_that_fail(launch):
    with launch() as server:
        assert server.request("GET", MIGRATIONS)[0] == 404, "the API is off by default"
    with launch(RUNTIME_CONFIG) as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", convert_boats)
        # the resource is created after the migration
        create_migration(server, "early", "boats", "harbor.example.com")
        server.ok("POST", DEFINITIONS, boats(hook))
        assert wait_until_ended(server, "early")[1] == SUCCEEDED
        create_migration(server, "reviews", "tokenreviews", "authentication.k8s.io")
        error = 'resource "authentication.k8s.io/v1, Resource=tokenreviews" does not support discovery operations: [update patch list]'
        assert wait_until_ended(server, "reviews")[1] == [("Failed", "True", "StorageVersionMigrationFailed", error)]
        server.ok("POST", V1, boat("v1", "gig", sails=1))
        store_v2(server, hook)
        deny_updates(server, hooks.on("/deny", lambda request: {"allowed": False}))
        create_migration(server, "denied", "boats", "harbor.example.com")
        error = 'migration encountered unhandled error: admission webhook "deny.hooks.example.com" denied the request without explanation'
        assert wait_until_ended(server, "denied")[1] == [WAS_RUNNING, ("Failed", "True", "StorageVersionMigrationFailed", error)]
        request = hooks.requests("/deny")[-1]
        assert request["userInfo"]["username"] == "system:serviceaccount:kube-system:storage-version-migrator-controller", request
        server.ok("DELETE", DENIAL)
        create_migration(server, "again", "boats", "harbor.example.com")
        assert wait_until_ended(server, "again")[1] == SUCCEEDED


def test_migrations_are_objects(launch):
    """The scenario was recorded from kube-apiserver 1.37, which does not run the controller."""
    with launch("--controllers=-storage-version-migrator-controller") as server:
        transcripts.check(server, transcripts.OWN / "switched" / "storage-migrations.json")
