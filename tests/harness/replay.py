#!/usr/bin/env python3
"""Replays recorded HTTP scenarios against a Kubernetes-compatible API server and compares the responses.

  replay.py --server URL [--token TOKEN | --cert FILE --key FILE] [--fast] [--record] [-v] FILE.json...

A scenario file is {"name", "about", "compact"?, "steps": [...]}, one step per line; "compact" sends JSON without blanks. A step is one of

  {"id", "method", "path", "headers"?, "body"? (JSON) | "text"? | "base64"?, "until"?, "ignore"?, "save"?, "protobuf"?, "answer"}
      One request. "answer" is the recorded response: {"status", "headers", "body"}. "until" repeats the request until the response
      has a "status", or "has" or "lacks" a text, for at most "seconds" (20). "protobuf" compares the fields of an object in
      protobuf, except its metadata. "save" maps a variable to a path in the response body.
  {"id", "watch": NAME, "path", "headers"?}
      Opens a watch.
  {"id", "collect": NAME, "events": N, "seconds"? (3), "answer": [...]}
      Reads up to N events of that watch.
  {"id", "sleep": SECONDS}
      A pause that kube-apiserver needs after a change of a CRD. --fast skips it, and shortens the wait for more events than
      were recorded.

"${variable}" in a path, a header or a body is replaced by the saved value. The "answer" of each step was recorded from a
kube-apiserver by --record. A replay compares status, the headers in COMPARED_HEADERS, and body, after `normalize` has
replaced what differs between two correct servers: uids and resourceVersions (which must be equal wherever the recorded
ones were), times, continue tokens, generated names, and the order of unordered lists. Of a description that the scenario did
not send, only the presence is compared. "ignore" lists body paths that are not compared
("metadata.managedFields", "items.*.metadata.managedFields", "message").

The exit status is 1 if any step differs. The last line is "N passed, N failed".
"""

import argparse
import base64
import difflib
import http.client
import json
import queue
import re
import socket
import ssl
import sys
import threading
import time
from urllib.parse import urlparse

COMPARED_HEADERS = ("content-type", "warning", "retry-after", "location", "allow", "accept-patch")
UNORDERED = ("causes", "conditions", "managedFields", "resources", "groups", "verbs", "shortNames", "categories")
RFC3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
ECHOED = re.compile(r'(\\*"(?:resourceVersion|time|[a-zA-Z]*Timestamp|[a-zA-Z]*Time)\\*":\\*")(?:\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z)(?=\\*")')
ETCD_REVISION = re.compile(r"\brevision=\d+")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TOKEN = re.compile(r"<(?:uid|rv):\d+>")
MARK = re.compile(r"<(?:uid|rv)=[^>]*>")
DIFF_LINES = 24
READ_SECONDS = 90
POLL_SECONDS = 0.02
# how long a fast replay waits for more events than were recorded
QUIET_SECONDS = 0.5


class RecordedNames:
    """Numbers uids and resourceVersions in the order of their first appearance: `<uid:1>`, `<rv:2>`."""

    def __init__(self):
        self.uids, self.versions = {}, {}

    def uid(self, text):
        return self.uids.setdefault(text, f"<uid:{len(self.uids) + 1}>")

    def version(self, text):
        return text if text in ("", "0") else self.versions.setdefault(text, f"<rv:{len(self.versions) + 1}>")


class MarkedNames:
    """Marks uids and resourceVersions of a replay as `<uid=...>`; `Bindings` replaces the marks by recorded tokens."""

    def uid(self, text):
        return f"<uid={text}>"

    def version(self, text):
        return text if text in ("", "0") else f"<rv={text}>"


