"""Authentication and authorization: token issuers, webhooks, authenticating proxies, certificates, impersonation."""

import base64
import http.client
import json
import socket
import subprocess
import time
from urllib.parse import urlparse

import pytest

from hooks import Hooks, kubeconfig
from pintle import KEY_SET, TOKEN, eventually, insecure
from programs import openssl, require

pytestmark = pytest.mark.identity

MAPS = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
REVIEWS = "/apis/authentication.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def whoami(server, **options):
    """Creates a SelfSubjectReview. Returns the status, and the userInfo or the error."""
    status, response, _ = server.request("POST", REVIEWS + "/selfsubjectreviews", {}, **options)
    return status, response["status"]["userInfo"] if status == 201 else response


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Issuer:
    """A pintle server as an OpenID Connect issuer, whose ServiceAccount tokens other servers accept."""

    def __init__(self, launch):
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.server = launch("--service-account-issuer", self.url)
        self.server.port = port

    def __enter__(self):
        self.server.start()
        binding = {
            "metadata": {"name": "issuer-discovery"},
            "subjects": [{"kind": "Group", "name": "system:unauthenticated"}],
            "roleRef": {"kind": "ClusterRole", "name": "system:service-account-issuer-discovery"},
        }
        self.server.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        self.server.ok("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "ann"}})
        return self

    def __exit__(self, *_):
        self.server.__exit__()

    def token(self, audience, **spec):
        response = self.server.ok("POST", "/api/v1/namespaces/default/serviceaccounts/ann/token", {"spec": {"audiences": [audience], **spec}})
        return response["status"]["token"]


def test_issuers_of_tokens(launch):
    with Issuer(launch) as issuer:
        flags = ["--oidc-issuer-url", issuer.url, "--oidc-client-id=boats", "--oidc-ca-file", str(issuer.server.dir / "ca.crt")]
        token, other = issuer.token("boats"), issuer.token("cars")
        with launch(*flags) as server:
            status, user = whoami(server, token=token)
            assert (status, user["username"]) == (201, f"{issuer.url}#system:serviceaccount:default:ann"), user
            assert user["groups"] == ["system:authenticated"], user
            assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI="), user
            assert whoami(server, token=other)[0] == 401
            forged = ".".join([token.split(".")[0], other.split(".")[1], token.split(".")[2]])
            assert whoami(server, token=forged)[0] == 401
            review = server.ok("POST", REVIEWS + "/tokenreviews", {"spec": {"token": other}})["status"]
            message = '[invalid bearer token, oidc: verify token: oidc: expected audience "boats" got ["cars"]]'
            assert "authenticated" not in review and review["error"] == message, review
        keys = issuer.server.dir / "keys.json"
        keys.write_text(json.dumps(issuer.server.ok("GET", "/openid/v1/jwks", headers=KEY_SET)))
        claim_flags = [
            "--oidc-jwks-file",
            str(keys),
            "--oidc-username-claim=jti",
            "--oidc-username-prefix=-",
            "--oidc-groups-claim=aud",
            "--oidc-groups-prefix=of:",
            "--oidc-required-claim=sub=system:serviceaccount:default:ann",
        ]
        with launch(*flags, *claim_flags) as server:
            status, user = whoami(server, token=token)
            assert (status, user["groups"]) == (201, ["of:boats", "system:authenticated"]), user


def test_structured_authentication(launch):
    with Issuer(launch) as issuer:
        configuration = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [
                {
                    "issuer": {
                        "url": issuer.url,
                        "audiences": ["boats", "ships"],
                        "audienceMatchPolicy": "MatchAny",
                        "certificateAuthority": (issuer.server.dir / "ca.crt").read_text(),
                    },
                    "claimValidationRules": [{"expression": "claims.exp - claims.iat <= 7200", "message": "too long"}],
                    "claimMappings": {
                        "username": {"expression": "'x:' + claims.sub.split(':')[3]"},
                        "groups": {"expression": "claims.aud.map(a, 'for-' + a)"},
                        "uid": {"expression": "claims['kubernetes.io'].serviceaccount.uid"},
                        "extra": [{"key": "acme.io/namespace", "valueExpression": "claims['kubernetes.io'].namespace"}],
                    },
                    "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}],
                }
            ],
            "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
        }
        file = issuer.server.dir / "authentication.json"
        file.write_text(json.dumps(configuration))
        with launch("--authentication-config", str(file)) as server:
            status, user = whoami(server, token=issuer.token("ships"))
            uid = issuer.server.ok("GET", "/api/v1/namespaces/default/serviceaccounts/ann")["metadata"]["uid"]
            assert (status, user["username"], user["uid"]) == (201, "x:ann", uid), user
            assert user["groups"] == ["for-ships", "system:authenticated"], user
            assert user["extra"]["acme.io/namespace"] == ["default"], user
            long = issuer.token("boats", expirationSeconds=9000)
            assert whoami(server, token=long)[0] == 401
            review = server.ok("POST", REVIEWS + "/tokenreviews", {"spec": {"token": long}})["status"]
            assert review["error"].endswith("failed: too long]"), review
            assert server.request("GET", "/livez", token=None)[0] == 200
            assert server.request("GET", "/readyz", token=None)[0] == 401
        configuration["jwt"][0]["claimMappings"]["username"] = {"expression": "claims.email"}
        configuration["jwt"][0]["issuer"]["audiences"] = []
        file.write_text(json.dumps(configuration))
        try:
            with launch("--authentication-config", str(file)):
                raise RuntimeError("it started")
        except AssertionError as error:
            message = str(error)
        for part in (
            "--authentication-config: ",
            "jwt[0].issuer.audiences: Required value",
            "jwt[0].claimMappings.username.expression: Invalid value",
            "claims.email_verified must be used",
        ):
            assert part in message, message


