"""Authentication and authorization: token issuers, webhooks, authenticating proxies, certificates, impersonation."""

import base64
import http.client
import json
import subprocess
import time
from urllib.parse import urlparse

import pytest

from audited import Audited
from connections import https, tls
from hooks import kubeconfig
from objects import ACCOUNTS, MAPS, RBAC, REVIEWS, SECRETS, account, grant, policy, register, token_of, token_review, webhook, whoami
from pintle import KEY_SET, TOKEN, eventually, insecure
from programs import require

pytestmark = pytest.mark.identity

ACCESS = "/apis/authorization.k8s.io/v1"
PLAIN = {"token": "plain-token"}


@pytest.fixture
def issuer(launch):
    """A pintle server as an OpenID Connect issuer, whose ServiceAccount tokens other servers accept."""
    issuer = launch("--service-account-issuer")
    issuer.flags += (f"https://127.0.0.1:{issuer.port}",)
    with issuer:
        grant(issuer, "issuer-discovery", subject=("Group", "system:unauthenticated"), role="system:service-account-issuer-discovery")
        account(issuer, "ann")
        yield issuer


def issued(issuer, audience, **spec):
    return token_of(issuer, "ann", audiences=[audience], **spec)


def test_issuers_of_tokens(launch, issuer):
    flags = ["--oidc-issuer-url", issuer.url, "--oidc-client-id=boats", "--oidc-ca-file", str(issuer.dir / "ca.crt")]
    token, other = issued(issuer, "boats"), issued(issuer, "cars")
    with launch(*flags) as server:
        status, user = whoami(server, token=token)
        assert (status, user["username"]) == (201, f"{issuer.url}#system:serviceaccount:default:ann"), user
        assert user["groups"] == ["system:authenticated"], user
        assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI="), user
        forged = ".".join([token.split(".")[0], other.split(".")[1], token.split(".")[2]])
        assert [whoami(server, token=wrong)[0] for wrong in (other, forged)] == [401, 401]
        message = '[invalid bearer token, oidc: verify token: oidc: expected audience "boats" got ["cars"]]'
        assert token_review(server, other) == {"user": {}, "error": message}
    keys = issuer.dir / "keys.json"
    keys.write_text(json.dumps(issuer.ok("GET", "/openid/v1/jwks", headers=KEY_SET)))
    mapped = ["username-claim=jti", "username-prefix=-", "groups-claim=aud", "groups-prefix=of:", "required-claim=sub=system:serviceaccount:default:ann"]
    with launch(*flags, "--oidc-jwks-file", str(keys), *(f"--oidc-{flag}" for flag in mapped)) as server:
        status, user = whoami(server, token=token)
        assert (status, user["groups"]) == (201, ["of:boats", "system:authenticated"]), user


def authentication(issuer, mappings, *audiences, more=None, **top):
    """Writes an AuthenticationConfiguration for the tokens of an issuer. Returns its path."""
    ca = (issuer.dir / "ca.crt").read_text()
    trusted = {"url": issuer.url, "audiences": list(audiences), "audienceMatchPolicy": "MatchAny", "certificateAuthority": ca}
    entry = {"issuer": trusted, "claimMappings": mappings, **(more or {})}
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return write_json(issuer.dir, "authentication.json", {**head, "jwt": [entry], **top})


def write_json(directory, name, value):
    file = directory / name
    file.write_text(json.dumps(value))
    return file


