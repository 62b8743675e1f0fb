"""Writers that know which states their objects may be in, and a watch that resumes where it was interrupted."""
import http.client
import json
import random
from urllib.parse import urlparse

from pintle import TOKEN, insecure

MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """One connection, which fails when the server ends."""

    def __init__(self, server, timeout=60):
        url = urlparse(server.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=timeout)

    def send(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
        self.connection.request(method, path, body=body and json.dumps(body), headers=headers)
        return self.connection.getresponse()

    def ask(self, method, path, body=None):
        answer = self.send(method, path, body)
        return answer.status, json.loads(answer.read())


class Writer:
    """Creates, replaces and deletes its own objects; `may` has the possible versions of each, None for absent."""

    def __init__(self, number, seed):
        self.prefix, self.random = f"writer-{number}", random.Random(seed)
        self.made, self.may, self.acknowledged, self.failure = 0, {}, [], None

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
        # the outcome of other writes is unknown
        live = [name for name, may in self.may.items() if len(may) == 1 and may != {None}]
        name = self.random.choice(live) if live and self.random.random() < 0.7 else None
        if name is None:
            name = f"{self.prefix}-{self.made}"
            self.made += 1
            self.change(client, name, {None}, "POST", MAPS, self.body(name, None))
            return
        (version,) = self.may[name]
        if self.random.random() < 0.3:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}}
            self.change(client, name, {version}, "DELETE", f"{MAPS}/{name}", options)
        else:
            self.change(client, name, {version}, "PUT", f"{MAPS}/{name}", self.body(name, version))

    def body(self, name, version):
        metadata = {"name": name, **({"resourceVersion": version} if version else {})}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": str(self.random.random())}}

    def change(self, client, name, before, method, path, body):
        # until there is a response, the write may have happened under an unknown version
        self.may[name] = before | ({None} if method == "DELETE" else {"?"})
        status, answer = client.ask(method, path, body)
        assert status in (200, 201), (method, path, status, answer)
        if method == "DELETE":
            self.may[name] = {None}
        else:
            version = answer["metadata"]["resourceVersion"]
            self.may[name] = {version}
            self.acknowledged.append(int(version))

    def settle(self, found, before):
        """Compares the stored objects with `may`; `before` is a version older than all uncertain writes."""
        for name, may in self.may.items():
            version = found.get(name)
            unknown = "?" in may and version is not None and int(version) > before
            assert version in may or unknown, f"{name} is at {version}, which may only be {may}"
            self.may[name] = {version}
        self.may = {name: may for name, may in self.may.items() if may != {None}}


class ResumingWatch:
    """All events of all objects, across crashes: the watch is resumed from the last received event."""

    def __init__(self, version):
        self.seen, self.state, self.version, self.failure = set(), {}, int(version), None
        # the content of each write, and the names of deleted objects: neither may be delivered twice
        self.texts, self.gone = set(), set()

    def run(self, server, until=None):
        try:
            answer = Client(server).send("GET", f"{MAPS}?watch=1&resourceVersion={self.version}")
            assert answer.status == 200, answer.read()
            for line in answer:
                if not line.endswith(b"\n"):
                    return
                self.take(json.loads(line))
                if until is not None and self.version >= until:
                    return
        except AssertionError as error:
            self.failure = error
        except (OSError, http.client.HTTPException):
            return

    def take(self, event):
        metadata = event["object"]["metadata"]
        assert event["type"] != "ERROR", event
        version = int(metadata["resourceVersion"])
        assert version > self.version, f"{event['type']} at {version} after {self.version}"
        self.version = version
        self.seen.add(version)
        known = metadata["name"] in self.state
        assert known == (event["type"] != "ADDED"), (event["type"], metadata)
        assert metadata["name"] not in self.gone, f"{metadata['name']} is back at {version}"
        if event["type"] == "DELETED":
            del self.state[metadata["name"]]
            self.gone.add(metadata["name"])
            return
        self.state[metadata["name"]] = metadata["resourceVersion"]
        text = event["object"].get("data", {}).get("n")
        assert text is None or text not in self.texts, f"what was written once is there again at {version}"
        self.texts.add(text)
