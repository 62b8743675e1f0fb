"""Connections: limits, idle timeouts, and exhaustion of file descriptors."""

import pathlib
import resource
import socket
import ssl
import time

import pytest

from connections import address, tls
from http2 import DATA, END_STREAM, GOAWAY, HEADERS, RST_STREAM, WINDOW_UPDATE, Http2
from objects import MAPS
from pintle import TOKEN

pytestmark = pytest.mark.connections

DESCRIPTORS = 256
# the server allows 32 s for the first request, and 10 s for the handshake
CLOSED_SECONDS = 45


def config_map(name, size):
    return {"metadata": {"name": name}, "data": {"text": "x" * size}}


def limit(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_connections(launch):
    """With more idle connections than file descriptors, other clients are served and the store can open new segments."""
    with launch(storage="embedded", before=limit(DESCRIPTORS, DESCRIPTORS)) as server:
        connections = []
        for i in range(2 * DESCRIPTORS):
            try:
                connections.append(tls(server))
            except (OSError, ssl.SSLError):
                pass  # the server closed it in favour of a newer one
            if i % 32 == 0:
                server.ok("POST", MAPS, config_map(f"map-{i}", 900_000), timeout=10)
        assert len(connections) > DESCRIPTORS / 2, len(connections)
        assert server.request("GET", "/readyz", timeout=10)[0] == 200
        open_files = len(list(pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()))
        assert open_files < DESCRIPTORS, open_files
        for connection in connections:
            connection.close()
        server.restart()
        assert len(server.ok("GET", MAPS)["items"]) >= 2 * DESCRIPTORS / 32


def test_limit_is_raised(launch):
    with launch(before=limit(128, 512)) as server:
        limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text()
        line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
        assert line.split()[3:5] == ["512", "512"], line


def test_silent_connections_are_closed(server):
    """A connection without a request is closed after the timeout of kube-apiserver, in every protocol."""
    start = time.monotonic()
    half = tls(server, ["http/1.1"])
    half.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\n")
    for name, connection in {
        "no protocol": tls(server),
        "HTTP/1.1": tls(server, ["http/1.1"]),
        "half a header": half,
        "HTTP/2": tls(server, ["h2"]),
        "no handshake": socket.create_connection(address(server), timeout=10),
    }.items():
        connection.settimeout(max(0.1, CLOSED_SECONDS - (time.monotonic() - start)))
        try:
            # HTTP/2 begins with the settings of the server
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            raise AssertionError(f"a silent connection stays open: {name}") from None
    used = tls(server, ["http/1.1"])
    used.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert used.recv(4096).startswith(b"HTTP/1.1 200"), "a request on a new connection"


def test_goaway(server):
    """HTTP/2 connections of unauthenticated clients are closed after one request, others are not."""
    for token in (None, "wrong"):
        connection = Http2(*address(server))
        connection.get(MAPS, token)
        # GOAWAY may come before the response
        frames = connection.rest()
        errors = [payload[4:8] for kind, _, _, payload in frames if kind == GOAWAY]
        assert HEADERS in [kind for kind, *_ in frames] and set(errors) == {bytes(4)}, (token, frames)
    connection = Http2(*address(server))
    for _ in range(2):
        connection.get(MAPS, TOKEN)
        assert connection.until(HEADERS) is not None


def test_refusals_before_the_end_of_the_body(server):
    """Over HTTP/2 a refusal is complete while the client still sends, and its stream is not reset, since many clients could
    not read the response then. The rest of the body is read, so that the client can end it."""
    connection = Http2(*address(server))

    def frame(wanted):
        while not wanted(read := connection.read()):
            assert read[0] not in (RST_STREAM, GOAWAY), read

    for method, path, token in (
        ("POST", "/apis/none.io/v1/things", TOKEN),
        ("POST", MAPS + "/a", TOKEN),
        ("PATCH", MAPS + "/a", TOKEN),
        ("POST", MAPS, "plain-token"),
    ):
        stream = connection.begin(method, path, token)
        connection.send(stream, b"x" * 900)
        frame(lambda read: read[2] == stream and read[0] in (HEADERS, DATA) and read[1] & END_STREAM)
        # more than the window of a stream that nothing is read from, of which half is sent at a time
        for _ in range(4):
            for _ in range(14):
                connection.send(stream, b"x" * 10_000)
            frame(lambda read: read[2] == stream and read[0] == WINDOW_UPDATE)
        connection.send(stream, b"", END_STREAM)
    last = connection.get(MAPS, TOKEN)
    frame(lambda read: read[2] == last and read[0] == HEADERS)


def test_unread_streams(server):
    """Lists and initial events that clients do not read need no memory of their own, and other clients are served."""
    objects, size, streams = 200, 100_000, 300
    for i in range(objects):
        server.ok("POST", MAPS, config_map(f"map-{i}", size))
    for query in ("", "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"):
        before = server.resident_mib()
        connections = [Http2(*address(server), window=1 << 24) for _ in range(streams // 100)]
        # only the settings frame of each connection is read, not the responses
        for connection in connections:
            connection.update_window(0, 1 << 30)
            for _ in range(100):
                connection.get(MAPS + query, TOKEN)
        for _ in range(20):
            server.ok("GET", MAPS + "/map-1", timeout=10)
        added = server.resident_mib() - before
        assert added < 64, f"{added:.0f} MiB for {streams} responses of {objects * size >> 20} MiB{query}"
        # a client that reads gets everything
        assert len(server.ok("GET", MAPS)["items"]) == objects
        for connection in connections:
            connection.close()
