"""Copies ConfigMaps with the label example.com/mirror=true into every namespace with that label, and removes copies whose source is gone.

python mirror.py    one pass over the cluster of the current kubeconfig
"""

from collections.abc import Callable
from typing import Any

from kubernetes import client, config

LABEL = "example.com/mirror=true"
COPY = "example.com/copy"
# an annotation, since the value of a label has at most 63 characters
SOURCE = "example.com/copy-of"


def mirror(api: client.CoreV1Api) -> list[str]:
    """One pass. Returns a line for each ConfigMap that it has changed, or could not change."""
    sources: list[Any] = api.list_config_map_for_all_namespaces(label_selector=LABEL).items
    labelled: list[Any] = api.list_namespace(label_selector=LABEL).items
    namespaces = [found.metadata.name for found in labelled]
    copies: list[Any] = api.list_config_map_for_all_namespaces(label_selector=COPY).items
    stale = {(found.metadata.namespace, found.metadata.name): found for found in copies}
    done: list[str] = []
    for source in sorted(sources, key=lambda found: (found.metadata.namespace, found.metadata.name)):
        for namespace in namespaces:
            if namespace != source.metadata.namespace:
                existing = stale.pop((namespace, source.metadata.name), None)
                done += attempt(copy, api, source, namespace, existing)
    for namespace, name in sorted(stale):
        done += attempt(delete, api, namespace, name)
    return done


def attempt(change: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """What a change says. One that is refused is left to the next pass, and does not keep the others from being made."""
    try:
        return change(*arguments)
    except client.ApiException as error:
        return [f"{change.__name__} refused: {error.reason}"]


def copy(api: client.CoreV1Api, source: Any, namespace: str, existing: Any) -> list[str]:
    name, origin = source.metadata.name, f"{source.metadata.namespace}/{source.metadata.name}"
    metadata = client.V1ObjectMeta(name=name, labels={COPY: "true"}, annotations={SOURCE: origin})
    wanted = client.V1ConfigMap(metadata=metadata, data=source.data)
    if existing is None:
        api.create_namespaced_config_map(namespace, wanted)
        return [f"created {namespace}/{name}"]
    if (existing.data, existing.metadata.annotations.get(SOURCE)) == (source.data, origin):
        return []
    # what has changed since it was read is not overwritten
    metadata.resource_version = existing.metadata.resource_version
    api.replace_namespaced_config_map(name, namespace, wanted)
    return [f"updated {namespace}/{name}"]


def delete(api: client.CoreV1Api, namespace: str, name: str) -> list[str]:
    api.delete_namespaced_config_map(name, namespace)
    return [f"deleted {namespace}/{name}"]


if __name__ == "__main__":
    config.load_config()
    print("\n".join(mirror(client.CoreV1Api())))
