"""`-f`: objects of files, which follow the files."""

import json
import time
import urllib.request

import pytest

from documentation import command_tests
from legacy import CRONTABS
from objects import MAPS, named
from pintle import TOKEN, eventually, insecure
from programs import ROOT

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]


def config(name, namespace="default", **data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}) + "\n"


def names(server, path=MAPS):
    found = server.ok("GET", path)["items"]
    return named(item for item in found if item["metadata"].get("labels", {}).get("sources.pintle.dev/applied"))


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "manifests"
    (place / "sub").mkdir(parents=True)
    (place / "a.yaml").write_text(config("a", k="1") + "---\n" + config("b"))
    # objects come before what they need
    (place / "crontab.yaml").write_text((ROOT / "examples" / "my-crontab.yaml").read_text())
    (place / "sub" / "z.yaml").write_text((ROOT / "examples" / "crontab.yaml").read_text())
    (place / "notes.txt").write_text("a: [")
    return place


def test_edits_and_deletions_are_followed(launch, place):
    with launch("-f", str(place)) as server:
        assert (names(server), names(server, CRONTABS)) == (["a", "b"], ["my-new-cron-object"])
        # what clients write elsewhere stays
        server.ok("POST", MAPS, {"metadata": {"name": "own"}})
        server.ok("PATCH", MAPS + "/a", {"data": {"other": "kept"}})
        uid = server.ok("GET", MAPS + "/a")["metadata"]["uid"]
        (place / "a.yaml").write_text(config("a", k="2"))
        found = eventually(lambda: (found := server.ok("GET", MAPS + "/a"))["data"]["k"] == "2" and found)
        assert found["data"] == {"k": "2", "other": "kept"} and found["metadata"]["uid"] == uid
        assert found["metadata"]["annotations"]["sources.pintle.dev/file"] == str(place / "a.yaml")
        managers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
        assert "pintle-directory" in managers
        eventually(lambda: names(server) == ["a"])
        # a new directory, and an object that moves to another file
        (place / "new" / "deep").mkdir(parents=True)
        (place / "new" / "deep" / "c.yaml").write_text(config("c"))
        eventually(lambda: names(server) == ["a", "c"])
        (place / "a.yaml").rename(place / "new" / "renamed.yaml")
        annotation = lambda: server.ok("GET", MAPS + "/a")["metadata"]["annotations"]["sources.pintle.dev/file"]  # noqa: E731
        eventually(lambda: annotation().endswith("new/renamed.yaml"))
        assert server.ok("GET", MAPS + "/a")["metadata"]["uid"] == uid
        for path in (place / "new" / "deep" / "c.yaml", place / "new" / "renamed.yaml", place / "sub" / "z.yaml"):
            path.unlink()
        eventually(lambda: names(server) == [])
        eventually(lambda: server.request("GET", CRONTABS)[0] == 404)
        assert server.ok("GET", MAPS + "/own")


def test_what_is_wrong_is_shown_and_changes_nothing(launch, place):
    with launch("-f", str(place)) as server:
        before = server.ok("GET", MAPS + "/a")
        log = lambda: server.log_tail()  # noqa: E731
        # one object of the file is good
        (place / "a.yaml").write_text(config("a", k="2") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  k: [1]\n")
        eventually(lambda: "a.yaml is not applied, its objects stay as they are:" in log())
        (place / "crontab.yaml").write_text((ROOT / "examples" / "my-crontab.yaml").read_text().replace("image:", "imaeg:"))
        eventually(lambda: "imaeg" in log() and "^^^^^" in log())
        (place / "sub" / "broken.yaml").write_text("a:\n  - [\n")
        eventually(lambda: "broken.yaml:" in log())
        (place / "again.yaml").write_text(config("b"))
        eventually(lambda: "the object is also in" in log())
        assert server.ok("GET", MAPS + "/a") == before
        assert names(server, CRONTABS) == ["my-new-cron-object"] and "b" in names(server)
        (place / "again.yaml").unlink()
        (place / "a.yaml").write_text(config("a", k="3"))
        eventually(lambda: names(server) == ["a"])
        assert f"pintle: {place}/a.yaml is applied" in log()


def test_an_edit_reaches_a_watch_at_once(launch, place):
    with launch("-f", str(place)) as server:
        revision = server.ok("GET", MAPS)["metadata"]["resourceVersion"]
        request = urllib.request.Request(f"{server.url}{MAPS}?watch=true&resourceVersion={revision}", headers={"Authorization": f"Bearer {TOKEN}"})
        taken = []
        with urllib.request.urlopen(request, context=insecure(), timeout=30) as events:
            for number in range(20):
                began = time.monotonic()
                (place / "a.yaml").write_text(config("a", k=f"n{number}") + "---\n" + config("b"))
                while json.loads(events.readline())["object"]["data"]["k"] != f"n{number}":
                    pass
                taken.append(time.monotonic() - began)
        print("edit to event, in ms:", [round(one * 1000) for one in sorted(taken)])
        # the machine may be busy, and the build a slow one
        assert sorted(taken)[10] < 0.1, taken


def test_a_restart_prunes_what_is_gone(launch, place, tmp_path):
    data = str(tmp_path / "data")
    with launch("-f", str(place), data_dir=data, storage="embedded") as server:
        uid = server.ok("GET", MAPS + "/a")["metadata"]["uid"]
    (place / "a.yaml").write_text(config("a"))
    (place / "crontab.yaml").write_text("a: [")
    with launch("-f", str(place), data_dir=data, storage="embedded") as server:
        assert names(server) == ["a"] and server.ok("GET", MAPS + "/a")["metadata"]["uid"] == uid
        assert names(server, CRONTABS) == ["my-new-cron-object"], "its file has an error"


def test_statuses_are_written(launch, place, tmp_path):
    statuses = tmp_path / "statuses"
    with launch("-f", str(place), "--status-dir", str(statuses)) as server:
        server.ok("PATCH", CRONTABS + "/my-new-cron-object", {"spec": {"replicas": 3}})
        definition = statuses / "cluster" / "apiextensions.k8s.io" / "customresourcedefinitions" / "crontabs.stable.example.com.yaml"
        found = eventually(lambda: definition.exists() and definition.read_text())
        assert "kind: CustomResourceDefinition\n" in found and "    plural: crontabs\n" in found and "spec:" not in found, found
        (place / "crontab.yaml").unlink()
        (place / "sub" / "z.yaml").unlink()
        eventually(lambda: not definition.exists())


def test_run_follows_on_top_of_a_source(launch, kubectl_binary, place, tmp_path):
    source = tmp_path / "source.yaml"
    source.write_text(config("a", k="0", more="kept") + "---\n" + config("only"))
    get = (kubectl_binary, "get", "cm", "-n", "default", "-o", "json")
    done = launch.run("run", "--from", source, "-f", place / "a.yaml", "--", *get)
    found = {item["metadata"]["name"]: item.get("data", {}) for item in json.loads(done.stdout)["items"]}
    assert found == {"a": {"k": "1", "more": "kept"}, "b": {}, "only": {}}, done


test_commands = command_tests("followed")