def test_a_webhook_authenticates_tokens(launch):
    with launch() as certificates, Hooks(certificates) as hooks:

        def review(spec):
            if spec["token"] != "known":
                return {"authenticated": False}
            user = {"username": "ann", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}}
            return {"authenticated": True, "user": user, "audiences": spec["audiences"][:1]}

        hooks.on("/tokens", review)
        with launch("--authentication-token-webhook-config-file", str(kubeconfig(hooks, "/tokens"))) as server:
            for _ in range(2):
                status, user = whoami(server, token="known")
                assert (status, user["username"], user["groups"]) == (201, "ann", ["a", "system:authenticated"]), user
                assert whoami(server, token="unknown") == (401, whoami(server, token="unknown")[1])
            received = hooks.requests("/tokens")
            assert [spec["token"] for spec in received] == ["known", "unknown"], "responses are cached"
            assert received[0]["audiences"] == ["https://kubernetes.default.svc.cluster.local"], received
            status = server.ok("POST", REVIEWS + "/tokenreviews", {"spec": {"token": "known", "audiences": ["a", "b"]}})["status"]
            assert (status["authenticated"], status["audiences"]) == (True, ["a"]), status
            assert whoami(server)[1]["username"] == "tester", "the token file has precedence"
            assert len(hooks.requests("/tokens")) == 3


def test_health_is_authorized(launch):
    """Anonymous users may call health checks by a role, not by an exception."""
    with launch() as server:
        paths = ("/healthz", "/livez", "/readyz", "/version")
        assert [server.request("GET", path, token=None)[0] for path in paths] == [200] * 4
        binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:public-info-viewer"
        server.ok("PATCH", binding, {"subjects": None})
        eventually(lambda: [server.request("GET", path, token=None)[0] for path in paths] == [403] * 4)
        response = server.request("GET", "/healthz", token=None)[1]
        assert response["message"] == 'forbidden: User "system:anonymous" cannot get path "/healthz"', response
        assert server.request("GET", "/healthz", token="plain-token")[0] == 200, "system:discovery allows it too"


def test_a_webhook_authorizes_requests(launch):
    with launch() as certificates, Hooks(certificates) as hooks:

        def review(spec):
            resource = spec.get("resourceAttributes", {})
            if resource.get("verb") == "delete":
                return {"allowed": False, "denied": True, "reason": "never"}
            return {"allowed": resource.get("resource") == "configmaps", "reason": "maps are for all"}

        hooks.on("/access", review)
        flags = ["--authorization-mode=Webhook,RBAC", "--authorization-webhook-config-file", str(kubeconfig(hooks, "/access"))]
        with launch(*flags) as server:
            plain = {"token": "plain-token"}
            assert server.request("GET", MAPS, **plain)[0] == 200
            assert server.request("GET", MAPS.replace("configmaps", "secrets"), **plain)[0] == 403
            status, response, _ = server.request("DELETE", MAPS + "/x", **plain)
            assert status == 403 and response["message"].endswith('in the namespace "default": never'), response
            spec = {
                "user": "plain",
                "uid": "2",
                "groups": ["system:authenticated"],
                "resourceAttributes": {"namespace": "default", "verb": "list", "version": "v1", "resource": "configmaps"},
            }
            assert hooks.requests("/access")[0] == spec, hooks.requests("/access")
            assert hooks.query == "timeout=30s", "the request has the timeout"
            spec = {"resourceAttributes": {"verb": "delete", "resource": "boats"}}
            status = server.ok("POST", ACCESS, {"spec": spec}, token="plain-token")["status"]
            assert status == {"allowed": False, "denied": True, "reason": "never"}, status
            assert hooks.requests("/access")[-1]["resourceAttributes"]["version"] == "*", "without a version, all versions are meant"
            # RBAC is evaluated after the webhook
            assert server.request("GET", "/version", **plain)[0] == 200
            before = len(hooks.requests("/access"))
            server.request("GET", MAPS, **plain)
            server.ok("GET", MAPS)
            assert len(hooks.requests("/access")) == before, "neither cached decisions nor system:masters are sent to the webhook"


