"""The package `kubernetes` against pintle: dynamic client, custom objects, typed APIs, watch, informer, apply, errors."""
import json
import logging
import os
import queue
import sys
import threading
import time

import urllib3
import yaml
from kubernetes import client, config, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient, exceptions
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

import cases
from cases import case, end, equal, eventually, raises

GROUP = ("harbor.example.com", "v1")
config.load_kube_config(os.environ["KUBECONFIG"])
# an informer logs every connection that is refused while a case has the server down
logging.getLogger("kubernetes.informer").setLevel(logging.CRITICAL)
core, objects, extensions = client.CoreV1Api(), client.CustomObjectsApi(), client.ApiextensionsV1Api()


def namespace():
    return core.create_namespace({"metadata": {"generateName": "case-"}}).metadata.name


def boat(name, sails=1, **spec):
    return {"apiVersion": "/".join(GROUP), "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": sails, **spec}}


def boats():
    return DynamicClient(client.ApiClient()).resources.get(api_version="/".join(GROUP), kind="Boat")


def flood(space):
    """Makes more history than the server keeps: 540 config maps that come and go."""
    data = {"key": "x" * 95_000}
    for number in range(540):
        core.create_namespaced_config_map(space, {"metadata": {"name": f"flood-{number}", "labels": {"flood": ""}}, "data": data})
    core.delete_collection_namespaced_config_map(space, label_selector="flood")


@case("a definition is created from its file and established")
def define():
    utils.create_from_yaml(client.ApiClient(), os.environ["DEFINITION"])
    for event in watch.Watch().stream(extensions.list_custom_resource_definition,
                                      field_selector="metadata.name=boats.harbor.example.com", timeout_seconds=30):
        conditions = event["object"].status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in conditions):
            return
    raise AssertionError("the definition is not established")


@case("config maps live their life by the typed API")
def config_maps():
    space = namespace()
    made = core.create_namespaced_config_map(space, client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="settings", labels={"tier": "front"}), data={"key": "value"}))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
    made.data["more"] = "values"
    core.replace_namespaced_config_map("settings", space, made)
    core.patch_namespaced_config_map("settings", space, {"data": {"key": None}})
    core.patch_namespaced_config_map("settings", space, [{"op": "add", "path": "/data/json", "value": "1"}])
    equal("data", core.read_namespaced_config_map("settings", space).data, {"more": "values", "json": "1"})
    equal("stale", raises(ApiException, lambda: core.replace_namespaced_config_map("settings", space, made)).status, 409)
    equal("selected", len(core.list_namespaced_config_map(space, label_selector="tier=front").items), 1)
    core.delete_collection_namespaced_config_map(space, label_selector="tier=front")
    equal("gone", raises(ApiException, lambda: core.read_namespaced_config_map("settings", space)).status, 404)


@case("custom objects live their life")
def custom_objects():
    at = (*GROUP, namespace(), "boats")
    made = objects.create_namespaced_custom_object(*at, boat("anna", 2))
    equal("default", made["spec"]["port"], "Palos")
    made["spec"]["sails"] = 3
    equal("generation", objects.replace_namespaced_custom_object(*at, "anna", made)["metadata"]["generation"], 2)
    objects.patch_namespaced_custom_object(*at, "anna", {"spec": {"port": "Genoa"}})
    told = objects.patch_namespaced_custom_object_status(*at, "anna", {"status": {"phase": "afloat", "replicas": 1}})
    equal("status", told["status"], {"phase": "afloat", "replicas": 1})
    scale = objects.get_namespaced_custom_object_scale(*at, "anna")
    scale["spec"]["replicas"] = 4
    objects.replace_namespaced_custom_object_scale(*at, "anna", scale)
    equal("replicas", objects.get_namespaced_custom_object(*at, "anna")["spec"]["replicas"], 4)
    for number in range(12):
        objects.create_namespaced_custom_object(*at, boat(f"boat-{number:02}"))
    names, more = [], None
    while more is None or more:
        page = objects.list_namespaced_custom_object(*at, limit=5, **({"_continue": more} if more else {}))
        names += [each["metadata"]["name"] for each in page["items"]]
        more = page["metadata"].get("continue", "")
    equal("pages", names, ["anna"] + [f"boat-{number:02}" for number in range(12)])
    equal("in Genoa", len(objects.list_namespaced_custom_object(*at, field_selector="spec.port=Genoa")["items"]), 1)
    objects.delete_collection_namespaced_custom_object(*at)
    equal("left", objects.list_namespaced_custom_object(*at)["items"], [])