def test_structured_authentication(launch, issuer):
    mappings = {
        "username": {"expression": "'x:' + claims.sub.split(':')[3]"},
        "groups": {"expression": "claims.aud.map(a, 'for-' + a)"},
        "uid": {"expression": "claims['kubernetes.io'].serviceaccount.uid"},
        "extra": [{"key": "acme.io/namespace", "valueExpression": "claims['kubernetes.io'].namespace"}],
    }
    rules = {
        "claimValidationRules": [{"expression": "claims.exp - claims.iat <= 7200", "message": "too long"}],
        "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}],
    }
    anonymous = {"enabled": True, "conditions": [{"path": "/livez"}]}
    file = authentication(issuer, mappings, "boats", "ships", more=rules, anonymous=anonymous)
    with launch("--authentication-config", str(file)) as server:
        status, user = whoami(server, token=issued(issuer, "ships"))
        uid = issuer.ok("GET", ACCOUNTS + "/ann")["metadata"]["uid"]
        assert (status, user["username"], user["uid"]) == (201, "x:ann", uid), user
        assert user["groups"] == ["for-ships", "system:authenticated"], user
        assert user["extra"]["acme.io/namespace"] == ["default"], user
        long = issued(issuer, "boats", expirationSeconds=9000)
        assert whoami(server, token=long)[0] == 401
        assert token_review(server, long)["error"].endswith("failed: too long]")
        assert [server.request("GET", path, token=None)[0] for path in ("/livez", "/readyz")] == [200, 401]
        # the file is read again when it has changed
        by_claim, tokens = {"username": {"claim": "sub", "prefix": ""}}, [issued(issuer, audience) for audience in ("boats", "cars")]
        statuses = lambda: [whoami(server, token=token)[0] for token in tokens]
        assert statuses() == [201, 401]
        authentication(issuer, by_claim, "cars", anonymous=anonymous)
        eventually(lambda: statuses() == [401, 201])
        authentication(issuer, by_claim, "boats", anonymous={"enabled": False})
        eventually(lambda: "anonymous: Forbidden: changed from initial configuration file" in server.stderr())
        assert statuses() == [401, 201]


def test_a_webhook_authenticates_tokens(launch, hooks):
    def review(spec):
        user = {"username": "ann", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}}
        return {"authenticated": True, "user": user, "audiences": spec["audiences"][:1]} if spec["token"] == "known" else {"authenticated": False}

    hooks.on("/tokens", review)
    with launch("--authentication-token-webhook-config-file", str(kubeconfig(hooks, "/tokens"))) as server:
        for _ in range(2):
            status, user = whoami(server, token="known")
            assert (status, user["username"], user["groups"]) == (201, "ann", ["a", "system:authenticated"]), user
            assert whoami(server, token="unknown")[0] == 401
        received = hooks.requests("/tokens")
        assert [spec["token"] for spec in received] == ["known", "unknown"], "responses are cached"
        assert received[0]["audiences"] == ["https://kubernetes.default.svc.cluster.local"], received
        status = token_review(server, "known", audiences=["a", "b"])
        assert (status["authenticated"], status["audiences"]) == (True, ["a"]), status
        assert whoami(server)[1]["username"] == "tester", "the token file has precedence"
        assert len(hooks.requests("/tokens")) == 3


def test_health_is_authorized(server):
    """Anonymous users may call health checks by a role, not by an exception."""
    statuses = lambda: {server.request("GET", path, token=None)[0] for path in ("/healthz", "/livez", "/readyz", "/version")}
    assert statuses() == {200}
    server.ok("PATCH", RBAC + "/clusterrolebindings/system:public-info-viewer", {"subjects": None})
    eventually(lambda: statuses() == {403})
    response = server.request("GET", "/healthz", token=None)[1]
    assert response["message"] == 'forbidden: User "system:anonymous" cannot get path "/healthz"', response
    assert server.request("GET", "/healthz", **PLAIN)[0] == 200, "system:discovery allows it too"


