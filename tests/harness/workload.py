"""Writers that track the possible states of their objects, and a watch that resumes where it was interrupted."""

import http.client
import json
import random
from urllib.parse import urlparse

from objects import MAPS
from pintle import TOKEN, insecure


class Client:
    """A client with one connection, which fails when the server ends."""

    def __init__(self, server, timeout=60):
        url = urlparse(server.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=timeout)

    def send(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
        self.connection.request(method, path, body=body and json.dumps(body), headers=headers)
        return self.connection.getresponse()

    def request(self, method, path, body=None):
        response = self.send(method, path, body)
        return response.status, json.loads(response.read())


class Writer:
    """Creates, replaces and deletes its own objects. `possible` has the set of possible resourceVersions of each: None if it may be
    absent, "?" if a write without a response may have created or replaced it."""

    def __init__(self, number, seed):
        self.prefix, self.random = f"writer-{number}", random.Random(seed)
        self.created, self.possible, self.acknowledged, self.failure = 0, {}, [], None

    def run(self, server, stop):
        client = Client(server)
        try:
            while not stop.is_set():
                self.write(client)
        except AssertionError as error:
            self.failure = error
        except (OSError, http.client.HTTPException, ValueError):
            return

    def write(self, client):
        # objects whose state is certain
        live = [name for name, versions in self.possible.items() if len(versions) == 1 and versions != {None}]
        name = self.random.choice(live) if live and self.random.random() < 0.7 else None
        if name is None:
            name = f"{self.prefix}-{self.created}"
            self.created += 1
            self.change(client, name, {None}, "POST", MAPS, self.body(name, None))
            return
        (version,) = self.possible[name]
        if self.random.random() < 0.3:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}}
            self.change(client, name, {version}, "DELETE", f"{MAPS}/{name}", options)
        else:
            self.change(client, name, {version}, "PUT", f"{MAPS}/{name}", self.body(name, version))

    def body(self, name, version):
        metadata = {"name": name, **({"resourceVersion": version} if version else {})}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": str(self.random.random())}}

    def change(self, client, name, before, method, path, body):
        # until there is a response, the write may have succeeded with an unknown version
        self.possible[name] = before | ({None} if method == "DELETE" else {"?"})
        status, response = client.request(method, path, body)
        assert status in (200, 201), (method, path, status, response)
        if method == "DELETE":
            self.possible[name] = {None}
        else:
            version = response["metadata"]["resourceVersion"]
            self.possible[name] = {version}
            self.acknowledged.append(int(version))

    def settle(self, stored, before):
        """Checks that the stored objects are possible; `before` is a version older than all uncertain writes."""
        for name, versions in self.possible.items():
            version = stored.get(name)
            unknown = "?" in versions and version is not None and int(version) > before
            assert version in versions or unknown, f"{name} is at {version}, possible are {versions}"
            self.possible[name] = {version}
        self.possible = {name: versions for name, versions in self.possible.items() if versions != {None}}


class ResumingWatch:
    """All events of all objects, across crashes: the watch is resumed from the last received event."""

    def __init__(self, version):
        self.delivered, self.state, self.version, self.failure = set(), {}, int(version), None
        # the content of each write, and the names of deleted objects: neither may appear again
        self.texts, self.deleted = set(), set()

    def run(self, server, until=None):
        try:
            response = Client(server).send("GET", f"{MAPS}?watch=1&resourceVersion={self.version}")
            assert response.status == 200, response.read()
            for line in response:
                if not line.endswith(b"\n"):
                    return
                self.check(json.loads(line))
                if until is not None and self.version >= until:
                    return
        except AssertionError as error:
            self.failure = error
        except (OSError, http.client.HTTPException):
            return

    def check(self, event):
        metadata = event["object"]["metadata"]
        assert event["type"] != "ERROR", event
        version = int(metadata["resourceVersion"])
        assert version > self.version, f"{event['type']} at {version} after {self.version}"
        self.version = version
        self.delivered.add(version)
        known = metadata["name"] in self.state
        assert known == (event["type"] != "ADDED"), (event["type"], metadata)
        assert metadata["name"] not in self.deleted, f"the deleted {metadata['name']} has an event at {version}"
        if event["type"] == "DELETED":
            del self.state[metadata["name"]]
            self.deleted.add(metadata["name"])
            return
        self.state[metadata["name"]] = metadata["resourceVersion"]
        text = event["object"].get("data", {}).get("n")
        assert text is None or text not in self.texts, f"the content of an earlier write appears again at {version}"
        self.texts.add(text)
