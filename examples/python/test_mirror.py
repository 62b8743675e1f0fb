"""The tests of mirror.py, each on an API of its own."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from kubernetes import client

from mirror import mirror
from pintle_server import Workspace

MIRRORED = {"example.com/mirror": "true"}


@pytest.fixture(scope="session")
def pintle_build() -> Callable[[Workspace], None]:
    """What each test begins with."""

    def build(workspace: Workspace) -> None:
        api = client.CoreV1Api(workspace.kubernetes())
        for name, labels in (("blue", MIRRORED), ("green", MIRRORED), ("red", {})):
            api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels=labels)))
        create(api, "settings", "default", MIRRORED)

    return build


@pytest.fixture
def api(pintle_workspace: Workspace) -> client.CoreV1Api:
    return client.CoreV1Api(pintle_workspace.kubernetes())


def create(api: client.CoreV1Api, name: str, namespace: str, labels: dict[str, str] | None = None, **fields: Any) -> Any:
    metadata = client.V1ObjectMeta(name=name, labels=labels, **fields)
    return api.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata, data={"text": "a"}))


def texts(api: client.CoreV1Api, name: str = "settings") -> dict[str, str]:
    maps: list[Any] = api.list_config_map_for_all_namespaces().items
    return {found.metadata.namespace: found.data["text"] for found in maps if found.metadata.name == name}


def test_copies_are_in_labelled_namespaces(api: client.CoreV1Api) -> None:
    assert mirror(api) == ["created blue/settings", "created green/settings"]
    assert texts(api) == {"default": "a", "blue": "a", "green": "a"}
    assert mirror(api) == []


def test_copies_follow_their_source(api: client.CoreV1Api) -> None:
    mirror(api)
    api.patch_namespaced_config_map("settings", "default", {"data": {"text": "b"}})
    assert mirror(api) == ["updated blue/settings", "updated green/settings"]
    assert texts(api) == {"default": "b", "blue": "b", "green": "b"}


def test_copies_end_with_their_source(api: client.CoreV1Api) -> None:
    mirror(api)
    api.delete_namespaced_config_map("settings", "default")
    assert mirror(api) == ["deleted blue/settings", "deleted green/settings"]
    assert texts(api) == {}


def test_copies_end_with_the_label_of_their_namespace(api: client.CoreV1Api) -> None:
    mirror(api)
    api.patch_namespace("green", {"metadata": {"labels": {"example.com/mirror": None}}})
    assert mirror(api) == ["deleted green/settings"]


def test_what_others_have_made_stays(api: client.CoreV1Api) -> None:
    create(api, "settings", "blue")
    assert mirror(api) == ["copy refused: Conflict", "created green/settings"]


def test_long_names(api: client.CoreV1Api) -> None:
    create(api, "x" * 200, "default", MIRRORED)
    mirror(api)
    assert set(texts(api, "x" * 200)) == {"default", "blue", "green"}


def test_namespaces_that_are_being_deleted(api: client.CoreV1Api) -> None:
    create(api, "holds", "blue", finalizers=["example.com/hold"])
    api.delete_namespace("blue")
    assert mirror(api) == ["copy refused: Forbidden", "created green/settings"]


def test_copies_that_change_meanwhile(api: client.CoreV1Api, pintle_workspace: Workspace) -> None:
    mirror(api)
    api.patch_namespaced_config_map("settings", "default", {"data": {"text": "b"}})
    with pintle_workspace.fault(match={"verbs": ["update"]}, effect={"error": {"code": 409}}):
        assert mirror(api) == ["copy refused: Conflict", "copy refused: Conflict"]
    mirror(api)
    assert texts(api) == {"default": "b", "blue": "b", "green": "b"}


def test_responses_that_are_lost(api: client.CoreV1Api, pintle_workspace: Workspace) -> None:
    """The copy is there, although the client knows only that its connection has ended."""
    with pintle_workspace.fault(match={"verbs": ["create"]}, effect={"afterCommit": "Reset"}):
        with pytest.raises(urllib3.exceptions.HTTPError):
            mirror(api)
    assert texts(api) == {"default": "a", "blue": "a"}
    assert mirror(api) == ["created green/settings"]
