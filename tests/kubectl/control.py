"""Cascading deletion by the garbage collector, tokens of ServiceAccounts, `auth can-i --list`, events."""

import base64
import json

from pintle import eventually

from .client import has, same

CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  ownerReferences: [{apiVersion: harbor.example.com/v1, kind: Boat, name: nina, uid: %s, blockOwnerDeletion: true}]
"""
BOAT = "apiVersion: harbor.example.com/v1\nkind: Boat\nmetadata: {name: nina}\nspec: {sails: 3}\n"
EVENT = """apiVersion: v1
kind: Event
metadata: {name: nina.1}
type: Warning
reason: Leak
message: water in the hold
involvedObject: {apiVersion: harbor.example.com/v1, kind: Boat, name: nina, namespace: %s}
"""


def create_boat_with_dependents(kubectl):
    """A boat that owns two ConfigMaps."""
    kubectl("create", "-f", "-", input=BOAT)
    uid = kubectl("get", "boat", "nina", "-o", "jsonpath={.metadata.uid}")
    kubectl("create", "-f", "-", input="---\n".join(CONFIG_MAP % (name, uid) for name in ("deck", "hull")))


def dependents(kubectl):
    return kubectl("get", "configmaps", "--no-headers", "--ignore-not-found", "-o", "name").split()


def cascade_background(kubectl):
    create_boat_with_dependents(kubectl)
    has(kubectl("delete", "boat", "nina"), '"nina" deleted')
    eventually(lambda: not dependents(kubectl))


def cascade_foreground(kubectl):
    create_boat_with_dependents(kubectl)
    kubectl("delete", "boat", "nina", "--cascade=foreground")
    same(dependents(kubectl), [])
    kubectl("create", "-f", "-", input=BOAT)
    kubectl("delete", "boat", "nina", "--cascade=foreground")


def cascade_orphan(kubectl):
    create_boat_with_dependents(kubectl)
    kubectl("delete", "boat", "nina", "--cascade=orphan")
    same(dependents(kubectl), ["configmap/deck", "configmap/hull"])
    assert "ownerReferences" not in kubectl.json("get", "configmap", "deck")["metadata"]


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def with_token(kubectl, token, *words, **more):
    """Runs kubectl without the kubeconfig, whose client certificate would take precedence over the token."""
    server = ("--kubeconfig=/dev/null", "--insecure-skip-tls-verify", "--server", kubectl.server.url, "--token", token)
    return kubectl(*words, *server, **more)


def create_token(kubectl):
    kubectl("create", "serviceaccount", "sailor")
    kubectl("create", "rolebinding", "sailor", "--clusterrole=view", f"--serviceaccount={kubectl.namespace}:sailor")
    token = kubectl("create", "token", "sailor", "--duration=20m").strip()
    token_claims = claims(token)
    same((token_claims["sub"], token_claims["exp"] - token_claims["iat"]), (f"system:serviceaccount:{kubectl.namespace}:sailor", 1200))
    user = json.loads(with_token(kubectl, token, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    same(user["groups"], ["system:serviceaccounts", f"system:serviceaccounts:{kubectl.namespace}", "system:authenticated"])
    same(user["extra"]["authentication.kubernetes.io/credential-id"], ["JTI=" + token_claims["jti"]])
    with_token(kubectl, token, "get", "configmaps")
    out = with_token(kubectl, token, "create", "configmap", "chart", code=1)
    has(out.errors, f'User "system:serviceaccount:{kubectl.namespace}:sailor" cannot create resource "configmaps"')
    out = with_token(kubectl, token, "create", "token", "sailor", code=1)
    has(out.errors, 'cannot create resource "serviceaccounts/token" in API group ""')
    out = kubectl("create", "token", "sailor", "--duration=5m", code=1)
    has(out.errors, "may not specify a duration less than 10 minutes")
    has(kubectl("create", "token", "nobody", code=1).errors, 'serviceaccounts "nobody" not found')
    vault = kubectl("create", "token", "sailor", "--audience=vault").strip()
    has(with_token(kubectl, vault, "auth", "whoami", code=1).errors, "Unauthorized")
    kubectl("create", "secret", "generic", "berth")
    bound = kubectl("create", "token", "sailor", "--bound-object-kind=Secret", "--bound-object-name=berth").strip()
    same(claims(bound)["kubernetes.io"]["secret"]["name"], "berth")
    with_token(kubectl, bound, "auth", "whoami")
    kubectl("delete", "secret", "berth")
    has(with_token(kubectl, bound, "auth", "whoami", code=1).errors, "Unauthorized")
    with_token(kubectl, token, "auth", "whoami")
    kubectl("delete", "serviceaccount", "sailor")
    has(with_token(kubectl, token, "auth", "whoami", code=1).errors, "Unauthorized")


def token_keys(kubectl):
    keys = json.loads(kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]
    same([(key["kty"], key["alg"], key["use"]) for key in keys], [("RSA", "RS256", "sig")])
    configuration = json.loads(kubectl("get", "--raw", "/.well-known/openid-configuration"))
    same(configuration["issuer"], "https://kubernetes.default.svc.cluster.local")
    same(configuration["jwks_uri"], kubectl.server.url + "/openid/v1/jwks")
    kubectl("create", "serviceaccount", "reader")
    token = kubectl("create", "token", "reader").strip()
    with_token(kubectl, token, "get", "--raw", "/openid/v1/jwks")
    has(with_token(kubectl, "plain-token", "get", "--raw", "/openid/v1/jwks", code=1).errors, "Forbidden")


def list_permissions(kubectl):
    """`auth can-i --list` shows the rules of the bindings in the namespace and of those of the cluster."""
    kubectl("create", "role", "steward", "--verb=get,list", "--resource=boats.harbor.example.com", "--resource-name=nina")
    kubectl("create", "rolebinding", "steward", "--role=steward", "--user=plain")
    out = with_token(kubectl, "plain-token", "auth", "can-i", "--list")
    rows = [row.split() for row in out.splitlines()]
    assert rows[0][:2] == ["Resources", "Non-Resource"], rows[0]
    assert ["boats.harbor.example.com", "[]", "[nina]", "[get", "list]"] in rows, out
    assert ["selfsubjectaccessreviews.authorization.k8s.io", "[]", "[]", "[create]"] in rows, out
    assert ["[/version]", "[]", "[get]"] in rows, out
    same(with_token(kubectl, "plain-token", "auth", "can-i", "get", "boats/nina").strip(), "yes")
    same(with_token(kubectl, "plain-token", "auth", "can-i", "delete", "boats/nina", code=1).strip(), "no")
    other_namespace = with_token(kubectl, "plain-token", "auth", "can-i", "--list", "-n", "kube-public")
    assert "boats" not in other_namespace, other_namespace


def get_events(kubectl):
    with kubectl.lines("get", "events", "-w", "-o", "custom-columns=REASON:.reason,OBJECT:.involvedObject.name", "--no-headers") as watch:
        kubectl("create", "-f", "-", input=EVENT % kubectl.namespace)
        same(watch.expect(1)[0].split(), ["Leak", "nina"])
    has(kubectl("get", "events"), "Warning", "Leak", "boat/nina", "water in the hold")
    has(kubectl("events", "--for=boat/nina"), "water in the hold")


CASES = [cascade_background, cascade_foreground, cascade_orphan, create_token, list_permissions, token_keys, get_events]
