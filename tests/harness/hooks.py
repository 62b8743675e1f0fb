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


class Hooks:
    """`with Hooks(server) as hooks:` serves on 127.0.0.1 with the serving certificate of `server`.

    `hooks.on(path, respond)` registers a function. It takes the request of a review and returns its response, without the uid, or
    takes the spec and returns the status of a review that has these. If it returns bytes they are the body, and if it returns None
    the connection is closed. `hooks.received` has each (path, request), and `hooks.query` the query of the last path. If
    `hooks.receive` is set it is called with each body, and the response is empty; if `hooks.headers` is set it is called with the
    headers.
    """

    def __init__(self, server):
        self.server, self.certificates = server, server.dir
        self.bundle = base64.b64encode((server.dir / "ca.crt").read_bytes()).decode()
        self.responders, self.received, self.receive, self.headers, self.query = {}, [], None, None, ""

    def __enter__(self):
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format, *args):
                pass

            def do_POST(self):
                if hooks.headers:
                    hooks.headers(dict(self.headers))
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path, _, hooks.query = self.path.partition("?")
                if hooks.receive:
                    hooks.receive(review)
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                hooks.received.append((path, review.get("request", review.get("spec"))))
                status, body = hooks.respond(path, review)
                if body is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the client did not wait

        self.http = TlsServer(self.certificates, Handler)
        self.port = self.http.server_address[1]
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def on(self, path, respond):
        self.responders[path] = respond
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    def respond(self, path, review):
        if path not in self.responders:
            return 404, b"no such hook"
        result = self.responders[path](review.get("request", review.get("spec")))
        if result is None or isinstance(result, bytes):
            return 200, result
        response = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        if "request" in review:
            response["response"] = {"uid": review["request"]["uid"], **result}
        else:
            response["status"] = result
        return 200, json.dumps(response).encode()

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
