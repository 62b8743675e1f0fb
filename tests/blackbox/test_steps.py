"""The comparison of responses of two servers."""

import unittest

import pytest

import steps
from steps import EqualNames, drop, fulfils, hide_descriptions, normalize

pytestmark = pytest.mark.replay


class Normalization(unittest.TestCase):
    def test_times_tokens_and_hashes_have_placeholders(self):
        for value, want in (
            ({"creationTimestamp": "2026-01-02T03:04:05Z"}, {"creationTimestamp": "<time>"}),
            ({"time": "any text"}, {"time": "<time>"}),
            ({"text": "not 2026-01-02T03:04:05Z alone"}, {"text": "not 2026-01-02T03:04:05Z alone"}),
            ({"continue": "abc"}, {"continue": "<continue>"}),
            ({"continue": ""}, {"continue": ""}),
            ({"storageVersionHash": "x"}, {"storageVersionHash": "<hash>"}),
            ({"generateName": "a-", "name": "a-x7z"}, {"generateName": "a-", "name": "a-<generated>"}),
            ({"generateName": "a-", "name": "b"}, {"generateName": "a-", "name": "b"}),
            ("at revision=17 of etcd", "at revision=<n> of etcd"),
        ):
            self.assertEqual(normalize(value, EqualNames()), want)

    def test_only_unordered_lists_are_sorted(self):
        self.assertEqual(normalize({"verbs": ["b", "a"], "items": ["b", "a"]}, EqualNames()), {"verbs": ["a", "b"], "items": ["b", "a"]})

    def test_messages_that_join_causes_ignore_their_order(self):
        def status(message):
            return {"message": message, "details": {"causes": [{"field": "b"}, {"field": "a"}]}}

        a, b = (normalize(status(text), EqualNames()) for text in ("x is invalid: [b: no, a: no]", "x is invalid: [a: no, b: no]"))
        self.assertEqual(a, b)


class Comparison(unittest.TestCase):
    def test_numbers_and_booleans_are_distinguished(self):
        self.assertEqual(len({steps.canonical(value) for value in (1, 1.0, True, "1")}), 4)

    def test_descriptions_are_compared_only_if_the_scenario_sent_them(self):
        sent = steps.sent_text({"steps": [{"body": {"description": 'mine "quoted"'}}, {"text": "description: plain"}]})
        for text, want in (('mine "quoted"', 'mine "quoted"'), ("plain", "plain"), ("theirs", "<text>"), ("", "")):
            self.assertEqual(hide_descriptions([{"description": text}], sent), [{"description": want}])

    def test_ignored_paths_are_dropped(self):
        value = {"items": [{"metadata": {"a": 1, "b": 2}}, {"metadata": {"a": 3}}], "message": "x"}
        for path in ("items.*.metadata.a", "message", "not.there"):
            drop(value, path)
        self.assertEqual(value, {"items": [{"metadata": {"b": 2}}, {"metadata": {}}]})

    def test_conditions_of_a_step(self):
        for until, status, text, want in (
            ({}, 500, "", True),
            ({"status": 200}, 404, "", False),
            ({"status": 404}, 404, "", True),
            ({"has": "ab"}, 200, "cabd", True),
            ({"has": "ab"}, 200, "ba", False),
            ({"lacks": "ab"}, 200, "ab", False),
        ):
            self.assertEqual(fulfils(until, status, text), want)


if __name__ == "__main__":
    unittest.main()
