"""A watch that is read in the background."""

import http.client
import threading
from urllib.parse import urlparse

from pintle import TOKEN, insecure


class Watch:
    """A watch whose events are collected in `lines` by a thread; `ended` is set when the connection ends."""

    def __init__(self, server, path, headers=None):
        url = urlparse(server.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=insecure(), timeout=60)
        self.connection.request("GET", path, headers={"Authorization": "Bearer " + TOKEN, **(headers or {})})
        self.response = self.connection.getresponse()
        self.lines, self.ended = [], threading.Event()
        threading.Thread(target=self.pump, daemon=True).start()

    def pump(self):
        try:
            for line in self.response:
                self.lines.append(line.decode())
        except (OSError, http.client.HTTPException):
            self.lines.append("broken")
        self.ended.set()
