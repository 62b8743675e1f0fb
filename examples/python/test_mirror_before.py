"""The same tests as they were with a fake of the client, which has to be written, and which knows only what its author knew."""

import copy

import pytest
from kubernetes import client

from mirror import mirror

MIRRORED = {"example.com/mirror": "true"}


def refused(status, reason):
    return client.ApiException(status=status, reason=reason)


class Fake:
    """The part of CoreV1Api that the program uses."""

    def __init__(self):
        self.namespaces, self.config_maps, self.version = {}, {}, 0
        # the error of the next write of a method
        self.errors = {}

    def list_namespace(self, label_selector=""):
        return client.V1NamespaceList(items=copy.deepcopy([one for one in self.namespaces.values() if selected(one, label_selector)]))

    def list_config_map_for_all_namespaces(self, label_selector=""):
        return client.V1ConfigMapList(items=copy.deepcopy([one for one in self.config_maps.values() if selected(one, label_selector)]))

    def create_namespace(self, namespace):
        self.namespaces[namespace.metadata.name] = namespace

    def create_namespaced_config_map(self, namespace, body):
        self.fail("create")
        if namespace not in self.namespaces:
            raise refused(404, "Not Found")
        if (namespace, body.metadata.name) in self.config_maps:
            raise refused(409, "Conflict")
        if self.namespaces[namespace].metadata.deletion_timestamp:
            raise refused(403, "Forbidden")
        return self.store(namespace, body)

    def replace_namespaced_config_map(self, name, namespace, body):
        self.fail("replace")
        if (namespace, name) not in self.config_maps:
            raise refused(404, "Not Found")
        current = self.config_maps[namespace, name].metadata.resource_version
        if body.metadata.resource_version not in (None, current):
            raise refused(409, "Conflict")
        return self.store(namespace, body)

    def delete_namespaced_config_map(self, name, namespace):
        if (namespace, name) not in self.config_maps:
            raise refused(404, "Not Found")
        del self.config_maps[namespace, name]

    def store(self, namespace, body):
        self.version += 1
        stored = copy.deepcopy(body)
        stored.metadata.namespace, stored.metadata.resource_version = namespace, str(self.version)
        self.config_maps[namespace, body.metadata.name] = stored
        return copy.deepcopy(stored)

    def fail(self, method):
        if method in self.errors:
            raise self.errors[method]


def selected(one, selector):
    key, _, value = selector.partition("=")
    labels = one.metadata.labels or {}
    return not selector or (labels.get(key) == value if value else key in labels)


@pytest.fixture
def api():
    api = Fake()
    for name, labels in (("default", {}), ("blue", MIRRORED), ("green", MIRRORED), ("red", {})):
        api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels=labels)))
    create(api, "settings", "default", MIRRORED)
    return api


def create(api, name, namespace, labels=None):
    metadata = client.V1ObjectMeta(name=name, labels=labels)
    return api.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata, data={"text": "a"}))


def texts(api, name="settings"):
    return {found.metadata.namespace: found.data["text"] for found in api.list_config_map_for_all_namespaces().items if found.metadata.name == name}


def test_copies_are_in_labelled_namespaces(api):
    assert mirror(api) == ["created blue/settings", "created green/settings"]
    assert texts(api) == {"default": "a", "blue": "a", "green": "a"}
    assert mirror(api) == []


def test_copies_follow_their_source(api):
    mirror(api)
    api.config_maps["default", "settings"].data["text"] = "b"
    assert mirror(api) == ["updated blue/settings", "updated green/settings"]
    assert texts(api) == {"default": "b", "blue": "b", "green": "b"}


def test_copies_end_with_their_source(api):
    mirror(api)
    api.delete_namespaced_config_map("settings", "default")
    assert mirror(api) == ["deleted blue/settings", "deleted green/settings"]
    assert texts(api) == {}


def test_copies_end_with_the_label_of_their_namespace(api):
    mirror(api)
    api.namespaces["green"].metadata.labels = {}
    assert mirror(api) == ["deleted green/settings"]


def test_what_others_have_made_stays(api):
    create(api, "settings", "blue")
    assert mirror(api) == ["copy refused: Conflict", "created green/settings"]


def test_long_names(api):
    """Would pass as well with the source in a label, which no API server accepts: the fake does not validate."""
    create(api, "x" * 200, "default", MIRRORED)
    mirror(api)
    assert set(texts(api, "x" * 200)) == {"default", "blue", "green"}


def test_namespaces_that_are_being_deleted(api):
    api.namespaces["blue"].metadata.deletion_timestamp = "2030-01-01T00:00:00Z"
    assert mirror(api) == ["copy refused: Forbidden", "created green/settings"]


def test_copies_that_change_meanwhile(api):
    mirror(api)
    api.config_maps["default", "settings"].data["text"] = "b"
    api.errors["replace"] = refused(409, "Conflict")
    assert mirror(api) == ["copy refused: Conflict", "copy refused: Conflict"]
    api.errors.clear()
    mirror(api)
    assert texts(api) == {"default": "b", "blue": "b", "green": "b"}
