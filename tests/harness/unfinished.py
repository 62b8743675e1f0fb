"""A request whose body is never completed."""

from connections import https
from objects import MAPS


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
