"""A network that can be cut: a TCP proxy of our own between two sides."""
import socket
import struct
import threading

# closes at once, which the other side sees, as an interrupted network does in the end
RESET = struct.pack("ii", 1, 0)


class Proxy:
    """`with Proxy(host, port) as proxy:` passes on what comes to `proxy.port` until it is cut or goes silent."""

    def __init__(self, host, port):
        self.target, self.open = (host, port), set()
        self.lock, self.passes = threading.Lock(), threading.Event()
        self.refuses = False
        self.passes.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # wakes who accepts, on every system
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        self.passes.set()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        try:
            self.passes.wait()
            if self.refuses:
                raise ConnectionError
            far = socket.create_connection(self.target)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            return reset(near)
        with self.lock:
            self.open |= {near, far}
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                self.passes.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop({source, sink})

    def drop(self, ends):
        with self.lock:
            ends &= self.open
            self.open -= ends
        for end in ends:
            reset(end)

    def cut(self):
        """Every connection breaks, and no new one is made."""
        self.refuses = True
        with self.lock:
            ends = set(self.open)
        self.drop(ends)

    def be_silent(self):
        """Nothing comes through, and no side sees why."""
        self.passes.clear()

    def heal(self):
        self.refuses = False
        self.passes.set()


def reset(end):
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        # who waits for this end in another thread is woken by a shutdown only
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
