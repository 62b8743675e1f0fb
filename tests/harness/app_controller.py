"""A small controller for plans: `app_controller.py VERSION`.

Each ConfigMap with the label `app` gets a StatefulSet, a ConfigMap with settings, and one with a generated name. The StatefulSet has a
field that depends on the version and cannot be changed, so another version replaces it. The times that it writes differ in every run.
"""

import datetime
import json
import os
import ssl
import sys
import urllib.error
import urllib.request

MAPS, SETS = "/api/v1/namespaces/shop/configmaps", "/apis/apps/v1/namespaces/shop/statefulsets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"


class Api:
    def __init__(self, version):
        with open(os.environ["KUBECONFIG"]) as file:
            config = json.load(file)
        self.server, self.token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        self.agent = f"app-controller/{version} (test)"
        self.context = ssl._create_unverified_context()

    def send(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json", "User-Agent": self.agent}
        request = urllib.request.Request(self.server + path, json.dumps(body).encode() if body else None, headers, method=method)
        return urllib.request.urlopen(request, context=self.context)

    def call(self, method, path, body=None):
        try:
            return json.load(self.send(method, path, body))
        except urllib.error.HTTPError as error:
            return json.load(error)


def reconcile(api, version, app):
    name, image = app["metadata"]["name"], app["data"]["image"]
    owned = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": app["metadata"]["uid"]}]
    now = datetime.datetime.now(datetime.UTC).isoformat()
    meta = {"name": name + "-settings", "ownerReferences": owned}
    settings = {"metadata": meta, "data": {"image": image, "version": version, "lastTime": now}}
    if api.call("POST", MAPS, settings).get("code") == 409:
        api.call("PUT", f"{MAPS}/{name}-settings", settings)
    if not api.call("GET", f"{MAPS}?labelSelector=run%3D{name}")["items"]:
        api.call("POST", MAPS, {"metadata": {"generateName": name + "-run-", "labels": {"run": name}, "ownerReferences": owned}})
    claim = {"metadata": {"name": "data-" + version}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template, "volumeClaimTemplates": [claim]}
    wanted = {"metadata": {"name": name, "ownerReferences": owned}, "spec": spec}
    if api.call("POST", SETS, wanted).get("code") == 409 and api.call("PUT", f"{SETS}/{name}", wanted).get("code") == 422:
        api.call("DELETE", f"{SETS}/{name}")
        api.call("POST", SETS, wanted)


def main(version):
    api = Api(version)
    api.call("POST", LEASES, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": version}})
    # an immutable ConfigMap: other data than that of version 1 is refused
    api.call("PUT", MAPS + "/fixed", {"metadata": {"name": "fixed"}, "data": {"version": version}, "immutable": True})
    listed = api.call("GET", MAPS + "?labelSelector=app")
    for app in listed["items"]:
        reconcile(api, version, app)
    query = "?watch=true&labelSelector=app&resourceVersion=" + listed["metadata"]["resourceVersion"]
    for line in api.send("GET", MAPS + query):
        event = json.loads(line)
        if event["type"] != "DELETED":
            reconcile(api, version, event["object"])


main(sys.argv[1])
