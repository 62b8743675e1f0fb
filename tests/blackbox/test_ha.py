"""examples/ha: three servers on three etcd members lose no writes when one of these processes is killed."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

import etcd
from objects import MAPS
from pintle import eventually
from programs import ROOT

pytestmark = [pytest.mark.etcd, pytest.mark.timeout(300)]


class Client:
    """A client with the kubeconfig of the example that retries when its connection breaks, as client-go does."""

    def __init__(self, directory):
        kubeconfig = (directory / "kubeconfig").read_text()
        self.url = re.search(r"server: (\S+)", kubeconfig)[1]
        self.context = ssl._create_unverified_context()
        certificates = directory / "certificates"
        self.context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")

    def open(self, method, path, body=None, timeout=10):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        return urllib.request.urlopen(request, context=self.context, timeout=timeout)

    def get(self, path):
        with self.open("GET", path) as response:
            return json.load(response)

    def create(self, name):
        """Creates a ConfigMap. Retries a request without a response, which may have succeeded."""

        def created():
            try:
                with self.open("POST", MAPS, {"metadata": {"name": name}}) as response:
                    return response.status == 201
            except urllib.error.HTTPError as error:
                return error.code == 409
            except OSError:
                return False

        eventually(created, seconds=60)


class Informer(threading.Thread):
    """Watches ConfigMaps. Reconnects after the last received revision."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.received, self.disconnects = client, [], 0
        self.version = client.get(MAPS)["metadata"]["resourceVersion"]

    def run(self):
        while True:
            try:
                with self.client.open("GET", f"{MAPS}?watch=1&resourceVersion={self.version}", timeout=60) as events:
                    for line in events:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            self.received.append(event)
                            return
                        self.received.append(event["object"]["metadata"]["name"])
                        self.version = event["object"]["metadata"]["resourceVersion"]
            except (OSError, ValueError):
                pass
            self.disconnects += 1
            time.sleep(0.1)


def test_any_process_may_be_killed(launch, tmp_path):
    command = [sys.executable, ROOT / "examples/ha/run", "--pintle", launch.binary, "--etcd", etcd.build(), "--directory", tmp_path, "--port", "0"]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as example:
        try:
            processes = {}
            for line in example.stdout:
                if line.startswith("ready"):
                    break
                name, pid = re.fullmatch(r"(\S+): process (\d+)\n", line).groups()
                processes[name] = int(pid)
            assert len(processes) == 6, processes
            client = Client(tmp_path)
            informer = Informer(client)
            informer.start()  # on pintle-1 or pintle-2: the servers take connections in turn
            names = []
            for victim in (None, "pintle-1", "etcd-1", "pintle-2"):
                if victim:
                    os.kill(processes[victim], signal.SIGKILL)
                for _ in range(20):
                    names.append(f"map-{len(names)}")
                    client.create(names[-1])
            eventually(lambda: len(informer.received) >= len(names), seconds=60)
            assert informer.received == names and informer.disconnects > 0, informer.received
            assert {item["metadata"]["name"] for item in client.get(MAPS)["items"]} >= set(names)
        finally:
            example.send_signal(signal.SIGTERM)
            assert example.wait(timeout=60) == 0
