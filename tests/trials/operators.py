"""What the controllers of this folder share: caches that follow watches as informers do, and a loop that reconciles.

Each controller re-creates a published defect of an operator in a few lines. Members stand for Pods and StatefulSets, volumes for
PersistentVolumeClaims. `pintle trial NAME.yaml` shows the defect.
"""

import base64
import http.client
import json
import os
import queue
import ssl
import sys
import threading
import time
from urllib.parse import urlparse

BASE = "/apis/example.com/v1/namespaces/default/"


class Failed(Exception):
    """A request that got an error, or no response at all."""


class Operator:
    """A client with a cache of each watched resource."""

    def __init__(self, *watched):
        with open(os.environ["KUBECONFIG"]) as file:
            config = json.load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urlparse(cluster["server"])
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        program = os.path.basename(sys.argv[0]).removesuffix(".py")
        self.headers = {"Authorization": "Bearer " + user["token"], "Content-Type": "application/json", "User-Agent": program + "/1"}
        self.changed, self.caches, self.synced = queue.Queue(), {kind: {} for kind in watched}, {kind: threading.Event() for kind in watched}

    def open(self, method, path, body=None):
        connection = http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.tls, timeout=60)
        connection.request(method, self.url.path + BASE + path, json.dumps(body) if body else None, self.headers)
        return connection.getresponse()

    def call(self, method, path, body=None):
        try:
            response = self.open(method, path, body)
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failed(repr(error)) from error
        if response.status not in (200, 201, 404) and not (method == "POST" and response.status == 409):
            raise Failed(f"{response.status} {value.get('message')}")
        return response.status, value

    def follow(self, kind):
        """Lists once, and again when a watch has expired; otherwise a watch goes on where the last one has ended."""
        version = None
        while True:
            try:
                if version is None:
                    _, listed = self.call("GET", kind + "?resourceVersion=0")
                    self.caches[kind] = {item["metadata"]["name"]: item for item in listed["items"]}
                    version = listed["metadata"]["resourceVersion"]
                    self.synced[kind].set()
                    self.changed.put(kind)
                watch = self.open("GET", f"{kind}?watch=true&resourceVersion={version}")
                for line in watch:
                    event = json.loads(line)
                    if watch.status != 200 or event["type"] == "ERROR":
                        version = None
                        break
                    metadata = event["object"]["metadata"]
                    version = metadata["resourceVersion"]
                    if event["type"] == "DELETED":
                        self.caches[kind].pop(metadata["name"], None)
                    else:
                        self.caches[kind][metadata["name"]] = event["object"]
                    self.changed.put(kind)
            except (Failed, OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)

    def run(self, kind, reconcile):
        """Reconciles all objects of a kind whenever anything has changed, one at a time, and again after an error."""
        for watched in self.caches:
            threading.Thread(target=self.follow, args=[watched], daemon=True).start()
        for synced in self.synced.values():
            synced.wait()
        while True:
            self.changed.get()
            for item in self.all(kind):
                try:
                    reconcile(self, item["metadata"]["name"], json.loads(json.dumps(item)))
                except Failed as error:
                    print(f"{item['metadata']['name']}: {error}; will retry", flush=True)
                    threading.Timer(0.05, self.changed.put, [kind]).start()

    def all(self, kind):
        return [item for _, item in sorted(self.caches[kind].items())]

    def create(self, kind, name, spec, finalizers=()):
        """Whether there was none."""
        metadata = {"name": name, "finalizers": list(finalizers)}
        body = {"apiVersion": "example.com/v1", "kind": kind[:-1].capitalize(), "metadata": metadata, "spec": spec}
        return self.call("POST", kind, body)[0] == 201

    def get(self, kind, name):
        code, value = self.call("GET", f"{kind}/{name}")
        return value if code == 200 else None

    def update(self, kind, item):
        return self.call("PUT", f"{kind}/{item['metadata']['name']}", item)[1]

    def delete(self, kind, name):
        self.call("DELETE", f"{kind}/{name}")


def is_deleting(item):
    return "deletionTimestamp" in item["metadata"]