class Bindings:
    """A bijection between recorded tokens and marked values. An unbound token and an unbound mark at the same place are bound."""

    def __init__(self):
        self.bound, self.token_of = set(), {}

    def rename(self, want, got):
        """Returns `got` with every bound mark replaced by its token."""
        if isinstance(got, dict):
            return {key: self.rename(want.get(key) if isinstance(want, dict) else None, value) for key, value in got.items()}
        if isinstance(got, list):
            pairs = want if isinstance(want, list) and len(want) == len(got) else [None] * len(got)
            return [self.rename(a, b) for a, b in zip(pairs, got)]
        if not isinstance(got, str) or "=" not in got:
            return got
        tokens = TOKEN.findall(want) if isinstance(want, str) else []
        marks = MARK.findall(got)
        if len(tokens) == len(marks):
            for token, mark in zip(tokens, marks):
                self.bind(token, mark)
        return MARK.sub(lambda found: self.token_of.get(found.group(0), found.group(0)), got)

    def bind(self, token, mark):
        same_kind = token[:3] == mark[:3]
        if same_kind and token not in self.bound and mark not in self.token_of:
            self.bound.add(token)
            self.token_of[mark] = token


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
    """The server under test and the credentials for it."""

    def __init__(self, url, token=None, cert=None, key=None):
        parsed = urlparse(url)
        self.host, self.port, self.tls = parsed.hostname, parsed.port, parsed.scheme == "https"
        self.headers = {"Authorization": "Bearer " + token} if token else {}
        self.context = ssl._create_unverified_context()
        if cert:
            self.context.load_cert_chain(cert, key)

    def send(self, method, path, headers, body, timeout=30):
        """Sends a request. Returns the connection, which the caller must close, and the response."""
        if self.tls:
            connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        connection.request(method, path, body=body, headers=self.headers_of(headers))
        return connection, connection.getresponse()

    def headers_of(self, headers):
        """The headers of a request, including the common ones."""
        return {"User-Agent": "replay/1", **self.headers, **headers}


class Replay:
    """A run of a scenario: its variables, its watches, and the bindings of names so far."""

    def __init__(self, scenario, server, record=False, fast=False):
        self.scenario, self.server, self.record, self.fast = scenario, server, record, fast
        self.names = RecordedNames() if record else MarkedNames()
        self.bindings, self.saved, self.watches, self.connections = Bindings(), {}, {}, []
        self.sent = sent_text(scenario)

    def substitute(self, text):
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self.saved[found.group(1)]), text)

    def perform(self, step):
        """Performs a step. Returns the normalized response, or None if the step has none."""
        if "sleep" in step:
            if not self.fast:
                time.sleep(step["sleep"])
            return None
        if "watch" in step:
            self.open_watch(step)
            return None
        got = self.collect(step) if "collect" in step else self.send(step)
        return hide_descriptions(got, self.sent)

    def open_watch(self, step):
        events = self.watches[step["watch"]] = queue.Queue()
        headers, _ = self.encode(step)
        connection, response = self.server.send("GET", self.substitute(step["path"]), headers, None, timeout=60)
        self.connections.append(connection)
        if response.status != 200:
            events.put({"status": response.status, "body": parse(response.read())})
            return

        def pump():
            try:
                for line in response:
                    if line.strip():
                        events.put(json.loads(line))
            except (OSError, ValueError, http.client.HTTPException):
                pass  # the server ended the stream
            events.put("<closed>")

        threading.Thread(target=pump, daemon=True).start()

    def close(self):
        """Closes the watches."""
        for connection in self.connections:
            if connection.sock:
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def collect(self, step):
        source, events = self.watches[step["collect"]], []
        end = time.time() + step.get("seconds", 3)
        recorded = len(step.get("answer", [])) if self.fast else step["events"]
        while len(events) < step["events"] and time.time() < end:
            if len(events) == recorded:
                end = min(end, time.time() + QUIET_SECONDS)
            try:
                events.append(source.get(timeout=max(0.01, end - time.time())))
            except queue.Empty:
                break
        for path in step.get("ignore", []):
            drop(events, path)
        return [normalize(event, self.names) for event in events]

    def send(self, step):
        response, raw = self.send_until(step)
        in_protobuf = step.get("protobuf") and raw[:4] == b"k8s\0"
        value = parse_protobuf(raw) if in_protobuf else parse(raw)
        for variable, path in step.get("save", {}).items():
            self.saved[variable] = lookup(value, path)
        headers = {}
        for name in COMPARED_HEADERS:
            values = [value for header, value in response.getheaders() if header.lower() == name]
            if values:
                headers[name] = sorted(values) if len(values) > 1 else values[0]
        for path in step.get("ignore", []):
            drop(value, path)
        return {"status": response.status, "headers": headers, "body": normalize(value, self.names)}

    def send_until(self, step):
        headers, body = self.encode(step)
        until = step.get("until", {})
        end = time.time() + until.get("seconds", 20 if until else 0)
        while True:
            connection, response = self.server.send(step["method"], self.substitute(step["path"]), headers, body)
            raw = read_all(response)
            connection.close()
            if fulfils(until, response.status, raw.decode(errors="replace")) or time.time() > end:
                return response, raw
            time.sleep(POLL_SECONDS)

    def encode(self, step):
        headers = {"Accept": "application/json"}
        headers.update({key: self.substitute(value) for key, value in step.get("headers", {}).items()})
        body = None
        if "text" in step:
            body = self.substitute(step["text"]).encode()
        elif "base64" in step:
            body = base64.b64decode(step["base64"])
        elif "body" in step:
            separators = (",", ":") if self.scenario.get("compact") else None
            body = self.substitute(json.dumps(step["body"], separators=separators)).encode()
        if body is not None and "Content-Type" not in headers:
            patch = step["method"] == "PATCH"
            headers["Content-Type"] = "application/merge-patch+json" if patch else "application/json"
        if headers.get("Content-Type") == "":
            del headers["Content-Type"]
        return headers, body

    def compare(self, step, got):
        """Returns the lines of a unified diff; empty if the response equals the recorded one."""
        want = hide_descriptions(step.get("answer"), self.sent)
        for path in step.get("ignore", []):
            drop(want.get("body") if isinstance(want, dict) else want, path)
        got = self.bindings.rename(want, got)
        if canonical(got) == canonical(want):
            return []
        a, b = (json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (want, got))
        return list(difflib.unified_diff(a, b, "recorded", "this server", n=1, lineterm=""))


