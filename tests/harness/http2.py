"""A small HTTP/2 client (RFC 9113) that exposes frames, and reads from the connection only when `read` or `until` is called."""

import socket
import struct

from pintle import insecure

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE = 4


def text(value):
    """A string literal of HPACK, without Huffman coding."""
    raw = value.encode()
    assert len(raw) < 127 + 128, "longer strings are not implemented"
    return bytes([len(raw)]) + raw if len(raw) < 127 else bytes([127, len(raw) - 127]) + raw


def fields(pairs):
    return b"".join(b"\x00" + text(name) + text(value) for name, value in pairs)


class Http2:
    """One connection."""

    def __init__(self, host, port, window=None):
        context = insecure()
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection((host, port), timeout=60))
        assert self.socket.selected_alpn_protocol() == "h2"
        settings = b"" if window is None else struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
        self.authority = f"{host}:{port}"
        self.next = 1
        self.buffer = b""
        self.socket.sendall(PREFACE + self.frame(SETTINGS, 0, 0, settings))

    @staticmethod
    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def get(self, path, token=None):
        """Sends a request and returns the number of its stream."""
        return self.begin("GET", path, token, END_STREAM)

    def begin(self, method, path, token=None, flags=0):
        """Sends the header of a request, whose body follows unless `flags` has END_STREAM. Returns the number of its stream."""
        stream, self.next = self.next, self.next + 2
        pairs = [(":method", method), (":scheme", "https"), (":path", path), (":authority", self.authority), ("accept", "application/json")]
        if token:
            pairs.append(("authorization", "Bearer " + token))
        self.socket.sendall(self.frame(HEADERS, flags | END_HEADERS, stream, fields(pairs)))
        return stream

    def send(self, stream, data, flags=0):
        """Sends a part of a body; END_STREAM in `flags` marks the last one."""
        self.socket.sendall(self.frame(DATA, flags, stream, data))

    def update_window(self, stream, increment):
        self.socket.sendall(self.frame(WINDOW_UPDATE, 0, stream, increment.to_bytes(4, "big")))

    def read(self):
        """The next frame: (type, flags, stream, payload); None when the server has closed the connection."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            self.buffer += more
        length = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream, payload = int.from_bytes(self.buffer[5:9], "big"), self.buffer[9 : 9 + length]
        self.buffer = self.buffer[9 + length :]
        if kind in (SETTINGS, PING) and not flags & ACK:
            try:
                self.socket.sendall(self.frame(kind, ACK, 0, payload if kind == PING else b""))
            except OSError:
                pass
        return kind, flags, stream, payload

    def until(self, wanted):
        """Reads up to the first frame of a type, and returns it, or None if the connection ends before."""
        while (frame := self.read()) is not None:
            if frame[0] == wanted:
                return frame
        return None

    def rest(self):
        """Reads all frames until the server closes the connection."""
        return list(iter(self.read, None))

    def close(self):
        self.socket.close()