@case("the dynamic client creates, patches, watches and deletes")
def dynamic():
    space, kind = namespace(), boats()
    version = kind.get(namespace=space).metadata.resourceVersion
    kind.create(body=boat("anna", 2), namespace=space)
    kind.patch(name="anna", namespace=space, body={"spec": {"sails": 3}}, content_type="application/merge-patch+json")
    kind.status.patch(name="anna", namespace=space, body={"status": {"phase": "afloat"}}, content_type="application/merge-patch+json")
    raises(exceptions.DynamicApiError, lambda: kind.patch(name="anna", namespace=space, body={}))
    equal("scale", kind.scale.get(name="anna", namespace=space).spec.replicas, 1)
    kind.delete(name="anna", namespace=space)
    seen = [(each["type"], each["object"].spec.sails, each["object"].to_dict().get("status"))
            for each in kind.watch(namespace=space, resource_version=version, timeout=1)]
    afloat = {"phase": "afloat"}
    equal("events", seen, [("ADDED", 2, None), ("MODIFIED", 3, None), ("MODIFIED", 3, afloat), ("DELETED", 3, afloat)])


@case("the dynamic client watches from the current state, up to its bookmark")
def initial():
    space, kind = namespace(), boats()
    kind.create(body=boat("anna"), namespace=space)
    seen = []
    for event in kind.watch(namespace=space, timeout=20, send_initial_events=True, allow_watch_bookmarks=True,
                            resource_version_match="NotOlderThan"):
        seen.append(event["type"])
        if event["type"] == "BOOKMARK":
            break
    equal("types", seen, ["ADDED", "BOOKMARK"])


@case("the dynamic client finds a kind that came later")
def later():
    dynamic = DynamicClient(client.ApiClient())
    raises(exceptions.ResourceNotFoundError, lambda: dynamic.resources.get(api_version="reef.example.com/v1", kind="Reef"))
    definition = yaml.safe_load(open(os.environ["DEFINITION"]))
    definition["metadata"]["name"] = "reefs.reef.example.com"
    definition["spec"].update(group="reef.example.com", names={"plural": "reefs", "kind": "Reef"})
    extensions.create_custom_resource_definition(definition)
    eventually(lambda: dynamic.resources.search(api_version="reef.example.com/v1", kind="Reef"))
    extensions.delete_custom_resource_definition("reefs.reef.example.com")


@case("two managers share a boat by apply")
def applied():
    space, kind = namespace(), boats()
    crew = lambda name, rank: boat("anna", crew=[{"name": name, "rank": rank}])
    kind.server_side_apply(body=crew("pip", "boy"), namespace=space, field_manager="first")
    both = kind.server_side_apply(body=crew("ahab", "captain"), namespace=space, field_manager="second")
    equal("crew", [each.name for each in both.spec.crew], ["pip", "ahab"])
    conflict = raises(exceptions.ConflictError, lambda: kind.server_side_apply(
        body=crew("ahab", "mate"), namespace=space, field_manager="third"))
    status = json.loads(conflict.body)
    equal("cause", status["details"]["causes"], [{
        "reason": "FieldManagerConflict", "message": 'conflict with "second"', "field": '.spec.crew[name="ahab"].rank'}])
    forced = kind.server_side_apply(body=crew("ahab", "mate"), namespace=space, field_manager="third", force_conflicts=True)
    equal("rank", forced.spec.crew[1].rank, "mate")
    left = kind.server_side_apply(body=boat("anna"), namespace=space, field_manager="first")
    equal("crew", [each.name for each in left.spec.crew], ["ahab"])


@case("refusals are the dynamic client's errors")
def refused():
    space, kind = namespace(), boats()
    raises(exceptions.NotFoundError, lambda: kind.get(name="none", namespace=space))
    made = kind.create(body=boat("anna"), namespace=space).to_dict()
    raises(exceptions.ConflictError, lambda: kind.create(body=boat("anna"), namespace=space))
    kind.replace(body={**made, "spec": {"sails": 2}}, namespace=space)
    raises(exceptions.ConflictError, lambda: kind.replace(body={**made, "spec": {"sails": 3}}, namespace=space))
    error = raises(exceptions.UnprocessibleEntityError, lambda: kind.create(body=boat("Anna", 21), namespace=space))
    fields = {each["field"] for each in json.loads(error.body)["details"]["causes"]}
    assert {"metadata.name", "spec.sails"} <= fields, fields
    error = raises(exceptions.UnprocessibleEntityError, lambda: kind.create(body=boat("berta", 2, crew=[{"name": "pip"}]), namespace=space))
    assert "every sail needs a hand" in json.loads(error.body)["message"], error.body
    raises(exceptions.BadRequestError, lambda: kind.get(namespace=space, field_selector="spec.sails=1"))
    unknown = raises(ApiException, lambda: objects.create_namespaced_custom_object(
        *GROUP, space, "boats", boat("berta", speck=1), field_validation="Strict"))
    equal("unknown field", unknown.status, 400)
    stranger = client.Configuration.get_default_copy()
    stranger.cert_file = stranger.key_file = None
    stranger.api_key = {"authorization": "Bearer unknown"}
    alien = client.CoreV1Api(client.ApiClient(stranger))
    equal("unknown", raises(ApiException, alien.list_namespace).status, 401)


