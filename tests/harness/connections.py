"""Connections to a server, for requests that `Pintle.request` cannot send."""

import contextlib
import http.client
import socket
from urllib.parse import urlparse

from objects import MAPS
from pintle import TOKEN, insecure

BEARER = {"Authorization": "Bearer " + TOKEN}


def address(server):
    url = urlparse(server.url)
    return url.hostname, url.port


def tls(server, protocols=None, context=None, name=None):
    """A TLS connection on which nothing has been sent."""
    context = context or insecure()
    if protocols:
        context.set_alpn_protocols(protocols)
    return context.wrap_socket(socket.create_connection(address(server), timeout=30), server_hostname=name)


def https(server, context=None):
    """A connection for several requests."""
    host, port = address(server)
    return http.client.HTTPSConnection(host, port, context=context or insecure(), timeout=30)


@contextlib.contextmanager
def reading(server, path, **headers):
    """The response to a GET, whose body has not been read."""
    connection = https(server)
    connection.request("GET", path, headers={**BEARER, **headers})
    response = connection.getresponse()
    yield response
    connection.close()


class UnfinishedRequest:
    """Sends the head of a POST and the first byte of its body, and keeps the connection open."""

    def __init__(self, server, token, query="", path=MAPS):
        self.connection = https(server)
        self.connection.putrequest("POST", path + query)
        credentials = {"Authorization": "Bearer " + token} if token else {}
        for name, value in {**credentials, "Content-Type": "application/json", "Content-Length": "100"}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders(b"{")

    def read_response(self):
        response = self.connection.getresponse()
        return response.status, response.read().decode(), response.headers

    def close(self):
        self.connection.close()


class Upgraded:
    """`with Upgraded(server, path, protocol) as connection:` asks for an upgrade. `head` is that of the response."""

    def __init__(self, server, path, protocol="websocket", method="GET", **headers):
        of_protocol = {"Connection": "Upgrade", "Upgrade": protocol, "Origin": "https://localhost"}
        of_websocket = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        fields = {"Host": urlparse(server.url).netloc, **BEARER, **of_protocol, **of_websocket, **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.socket = tls(server)
        self.socket.sendall("\r\n".join(lines).encode())
        self.file = self.socket.makefile("rb")
        self.head = b"".join(iter(self.file.readline, b"\r\n")).decode()
        self.status = int(self.head.split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def frame(self):
        """The opcode and the payload of the next frame of a WebSocket, or None at the end of the connection."""
        first = self.file.read(2)
        if not first:
            return None
        length = first[1] & 0x7F
        if length > 125:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        return first[0] & 0x0F, self.file.read(length)
