"""Tests of the package `kubernetes` with Pintle: dynamic client, custom objects, typed APIs, watch, informer, apply, errors."""

import json
import logging
import os
import queue
import sys
import threading
import time

import cases
import urllib3
import yaml
from cases import case, equal, eventually, raises, restart_server
from kubernetes import client, config, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient, exceptions
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

GROUP = ("harbor.example.com", "v1")
config.load_kube_config(os.environ["KUBECONFIG"])
# informers log each refused connection while the server is down
logging.getLogger("kubernetes.informer").setLevel(logging.CRITICAL)
core, objects, extensions = client.CoreV1Api(), client.CustomObjectsApi(), client.ApiextensionsV1Api()


def create_namespace():
    return core.create_namespace({"metadata": {"generateName": "case-"}}).metadata.name


def boat(name, sails=1, **spec):
    return {"apiVersion": "/".join(GROUP), "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": sails, **spec}}


def boats():
    return DynamicClient(client.ApiClient()).resources.get(api_version="/".join(GROUP), kind="Boat")


def flood(ns):
    """Writes more history than the server keeps: creates and deletes 540 ConfigMaps."""
    data = {"key": "x" * 95_000}
    for number in range(540):
        core.create_namespaced_config_map(ns, {"metadata": {"name": f"flood-{number}", "labels": {"flood": ""}}, "data": data})
    core.delete_collection_namespaced_config_map(ns, label_selector="flood")


@case("a CRD is created from a file and becomes established")
def create_crd():
    utils.create_from_yaml(client.ApiClient(), os.environ["DEFINITION"])
    for event in watch.Watch().stream(extensions.list_custom_resource_definition, field_selector="metadata.name=boats.harbor.example.com", timeout_seconds=30):
        conditions = event["object"].status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in conditions):
            return
    raise AssertionError("the CRD is not established")


@case("ConfigMaps are created, replaced, patched, listed and deleted by the typed API")
def config_maps():
    ns = create_namespace()
    created = core.create_namespaced_config_map(
        ns, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings", labels={"tier": "front"}), data={"key": "value"})
    )
    assert created.metadata.uid and created.metadata.creation_timestamp.tzinfo
    created.data["more"] = "values"
    core.replace_namespaced_config_map("settings", ns, created)
    core.patch_namespaced_config_map("settings", ns, {"data": {"key": None}})
    core.patch_namespaced_config_map("settings", ns, [{"op": "add", "path": "/data/json", "value": "1"}])
    equal("data", core.read_namespaced_config_map("settings", ns).data, {"more": "values", "json": "1"})
    equal("stale", raises(ApiException, lambda: core.replace_namespaced_config_map("settings", ns, created)).status, 409)
    equal("selected", len(core.list_namespaced_config_map(ns, label_selector="tier=front").items), 1)
    core.delete_collection_namespaced_config_map(ns, label_selector="tier=front")
    equal("deleted", raises(ApiException, lambda: core.read_namespaced_config_map("settings", ns)).status, 404)


@case("custom objects are created, replaced, patched, scaled, listed and deleted")
def custom_objects():
    boats_path = (*GROUP, create_namespace(), "boats")
    created = objects.create_namespaced_custom_object(*boats_path, boat("anna", 2))
    equal("default", created["spec"]["port"], "Palos")
    created["spec"]["sails"] = 3
    equal("generation", objects.replace_namespaced_custom_object(*boats_path, "anna", created)["metadata"]["generation"], 2)
    objects.patch_namespaced_custom_object(*boats_path, "anna", {"spec": {"port": "Genoa"}})
    updated = objects.patch_namespaced_custom_object_status(*boats_path, "anna", {"status": {"phase": "afloat", "replicas": 1}})
    equal("status", updated["status"], {"phase": "afloat", "replicas": 1})
    scale = objects.get_namespaced_custom_object_scale(*boats_path, "anna")
    scale["spec"]["replicas"] = 4
    objects.replace_namespaced_custom_object_scale(*boats_path, "anna", scale)
    equal("replicas", objects.get_namespaced_custom_object(*boats_path, "anna")["spec"]["replicas"], 4)
    for number in range(12):
        objects.create_namespaced_custom_object(*boats_path, boat(f"boat-{number:02}"))
    names, token = [], None
    while token is None or token:
        page = objects.list_namespaced_custom_object(*boats_path, limit=5, **({"_continue": token} if token else {}))
        names += [each["metadata"]["name"] for each in page["items"]]
        token = page["metadata"].get("continue", "")
    equal("pages", names, ["anna"] + [f"boat-{number:02}" for number in range(12)])
    equal("selected by field", len(objects.list_namespaced_custom_object(*boats_path, field_selector="spec.port=Genoa")["items"]), 1)
    objects.delete_collection_namespaced_custom_object(*boats_path)
    equal("remaining", objects.list_namespaced_custom_object(*boats_path)["items"], [])