def follow(space, stop, seen):
    """What a program does that must see every event: it resumes after the last one when the stream breaks."""
    at, kind, version = (*GROUP, space, "boats"), watch.Watch(), "0"
    while not stop.is_set():
        try:
            for event in kind.stream(objects.list_namespaced_custom_object, *at, resource_version=version, timeout_seconds=20):
                version = event["object"]["metadata"]["resourceVersion"]
                seen.put((event["type"], event["object"]["metadata"]["name"]))
                if stop.is_set():
                    return
        except (urllib3.exceptions.HTTPError, OSError):
            time.sleep(0.02)


def watched_over(how):
    at = (*GROUP, namespace(), "boats")
    seen, stop = queue.Queue(), threading.Event()
    threading.Thread(target=follow, args=(at[2], stop, seen), daemon=True).start()
    objects.create_namespaced_custom_object(*at, boat("before"))
    equal("first", seen.get(timeout=20), ("ADDED", "before"))
    end(how)
    objects.create_namespaced_custom_object(*at, boat("after"))
    objects.delete_namespaced_custom_object(*at, "before")
    equal("second", seen.get(timeout=20), ("ADDED", "after"))
    stop.set()
    equal("third", seen.get(timeout=20), ("DELETED", "before"))


@case("a watch goes on over a restart")
def restarted():
    watched_over("restart")


@case("a watch goes on over a crash")
def crashed():
    watched_over("kill")


@case("an informer lives over a restart and a crash")
def informed():
    space = namespace()
    core.create_namespaced_config_map(space, {"metadata": {"name": "first"}})
    informer = SharedInformer(core.list_namespaced_config_map, namespace=space)
    informer.start()
    keys = lambda: sorted(informer.cache.list_keys())
    eventually(lambda: keys() == [f"{space}/first"])
    for name, how in (("second", "restart"), ("third", "kill")):
        end(how)
        core.create_namespaced_config_map(space, {"metadata": {"name": name}})
    eventually(lambda: keys() == [f"{space}/{name}" for name in ("first", "second", "third")])
    core.delete_namespaced_config_map("first", space)
    eventually(lambda: keys() == [f"{space}/{name}" for name in ("second", "third")])
    informer.stop()


@case("a watch that has expired says so, and an informer lists anew")
def expired():
    space, seen, go_on = namespace(), queue.Queue(), threading.Event()
    first = core.create_namespaced_config_map(space, {"metadata": {"name": "first"}})
    informer = SharedInformer(list_func=core.list_namespaced_config_map, namespace=space)

    def told(what):
        def tell(found):
            seen.put((what, found.metadata.name))
            if found.metadata.name == "hold":
                go_on.wait()
        return tell

    informer.add_event_handler("ADDED", told("added"))
    informer.add_event_handler("DELETED", told("deleted"))
    informer.start()
    try:
        equal("first", seen.get(timeout=30), ("added", "first"))
        core.create_namespaced_config_map(space, {"metadata": {"name": "hold"}})
        equal("held", seen.get(timeout=30), ("added", "hold"))
        core.delete_namespaced_config_map("first", space)
        flood(space)
        core.create_namespaced_config_map(space, {"metadata": {"name": "late"}})
        go_on.set()
        eventually(lambda: sorted(each.metadata.name for each in informer.cache.list()) == ["hold", "late"])
        # stop() waits for ever on an informer between its list and its watch, so an event is seen first
        core.create_namespaced_config_map(space, {"metadata": {"name": "last"}})
        while seen.get(timeout=30) != ("added", "last"):
            pass
        informer.stop()
    finally:
        go_on.set()
    old = first.metadata.resource_version
    late = raises(ApiException, lambda: list(watch.Watch().stream(
        core.list_namespaced_config_map, space, resource_version=old, timeout_seconds=30)))
    assert late.status == 410 and "too old resource version" in late.reason, late


@case("a leader is elected by a lease")
def elected():
    space, led = namespace(), threading.Event()
    made = electionconfig.Config(LeaseLock("helm", space, "first"), lease_duration=15, renew_deadline=10, retry_period=1,
                                 onstarted_leading=led.set, onstopped_leading=None)
    threading.Thread(target=leaderelection.LeaderElection(made).run, daemon=True).start()
    assert led.wait(20), "nobody leads"
    lease = client.CoordinationV1Api().read_namespaced_lease("helm", space)
    equal("holder", lease.spec.holder_identity, "first")


@case("a definition is deleted, and its objects with it")
def undefine():
    extensions.delete_custom_resource_definition("boats.harbor.example.com")
    eventually(lambda: not extensions.list_custom_resource_definition().items)


if __name__ == "__main__":
    sys.exit(cases.run())
