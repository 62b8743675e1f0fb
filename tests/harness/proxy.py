"""A TCP proxy that can interrupt its connections."""

import socket
import struct
import threading

# SO_LINGER with a timeout of 0: close() sends RST
RESET = struct.pack("ii", 1, 0)


class Proxy:
    """`with Proxy(host, port) as proxy:` forwards connections to `proxy.port` until `cut` or `stall` is called."""

    def __init__(self, host, port):
        self.target, self.open = (host, port), set()
        self.lock, self.forwarding = threading.Lock(), threading.Event()
        self.refusing = False
        self.forwarding.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # wakes the thread in accept(), on every system
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        self.forwarding.set()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client):
        try:
            self.forwarding.wait()
            if self.refusing:
                raise ConnectionError
            server = socket.create_connection(self.target)
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            return reset(client)
        with self.lock:
            self.open |= {client, server}
        for sides in ((client, server), (server, client)):
            threading.Thread(target=self.forward, args=sides, daemon=True).start()

    def forward(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                self.forwarding.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop({source, sink})

    def drop(self, sockets):
        with self.lock:
            sockets &= self.open
            self.open -= sockets
        for each in sockets:
            reset(each)

    def cut(self):
        """Resets every connection, and refuses new ones."""
        self.refusing = True
        with self.lock:
            sockets = set(self.open)
        self.drop(sockets)

    def stall(self):
        """Forwards nothing, and keeps connections open."""
        self.forwarding.clear()

    def restore(self):
        self.refusing = False
        self.forwarding.set()


def reset(connection):
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        # only a shutdown wakes another thread that reads from the socket
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