@case("the dynamic client creates, patches, watches and deletes")
def dynamic():
    ns, kind = create_namespace(), boats()
    version = kind.get(namespace=ns).metadata.resourceVersion
    kind.create(body=boat("anna", 2), namespace=ns)
    kind.patch(name="anna", namespace=ns, body={"spec": {"sails": 3}}, content_type="application/merge-patch+json")
    kind.status.patch(name="anna", namespace=ns, body={"status": {"phase": "afloat"}}, content_type="application/merge-patch+json")
    raises(exceptions.DynamicApiError, lambda: kind.patch(name="anna", namespace=ns, body={}))
    equal("scale", kind.scale.get(name="anna", namespace=ns).spec.replicas, 1)
    kind.delete(name="anna", namespace=ns)
    events = [
        (each["type"], each["object"].spec.sails, each["object"].to_dict().get("status"))
        for each in kind.watch(namespace=ns, resource_version=version, timeout=1)
    ]
    afloat = {"phase": "afloat"}
    equal("events", events, [("ADDED", 2, None), ("MODIFIED", 3, None), ("MODIFIED", 3, afloat), ("DELETED", 3, afloat)])


@case("the dynamic client receives initial events and their bookmark")
def initial_events():
    ns, kind = create_namespace(), boats()
    kind.create(body=boat("anna"), namespace=ns)
    types = []
    for event in kind.watch(namespace=ns, timeout=20, send_initial_events=True, allow_watch_bookmarks=True, resource_version_match="NotOlderThan"):
        types.append(event["type"])
        if event["type"] == "BOOKMARK":
            break
    equal("types", types, ["ADDED", "BOOKMARK"])


@case("the dynamic client finds the kind of a CRD that is created later")
def new_kind():
    dynamic = DynamicClient(client.ApiClient())
    raises(exceptions.ResourceNotFoundError, lambda: dynamic.resources.get(api_version="reef.example.com/v1", kind="Reef"))
    crd = yaml.safe_load(open(os.environ["DEFINITION"]))
    crd["metadata"]["name"] = "reefs.reef.example.com"
    crd["spec"].update(group="reef.example.com", names={"plural": "reefs", "kind": "Reef"})
    extensions.create_custom_resource_definition(crd)
    eventually(lambda: dynamic.resources.search(api_version="reef.example.com/v1", kind="Reef"))
    extensions.delete_custom_resource_definition("reefs.reef.example.com")


@case("two field managers apply parts of a custom resource")
def server_side_apply():
    ns, kind = create_namespace(), boats()
    with_crew = lambda name, rank: boat("anna", crew=[{"name": name, "rank": rank}])
    kind.server_side_apply(body=with_crew("pip", "boy"), namespace=ns, field_manager="first")
    both = kind.server_side_apply(body=with_crew("ahab", "captain"), namespace=ns, field_manager="second")
    equal("crew", [each.name for each in both.spec.crew], ["pip", "ahab"])
    conflict = raises(exceptions.ConflictError, lambda: kind.server_side_apply(body=with_crew("ahab", "mate"), namespace=ns, field_manager="third"))
    status = json.loads(conflict.body)
    equal(
        "cause", status["details"]["causes"], [{"reason": "FieldManagerConflict", "message": 'conflict with "second"', "field": '.spec.crew[name="ahab"].rank'}]
    )
    forced = kind.server_side_apply(body=with_crew("ahab", "mate"), namespace=ns, field_manager="third", force_conflicts=True)
    equal("rank", forced.spec.crew[1].rank, "mate")
    remaining = kind.server_side_apply(body=boat("anna"), namespace=ns, field_manager="first")
    equal("crew", [each.name for each in remaining.spec.crew], ["ahab"])


@case("rejected requests are exceptions of the dynamic client")
def errors():
    ns, kind = create_namespace(), boats()
    raises(exceptions.NotFoundError, lambda: kind.get(name="none", namespace=ns))
    stale = kind.create(body=boat("anna"), namespace=ns).to_dict()
    raises(exceptions.ConflictError, lambda: kind.create(body=boat("anna"), namespace=ns))
    kind.replace(body={**stale, "spec": {"sails": 2}}, namespace=ns)
    raises(exceptions.ConflictError, lambda: kind.replace(body={**stale, "spec": {"sails": 3}}, namespace=ns))
    error = raises(exceptions.UnprocessibleEntityError, lambda: kind.create(body=boat("Anna", 21), namespace=ns))
    fields = {each["field"] for each in json.loads(error.body)["details"]["causes"]}
    assert {"metadata.name", "spec.sails"} <= fields, fields
    error = raises(exceptions.UnprocessibleEntityError, lambda: kind.create(body=boat("berta", 2, crew=[{"name": "pip"}]), namespace=ns))
    assert "every sail needs a hand" in json.loads(error.body)["message"], error.body
    raises(exceptions.BadRequestError, lambda: kind.get(namespace=ns, field_selector="spec.sails=1"))
    unknown = raises(ApiException, lambda: objects.create_namespaced_custom_object(*GROUP, ns, "boats", boat("berta", speck=1), field_validation="Strict"))
    equal("unknown field", unknown.status, 400)
    configuration = client.Configuration.get_default_copy()
    configuration.cert_file = configuration.key_file = None
    configuration.api_key = {"authorization": "Bearer unknown"}
    unauthenticated = client.CoreV1Api(client.ApiClient(configuration))
    equal("unknown token", raises(ApiException, unauthenticated.list_namespace).status, 401)


