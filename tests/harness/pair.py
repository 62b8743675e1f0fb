"""Sends the same requests to two servers, and normalizes their responses so that random differences disappear."""

import base64
import http.client
import json
import queue
import re
import socket
import threading
import time

import yaml

from classes import TEXT
from steps import UID, EqualNames, drop, fulfils, hide_descriptions, lookup, parse, parse_protobuf, read_all, sent_text
from steps import normalize as without_random_values

AGE = re.compile(r"^(\d+[smhdy])+$|^<invalid>$|^<unknown>$")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# the first bytes of protobuf, in base64
PROTOBUF = "azhz"
# the types that CEL's messages name, by a random number
SELF_TYPE = re.compile(r"selfType\d+")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
VERSIONED = re.compile(r"""(resourceVersion[\\"]*: ?[\\"]*|current: |in record \()[1-9]\d*""")
YAML_AGE = re.compile(r"(?m)^( +- +)(\d+[smhdy])+$")
# the continue token of a page, which contains the revision
CONTINUE = re.compile(r"(?m)^( *continue: )eyJ[\w-]+$")
# what separates the errors of a message
PUNCTUATION = re.compile(r"[\[\],:'\"]+(?=\s|$)|(?<=\s)[\['\"]+")
DESCRIPTION = re.compile(r"^( *)(- )?description:")
# a prefix in a body that is sent as text
GENERATE_NAME = re.compile(r'"generateName" *: *"([^"\\]+)"')
# the length to which prefixes of generated names are cut
PREFIX_MAX = 58
# the length from which on saved texts are taken as generated: shorter ones, such as revisions, may occur by chance
SAVED_MIN = 6
POLL_SECONDS = 0.02
# the headers that are compared
HEADERS = ("content-type", "warning", "retry-after", "location", "allow", "accept-patch", "cache-control")


def parsed_yaml(text):
    """The object of a YAML text, with all values as strings; empty if it cannot be parsed."""
    try:
        value = yaml.load(text, Loader=yaml.CBaseLoader)
    except (yaml.YAMLError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def events(text):
    """A stream of watch events as a list; other text is returned unchanged."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return text


def without_descriptions(text):
    """YAML without the lines of descriptions, whose texts may differ."""
    kept, deeper = [], None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if deeper is not None and (indent > deeper or not line):
            continue
        found = DESCRIPTION.match(line)
        deeper = len(found.group(1)) + len(found.group(2) or "") if found else None
        kept.append(found.group(0) + " <text>" if found else line)
    return "\n".join(kept)


def sorted_errors(text):
    """The text with the errors of an apply sorted: kube-apiserver's order is that of a map, which is random."""
    head, found, errors = text.partition("errors:\n")
    return head + found + "\n".join(sorted(errors.split("\n"))) if found else text


def generated(step):
    """A pattern for names that a server generates from the prefix in a request; None if the request has none."""
    metadata = step["body"].get("metadata") if isinstance(step.get("body"), dict) else None
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
    found = [prefix] if isinstance(prefix, str) else GENERATE_NAME.findall(step.get("text", ""))
    prefixes = [prefix[:PREFIX_MAX] for prefix in found if prefix]
    if not prefixes:
        return None
    texts = {text for prefix in prefixes for text in (prefix, json.dumps(prefix)[1:-1])}
    return re.compile("(" + "|".join(map(re.escape, texts)) + ")[a-z0-9]{5}(?![a-z0-9])")


def replaced(value, pattern):
    """A value whose texts have a mark in place of the random end of generated names."""
    if isinstance(value, dict):
        return {name: replaced(item, pattern) for name, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, pattern) for item in value]
    # a short prefix also occurs in uids
    return pattern.sub(r"\1<generated>", UID.sub("<uid>", value)) if isinstance(value, str) else value


def has_causes(value):
    """Whether a value is a Status with several causes."""
    causes = value["details"].get("causes") if isinstance(value.get("details"), dict) else None
    return isinstance(causes, list) and len(causes) > 1 and isinstance(value.get("message"), str)