def test_a_webhook_authorizes_requests(launch, hooks):
    def review(spec):
        resource = spec.get("resourceAttributes", {})
        if resource.get("verb") == "delete":
            return {"allowed": False, "denied": True, "reason": "never"}
        return {"allowed": resource.get("resource") == "configmaps", "reason": "maps are for all"}

    hooks.on("/access", review)
    with launch("--authorization-mode=Webhook,RBAC", "--authorization-webhook-config-file", str(kubeconfig(hooks, "/access"))) as server:
        # RBAC is evaluated after the webhook
        assert [server.request("GET", path, **PLAIN)[0] for path in (MAPS, SECRETS, "/version")] == [200, 403, 200]
        status, response, _ = server.request("DELETE", MAPS + "/x", **PLAIN)
        assert status == 403 and response["message"].endswith('in the namespace "default": never'), response
        attributes = {"namespace": "default", "verb": "list", "version": "v1", "resource": "configmaps"}
        spec = {"user": "plain", "uid": "2", "groups": ["system:authenticated"], "resourceAttributes": attributes}
        assert hooks.requests("/access")[0] == spec, hooks.requests("/access")
        assert hooks.query == "timeout=30s", "the request has the timeout"
        spec = {"resourceAttributes": {"verb": "delete", "resource": "boats"}}
        status = server.ok("POST", ACCESS + "/selfsubjectaccessreviews", {"spec": spec}, **PLAIN)["status"]
        assert status == {"allowed": False, "denied": True, "reason": "never"}, status
        assert hooks.requests("/access")[-1]["resourceAttributes"]["version"] == "*", "without a version, all versions are meant"
        before = len(hooks.requests("/access"))
        server.request("GET", MAPS, **PLAIN)
        server.ok("GET", MAPS)
        assert len(hooks.requests("/access")) == before, "neither cached decisions nor system:masters are sent to the webhook"


def test_authorization_webhooks_distinguish_workspaces(launch, hooks):
    """A decision for one workspace is not used in another one, nor in `default`."""
    named = lambda spec: spec.get("extra", {}).get("workspaces.pintle.dev/name")
    enters = lambda spec: spec.get("resourceAttributes", {}).get("subresource") == "content"
    hooks.on("/access", lambda spec: {"allowed": enters(spec) or named(spec) == ["a"]})
    with launch("--workspaces", "--authorization-mode=Webhook", "--authorization-webhook-config-file", str(kubeconfig(hooks, "/access"))) as server:
        for name in ("a", "b"):
            server.ok("POST", f"/clusters/{name}")
        for prefix, code in (("", 403), ("/clusters/a", 200), ("/clusters/b", 403), ("", 403)):
            assert server.request("GET", prefix + MAPS, **PLAIN)[0] == code, prefix
        assert [named(spec) for spec in hooks.requests("/access") if not enters(spec)] == [None, ["a"], ["b"]], "each is asked about once"


def test_expressions_use_an_authorization_webhook(launch, hooks):
    """The authorizer in expressions of both kinds of policies and of a webhook's match conditions calls the authorization webhook,
    only for checks that are evaluated, and once for each."""

    def check(verb, response="allowed()"):
        return f"authorizer.group('g').resource('boats').check('{verb}').{response}"

    def review(spec):
        attributes = spec["resourceAttributes"]
        return {"allowed": attributes.get("group") != "g" or attributes["verb"] not in denied, "reason": f"may-{attributes['verb']}"}

    denied = ["sink"]
    hooks.on("/access", review)
    conditions = lambda verb: [{"name": "may", "expression": check(verb)}]
    with launch("--authorization-mode=RBAC,Webhook", "--authorization-webhook-config-file", str(kubeconfig(hooks, "/access"))) as server:
        labels = f"Object{{metadata: Object.metadata{{labels: {{'by': {check('paint', 'reason()')}}}}}}}"
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}
        policy(server, "mutating", "checks", reinvocationPolicy="Never", matchConditions=conditions("moor"), mutations=[mutation])
        client = hooks.on("/hook", lambda request: {"allowed": True, "warnings": ["called"]})
        register(server, "validating", webhook("checks", client, "CREATE", matchConditions=conditions("haul")))
        validations = [f"{check('launch')} || {check('tow')}", f"{check('launch')} && !{check('sink')}", f"has(object.data) || {check('rig')}"]
        why = [{"key": "why", "valueExpression": check("launch", "reason()")}]
        policy(server, "validating", "checks", auditAnnotations=why, validations=[{"expression": text} for text in validations])
        status, created, headers = server.request("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}}, **PLAIN)
        assert status == 201 and created["metadata"]["labels"] == {"by": "may-paint"}, created
        assert headers["warning"] == '299 - "called"', headers
        verbs = [request["resourceAttributes"]["verb"] for request in hooks.requests("/access") if request["resourceAttributes"].get("group") == "g"]
        assert verbs == ["moor", "paint", "launch", "sink", "haul"], verbs
        denied.append("rig")
        status, response, _ = server.request("POST", MAPS, {"metadata": {"name": "n"}}, **PLAIN)
        assert status == 422 and "failed expression: has(object.data) || " in response["message"], response


def authorizers(hooks, *entries):
    """Writes an AuthorizationConfiguration. Returns its path."""
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    return write_json(hooks.certificates, "authorization.json", {**head, "authorizers": list(entries)})


def authorizer(hooks, path, *conditions, policy="NoOpinion"):
    """The entry of a webhook in an AuthorizationConfiguration."""
    connection = {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig(hooks, path))}
    fields = {"timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": policy, "unauthorizedTTL": "10m", "connectionInfo": connection}
    if conditions:
        fields["matchConditionSubjectAccessReviewVersion"] = "v1"
        fields["matchConditions"] = [{"expression": condition} for condition in conditions]
    return {"type": "Webhook", "name": path.strip("/"), "webhook": fields}


