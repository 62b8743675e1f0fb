"""`pintle storage migrate`: objects that lie in an older version are written again, online."""
import subprocess
import threading

from hooks import Hooks
from pintle import Pintle
from webhook_cases import BOATS, DEFINITIONS, boat, boats, swapped

V1, V2 = BOATS.format("v1"), BOATS.format("v2")
NAME = "/boats.harbor.example.com"


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


def migration_online(args):
    with Pintle(args.binary, storage="embedded") as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", swapped)
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
        # and now the old version can go
        server.ok("PATCH", DEFINITIONS + NAME, {"spec": {"versions": boats(hook, storage="v2")["spec"]["versions"][1:]}})
        server.restart()
        assert len(server.ok("GET", V2)["items"]) == 1201
        assert "all objects are stored in v2" in migrate(server, "--all")


def migration_refused(args):
    with Pintle(args.binary) as server, Hooks(server) as hooks:
        hook = hooks.on("/convert", swapped)
        assert "there is no CustomResourceDefinition boats" in migrate(server, "boats", code=1)
        server.ok("POST", DEFINITIONS, boats(hook))
        for i in range(3):
            server.ok("POST", V1, boat("v1", f"gig-{i}", sails=i))
        store_v2(server, hook)
        # what can't be converted stays, is named, and the old version is not forgotten
        hooks.on("/convert", lambda request: {"result": {"status": "Failure", "message": "sunk"}})
        out = migrate(server, "--all", code=1)
        assert "Kind=Boat failed: sunk" in out and "1 of 1 resources are not migrated" in out, out
        assert stored_versions(server) == ["v1", "v2"]
        hooks.on("/convert", swapped)
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


CASES = [migration_online, migration_refused]
