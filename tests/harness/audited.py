"""Servers with an audit log."""

import json

from pintle import Pintle, eventually


def policy(server, *rules, **more):
    """Writes an audit policy, and returns the flags for it."""
    server.dir.mkdir(parents=True, exist_ok=True)
    file = server.dir / "policy.json"
    file.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}))
    return ["--audit-policy-file", str(file)]


class Audited(Pintle):
    """A server with an audit log. Without rules, it has the metadata of all requests."""

    def __init__(self, launch, *rules, flags=(), **more):
        super().__init__(launch.binary)
        self.log = self.dir / "audit.log"
        self.flags = (*policy(self, *(rules or [{"level": "Metadata"}]), **more), "--audit-log-path", str(self.log), *flags)

    def events(self, uri=""):
        events = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [event for event in events if uri in event["requestURI"]]

    def last(self, uri, stage="ResponseComplete"):
        """The last event of a stage, for requests whose URI contains `uri`."""
        return eventually(lambda: [event for event in self.events(uri) if event["stage"] == stage])[-1]
