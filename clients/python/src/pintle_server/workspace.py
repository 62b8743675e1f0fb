"""A workspace: an API of its own."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import time
from typing import TYPE_CHECKING, Any

from . import binary
from .aio import AsyncWorkspace
from .clock import Clock
from .errors import PintleError, ResponseError

if TYPE_CHECKING:
    import kr8s
    import kubernetes
    import lightkube

    from .server import Server

WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces"
TESTING_VERSION = "testing.pintle.dev/v1alpha1"
TESTING = f"/apis/{TESTING_VERSION}"
APPLY = "?fieldManager=pintle-server&force=true"
# of the changes of a workspace
DIFF_SECONDS, DIFF_LINES = 10, 50
# what others need is applied first
FIRST = ("Namespace", "CustomResourceDefinition")


class Workspace:
    """A workspace of a server: `name`, `url`, `clock`, and `aio`, which has its methods as coroutines."""

    def __init__(self, server: Server, name: str, uid: str = "") -> None:
        self.server, self.name, self.uid = server, name, uid
        self.prefix = f"/clusters/{name}.{uid}" if uid else f"/clusters/{name}"
        self.url = server.url + self.prefix
        self.clock = Clock(self)
        self.aio = AsyncWorkspace(self)
        self._kubeconfig: str | None = None
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """A request to the API of the workspace; errors of the API are `ResponseError`."""
        return self.server.client.request(method, self.prefix + path, body, content_type)

    def patch(self, patch: dict[str, Any]) -> Any:
        """A merge patch of the object that stands for the workspace."""
        patch = {"metadata": {"uid": self.uid}, **patch} if self.uid else patch
        return self.server.client.request("PATCH", f"{WORKSPACES}/{self.name}", patch, "application/merge-patch+json")

    def fork(self, name: str | None = None, **spec: Any) -> Workspace:
        """A workspace that begins with everything in this one."""
        return self.server.workspace(name, **{"from": {"workspace": self.name}, **spec})

    def reset(self) -> None:
        """Puts the workspace back to what it began as. Its watches end."""
        # it is done when the response comes
        self.patch({"spec": {"reset": str(time.time_ns())}})

    def delete(self) -> None:
        """Deletes the workspace, with all that is in it."""
        try:
            self.server.client.request("DELETE", f"{WORKSPACES}/{self.name}", {"preconditions": {"uid": self.uid}} if self.uid else None)
        except ResponseError as error:
            # it is gone, and another one may have its name
            if error.code not in (404, 409):
                raise
        if self._kubeconfig:
            pathlib.Path(self._kubeconfig).unlink(missing_ok=True)
            self._kubeconfig = None

    def fault(self, recipe: str | None = None, name: str | None = None, **spec: Any) -> Fault:
        """Makes requests or events of this workspace fail: a recipe, or `match`, `when` and `effect` of a `Fault`. In a `with`
        statement, or until `delete` of what is returned; see https://github.com/pintle/pintle/blob/main/docs/src/reference/testing-api.md."""
        name = name or f"fault-{time.time_ns()}"
        spec = {**spec, **({"recipe": recipe} if recipe else {})}
        self.request("POST", f"{TESTING}/faults", {"apiVersion": TESTING_VERSION, "kind": "Fault", "metadata": {"name": name}, "spec": spec})
        return Fault(self, name)

    def settle(self, quiet: str = "100ms", timeout: str = "20s", **spec: Any) -> None:
        """Returns when every watch has received everything and nothing is written any more; otherwise it raises with who is behind."""
        spec = {"quiet": quiet, "timeout": timeout, **spec}
        settle = self.request("POST", f"{TESTING}/settles", {"apiVersion": TESTING_VERSION, "kind": "Settle", "metadata": {"name": "now"}, "spec": spec})
        if not settle["status"].get("settled"):
            raise PintleError(f"not settled: {settle['status'].get('message')}")

    def report(self) -> Any:
        """What each client has done, and what of it is suspicious: the `status` of a `Report`."""
        report = {"apiVersion": TESTING_VERSION, "kind": "Report", "metadata": {"name": "now"}, "spec": {}}
        return self.request("POST", f"{TESTING}/reports", report)["status"]

    def changes(self) -> str:
        """The objects that were created, changed or deleted since the workspace began, one a line."""
        command = [binary.find(), "workspace", "diff", self.name, "--kubeconfig", self.server.kubeconfig()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DIFF_SECONDS, check=True)
        except subprocess.CalledProcessError as error:
            raise PintleError(error.stderr.strip()) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PintleError(str(error)) from None
        lines = done.stdout.splitlines()
        return "\n".join([*lines[:DIFF_LINES], "..."] if len(lines) > DIFF_LINES else lines)

    def kubeconfig_content(self) -> dict[str, Any]:
        """A kubeconfig as a dictionary."""
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in self.server.credentials.items()}
        cluster = {"server": self.url, "certificate-authority-data": encoded["certificateAuthority"]}
        user = {"client-certificate-data": encoded["certificate"], "client-key-data": encoded["key"]}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name, "namespace": "default"}}],
        }

    def kubeconfig(self) -> str:
        """The path of a kubeconfig, which exists as long as the server."""
        if not self._kubeconfig:
            path = self.server.data / f"{self.name}.kubeconfig"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump(self.kubeconfig_content(), file)
            self._kubeconfig = str(path)
        return self._kubeconfig

    def apply(self, *paths: str | os.PathLike[str]) -> list[Any]:
        """Applies manifests, server-side: files, or directories with everything below them. Returns the objects."""
        objects = [found for path in paths for found in manifests(pathlib.Path(path))]
        objects.sort(key=lambda found: FIRST.index(found.get("kind")) if found.get("kind") in FIRST else len(FIRST))
        return [self.apply_object(found) for found in objects]

    def apply_object(self, found: dict[str, Any]) -> Any:
        """Applies one object, a dictionary."""
        version, metadata = found["apiVersion"], found["metadata"]
        plural, namespaced = self._plural(version, found["kind"])
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        path = f"{base}{place}/{plural}/{metadata['name']}{APPLY}"
        return self.request("PATCH", path, found, "application/apply-patch+yaml")

    def _plural(self, version: str, kind: str) -> tuple[str, bool]:
        """The plural of a kind, and whether it is namespaced."""
        if (version, kind) not in self._plurals:
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                listed = self.request("GET", path)["resources"]
            except ResponseError as error:
                if error.code != 404:
                    raise
                listed = []
            own = {(version, row["kind"]): (row["name"], row["namespaced"]) for row in listed if "/" not in row["name"]}
            if (version, kind) not in own:
                raise PintleError(f"no matches for kind {kind!r} in version {version!r}: apply its CustomResourceDefinition first")
            self._plurals.update(own)
        return self._plurals[version, kind]

    def kubernetes(self) -> kubernetes.client.ApiClient:
        """An `ApiClient` of the package kubernetes."""
        from kubernetes import client, config

        configuration = client.Configuration()
        config.load_kube_config_from_dict(self.kubeconfig_content(), client_configuration=configuration)
        configuration.proxy = configuration.no_proxy = None
        return client.ApiClient(configuration)

    def kr8s(self) -> kr8s.Api:
        """An API of the package kr8s."""
        import kr8s

        return kr8s.api(kubeconfig=self.kubeconfig())

    def lightkube(self, **options: Any) -> lightkube.Client:
        """A `Client` of the package lightkube."""
        from lightkube import Client, KubeConfig

        return Client(config=KubeConfig.from_dict(self.kubeconfig_content()), trust_env=False, **options)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()