def test_authorization_webhooks_distinguish_workspaces(launch):
    """A decision for one workspace is not used in another one, nor in `default`."""
    key = "workspaces.pintle.dev/name"

    def review(spec):
        if spec.get("resourceAttributes", {}).get("subresource") == "content":
            return {"allowed": True}
        return {"allowed": spec.get("extra", {}).get(key) == ["a"]}

    with launch() as certificates, Hooks(certificates) as hooks:
        hooks.on("/access", review)
        flags = ["--workspaces", "--authorization-mode=Webhook", "--authorization-webhook-config-file", str(kubeconfig(hooks, "/access"))]
        with launch(*flags) as server:
            for name in ("a", "b"):
                server.ok("POST", f"/clusters/{name}")
            for prefix, code in (("", 403), ("/clusters/a", 200), ("/clusters/b", 403), ("", 403)):
                assert server.request("GET", prefix + MAPS, token="plain-token")[0] == code, prefix
            named = [spec.get("extra", {}).get(key) for spec in hooks.requests("/access") if "subresource" not in spec["resourceAttributes"]]
            assert named == [None, ["a"], ["b"]], "each is asked about once"


def test_expressions_use_an_authorization_webhook(launch):
    """The authorizer in expressions of both kinds of policies and of a webhook's match conditions calls the authorization webhook,
    only for checks that are evaluated, and once for each."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    constraints = {"resourceRules": [rule]}

    def check(verb, response="allowed()"):
        return f"authorizer.group('g').resource('boats').check('{verb}').{response}"

    def create_policy(server, kind, policy):
        server.ok(
            "POST",
            f"{ADMISSION}/{kind}policybindings",
            {"metadata": {"name": "checks"}, "spec": {"policyName": "checks", **({"validationActions": ["Deny"]} if kind == "validatingadmission" else {})}},
        )
        server.ok("POST", f"{ADMISSION}/{kind}policies", {"metadata": {"name": "checks"}, "spec": {"matchConstraints": constraints, **policy}})

    def review(spec):
        attributes = spec["resourceAttributes"]
        return {"allowed": attributes.get("group") != "g" or attributes["verb"] != "sink", "reason": f"may-{attributes['verb']}"}

    with launch() as certificates, Hooks(certificates) as hooks:
        hooks.on("/access", review)
        flags = [
            "--authorization-mode=RBAC,Webhook",
            "--authorization-webhook-config-file",
            str(kubeconfig(hooks, "/access")),
            "--feature-gates=MutatingAdmissionPolicy=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
        ]
        with launch(*flags) as server:
            labels = f"Object{{metadata: Object.metadata{{labels: {{'by': {check('paint', 'reason()')}}}}}}}"
            create_policy(
                server,
                "mutatingadmission",
                {
                    "reinvocationPolicy": "Never",
                    "matchConditions": [{"name": "may", "expression": check("moor")}],
                    "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}],
                },
            )
            client = hooks.on("/hook", lambda request: {"allowed": True, "warnings": ["called"]})
            server.ok(
                "POST",
                f"{ADMISSION}/validatingwebhookconfigurations",
                {
                    "metadata": {"name": "checks"},
                    "webhooks": [
                        {
                            "name": "checks.hooks.example.com",
                            "clientConfig": client,
                            "rules": [rule],
                            "sideEffects": "None",
                            "admissionReviewVersions": ["v1"],
                            "matchConditions": [{"name": "may", "expression": check("haul")}],
                        }
                    ],
                },
            )
            create_policy(
                server,
                "validatingadmission",
                {
                    "auditAnnotations": [{"key": "why", "valueExpression": check("launch", "reason()")}],
                    "validations": [
                        {"expression": f"{check('launch')} || {check('tow')}"},
                        {"expression": f"{check('launch')} && !{check('sink')}"},
                        {"expression": f"has(object.data) || {check('rig')}"},
                    ],
                },
            )
            status, created, headers = server.request("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}}, token="plain-token")
            assert status == 201 and created["metadata"]["labels"] == {"by": "may-paint"}, created
            assert headers["warning"] == '299 - "called"', headers
            verbs = [request["resourceAttributes"]["verb"] for request in hooks.requests("/access") if request["resourceAttributes"].get("group") == "g"]
            assert verbs == ["moor", "paint", "launch", "sink", "haul"], verbs
            hooks.on("/access", lambda spec: {"allowed": False} if spec["resourceAttributes"].get("verb") == "rig" else review(spec))
            status, denied, _ = server.request("POST", MAPS, {"metadata": {"name": "n"}}, token="plain-token")
            assert status == 422 and "failed expression: has(object.data) || " in denied["message"], denied


def write_json(server, name, value):
    file = server.dir / name
    file.write_text(json.dumps(value))
    return file


def authorizers(*entries):
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": list(entries)}


def webhook_entry(hooks, path, *conditions, **fields):
    """The entry of a webhook in an AuthorizationConfiguration."""
    webhook = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "unauthorizedTTL": "10m",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig(hooks, path))},
        **fields,
    }
    if conditions:
        webhook["matchConditionSubjectAccessReviewVersion"] = "v1"
        webhook["matchConditions"] = [{"expression": condition} for condition in conditions]
    return {"type": "Webhook", "name": path.strip("/"), "webhook": webhook}


def test_authorization_configuration(launch):
    rbac = {"type": "RBAC", "name": "rbac"}
    with launch() as certificates, Hooks(certificates) as hooks:
        hooks.on("/first", lambda spec: {"allowed": spec["resourceAttributes"]["resource"] == "configmaps"})
        hooks.on("/broken", lambda spec: b"{")
        first = webhook_entry(
            hooks, "/first", "has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'default'", "!('system:masters' in request.groups)"
        )
        file = write_json(certificates, "authorization.json", authorizers(first, rbac))
        with launch("--authorization-config", str(file)) as server:
            plain = {"token": "plain-token"}
            assert server.request("GET", MAPS + "?labelSelector=a,b!%3D1&fieldSelector=metadata.name%3Dx", **plain)[0] == 200
            attributes = hooks.requests("/first")[0]["resourceAttributes"]
            assert attributes["fieldSelector"] == {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}, attributes
            assert attributes["labelSelector"] == {"requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "NotIn", "values": ["1"]}]}, (
                attributes
            )
            assert server.request("GET", MAPS.replace("default", "kube-system"), **plain)[0] == 403
            assert server.request("GET", "/version", **plain)[0] == 200, "RBAC is evaluated after the webhook"
            assert len(hooks.requests("/first")) == 1, "requests that do not match are not sent to the webhook"

            # a failing webhook has no opinion, and the request fails if no other authorizer allows it; or it denies the request
            def failing(policy):
                broken = webhook_entry(hooks, "/broken", failurePolicy=policy)
                write_json(certificates, "authorization.json", authorizers(broken, rbac))
                eventually(lambda: server.request("GET", MAPS, **plain)[0] == 500)

            failing("NoOpinion")
            status, text, headers = server.request("GET", MAPS + "?x=1&y=2", **plain)
            assert text.startswith(f'Internal Server Error: "{MAPS}?x=1&amp;y=2": '), text
            assert headers["content-type"] == "text/plain; charset=utf-8", headers
            assert server.request("GET", "/version", **plain)[0] == 200
            failing("Deny")
            assert eventually(lambda: server.request("GET", "/version", **plain)[0] == 500)
            response = server.ok(
                "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}}}
            )["status"]
            assert (response["denied"], bool(response["evaluationError"])) == (True, True), response

            # an invalid file is ignored, and a valid one is applied
            file.write_text(json.dumps(authorizers()))
            reloads = 'apiserver_authorization_config_controller_automatic_reloads_total{status="%s"}'
            eventually(lambda: reloads % "failure" + " 1" in server.ok("GET", "/metrics"))
            assert "authorizers: Required value: at least one authorization mode must be defined" in server.stderr()
            assert server.request("GET", "/version", **plain)[0] == 500
            file.write_text(json.dumps(authorizers(rbac)))
            eventually(lambda: server.request("GET", "/version", **plain)[0] == 200)
            assert server.request("GET", MAPS, **plain)[0] == 403
            assert reloads % "success" + " 3" in server.ok("GET", "/metrics")


def test_invalid_files_are_reported(launch):
    with launch() as other:
        wrong = write_json(other, "authorization.json", authorizers({"type": "Webhook", "name": "w", "webhook": {}}))
        for flags, parts in (
            (
                ["--authorization-config", str(wrong)],
                (
                    "--authorization-config: ",
                    "authorizers[0].timeout: Required value",
                    "authorizers[0].failurePolicy: Required value",
                    "authorizers[0].subjectAccessReviewVersion: Required value",
                    "authorizers[0].connectionInfo.type: Required value",
                ),
            ),
            (["--authorization-config", str(wrong), "--authorization-mode=RBAC"], ("cannot be used with",)),
        ):
            try:
                with launch(*flags):
                    raise RuntimeError("it started")
            except AssertionError as error:
                assert all(part in str(error) for part in parts), error


def test_issuers_are_reloaded(launch):
    with Issuer(launch) as issuer:

        def configuration(audience, **more):
            entry = {
                "issuer": {"url": issuer.url, "audiences": [audience], "certificateAuthority": (issuer.server.dir / "ca.crt").read_text()},
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
            }
            return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [entry], **more}

        file = write_json(issuer.server, "authentication.json", configuration("boats"))
        boats, cars = issuer.token("boats"), issuer.token("cars")
        with launch("--authentication-config", str(file)) as server:
            assert (whoami(server, token=boats)[0], whoami(server, token=cars)[0]) == (201, 401)
            file.write_text(json.dumps(configuration("cars")))
            eventually(lambda: whoami(server, token=cars)[0] == 201)
            assert whoami(server, token=boats)[0] == 401
            file.write_text(json.dumps(configuration("boats", anonymous={"enabled": False})))
            eventually(lambda: "anonymous: Forbidden: changed from initial configuration file" in server.stderr())
            assert (whoami(server, token=boats)[0], whoami(server, token=cars)[0]) == (401, 201)


class CertificateClient:
    """Requests with a client certificate."""

    def __init__(self, server, certificate, key):
        url = urlparse(server.url)
        context = insecure()
        context.load_cert_chain(certificate, key)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=context, timeout=30)

    def whoami(self, **headers):
        self.connection.request("POST", REVIEWS + "/selfsubjectreviews", b"{}", {"Content-Type": "application/json", "Accept": "application/json", **headers})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


def test_front_proxy_headers(launch):
    with launch() as other:
        names = {"X-Remote-User": "ann", "X-Remote-Group": "a", "X-Remote-Extra-Scope": "s"}
        pair = (str(other.dir / "admin.crt"), str(other.dir / "admin.key"))
        ca = ["--requestheader-client-ca-file", str(other.dir / "ca.crt")]
        with launch(*ca, "--requestheader-allowed-names=kubernetes-admin") as server:
            # clients choose their certificate by the names of the certificate authorities that the server accepts
            require("openssl")
            # openssl fails, since the server closes the connection
            command = ["openssl", "s_client", "-connect", urlparse(server.url).netloc]
            output = subprocess.run(command, input=b"", capture_output=True).stdout.decode()
            authorities = output.partition("Acceptable client certificate CA names\n")[2].splitlines()[:3]
            assert [("CN" in line) for line in authorities] == [True, True, False], output
            status, response = CertificateClient(server, *pair).whoami(**names)
            user = response["status"]["userInfo"]
            assert (status, user["username"], user["groups"]) == (201, "ann", ["a", "system:authenticated"]), response
            assert user["extra"] == {"scope": ["s"]}, user
            own = (str(server.dir / "admin.crt"), str(server.dir / "admin.key"))
            status, response = CertificateClient(server, *own).whoami(**names)
            assert response["status"]["userInfo"]["username"] == "kubernetes-admin", "a client certificate is not that of a proxy"
            spoofed = whoami(server, token="plain-token", headers=names)
            assert spoofed[1]["username"] == "plain", spoofed
            assert 'User "system:anonymous"' in whoami(server, token=None, headers=names)[1]["message"]
        with launch(*ca, "--requestheader-allowed-names=somebody") as server:
            assert CertificateClient(server, *pair).whoami(**names)[0] == 401, "another name"
        with launch() as server:
            assert CertificateClient(server, *pair).whoami(**names)[0] == 401, "a foreign certificate"


def certificate(authority, directory, subject, *extensions, days=1):
    """Creates a certificate. Returns its path and that of its key."""
    openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", directory / "c.key", "-out", directory / "c.csr"
    )
    (directory / "c.ext").write_text("\n".join(extensions))
    openssl(
        "x509",
        "-req",
        "-in",
        directory / "c.csr",
        "-CA",
        authority / "ca.crt",
        "-CAkey",
        authority / "ca.key",
        "-days",
        days,
        "-extfile",
        directory / "c.ext",
        "-out",
        directory / "c.crt",
    )
    return str(directory / "c.crt"), str(directory / "c.key")


def test_client_certificates_are_verified(launch):
    client = "extendedKeyUsage=clientAuth"
    with launch() as server, launch() as other:

        def whoami(authority, subject, *extensions, **options):
            return CertificateClient(server, *certificate(authority.dir, server.dir, subject, *extensions, **options)).whoami()

        status, response = whoami(server, "/O=a/O=b/CN=ann", client)
        user = response["status"]["userInfo"]
        assert (status, user["username"], user["groups"]) == (201, "ann", ["a", "b", "system:authenticated"]), response
        for kind, response in {
            "expired": whoami(server, "/O=system:masters/CN=eve", client, days=-1),
            "foreign": whoami(other, "/O=system:masters/CN=eve", client),
            "of a server": whoami(server, "/O=system:masters/CN=eve", "extendedKeyUsage=serverAuth"),
        }.items():
            assert (response[0], response[1]["message"]) == (401, "Unauthorized"), (kind, response)
        # a certificate without a common name
        status, response = whoami(server, "/O=system:masters", client)
        assert status in (401, 403), response


def test_bodies_of_forbidden_requests_are_not_decoded(launch):
    """The response is 403 for bodies that are delayed, too large, malformed, of an unknown type or encoding, or chunked."""
    with launch() as server:
        url = urlparse(server.url)
        wanted = 'configmaps is forbidden: User "plain" cannot create resource "configmaps" in API group "" in the namespace "default"'
        for headers, body in (
            ("Expect: 100-continue\r\nContent-Length: 10\r\n", b""),
            ("Content-Length: 9999999999\r\n", b"{"),
            ("Content-Length: 3\r\n", b"{x}"),
            ("Transfer-Encoding: chunked\r\n", b"fffffff\r\n{"),
            ("Content-Type: text/html\r\nContent-Length: 2\r\n", b"{}"),
            ("Content-Encoding: gzip\r\nContent-Length: 2\r\n", b"{}"),
        ):
            kind = "" if "Content-Type" in headers else "Content-Type: application/json\r\n"
            with insecure().wrap_socket(socket.create_connection((url.hostname, url.port), timeout=30)) as connection:
                connection.sendall(f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer plain-token\r\n{kind}{headers}\r\n".encode() + body)
                response = http.client.HTTPResponse(connection)
                response.begin()
                assert (response.status, json.loads(response.read())["message"]) == (403, wanted), headers


MODES = "--feature-gates=ConstrainedImpersonation=true"


def test_agents_impersonate_their_node(launch):
    account = {
        "username": "system:serviceaccount:n:agent",
        "groups": ["system:serviceaccounts"],
        "extra": {"authentication.kubernetes.io/node-name": ["n1"], "authentication.kubernetes.io/pod-name": ["p"]},
    }
    mode = "impersonate-on:associated-node:create"
    with launch() as outside, Hooks(outside) as hooks:
        hooks.on("/who", lambda _: {"authenticated": True, "user": account})
        with launch(MODES, "--authentication-token-webhook-config-file", str(kubeconfig(hooks, "/who"))) as server:
            rbac = "/apis/rbac.authorization.k8s.io/v1"
            server.ok(
                "POST",
                rbac + "/clusterroles",
                {
                    "metadata": {"name": "agents"},
                    "rules": [
                        {"apiGroups": ["authentication.k8s.io"], "resources": ["nodes"], "verbs": ["impersonate:associated-node"]},
                        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": [mode]},
                    ],
                },
            )
            server.ok(
                "POST",
                rbac + "/clusterrolebindings",
                {
                    "metadata": {"name": "agents"},
                    "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "n"}],
                    "roleRef": {"kind": "ClusterRole", "name": "agents"},
                },
            )
            status, user = whoami(server, token="agent-token", headers={"Impersonate-User": "system:node:n1"})
            assert (status, user) == (201, {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}), user
            status, response = whoami(server, token="agent-token", headers={"Impersonate-User": "system:node:n2"})
            assert status == 403 and "cannot impersonate-on:arbitrary-node:create" in response["message"], response


def test_misplaced_tokens(launch):
    with launch() as server:
        status, _, headers = server.request("GET", MAPS, token=None, headers={"Authorization": "Bearer  plain-token"})
        assert status == 403 and "contains extra space before the bearer token" in headers["warning"], headers
        status, _, headers = server.request("GET", "/version", token=None, headers={"Authorization": "Bearer  plain-token"})
        assert status == 200 and "contains extra space before the bearer token" in headers["warning"], headers
        assert whoami(server, token="plain-token behind")[1]["username"] == "plain"
    with launch("--anonymous-auth=false") as server:
        assert server.request("GET", "/livez", token=None)[0] == 401
        assert server.request("GET", "/livez")[0] == 200


AUTOMATIC = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."
TRACKING = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"


def test_uses_of_tokens_in_secrets(launch):
    """Uses are recorded as by kube-apiserver 1.35.3: the day in a label of the Secret, a warning, audit annotations, a ConfigMap."""
    core, label = "/api/v1/namespaces/default", "kubernetes.io/legacy-token-last-used"
    server = launch()
    policy, log = (
        write_json(server, "policy.json", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}),
        server.dir / "audit.log",
    )
    server.flags = ("--audit-policy-file", str(policy), "--audit-log-path", str(log))
    with server:
        today = [time.strftime("%Y-%m-%d", time.gmtime())]

        def is_today(day):
            today.append(time.strftime("%Y-%m-%d", time.gmtime()))
            return day in today

        tracking = server.ok("GET", TRACKING)
        assert is_today(tracking["data"]["since"]), tracking
        assert [entry["manager"] for entry in tracking["metadata"]["managedFields"]] == ["kube-apiserver"], tracking
        server.ok("PATCH", TRACKING, {"data": {"since": "2026-02-30", "more": "x"}})
        eventually(lambda: is_today(server.ok("GET", TRACKING)["data"]["since"]))
        server.ok("PATCH", TRACKING, {"data": {"since": "2024-02-29"}})
        uid = server.ok("POST", core + "/serviceaccounts", {"metadata": {"name": "bot"}, "secrets": [{"name": "automatic"}]})["metadata"]["uid"]
        tokens = {}
        for name in ("manual", "automatic", "invalid"):
            meta = {"name": name, "annotations": {"kubernetes.io/service-account.name": "bot"}}
            server.ok("POST", core + "/secrets", {"metadata": meta, "type": "kubernetes.io/service-account-token"})
            encoded = eventually(lambda: server.ok("GET", f"{core}/secrets/{name}").get("data", {}).get("token"))
            tokens[name] = base64.b64decode(encoded).decode()
        server.ok("PATCH", core + "/secrets/invalid", {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2024-01-01"}}})

        def metadata(name):
            return server.ok("GET", f"{core}/secrets/{name}")["metadata"]

        def labelled(name):
            """Waits for the label of the last use. Returns the metadata."""
            return eventually(lambda: is_today(metadata(name).get("labels", {}).get(label)) and metadata(name))

        def use(name):
            return server.request("POST", REVIEWS + "/selfsubjectreviews", {}, token=tokens[name])

        def last(uri):
            return [event for event in map(json.loads, log.read_text().splitlines()) if event["requestURI"] == uri][-1]

        account = "system:serviceaccount:default:bot"
        for name, warning, kind in [("manual", None, "manual"), ("automatic", f'299 - "{AUTOMATIC}"', "autogenerated")]:
            for _ in range(2):
                status, response, headers = use(name)
                assert (status, response["status"]["userInfo"]["uid"], headers.get("warning")) == (201, uid, warning), headers
            wanted = {"authentication.k8s.io/legacy-token": account, f"authentication.k8s.io/legacy-token-{kind}-secret": name}
            annotations = last(REVIEWS + "/selfsubjectreviews")["annotations"]
            assert {key: text for key, text in annotations.items() if key.startswith("authentication")} == wanted, annotations
            entry = next(entry for entry in labelled(name)["managedFields"] if entry["manager"] == "kube-apiserver")
            assert entry["operation"] == "Update" and entry["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, f"f:{label}": {}}}}, entry
        version = metadata("manual")["resourceVersion"]
        # the warning is sent on every path
        headers = server.request("GET", "/version", token=tokens["automatic"])[2]
        assert headers["warning"] == f'299 - "{AUTOMATIC}"', headers
        status, response, headers = use("invalid")
        assert (status, response["message"], headers.get("warning")) == (401, "Unauthorized", None), response
        labelled("invalid")
        review = server.request("POST", REVIEWS + "/tokenreviews", {"spec": {"token": tokens["invalid"]}})
        error = (
            "[invalid bearer token, the token in secret default/invalid for service account default/bot has been marked invalid. "
            "Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
            "'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token]"
        )
        assert review[1]["status"] == {"user": {}, "error": error}, review
        status, response, headers = server.request("POST", REVIEWS + "/tokenreviews", {"spec": {"token": tokens["automatic"]}})
        assert response["status"]["authenticated"] and "warning" not in headers, "a review of a token has no warning"
        server.ok("PATCH", core + "/secrets/invalid", {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": None}}})
        assert use("invalid")[0] == 201
        # an earlier day is replaced
        server.ok("PATCH", core + "/secrets/manual", {"metadata": {"labels": {label: "2024-01-01"}}})
        use("manual")
        labelled("manual")
        assert metadata("manual")["resourceVersion"] != version
        _, response, _ = server.request("GET", "/metrics")
        counted = dict(line.split() for line in response.splitlines() if line.startswith("serviceaccount_"))
        assert counted["serviceaccount_legacy_manual_token_uses_total"] == "4", counted
        assert counted["serviceaccount_invalid_legacy_auto_token_uses_total"] == "2", counted
        assert int(counted["serviceaccount_legacy_auto_token_uses_total"]) == 4, counted
        assert server.ok("GET", TRACKING)["data"]["since"] == "2024-02-29"
        server.ok("DELETE", TRACKING)
        eventually(lambda: server.request("GET", TRACKING)[0] == 200)


def test_secrets_are_not_logged(launch):
    """Secrets are not in logs at any verbosity, in audit events without bodies, or in Events."""
    server = launch()
    policy, log = (
        write_json(server, "policy.json", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}),
        server.dir / "audit.log",
    )
    server.flags = ("--v=6", "--audit-policy-file", str(policy), "--audit-log-path", str(log))
    with server:
        secrets, account = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/serviceaccounts"
        secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2-is-mine"}}
        server.ok("POST", secrets, secret)
        server.ok("PATCH", secrets + "/s", {"stringData": {"password": "hunter3-is-mine"}})
        server.request("POST", secrets, {**secret, "type": "Opaque", "bad": "hunter2-is-mine"})
        server.request("POST", secrets, {"metadata": {"name": "t"}, "type": "kubernetes.io/tls", "stringData": {"tls.crt": "hunter4", "tls.key": "hunter4"}})
        invalid = server.request(
            "POST", secrets, {"metadata": {"name": "d"}, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "hunter5"}}
        )
        assert invalid[0] == 422 and "<secret contents redacted>" in invalid[1]["message"], invalid
        server.ok("POST", account, {"metadata": {"name": "sam"}})
        token = server.ok("POST", account + "/sam/token", {"spec": {}})["status"]["token"]
        whoami(server, token=token)
        whoami(server, token=token + "x")
        whoami(server, token="hunter6-is-no-token")
        server.ok("POST", REVIEWS + "/tokenreviews", {"spec": {"token": token}})
        outputs = {"logs": server.stderr(), "audit": log.read_text(), "events": json.dumps(server.ok("GET", "/api/v1/events"))}
        assert "tokenreviews" in outputs["audit"] and "secrets" in outputs["audit"]
        for output, text in outputs.items():
            for hidden in ("hunter", "aHVudGVy", token.split(".")[1], token.split(".")[2], TOKEN, "plain-token"):
                assert hidden not in text, (output, hidden)


def test_tokens_in_secrets(launch):
    """The server adds a token to a Secret of its type. The token is valid while the Secret has it and the ServiceAccount exists."""
    core = "/api/v1/namespaces/default"
    with launch() as server:

        def secret(name, account):
            meta = {"name": name, "annotations": {"kubernetes.io/service-account.name": account}}
            server.ok("POST", core + "/secrets", {"metadata": meta, "type": "kubernetes.io/service-account-token"})
            return f"{core}/secrets/{name}"

        def data(path):
            return server.ok("GET", path).get("data", {})

        def is_deleted(path):
            return server.request("GET", path)[0] == 404

        uid = server.ok("POST", core + "/serviceaccounts", {"metadata": {"name": "bot"}})["metadata"]["uid"]
        path, other = secret("first", "bot"), secret("second", "bot")
        token = base64.b64decode(eventually(lambda: data(path).get("token"))).decode()
        meta = server.ok("GET", path)["metadata"]
        assert meta["annotations"]["kubernetes.io/service-account.uid"] == uid, meta
        assert meta["managedFields"][-1]["manager"] == "kube-controller-manager", meta
        assert base64.b64decode(data(path)["namespace"]) == b"default"
        assert base64.b64decode(data(path)["ca.crt"]).decode() == (server.dir / "ca.crt").read_text()
        status, user = whoami(server, token=token)
        assert (status, user["username"], user["uid"]) == (201, "system:serviceaccount:default:bot", uid), user
        assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"], user

        def review(token):
            return server.ok("POST", REVIEWS + "/tokenreviews", {"spec": {"token": token}})["status"]

        assert review(token)["authenticated"]
        server.ok("PATCH", other, {"data": {"token": base64.b64encode(token.encode()).decode()}})
        original = data(path)["token"]
        server.ok("PATCH", path, {"data": {"token": "eA=="}})
        assert "Token does not match server's copy" in review(token)["error"]
        assert whoami(server, token=token)[0] == 401
        server.ok("PATCH", path, {"data": {"token": original}})
        assert whoami(server, token=token)[0] == 201
        server.ok("DELETE", path)
        assert "Token has been invalidated" in review(token)["error"]
        stray = secret("stray", "nobody")
        eventually(lambda: is_deleted(stray))
        server.ok("DELETE", core + "/serviceaccounts/bot")
        eventually(lambda: is_deleted(other))
        assert whoami(server, token=token)[0] == 401
