"""Two servers that are asked the same, and what their responses are once chance is taken out of them."""
import base64
import http.client
import json
import re
import threading

import yaml

import replay
from classes import TEXT

AGE = re.compile(r"^(\d+[smhdy])+$|^<invalid>$|^<unknown>$")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# the first bytes of protobuf, in base64
PROTOBUF = "azhz"
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
VERSIONED = re.compile(r"""(resourceVersion[\\"]*: ?[\\"]*|current: |in record \()[1-9]\d*""")
YAML_AGE = re.compile(r"(?m)^( +- +)(\d+[smhdy])+$")
# the token of a page, which contains the revision
CONTINUE = re.compile(r"(?m)^( *continue: )eyJ[\w-]+$")
# what separates the errors of a message
PUNCTUATION = re.compile(r"[\[\],:'\"]+(?=\s|$)|(?<=\s)[\['\"]+")
DESCRIPTION = re.compile(r"^( *)(- )?description:")
# headers that are compared beside those of the replay tool
HEADERS = ("content-type", "warning", "retry-after", "location", "allow", "accept-patch", "cache-control")


class Sameness:
    """Takes uids and resourceVersions as equal wherever they stand."""

    @staticmethod
    def uid(_):
        return "<uid>"

    @staticmethod
    def version(text):
        return "<rv>" if text.isdigit() and text != "0" else text


def parsed_yaml(text):
    """The object of a text in YAML, with all its values as text; empty if it cannot be parsed."""
    try:
        value = yaml.load(text, Loader=yaml.CBaseLoader)
    except (yaml.YAMLError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def events(text):
    """A stream of watch events as a list; other text as it is."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return text


def without_descriptions(text):
    """YAML without the lines of descriptions, which are the server's own."""
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
    """The errors of an apply in an order of their own: kube-apiserver's is that of a map."""
    head, found, errors = text.partition("errors:\n")
    return head + found + "\n".join(sorted(errors.split("\n"))) if found else text


def same(value, key=""):
    """Removes ages and times from text, which `replay.normalize` leaves in longer text."""
    if isinstance(value, dict) and str(value.get("base64", "")).startswith(PROTOBUF):
        return "<protobuf>"
    if isinstance(value, dict):
        return {name: same(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [same(item, key) for item in value]
    if isinstance(value, str):
        if key == "cells" and AGE.match(value):
            return "<age>"
        if value.startswith("apiVersion: "):
            value = without_descriptions(value)
            value = CONTINUE.sub(r"\1<token>", YAML_AGE.sub(r"\1<age>", value))
            # lists whose order is left open, such as conditions, are sorted in JSON only; the order of errors is that of a map,
            # and the lines of a message follow from it
            parts = PUNCTUATION.sub(" ", value).split() if "\nkind: Status\n" in value else value.split("\n")
            value = "\n".join(sorted(parts))
        value = sorted_errors(value)
        return VERSIONED.sub(r"\1<rv>", ADDRESS.sub("<address>", TIME.sub("<time>", value)))
    return value


class Asked:
    """One of the two servers: its address and the variables that its responses have set."""

    def __init__(self, server, scenario):
        self.replay = replay.Replay(scenario, server, record=True)
        self.replay.names = Sameness
        self.connection = None

    def perform(self, step):
        return same(replay.hide_descriptions(self.replay.perform(step), ""))

    def ask(self, step):
        """Sends one request, and returns status, headers and body."""
        headers, body = self.replay.encode(step)
        try:
            response, raw = self.send(step["method"], self.replay.substitute(step["path"]), headers, body)
        except OSError as error:
            return {"error": type(error).__name__}
        return {"status": response.status, "headers": kept(response), "body": self.body(raw, step)}

    def send(self, method, path, headers, body):
        """Sends a request on the connection of this scenario, or on a new one if that has been closed."""
        server = self.replay.server
        if self.connection is not None:
            try:
                self.connection.request(method, path, body=body, headers=server.headers_of(headers))
                response = self.connection.getresponse()
                return response, response.read()
            except (OSError, http.client.HTTPException):
                self.connection.close()
        self.connection = None
        connection, response = server.send(method, path, headers, body)
        raw = response.read()
        self.connection = connection
        return response, raw

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.replay.close()

    def body(self, raw, step):
        value = replay.parse(raw)
        if raw.startswith(b"k8s\0") or isinstance(value, dict) and "base64" in value:
            return "<protobuf>" if raw.startswith(b"k8s\0") else base64.b64encode(raw).decode()
        if isinstance(value, str) and value.startswith("apiVersion: "):
            ignored = step.get("ignore", [])
            # ignored paths cannot be taken out of the text
            return {TEXT: "" if ignored else self.shown(value, []), **self.shown(parsed_yaml(value), ignored)}
        value = events(value) if isinstance(value, str) and "\n{" in value else value
        return self.shown(value, step.get("ignore", []))

    @staticmethod
    def shown(value, ignored):
        """A body as it is compared, without the ignored paths."""
        for path in ignored:
            replay.drop(value, path)
        return same(replay.hide_descriptions(replay.normalize(value, Sameness), ""))


def kept(response):
    headers = {}
    for name in HEADERS:
        values = sorted(value for header, value in response.getheaders() if header.lower() == name)
        if values:
            headers[name] = values
    return headers


class Pair:
    """A scenario that runs on both servers at the same time."""

    def __init__(self, servers, scenario):
        # kube-apiserver keeps the spelling of some values, Pintle does not: blanks would be differences
        self.sides = [Asked(server, {**scenario, "compact": True}) for server in servers]

    def both(self, function):
        """Calls a function with each side, at the same time. Returns both results."""
        results = [None, None]

        def call(index):
            try:
                results[index] = function(self.sides[index])
            except Exception as error:  # a missing variable or a dead server is a result, too
                results[index] = {"error": f"{type(error).__name__}: {error}"}

        other = threading.Thread(target=call, args=(1,))
        other.start()
        call(0)
        other.join()
        return results

    def perform(self, step):
        return self.both(lambda side: side.perform(step))

    def ask(self, step):
        return self.both(lambda side: side.ask(step))

    def close(self):
        for side in self.sides:
            side.close()
