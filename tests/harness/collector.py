"""A collector of traces: OTLP over gRPC without TLS. Of HTTP/2 and protobuf it implements what a unary call needs."""

import socketserver
import struct
import threading

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def literal(name, value):
    """A literal header field without indexing (RFC 7541, section 6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def fields(message):
    """The fields of a protobuf message as (number, value): bytes for length-delimited fields, numbers for fixed64 and varints."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, message[at : at + size]
            at += size
        elif key & 7 == 1:
            yield key >> 3, struct.unpack_from("<Q", message, at)[0]
            at += 8
        else:
            yield key >> 3, varint()


def first(message, number, default=b""):
    return next((value for found, value in fields(message) if found == number), default)


def attributes(message, number):
    """Attributes of a message as a dict."""
    pairs = [value for found, value in fields(message) if found == number]

    def value(pair):
        kind, content = next(fields(first(pair, 2)))
        return content.decode() if kind == 1 else content

    return {first(pair, 1).decode(): value(pair) for pair in pairs}


class Span:
    def __init__(self, message, service):
        self.trace, self.id, self.parent = (first(message, number).hex() for number in (1, 2, 4))
        self.name, self.kind = first(message, 5).decode(), first(message, 6, 0)
        self.start, self.end = first(message, 7, 0), first(message, 8, 0)
        self.attributes, self.service = attributes(message, 9), service
        self.links = [first(value, 1).hex() for number, value in fields(message) if number == 13]

    def __repr__(self):
        return f"{self.name} {self.attributes}"


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        def send(kind, flags, number, payload=b""):
            self.wfile.write(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload)

        self.rfile.read(24)  # the preface
        send(SETTINGS, 0, 0)
        bodies = {}
        while len(head := self.rfile.read(9)) == 9:
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            number, payload = int.from_bytes(head[5:], "big"), self.rfile.read(size)
            if kind in (SETTINGS, PING) and not flags & ACK:
                send(kind, ACK, 0, payload if kind == PING else b"")
            elif kind == DATA:
                bodies[number] = bodies.get(number, b"") + payload
                for window in (0, number) if payload else ():
                    send(WINDOW_UPDATE, 0, window, struct.pack(">I", len(payload)))
                if flags & END_STREAM:
                    assert isinstance(self.server, Collector)
                    self.server.add_spans(bodies.pop(number)[5:])
                    send(HEADERS, END_HEADERS, number, b"\x88" + literal(b"content-type", b"application/grpc"))
                    send(DATA, 0, number, b"\0\0\0\0\0")
                    send(HEADERS, END_HEADERS | END_STREAM, number, literal(b"grpc-status", b"0"))


class Collector(socketserver.ThreadingTCPServer):
    """`with Collector() as collector:` listens on `collector.port` and appends received spans to `collector.spans`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Connection)
        self.spans, self.port = [], self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self):
        self.shutdown()
        super().server_close()

    def add_spans(self, request):
        for _, resource_spans in fields(request):
            service = attributes(first(resource_spans, 1), 1)
            for number, scope_spans in fields(resource_spans):
                if number == 2:
                    self.spans += [Span(span, service) for found, span in fields(scope_spans) if found == 2]