def normalize(value, key=""):
    """Replaces ages, times, addresses and resourceVersions within longer text, which `steps.normalize` does not."""
    if isinstance(value, dict) and str(value.get("base64", "")).startswith(PROTOBUF):
        return "<protobuf>"
    if isinstance(value, dict):
        out = {name: normalize(item, name) for name, item in value.items()}
        if has_causes(value):
            # `steps.normalize` has sorted the words of the message, but with their uids
            out["message"] = " ".join(sorted(UID.sub("<uid>", out["message"]).split(" ")))
        return out
    if isinstance(value, list):
        return [normalize(item, key) for item in value]
    if isinstance(value, str):
        if key == "cells" and AGE.match(value):
            return "<age>"
        if value.startswith("apiVersion: "):
            value = VERSIONED.sub(r"\1<rv>", without_descriptions(value))
            value = CONTINUE.sub(r"\1<token>", YAML_AGE.sub(r"\1<age>", value))
            # unordered lists, such as conditions, are sorted in JSON only; the order of errors, and so of the lines of a message,
            # is random
            parts = PUNCTUATION.sub(" ", value).split() if "\nkind: Status\n" in value else value.split("\n")
            value = "\n".join(sorted(parts))
        value = sorted_errors(value)
        value = SELF_TYPE.sub("selfType<n>", ADDRESS.sub("<address>", TIME.sub("<time>", value)))
        return VERSIONED.sub(r"\1<rv>", value)
    return value


