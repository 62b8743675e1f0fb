"""A small client of the API, with one connection for each thread. It uses no proxy, whatever the environment says."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import tempfile
import threading
import urllib.parse
from typing import Any

from .errors import ResponseError

SECONDS = 60


def context_of(credentials: dict[str, str]) -> ssl.SSLContext:
    """The TLS context of credentials in PEM. The module ssl reads certificates from files only."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=credentials["certificateAuthority"])
    handle, path = tempfile.mkstemp(prefix="pintle-", suffix=".pem")
    try:
        os.write(handle, (credentials["certificate"] + "\n" + credentials["key"]).encode())
        context.load_cert_chain(path)
    finally:
        os.close(handle)
        os.unlink(path)
    return context


class Client:
    """Requests to a server."""

    def __init__(self, url: str, credentials: dict[str, str]) -> None:
        self.address = urllib.parse.urlsplit(url).netloc
        self.context = context_of(credentials)
        self.local = threading.local()

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The decoded response. Errors of the API are exceptions with its message."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "pintle-server"}
        if data is not None:
            headers["Content-Type"] = content_type
        for attempt in (1, 2):
            kept: http.client.HTTPSConnection | None = getattr(self.local, "connection", None)
            if kept is None:
                self.local.connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=SECONDS)
            connection: http.client.HTTPSConnection = self.local.connection
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                text = response.read()
                break
            except (ConnectionError, http.client.HTTPException):
                connection.close()
                self.local.connection = None
                # a connection that was idle may have been closed
                if kept is None or attempt == 2:
                    raise
        value = json.loads(text) if text.startswith((b"{", b"[")) else text.decode(errors="replace")
        if response.status >= 400:
            message = value.get("message") if isinstance(value, dict) else value.strip()
            raise ResponseError(response.status, message or response.reason)
        return value

    def close(self) -> None:
        connection = getattr(self.local, "connection", None)
        if connection is not None:
            connection.close()
            self.local.connection = None