def watch_boats(ns, stop, events):
    """Puts every event into a queue. Resumes the watch after the last event when the connection breaks."""
    boats_path, watcher, version = (*GROUP, ns, "boats"), watch.Watch(), "0"
    while not stop.is_set():
        try:
            for event in watcher.stream(objects.list_namespaced_custom_object, *boats_path, resource_version=version, timeout_seconds=20):
                version = event["object"]["metadata"]["resourceVersion"]
                events.put((event["type"], event["object"]["metadata"]["name"]))
                if stop.is_set():
                    return
        except (urllib3.exceptions.HTTPError, OSError):
            time.sleep(0.02)


def watch_resumes(command):
    boats_path = (*GROUP, create_namespace(), "boats")
    events, stop = queue.Queue(), threading.Event()
    threading.Thread(target=watch_boats, args=(boats_path[2], stop, events), daemon=True).start()
    objects.create_namespaced_custom_object(*boats_path, boat("before"))
    equal("first", events.get(timeout=20), ("ADDED", "before"))
    restart_server(command)
    objects.create_namespaced_custom_object(*boats_path, boat("after"))
    objects.delete_namespaced_custom_object(*boats_path, "before")
    equal("second", events.get(timeout=20), ("ADDED", "after"))
    stop.set()
    equal("third", events.get(timeout=20), ("DELETED", "before"))


@case("a watch resumes after a restart of the server")
def watch_restart():
    watch_resumes("restart")


@case("a watch resumes after a crash of the server")
def watch_crash():
    watch_resumes("kill")


@case("an informer survives a restart and a crash of the server")
def informer_restarts():
    ns = create_namespace()
    core.create_namespaced_config_map(ns, {"metadata": {"name": "first"}})
    informer = SharedInformer(core.list_namespaced_config_map, namespace=ns)
    informer.start()
    keys = lambda: sorted(informer.cache.list_keys())
    eventually(lambda: keys() == [f"{ns}/first"])
    for name, command in (("second", "restart"), ("third", "kill")):
        restart_server(command)
        core.create_namespaced_config_map(ns, {"metadata": {"name": name}})
    eventually(lambda: keys() == [f"{ns}/{name}" for name in ("first", "second", "third")])
    core.delete_namespaced_config_map("first", ns)
    eventually(lambda: keys() == [f"{ns}/{name}" for name in ("second", "third")])
    informer.stop()


@case("a watch expires with status 410, and an informer relists")
def watch_expires():
    ns, events, resume = create_namespace(), queue.Queue(), threading.Event()
    first = core.create_namespaced_config_map(ns, {"metadata": {"name": "first"}})
    informer = SharedInformer(list_func=core.list_namespaced_config_map, namespace=ns)

    def handler(kind):
        def handle(config_map):
            events.put((kind, config_map.metadata.name))
            if config_map.metadata.name == "hold":
                resume.wait()

        return handle

    informer.add_event_handler("ADDED", handler("added"))
    informer.add_event_handler("DELETED", handler("deleted"))
    informer.start()
    try:
        equal("first", events.get(timeout=30), ("added", "first"))
        core.create_namespaced_config_map(ns, {"metadata": {"name": "hold"}})
        equal("second", events.get(timeout=30), ("added", "hold"))
        core.delete_namespaced_config_map("first", ns)
        flood(ns)
        core.create_namespaced_config_map(ns, {"metadata": {"name": "late"}})
        resume.set()
        eventually(lambda: sorted(each.metadata.name for each in informer.cache.list()) == ["hold", "late"])
        # stop() never returns between the list and the watch of an informer, so an event is awaited first
        core.create_namespaced_config_map(ns, {"metadata": {"name": "last"}})
        while events.get(timeout=30) != ("added", "last"):
            pass
        informer.stop()
    finally:
        resume.set()
    old_version = first.metadata.resource_version
    expired = raises(ApiException, lambda: list(watch.Watch().stream(core.list_namespaced_config_map, ns, resource_version=old_version, timeout_seconds=30)))
    assert expired.status == 410 and "too old resource version" in expired.reason, expired


@case("a leader is elected by a Lease")
def leader_election():
    ns, leading = create_namespace(), threading.Event()
    election = electionconfig.Config(
        LeaseLock("helm", ns, "first"), lease_duration=15, renew_deadline=10, retry_period=1, onstarted_leading=leading.set, onstopped_leading=None
    )
    threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True).start()
    assert leading.wait(20), "no leader was elected"
    lease = client.CoordinationV1Api().read_namespaced_lease("helm", ns)
    equal("holder", lease.spec.holder_identity, "first")


@case("a CRD is deleted")
def delete_crd():
    extensions.delete_custom_resource_definition("boats.harbor.example.com")
    eventually(lambda: not extensions.list_custom_resource_definition().items)


if __name__ == "__main__":
    sys.exit(cases.run())
