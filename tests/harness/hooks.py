"""A webhook server with the serving certificate of a Pintle server, whose responses Python functions return."""

import base64
import http.server
import json
import pathlib
import ssl
import sys
import threading


class TlsServer(http.server.ThreadingHTTPServer):
    """Serves on 127.0.0.1 with the serving certificate of a Pintle server, until it is shut down. TLS handshakes run in the threads
    of their connections, so that a client that never finishes one does not block others."""

    request_queue_size = 1024

    def __init__(self, certificates, handler):
        super().__init__(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "serving.crt", certificates / "serving.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # the client closed the connection, or does not trust the certificate
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    """Passes requests on to `owner.handle(self)`, which calls `reply`."""

    protocol_version = "HTTP/1.1"
    owner: "Serving"

    def log_message(self, format, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def reply(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        try:
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the client did not wait

    def respond(self):
        self.owner.handle(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = respond


class Serving:
    """`with Serving(certificates) as serving:` serves at `serving.port`; subclasses have `handle`."""

    def __init__(self, certificates):
        self.certificates = certificates

    def __enter__(self):
        self.http = TlsServer(self.certificates, type("OwnHandler", (Handler,), {"owner": self}))
        self.port = self.http.server_address[1]
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def handle(self, request):
        raise NotImplementedError


class Hooks(Serving):
    """`with Hooks(server) as hooks:` serves on 127.0.0.1 with the serving certificate of `server`.

    `hooks.on(path, respond)` registers a function. It takes the request of a review and returns its response, without the uid, or
    takes the spec and returns the status of a review that has these. If it returns bytes they are the body, and if it returns None
    the connection is closed. `hooks.received` has each (path, request), and `hooks.query` the query of the last path. If
    `hooks.receive` is set it is called with each body, and the response is empty; if `hooks.headers` is set it is called with the
    headers.
    """

    def __init__(self, server):
        super().__init__(server.dir)
        self.bundle = base64.b64encode((server.dir / "ca.crt").read_bytes()).decode()
        self.responders, self.received, self.receive, self.headers, self.query = {}, [], None, None, ""

    def on(self, path, respond):
        self.responders[path] = respond
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    def handle(self, request):
        if self.headers:
            self.headers(dict(request.headers))
        review = json.loads(request.body())
        path, _, self.query = request.path.partition("?")
        if self.receive:
            self.receive(review)
            return request.reply(200)
        asked = review.get("request", review.get("spec"))
        self.received.append((path, asked))
        if path not in self.responders:
            return request.reply(404, b"no such hook")
        result = self.responders[path](asked)
        if result is None:
            request.close_connection = True
        elif isinstance(result, bytes):
            request.reply(200, result)
        else:
            content = {"response": {"uid": asked["uid"], **result}} if "request" in review else {"status": result}
            request.reply(200, json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], **content}).encode())

    def requests(self, path):
        """The requests that a path has received."""
        return [request for received, request in self.received if received == path]


def patch(*operations):
    """The response that allows a request and applies a JSON patch."""
    document = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": document}


def kubeconfig(hooks, path):
    """Writes a kubeconfig for a hook. Returns its path."""
    cluster = {"server": f"https://127.0.0.1:{hooks.port}{path}", "certificate-authority-data": hooks.bundle}
    config = {"clusters": [{"name": "hook", "cluster": cluster}], "current-context": "hook", "contexts": [{"name": "hook", "context": {"cluster": "hook"}}]}
    file = pathlib.Path(hooks.certificates) / (path.strip("/") + ".kubeconfig")
    file.write_text(json.dumps(config))
    return file