class Fault:
    """A fault that is in effect: `name`."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace, self.name = workspace, name

    def hits(self) -> int:
        """The number of requests and events that it has hit."""
        return int(self.workspace.request("GET", f"{TESTING}/faults/{self.name}").get("status", {}).get("hits", 0))

    def delete(self) -> None:
        """Ends its effect."""
        self.workspace.request("DELETE", f"{TESTING}/faults/{self.name}")

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()


def manifests(path: pathlib.Path) -> list[dict[str, Any]]:
    """The objects in a file, or in the files below a directory, by name."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml", ".json") and file.is_file())
        if not files:
            raise PintleError(f"{path} has no file that ends with .yaml, .yml or .json")
        return [found for file in files for found in manifests(file)]
    documents = decoded(path)
    return [item for document in documents if document for item in (document["items"] if document.get("kind") == "List" else [document])]


def decoded(path: pathlib.Path) -> list[Any]:
    # whatever the locale is
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        try:
            return [json.loads(text)]
        except ValueError as error:
            raise PintleError(f"{path}: {error}") from None
    try:
        import yaml
    except ImportError:
        raise PintleError(f"{path} is YAML, and PyYAML is not installed: pip install PyYAML") from None
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise PintleError(f"{place}: {getattr(error, 'problem', None) or error}") from None
