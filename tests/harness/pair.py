"""Sends the same requests to two servers, and normalizes their responses so that random differences disappear."""

import base64
import http.client
import json
import re
import threading

import yaml

from classes import TEXT
from steps import UID, EqualNames, Scenario, drop, hide_descriptions, parse
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
    return pattern.sub(r"\1<generated>", value) if isinstance(value, str) else value


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
    """One of the two servers, and the variables of the scenario, whose values come from its responses."""

    def __init__(self, server, scenario):
        self.scenario = Scenario(scenario, server)
        self.connection = None

    def perform(self, step):
        return normalize(hide_descriptions(self.scenario.perform(step), ""))

    def send(self, step):
        """Sends a request. Returns the normalized status, headers and body."""
        headers, body = self.scenario.encode(step)
        try:
            response, raw = self.exchange(step["method"], self.scenario.substitute(step["path"]), headers, body)
        except OSError as error:
            return {"error": type(error).__name__}
        return {"status": response.status, "headers": compared_headers(response), "body": self.body(raw, step)}

    def exchange(self, method, path, headers, body):
        """Sends a request on the connection of this scenario, or on a new one if that has been closed. Returns response and body."""
        server = self.scenario.server
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
        self.scenario.close()

    def body(self, raw, step):
        value = parse(raw)
        for names in filter(None, (generated(step), self.saved())):
            value = replaced(value, names)
        if raw.startswith(b"k8s\0") or isinstance(value, dict) and "base64" in value:
            # the events of a watch have their length first
            return "<protobuf>" if b"k8s\0" in raw else base64.b64encode(raw).decode()
        if isinstance(value, str) and value.startswith("apiVersion: "):
            ignored = step.get("ignore", [])
            # ignored paths cannot be removed from the text
            return {TEXT: "" if ignored else self.comparable(value, []), **self.comparable(parsed_yaml(value), ignored)}
        value = events(value) if isinstance(value, str) and "\n{" in value else value
        return self.comparable(value, step.get("ignore", []))

    def saved(self):
        """A pattern for the texts that the scenario has saved, such as generated names; None if there are none."""
        texts = {value for value in self.scenario.saved.values() if isinstance(value, str) and len(value) >= SAVED_MIN}
        return re.compile("()(?:" + "|".join(sorted(map(re.escape, texts))) + ")") if texts else None

    @staticmethod
    def comparable(value, ignored):
        """The normalized body without the ignored paths."""
        for path in ignored:
            drop(value, path)
            # of a table, the objects of its rows
            drop(value, "rows.*.object." + path)
        return normalize(hide_descriptions(without_random_values(value, EqualNames()), ""))


def compared_headers(response):
    headers = {}
    for name in HEADERS:
        values = sorted(value for header, value in response.getheaders() if header.lower() == name)
        if values:
            headers[name] = values
    return headers


class Pair:
    """A scenario that runs on both servers at the same time."""

    def __init__(self, servers, scenario):
        # kube-apiserver preserves the whitespace of some values, Pintle does not
        self.sides = [Side(server, {**scenario, "compact": True}) for server in servers]

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