def test_authorization_configuration(launch, hooks):
    rbac = {"type": "RBAC", "name": "rbac"}
    hooks.on("/first", lambda spec: {"allowed": spec["resourceAttributes"]["resource"] == "configmaps"})
    hooks.on("/broken", lambda spec: b"{")
    conditions = ("has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'default'", "!('system:masters' in request.groups)")
    file = authorizers(hooks, authorizer(hooks, "/first", *conditions), rbac)
    with launch("--authorization-config", str(file)) as server:
        get = lambda path: server.request("GET", path, **PLAIN)
        # RBAC is evaluated after the webhook, which gets no requests that do not match
        in_kube_system = MAPS.replace("default", "kube-system")
        paths = (MAPS + "?labelSelector=a,b!%3D1&fieldSelector=metadata.name%3Dx", in_kube_system, "/version")
        assert [get(path)[0] for path in paths] == [200, 403, 200]
        (sent,) = hooks.requests("/first")
        attributes = sent["resourceAttributes"]
        assert attributes["fieldSelector"] == {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}, attributes
        labels = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "NotIn", "values": ["1"]}]
        assert attributes["labelSelector"] == {"requirements": labels}, attributes
        # a failing webhook has no opinion, and the request fails if no other authorizer allows it; or it denies the request
        authorizers(hooks, authorizer(hooks, "/broken"), rbac)
        eventually(lambda: get(MAPS)[0] == 500)
        _, text, headers = get(MAPS + "?x=1&y=2")
        assert text.startswith(f'Internal Server Error: "{MAPS}?x=1&amp;y=2": '), text
        assert headers["content-type"] == "text/plain; charset=utf-8", headers
        assert get("/version")[0] == 200
        authorizers(hooks, authorizer(hooks, "/broken", policy="Deny"), rbac)
        eventually(lambda: get("/version")[0] == 500)
        asked = {"spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}}}
        response = server.ok("POST", ACCESS + "/subjectaccessreviews", asked)["status"]
        assert (response["denied"], bool(response["evaluationError"])) == (True, True), response
        # an invalid file is ignored, and a valid one is applied
        authorizers(hooks)
        reloads = 'apiserver_authorization_config_controller_automatic_reloads_total{status="%s"}'
        eventually(lambda: reloads % "failure" + " 1" in server.ok("GET", "/metrics"))
        assert "authorizers: Required value: at least one authorization mode must be defined" in server.stderr()
        assert get("/version")[0] == 500
        authorizers(hooks, rbac)
        eventually(lambda: get("/version")[0] == 200)
        assert get(MAPS)[0] == 403
        assert reloads % "success" + " 3" in server.ok("GET", "/metrics")


def test_front_proxy_headers(launch, server):
    other, names = server, {"X-Remote-User": "ann", "X-Remote-Group": "a", "X-Remote-Extra-Scope": "s"}
    ca = ["--requestheader-client-ca-file", str(other.dir / "ca.crt")]

    def as_proxy(server, certificates):
        context = insecure()
        context.load_cert_chain(certificates.dir / "admin.crt", certificates.dir / "admin.key")
        connection = https(server, context)
        connection.request("POST", REVIEWS + "/selfsubjectreviews", b"{}", {"Content-Type": "application/json", "Accept": "application/json", **names})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    with launch(*ca, "--requestheader-allowed-names=kubernetes-admin") as server:
        # clients choose their certificate by the names of the certificate authorities that the server accepts
        require("openssl")
        # openssl fails, since the server closes the connection
        command = ["openssl", "s_client", "-connect", urlparse(server.url).netloc]
        output = subprocess.run(command, input=b"", capture_output=True).stdout.decode()
        authorities = output.partition("Acceptable client certificate CA names\n")[2].splitlines()[:3]
        assert [("CN" in line) for line in authorities] == [True, True, False], output
        status, response = as_proxy(server, other)
        user = response["status"]["userInfo"]
        assert (status, user["username"], user["groups"]) == (201, "ann", ["a", "system:authenticated"]), response
        assert user["extra"] == {"scope": ["s"]}, user
        own = as_proxy(server, server)[1]["status"]["userInfo"]
        assert own["username"] == "kubernetes-admin", "a client certificate is not that of a proxy"
        assert whoami(server, headers=names, **PLAIN)[1]["username"] == "plain"
        assert 'User "system:anonymous"' in whoami(server, token=None, headers=names)[1]["message"]
    # another name, and a foreign certificate
    for flags in ((*ca, "--requestheader-allowed-names=another"), ()):
        with launch(*flags) as server:
            assert as_proxy(server, other)[0] == 401, flags


def test_bodies_of_forbidden_requests_are_not_decoded(server):
    """The response is 403 for bodies that are delayed, too large, malformed, of an unknown type or encoding, or chunked."""
    wanted = 'configmaps is forbidden: User "plain" cannot create resource "configmaps" in API group "" in the namespace "default"'
    for media, headers, body in (
        ("application/json", "Expect: 100-continue\r\nContent-Length: 10", b""),
        ("application/json", "Content-Length: 9999999999", b"{"),
        ("application/json", "Content-Length: 3", b"{x}"),
        ("application/json", "Transfer-Encoding: chunked", b"fffffff\r\n{"),
        ("text/html", "Content-Length: 2", b"{}"),
        ("application/json", "Content-Encoding: gzip\r\nContent-Length: 2", b"{}"),
    ):
        with tls(server) as connection:
            head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer plain-token\r\nContent-Type: {media}\r\n{headers}\r\n\r\n"
            connection.sendall(head.encode() + body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert (response.status, json.loads(response.read())["message"]) == (403, wanted), headers


def test_agents_impersonate_their_node(launch, hooks):
    extra = {"authentication.kubernetes.io/node-name": ["n1"], "authentication.kubernetes.io/pod-name": ["p"]}
    agent = {"username": "system:serviceaccount:default:agent", "groups": ["system:serviceaccounts"], "extra": extra}
    hooks.on("/who", lambda _: {"authenticated": True, "user": agent})
    flags = ("--feature-gates=ConstrainedImpersonation=true", "--authentication-token-webhook-config-file", str(kubeconfig(hooks, "/who")))
    with launch(*flags) as server:
        of = lambda resource, verb: {"apiGroups": ["authentication.k8s.io"], "resources": [resource], "verbs": [verb]}
        mode = of("selfsubjectreviews", "impersonate-on:associated-node:create")
        grant(server, "agents", of("nodes", "impersonate:associated-node"), mode, subject=("ServiceAccount", "agent"))
        own = whoami(server, token="agent-token", headers={"Impersonate-User": "system:node:n1"})
        assert own == (201, {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}), own
        status, response = whoami(server, token="agent-token", headers={"Impersonate-User": "system:node:n2"})
        assert status == 403 and "cannot impersonate-on:arbitrary-node:create" in response["message"], response


def test_misplaced_tokens(launch, server):
    for path, code in ((MAPS, 403), ("/version", 200)):
        status, _, headers = server.request("GET", path, token=None, headers={"Authorization": "Bearer  plain-token"})
        assert status == code and "contains extra space before the bearer token" in headers["warning"], headers
    assert whoami(server, token="plain-token behind")[1]["username"] == "plain"
    with launch("--anonymous-auth=false") as server:
        assert [server.request("GET", "/livez", token=token)[0] for token in (None, TOKEN)] == [401, 200]


AUTOMATIC = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."
TRACKING = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"


def token_secret(server, name, account):
    """Creates a Secret for a token of a ServiceAccount."""
    meta = {"name": name, "annotations": {"kubernetes.io/service-account.name": account}}
    server.ok("POST", SECRETS, {"metadata": meta, "type": "kubernetes.io/service-account-token"})
    return f"{SECRETS}/{name}"


def token_in(server, path):
    """The token that the server adds to a Secret."""
    return base64.b64decode(eventually(lambda: server.ok("GET", path).get("data", {}).get("token"))).decode()


def test_uses_of_tokens_in_secrets(launch):
    """Uses are recorded as by kube-apiserver 1.35.3: the day in a label of the Secret, a warning, audit annotations, a ConfigMap."""
    label, today = "kubernetes.io/legacy-token-last-used", [time.strftime("%Y-%m-%d", time.gmtime())]

    def is_today(day):
        today.append(time.strftime("%Y-%m-%d", time.gmtime()))
        return day in today

    with Audited(launch) as server:
        tracking = server.ok("GET", TRACKING)
        assert is_today(tracking["data"]["since"]), tracking
        assert [entry["manager"] for entry in tracking["metadata"]["managedFields"]] == ["kube-apiserver"], tracking
        server.ok("PATCH", TRACKING, {"data": {"since": "2026-02-30", "more": "x"}})
        eventually(lambda: is_today(server.ok("GET", TRACKING)["data"]["since"]))
        server.ok("PATCH", TRACKING, {"data": {"since": "2024-02-29"}})
        uid = server.ok("POST", ACCOUNTS, {"metadata": {"name": "bot"}, "secrets": [{"name": "automatic"}]})["metadata"]["uid"]
        tokens = {name: token_in(server, token_secret(server, name, "bot")) for name in ("manual", "automatic", "invalid")}
        mark = lambda name, key, value: server.ok("PATCH", f"{SECRETS}/{name}", {"metadata": {"labels": {key: value}}})
        mark("invalid", INVALID_SINCE, "2024-01-01")
        metadata = lambda name: server.ok("GET", f"{SECRETS}/{name}")["metadata"]
        use = lambda name: server.request("POST", REVIEWS + "/selfsubjectreviews", {}, token=tokens[name])

        def labelled(name):
            """Waits for the label of the last use. Returns the metadata."""
            return eventually(lambda: is_today(metadata(name).get("labels", {}).get(label)) and metadata(name))

        for name, warning, kind in [("manual", None, "manual"), ("automatic", f'299 - "{AUTOMATIC}"', "autogenerated")]:
            for _ in range(2):
                status, response, headers = use(name)
                assert (status, response["status"]["userInfo"]["uid"], headers.get("warning")) == (201, uid, warning), headers
            of_account = {"authentication.k8s.io/legacy-token": "system:serviceaccount:default:bot"}
            annotations = server.last(REVIEWS + "/selfsubjectreviews")["annotations"]
            noted = {key: text for key, text in annotations.items() if key.startswith("authentication")}
            assert noted == {**of_account, f"authentication.k8s.io/legacy-token-{kind}-secret": name}, annotations
            entry = next(entry for entry in labelled(name)["managedFields"] if entry["manager"] == "kube-apiserver")
            assert entry["operation"] == "Update" and entry["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, f"f:{label}": {}}}}, entry
        # the warning is sent on every path
        headers = server.request("GET", "/version", token=tokens["automatic"])[2]
        assert headers["warning"] == f'299 - "{AUTOMATIC}"', headers
        status, response, headers = use("invalid")
        assert (status, response["message"], headers.get("warning")) == (401, "Unauthorized", None), response
        labelled("invalid")
        error = token_review(server, tokens["invalid"])["error"]
        assert error.startswith("[invalid bearer token, the token in secret default/invalid for service account default/bot has been marked invalid. "), error
        status, response, headers = server.request("POST", REVIEWS + "/tokenreviews", {"spec": {"token": tokens["automatic"]}})
        assert response["status"]["authenticated"] and "warning" not in headers, "a review of a token has no warning"
        mark("invalid", INVALID_SINCE, None)
        assert use("invalid")[0] == 201
        # an earlier day is replaced
        mark("manual", label, "2024-01-01")
        use("manual")
        labelled("manual")
        metrics = server.ok("GET", "/metrics")
        for name, count in (("legacy_manual", 4), ("invalid_legacy_auto", 2), ("legacy_auto", 4)):
            assert f"\nserviceaccount_{name}_token_uses_total {count}\n" in metrics, name
        assert server.ok("GET", TRACKING)["data"]["since"] == "2024-02-29"
        server.ok("DELETE", TRACKING)
        server.wait_for(TRACKING)


def test_secrets_are_not_logged(launch):
    """Secrets are not in logs at any verbosity, in audit events without bodies, or in Events."""
    with Audited(launch, flags=["--v=6"]) as server:
        secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2-is-mine"}}
        server.ok("POST", SECRETS, secret)
        server.ok("PATCH", SECRETS + "/s", {"stringData": {"password": "hunter3-is-mine"}})
        server.request("POST", SECRETS, {**secret, "type": "Opaque", "bad": "hunter2-is-mine"})
        typed = lambda name, kind, **data: {"metadata": {"name": name}, "type": f"kubernetes.io/{kind}", "stringData": data}
        server.request("POST", SECRETS, typed("t", "tls", **{"tls.crt": "hunter4", "tls.key": "hunter4"}))
        invalid = server.request("POST", SECRETS, typed("d", "dockerconfigjson", **{".dockerconfigjson": "hunter5"}))
        assert invalid[0] == 422 and "<secret contents redacted>" in invalid[1]["message"], invalid
        account(server, "sam")
        token = token_of(server, "sam")
        for sent in (token, token + "x", "hunter6-is-no-token"):
            whoami(server, token=sent)
        token_review(server, token)
        outputs = {"logs": server.stderr(), "audit": server.log.read_text(), "events": json.dumps(server.ok("GET", "/api/v1/events"))}
        assert "tokenreviews" in outputs["audit"] and "secrets" in outputs["audit"]
        for output, text in outputs.items():
            for hidden in ("hunter", "aHVudGVy", token.split(".")[1], token.split(".")[2], TOKEN, "plain-token"):
                assert hidden not in text, (output, hidden)


def test_tokens_in_secrets(server):
    """The server adds a token to a Secret of its type. The token is valid while the Secret has it and the ServiceAccount exists."""
    is_deleted = lambda path: server.request("GET", path)[0] == 404
    uid = account(server, "bot")["uid"]
    path, other = token_secret(server, "first", "bot"), token_secret(server, "second", "bot")
    token = token_in(server, path)
    secret = server.ok("GET", path)
    meta, data = secret["metadata"], {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
    assert meta["annotations"]["kubernetes.io/service-account.uid"] == uid, meta
    assert meta["managedFields"][-1]["manager"] == "kube-controller-manager", meta
    assert data == {"namespace": "default", "ca.crt": (server.dir / "ca.crt").read_text(), "token": token}
    status, user = whoami(server, token=token)
    assert (status, user["username"], user["uid"]) == (201, "system:serviceaccount:default:bot", uid), user
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"], user
    assert token_review(server, token)["authenticated"]
    server.ok("PATCH", other, {"data": {"token": secret["data"]["token"]}})
    server.ok("PATCH", path, {"data": {"token": "eA=="}})
    assert "Token does not match server's copy" in token_review(server, token)["error"]
    assert whoami(server, token=token)[0] == 401
    server.ok("PATCH", path, {"data": {"token": secret["data"]["token"]}})
    assert whoami(server, token=token)[0] == 201
    server.ok("DELETE", path)
    assert "Token has been invalidated" in token_review(server, token)["error"]
    stray = token_secret(server, "stray", "nobody")
    eventually(lambda: is_deleted(stray))
    server.ok("DELETE", ACCOUNTS + "/bot")
    eventually(lambda: is_deleted(other))
    assert whoami(server, token=token)[0] == 401
