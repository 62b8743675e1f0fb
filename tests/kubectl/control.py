"""Cases that need more than the commands and their output: watches, commands that wait, tokens, and what the server itself returns."""

import base64
import json

from .client import MANIFESTS, has, same, table

FLEET = MANIFESTS / "fleet.yaml"
BOAT = "apiVersion: harbor.example.com/v1\nkind: Boat\nmetadata: {name: %s}\nspec: {sails: 1}\n"
EVENT = """apiVersion: v1
kind: Event
metadata: {name: nina.1}
type: Warning
reason: Leak
message: water in the hold
involvedObject: {apiVersion: harbor.example.com/v1, kind: Boat, name: nina, namespace: %s}
"""


def version(kubectl):
    served = kubectl.server.ok("GET", "/version")
    has(kubectl("version"), "Client Version: v1.", f"Server Version: {served['gitVersion']}")
    printed = kubectl.json("version")["serverVersion"]  # an older kubectl omits fields that it does not know
    same(printed, {key: value for key, value in served.items() if key in printed})


def auth_whoami(kubectl):
    rows = table(kubectl("auth", "whoami"))
    same(rows[0], ["ATTRIBUTE", "VALUE"])
    assert rows[1][0] == "Username" and len(rows[1]) == 2, rows
    groups = [row for row in rows if row[0] == "Groups"]
    assert groups and "system:masters" in groups[0][1] and "system:authenticated" in groups[0][1], rows
    review = kubectl.json("auth", "whoami")
    same((review["apiVersion"], review["kind"]), ("authentication.k8s.io/v1", "SelfSubjectReview"))
    same(review["status"]["userInfo"]["username"], rows[1][1])


def get_o_json(kubectl):
    kubectl("create", "-f", FLEET)
    found = kubectl.json("get", "boats")
    same((found["kind"], [item["metadata"]["name"] for item in found["items"]]), ("List", ["nina", "pinta", "santa-maria"]))
    one = kubectl.json("get", "boats", "pinta", "--show-managed-fields")
    path = f"/apis/harbor.example.com/v1/namespaces/{kubectl.namespace}/boats/pinta"
    same(one, kubectl.server.ok("GET", path))
    same(json.loads(kubectl("get", "--raw", path)), one)


def get_w(kubectl):
    kubectl("create", "-f", FLEET)
    with kubectl.lines("get", "boats", "-w") as watch:
        same(table("\n".join(watch.expect(4)))[3], ["santa-maria", "5", "AGE"])
        kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"spec":{"sails":9}}')
        same(table(watch.expect(5)[4]), [["nina", "9", "AGE"]])
        kubectl("delete", "boat", "pinta")
        same(table(watch.expect(6)[5]), [["pinta", "4", "AGE"]])
    with kubectl.lines("get", "boat", "nina", "-w", "-o", "name") as watch:
        watch.expect(1)
        kubectl("label", "boat", "santa-maria", "seen=no")
        kubectl("label", "boat", "nina", "seen=yes")
        same(watch.expect(2), ["boat.harbor.example.com/nina"] * 2)
    with kubectl.lines("get", "boats", "-w", "--output-watch-events", "-o", "jsonpath={.type} {.object.metadata.name}{'\\n'}", "-l", "type=caravel") as watch:
        same(watch.expect(1), ["ADDED nina"])
        kubectl("label", "boat", "santa-maria", "type=caravel", "--overwrite")
        kubectl("label", "boat", "santa-maria", "type-")
        same(watch.expect(3)[1:], ["ADDED santa-maria", "DELETED santa-maria"])
    with kubectl.lines("get", "boats", "--watch-only", "-A", "--no-headers") as watch:
        while not watch.seen and not watch.ended:
            kubectl("annotate", "boat", "nina", "again=yes")
            kubectl("annotate", "boat", "nina", "again-")
        same(table(watch.expect(1)[0]), [[kubectl.namespace, "nina", "9", "AGE"]])


def wait_for_condition(kubectl):
    same(
        kubectl("wait", "--for=condition=Established", "crd/boats.harbor.example.com", "crd/lighthouses.harbor.example.com"),
        "".join(f"customresourcedefinition.apiextensions.k8s.io/{n}.harbor.example.com condition met\n" for n in ("boats", "lighthouses")),
    )
    kubectl("create", "-f", FLEET)
    wait_times_out(kubectl, "--for=jsonpath={.status.phase}=Afloat", "nina")
    with kubectl.lines("wait", "--for=jsonpath={.status.phase}=Afloat", "boat/nina", "--timeout=60s") as waiting:
        kubectl("patch", "boat", "nina", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Afloat"}}')
        same(waiting.expect(1), ["boat.harbor.example.com/nina condition met"])
    with kubectl.lines("wait", "--for=create", "boat/victoria", "--timeout=60s") as waiting:
        kubectl("create", "-f", "-", input=BOAT % "victoria")
        same(waiting.expect(1), ["boat.harbor.example.com/victoria condition met"])


def wait_for_delete(kubectl):
    kubectl("create", "-f", FLEET)
    kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"metadata":{"finalizers":["harbor.example.com/moored"]}}')
    same(kubectl("delete", "boat", "nina", "--wait=false"), 'boat.harbor.example.com "nina" deleted' + suffix(kubectl) + "\n")
    with kubectl.lines("wait", "--for=delete", "boat/nina", "--timeout=60s", "-v=6") as waiting:
        waiting.until("watch=true")
        kubectl("patch", "boat", "nina", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
        waiting.until("boat.harbor.example.com/nina condition met")
    kubectl("wait", "--for=delete", "boat/nina")
    wait_times_out(kubectl, "--for=delete", "pinta")


def wait_times_out(kubectl, condition, name):
    """Checks that kubectl ends with a timeout. 1.32 may log a warning before, if little time was left for its watch."""
    out = kubectl("wait", condition, "boat/" + name, "--timeout=2s", code=1)
    same(out.errors.splitlines()[-1:], ["error: timed out waiting for the condition on boats/" + name])


def suffix(kubectl):
    """The namespace as kubectl prints it after a deleted object, since 1.33."""
    minor = int(kubectl.json("version", "--client")["clientVersion"]["minor"].rstrip("+"))
    return f" from {kubectl.namespace} namespace" if minor >= 33 else ""


def delete_waits_for_finalizers(kubectl):
    kubectl("create", "-f", "-", input=BOAT % "nina, finalizers: [harbor.example.com/moored]")
    with kubectl.lines("delete", "boat", "nina") as deleting:
        has(deleting.expect(1)[0], 'boat.harbor.example.com "nina" deleted')
        assert deleting.process.poll() is None, "delete did not wait for the finalizer"
        assert "deletionTimestamp" in kubectl.json("get", "boat", "nina")["metadata"]
        kubectl("patch", "boat", "nina", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        same(deleting.process.wait(timeout=30), 0)
    kubectl("get", "boat", "nina", code=1)


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


def get_events(kubectl):
    with kubectl.lines("get", "events", "-w", "-o", "custom-columns=REASON:.reason,OBJECT:.involvedObject.name", "--no-headers") as watch:
        kubectl("create", "-f", "-", input=EVENT % kubectl.namespace)
        same(watch.expect(1)[0].split(), ["Leak", "nina"])
    has(kubectl("get", "events"), "Warning", "Leak", "boat/nina", "water in the hold")
    has(kubectl("events", "--for=boat/nina"), "water in the hold")


CASES = [version, auth_whoami, get_o_json, get_w, wait_for_condition, wait_for_delete, delete_waits_for_finalizers, create_token, token_keys, get_events]