class Side:
    """One of the two servers: the variables of the scenario, whose values come from its responses, and its watches."""

    def __init__(self, server, scenario):
        self.server, self.sent = server, sent_text(scenario)
        self.saved, self.watches, self.connections, self.connection = {}, {}, [], None
        # the causes of the last error, in their order
        self.causes = None

    def perform(self, step):
        """Performs a step of the scenario. Returns the normalized response, or None if the step has none."""
        if "sleep" in step:
            time.sleep(step["sleep"])
            return None
        if "watch" in step:
            self.open_watch(step)
            return None
        if "collect" in step:
            return comparable(self.collect(step), step.get("ignore", []), self.sent)
        until = step.get("until", {})
        end = time.time() + until.get("seconds", 20 if until else 0)
        while True:
            # writes are not repeated on a connection that has been closed
            self.disconnect()
            response, raw = self.exchange(step)
            if fulfils(until, response.status, raw.decode(errors="replace")) or time.time() > end:
                break
            time.sleep(POLL_SECONDS)
        in_protobuf = step.get("protobuf") and raw[:4] == b"k8s\0"
        value = parse_protobuf(raw) if in_protobuf else parse(raw)
        for variable, path in step.get("save", {}).items():
            self.saved[variable] = lookup(value, path)
        body = comparable(value, [], self.sent) if in_protobuf else self.body(raw, step, self.sent)
        return {"status": response.status, "headers": compared_headers(response), "body": body}

    def send(self, step):
        """Sends a request. Returns the normalized status, headers and body."""
        try:
            response, raw = self.exchange(step)
        except OSError as error:
            return {"error": type(error).__name__}
        return {"status": response.status, "headers": compared_headers(response), "body": self.body(raw, step)}

    def exchange(self, step):
        """Sends a request on the connection of this scenario, or on a new one if that has been closed. Returns response and body."""
        method, path, (headers, body) = step["method"], self.substitute(step["path"]), self.encode(step)
        if self.connection is not None:
            try:
                self.connection.request(method, path, body=body, headers=self.server.headers_of(headers))
                response = self.connection.getresponse()
                return response, read_all(response)
            except (OSError, http.client.HTTPException):
                self.disconnect()
        self.connection, response = self.server.send(method, path, headers, body)
        return response, read_all(response)

    def substitute(self, text):
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self.saved[found.group(1)]), text)

    def encode(self, step):
        """The headers and the bytes of a request."""
        kind = "application/merge-patch+json" if step["method"] == "PATCH" else "application/json"
        headers = {"Accept": "application/json", "Content-Type": kind}
        headers.update({key: self.substitute(value) for key, value in step.get("headers", {}).items()})
        body = None
        if "text" in step:
            body = self.substitute(step["text"]).encode()
        elif "base64" in step:
            body = base64.b64decode(step["base64"])
        elif "body" in step:
            # kube-apiserver preserves the whitespace of some values, Pintle does not
            body = self.substitute(json.dumps(step["body"], separators=(",", ":"))).encode()
        if body is None and "Content-Type" not in step.get("headers", {}) or headers["Content-Type"] == "":
            del headers["Content-Type"]
        return headers, body

    def open_watch(self, step):
        events = self.watches[step["watch"]] = queue.Queue()
        headers, _ = self.encode(step)
        connection, response = self.server.send("GET", self.substitute(step["path"]), headers, timeout=60)
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

    def collect(self, step):
        source, events = self.watches[step["collect"]], []
        end = time.time() + step.get("seconds", 3)
        while len(events) < step["events"] and time.time() < end:
            try:
                events.append(source.get(timeout=max(0.01, end - time.time())))
            except queue.Empty:
                break
        return events

    def disconnect(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def close(self):
        self.disconnect()
        for connection in self.connections:
            if connection.sock:
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def body(self, raw, step, sent=""):
        value = parse(raw)
        self.causes = ordered_causes(value)
        for names in filter(None, (generated(step), self.saved_texts())):
            value = replaced(value, names)
        if raw.startswith(b"k8s\0") or isinstance(value, dict) and "base64" in value:
            # the events of a watch have their length first
            return "<protobuf>" if b"k8s\0" in raw else base64.b64encode(raw).decode()
        ignored = step.get("ignore", [])
        if isinstance(value, str) and value.startswith("apiVersion: "):
            # ignored paths cannot be removed from the text
            return {TEXT: "" if ignored else comparable(value, [], sent), **comparable(parsed_yaml(value), ignored, sent)}
        value = events(value) if isinstance(value, str) and "\n{" in value else value
        return comparable(value, ignored, sent)

    def saved_texts(self):
        """A pattern for the texts that the scenario has saved, such as generated names; None if there are none."""
        texts = {value for value in self.saved.values() if isinstance(value, str) and len(value) >= SAVED_MIN}
        return re.compile("()(?:" + "|".join(sorted(map(re.escape, texts))) + ")") if texts else None


def comparable(value, ignored, sent):
    """The normalized body without the ignored paths; descriptions are compared if they are in the text that was sent."""
    for path in ignored:
        drop(value, path)
        # of a table, the objects of its rows
        drop(value, "rows.*.object." + path)
    return normalize(hide_descriptions(without_random_values(value, EqualNames()), sent))


def ordered_causes(body):
    """The causes of an error in their order."""
    if not isinstance(body, dict) or not isinstance(body.get("details"), dict):
        return None
    return [(cause.get("field"), cause.get("reason"), cause.get("message")) for cause in body["details"].get("causes") or []]


def compared_headers(response):
    found = {name: sorted(value for header, value in response.getheaders() if header.lower() == name) for name in HEADERS}
    return {name: values for name, values in found.items() if values}


class Pair:
    """A scenario that runs on both servers at the same time."""

    def __init__(self, servers, scenario):
        self.sides = [Side(server, scenario) for server in servers]

    def both(self, function):
        """Calls a function with each side concurrently. Returns both results."""
        results = [None, None]

        def call(index):
            try:
                results[index] = function(self.sides[index])
            except Exception as error:  # such as a missing variable or a dead server
                results[index] = {"error": f"{type(error).__name__}: {error}"}

        other = threading.Thread(target=call, args=(1,))
        other.start()
        call(0)
        other.join()
        return results

    def perform(self, step):
        return self.both(lambda side: side.perform(step))

    def send(self, step):
        return self.both(lambda side: side.send(step))

    def close(self):
        for side in self.sides:
            side.close()
