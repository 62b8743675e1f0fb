"""Sends the steps of scenarios, and normalizes the responses, for the differential testers, which compare two servers.

`pintle replay` records and replays the scenarios themselves; the format is in docs/src/reference/recordings.md. `normalize` replaces
what differs between two correct servers: uids and resourceVersions, times, continue tokens, generated names, and the order of unordered
lists. Of a description that the scenario did not send, only the presence is compared.
"""

import base64
import http.client
import json
import re
import ssl
import time
from urllib.parse import urlparse

UNORDERED = ("causes", "conditions", "managedFields", "resources", "groups", "verbs", "shortNames", "categories")
RFC3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
ECHOED = re.compile(r'(\\*"(?:resourceVersion|time|[a-zA-Z]*Timestamp|[a-zA-Z]*Time)\\*":\\*")(?:\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z)(?=\\*")')
ETCD_REVISION = re.compile(r"\brevision=\d+")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
READ_SECONDS = 90


class EqualNames:
    """Names for `normalize` that make all uids equal, and all resourceVersions."""

    def uid(self, _):
        return "<uid>"

    def version(self, text):
        return "<rv>" if text.isdigit() and text != "0" else text


def normalize(value, names, key=""):
    """Returns `value`, found under `key`, without what differs between two correct servers."""
    if isinstance(value, dict):
        return normalize_object(value, names)
    if isinstance(value, list):
        items = [normalize(item, names, key) for item in value]
        return sorted(items, key=canonical) if key in UNORDERED else items
    if isinstance(value, str):
        if RFC3339.match(value):
            return "<time>"
        value = ECHOED.sub(r"\1<echoed>", value)
        return UID.sub(lambda found: names.uid(found.group(0)), ETCD_REVISION.sub("revision=<n>", value))
    return value


def normalize_object(value, names):
    out = {key: normalize_field(key, value[key], names) for key in sorted(value)}
    prefix = value.get("generateName")
    if prefix and isinstance(value.get("name"), str) and value["name"].startswith(prefix):
        out["name"] = prefix + "<generated>"
    details = value.get("details")
    if "message" in value and isinstance(details, dict) and len(details.get("causes") or []) > 1:
        # the message of a Status joins its causes in their order, which is not compared
        out["message"] = " ".join(sorted(re.split(r"[ ,\[\]]+", value["message"])))
    return out


def normalize_field(key, value, names):
    if key == "storageVersionHash":
        return "<hash>"
    if isinstance(value, str):
        if key == "time":
            return "<time>"
        if key == "resourceVersion":
            return names.version(value)
        if key == "continue" and value:
            return "<continue>"
    return normalize(value, names, key)


def canonical(value):
    """One text per value; unlike Python's ==, it distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True)


def sent_text(scenario):
    """Everything that the scenario sends, as one text."""
    steps = scenario["steps"]
    return "\n".join(json.dumps(s["body"], ensure_ascii=False) if "body" in s else s.get("text", "") for s in steps)


def hide_descriptions(value, sent, key=""):
    """Returns `value` with each description that is not in `sent` replaced by a placeholder."""
    if isinstance(value, dict):
        return {k: hide_descriptions(v, sent, k) for k, v in value.items()}
    if isinstance(value, list):
        return [hide_descriptions(item, sent) for item in value]
    if key == "description" and isinstance(value, str) and value:
        escaped = json.dumps(value, ensure_ascii=False)[1:-1]
        return value if escaped in sent or value in sent else "<text>"
    return value


def drop(value, path):
    """Removes the value at a dotted path, in place. `*` stands for every item or key, a number for an item, which becomes null."""
    head, _, rest = path.partition(".")
    if isinstance(value, list) and head == "*":
        for item in value:
            drop(item, rest)
    elif isinstance(value, list):
        if head.isdigit() and int(head) < len(value):
            if rest:
                drop(value[int(head)], rest)
            else:
                value[int(head)] = None
    elif isinstance(value, dict):
        if head == "*" and rest:
            for item in value.values():
                drop(item, rest)
        elif rest:
            if head in value:
                drop(value[head], rest)
        else:
            value.pop(head, None)


def lookup(value, path):
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def varint(data, at):
    """A varint, and the position of its end."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def protobuf_fields(data):
    """The fields of a protobuf message: number, bytes of the whole field, content."""
    at = 0
    while at < len(data):
        start, (tag, at) = at, varint(data, at)
        if tag & 7 == 2:
            length, begin = varint(data, at)
            at = begin + length
        else:
            begin = at
            at = varint(data, at)[1] if tag & 7 == 0 else at + (8 if tag & 7 == 1 else 4)
        yield tag >> 3, data[start:at], data[begin:at]


UID_BYTES = re.compile(UID.pattern.encode())
# a message of seconds since 1970, of the years from 2004 to 2106, and no nanoseconds
TIME_BYTES = re.compile(rb"\x08\x08[\x80-\xff]{4}[\x01-\x0f]\x10\x00")


def parse_protobuf(raw):
    """An object in Kubernetes' protobuf envelope: its type, and its fields without the metadata, uids and times."""
    raw = TIME_BYTES.sub(b"\x08\x08\x80\x80\x80\x80\x01\x10\x00", UID_BYTES.sub(b"u" * 36, raw))
    envelope = {number: content for number, _, content in protobuf_fields(raw[4:])}
    fields = [whole for number, whole, _ in protobuf_fields(envelope[2]) if number != 1]
    return {"type": base64.b64encode(envelope[1]).decode(), "fields": [base64.b64encode(field).decode() for field in fields]}


def parse(raw):
    """Decodes a response body: JSON, else text, else base64."""
    try:
        return json.loads(raw)
    except ValueError:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(raw).decode()}


class Server:
    """A server, and the token for it."""

    def __init__(self, url, token):
        self.address, self.token = urlparse(url).netloc, token

    def send(self, method, path, headers, body=None, timeout=30):
        """Sends a request. Returns the connection, which the caller must close, and the response."""
        connection = http.client.HTTPSConnection(self.address, context=ssl._create_unverified_context(), timeout=timeout)
        connection.request(method, path, body=body, headers=self.headers_of(headers))
        return connection, connection.getresponse()

    def headers_of(self, headers):
        """The headers of a request, including the common ones."""
        return {"User-Agent": "replay/1", "Authorization": "Bearer " + self.token, **headers}


def read_all(response):
    """The body of a response. A stream that does not end, in which each event comes in time, is an error after READ_SECONDS."""
    chunks, end = [], time.time() + READ_SECONDS
    while chunk := response.read1(1 << 16):
        chunks.append(chunk)
        if time.time() > end:
            raise TimeoutError("the response does not end")
    # read1 does not notice the end of a body of a known length, after which the connection is free
    response.close()
    return b"".join(chunks)


def fulfils(until, status, text):
    """Whether a response fulfils the condition of a step."""
    return status == until.get("status", status) and until.get("has", "") in text and ("lacks" not in until or until["lacks"] not in text)


def write(path, scenario):
    """Writes a scenario with one step per line, so that a changed step is a changed line."""

    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    head = {key: value for key, value in scenario.items() if key != "steps"}
    steps = ",\n".join(compact(step) for step in scenario["steps"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{compact(head)[:-1]},"steps":[\n{steps}\n]}}\n')
