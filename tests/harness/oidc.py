"""An OpenID Connect provider for tests: a discovery document, a key, and tokens with any claims."""

import base64
import json
import time

from hooks import Serving
from programs import openssl


def encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(Serving):
    """`with Provider(certificates, directory) as provider:` serves on 127.0.0.1 with the serving certificate in `certificates`; the
    key is written to `directory`."""

    def __init__(self, certificates, directory):
        super().__init__(certificates)
        self.key, self.documents = directory / "provider.key", {}

    def __enter__(self):
        super().__enter__()
        self.url = f"https://127.0.0.1:{self.port}"
        self.key.write_bytes(openssl("genrsa", "2048"))
        modulus = openssl("rsa", "-in", self.key, "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}
        self.documents["/keys"] = {"keys": [key]}
        self.documents["/.well-known/openid-configuration"] = {
            "issuer": self.url,
            "jwks_uri": self.url + "/keys",
            "authorization_endpoint": self.url + "/authorize",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        return self

    def handle(self, request):
        request.reply(200 if request.path in self.documents else 404, json.dumps(self.documents.get(request.path)).encode())

    def token(self, **claims):
        """A signed token that is valid for an hour."""
        now = int(time.time())
        head = {"alg": "RS256", "kid": "one", "typ": "JWT"}
        signed = f"{encoded(head)}.{encoded({'iss': self.url, 'iat': now, 'exp': now + 3600, **claims})}"
        return f"{signed}.{encoded(openssl('dgst', '-sha256', '-sign', self.key, input=signed.encode()))}"
