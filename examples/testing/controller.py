#!/usr/bin/env python3
"""A controller for tests of what goes wrong: each Ticket gets a ConfigMap with a number that no other ticket has.

    controller.py           runs it, with three bugs that a healthy API server never shows
    controller.py --fixed   runs it without them
    controller.py check     prints what is wrong with the ConfigMaps, and exits with 1 if anything is

It uses the current context of kubectl and nothing but Python's standard library.
"""

import base64
import http.client
import json
import queue
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlparse

TICKETS = "/apis/example.com/v1/namespaces/default/tickets"
MAPS = "/api/v1/namespaces/default/configmaps"
OWNED = "?labelSelector=kind%3Dnumber"
FIXED = "--fixed" in sys.argv


class Failed(Exception):
    """A request that got an error, or no response at all."""


class Api:
    def __init__(self):
        view = subprocess.run(["kubectl", "config", "view", "--raw", "--minify", "-o", "json"], capture_output=True, check=True)
        config = json.loads(view.stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urlparse(cluster["server"])
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.headers = {"Content-Type": "application/json", "User-Agent": "ticket-controller/1"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
            return
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(b"\n".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
            pem.flush()
            self.context.load_cert_chain(pem.name)

    def open(self, method, path, body=None):
        connection = http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.context, timeout=60)
        connection.request(method, self.url.path + path, json.dumps(body) if body else None, self.headers)
        return connection.getresponse()

    def call(self, method, path, body=None):
        """The decoded response and its code; fails unless the code is one that the caller can act on."""
        for _ in range(5):
            try:
                response = self.open(method, path, body)
                code, value = response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Failed(repr(error)) from error
            if code not in (429, 503):
                break
            # a server that is busy has done nothing, so the same request can be sent again
            time.sleep(0.05)
        if code not in (200, 201, 404, 409):
            raise Failed(f"{code} {value.get('message')}")
        return code, value


class Cache(threading.Thread):
    """The objects of a resource, by name, as the watch reports them. `changed` is called with the names of changed ones."""

    def __init__(self, api, path, query, changed):
        super().__init__(daemon=True)
        self.api, self.path, self.query, self.changed, self.objects = api, path, query, changed, {}
        self.synced = threading.Event()

    def run(self):
        while True:
            try:
                self.follow()
            except (Failed, OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)

    def follow(self):
        start = "&" if self.query else "?"
        _, listed = self.api.call("GET", f"{self.path}{self.query}{start}resourceVersion=0")
        known = set(self.objects)
        self.objects = {item["metadata"]["name"]: item for item in listed["items"]}
        # bug 1: a ticket that was deleted while no watch ran is in no list, so nothing removes its number
        for name in set(self.objects) | (known if FIXED else set()):
            self.changed(name)
        self.synced.set()
        version = listed["metadata"]["resourceVersion"]
        watch = self.api.open("GET", f"{self.path}{self.query}{start}watch=true&resourceVersion={version}")
        if watch.status != 200:
            raise Failed(f"{watch.status}")
        for line in watch:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                self.objects.pop(name, None)
            else:
                self.objects[name] = event["object"]
            self.changed(name)


class Controller:
    def __init__(self):
        self.api, self.names = Api(), queue.Queue()
        self.tickets = Cache(self.api, TICKETS, "", self.names.put)
        self.numbers = Cache(self.api, MAPS, OWNED, lambda name: None)

    def run(self):
        for cache in (self.numbers, self.tickets):
            cache.start()
            cache.synced.wait()
        if FIXED:
            # tickets may have been deleted while nothing ran
            for one in list(self.numbers.objects.values()):
                self.names.put(one["data"]["ticket"])
        print("running", flush=True)
        while True:
            name = self.names.get()
            try:
                self.reconcile(name)
            except Failed as error:
                print(f"{name}: {error}; will retry", flush=True)
                threading.Timer(0.05, self.names.put, [name]).start()

    def reconcile(self, name):
        mine = [one for one in list(self.numbers.objects.values()) if one["data"]["ticket"] == name]
        if name not in self.tickets.objects:
            # the cache may not have the number yet that was created last
            created = ["ticket-" + name] if FIXED else [one["metadata"]["name"] for one in mine]
            for one in created:
                self.api.call("DELETE", f"{MAPS}/{one}")
        elif not mine:
            self.create(name)

    def create(self, name):
        if FIXED:
            # the name makes it one for each ticket, however often it is created
            if self.api.call("GET", f"{MAPS}/ticket-{name}")[0] == 404:
                self.write({"name": f"ticket-{name}"}, name, self.next_number())
            return
        # bug 2: the cache may not have the numbers yet that were created last
        number = 1 + max((int(one["data"]["number"]) for one in list(self.numbers.objects.values())), default=0)
        for attempt in range(3):
            try:
                # bug 3: if the response is lost, the next attempt creates another one
                self.write({"generateName": "ticket-"}, name, number)
                break
            except Failed:
                if attempt == 2:
                    raise
        # the cache has the number after that
        time.sleep(0.1)

    def write(self, metadata, ticket, number):
        metadata["labels"] = {"kind": "number"}
        return self.api.call("POST", MAPS, {"metadata": metadata, "data": {"ticket": ticket, "number": str(number)}})[1]

    def next_number(self):
        """Takes a number from a counter that is written at the version that was read."""
        while True:
            code, counter = self.api.call("GET", f"{MAPS}/counter")
            if code == 404:
                self.api.call("POST", MAPS, {"metadata": {"name": "counter"}, "data": {"last": "0"}})
                continue
            number = 1 + int(counter["data"]["last"])
            counter["data"]["last"] = str(number)
            if self.api.call("PUT", f"{MAPS}/counter", counter)[0] == 200:
                return number


def check():
    """Returns a line for each ticket or number that is wrong."""
    api, wrong = Api(), []
    tickets = {one["metadata"]["name"] for one in api.call("GET", TICKETS)[1]["items"]}
    numbers = [one["data"] for one in api.call("GET", MAPS + OWNED)[1]["items"]]
    for name in sorted(tickets | {one["ticket"] for one in numbers}):
        count = sum(one["ticket"] == name for one in numbers)
        if name not in tickets:
            wrong.append(f"ticket {name} is gone, and its number is not")
        elif count != 1:
            wrong.append(f"ticket {name} has {count} numbers")
    given = [one["number"] for one in numbers]
    wrong += [f"number {number} was given {given.count(number)} times" for number in sorted(set(given)) if given.count(number) > 1]
    print("\n".join(wrong) or "all is well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(check() if "check" in sys.argv else Controller().run())