def read_all(response):
    """The body of a response. A stream that does not end, in which each event comes in time, is an error after READ_SECONDS."""
    chunks, end = [], time.time() + READ_SECONDS
    while chunk := response.read1(1 << 16):
        chunks.append(chunk)
        if time.time() > end:
            raise TimeoutError("the response does not end")
    return b"".join(chunks)


def fulfils(until, status, text):
    """Whether a response fulfils the condition of a step."""
    return status == until.get("status", status) and until.get("has", "") in text and ("lacks" not in until or until["lacks"] not in text)


class Outcome:
    """The outcome of a scenario: the number of compared steps, and the differences by step."""

    def __init__(self, name):
        self.name, self.steps, self.failures = name, 0, []

    def text(self, lines=DIFF_LINES):
        """The differences, at most `lines` lines of each."""
        return "\n".join(
            f"--- {self.name}: {request}\n" + "\n".join("    " + line[:300] for line in difference[:lines]) for _, request, difference in self.failures
        )


def run(path, server, record=False, fast=False):
    """Replays one file, or records it. Returns the outcome."""
    with open(path, encoding="utf-8") as file:
        scenario = json.load(file)
    replay, outcome = Replay(scenario, server, record, fast), Outcome(scenario["name"])
    for step in scenario["steps"]:
        try:
            got = replay.perform(step)
        except Exception as error:  # a dead server or a missing variable is a failed step
            got = {"error": f"{type(error).__name__}: {error}"}
        if got is None:
            continue
        outcome.steps += 1
        if record:
            step["answer"] = got
            difference = [got["error"]] if "error" in got else []
        else:
            difference = replay.compare(step, got)
        if difference:
            request = f"{step.get('id')}: {step.get('method', '')} {step.get('path', '')}"
            outcome.failures.append((step.get("id"), request, difference))
    replay.close()
    if record:
        write(path, scenario)
    return outcome


def write(path, scenario):
    """Writes a scenario with one step per line, so that a changed step is a changed line."""

    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    head = {key: value for key, value in scenario.items() if key != "steps"}
    steps = ",\n".join(compact(step) for step in scenario["steps"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{compact(head)[:-1]},"steps":[\n{steps}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="URL of the server")
    parser.add_argument("--token", help="bearer token")
    parser.add_argument("--cert", help="client certificate")
    parser.add_argument("--key", help="key of the client certificate")
    parser.add_argument("--record", action="store_true", help="write the responses into the files")
    parser.add_argument("--fast", action="store_true", help="skip the pauses that only kube-apiserver needs")
    parser.add_argument("-v", action="store_true", help="print whole differences")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    server = Server(args.server, args.token, args.cert, args.key)
    passed = failed = 0
    for file in args.files:
        outcome = run(file, server, args.record, args.fast)
        if outcome.failures:
            print(outcome.text(None if args.v else DIFF_LINES))
        passed += outcome.steps - len(outcome.failures)
        failed += len(outcome.failures)
        print(f"{file}: {outcome.steps - len(outcome.failures)} of {outcome.steps} steps")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
