"""The comparison of responses in replays."""

import unittest

import pytest

import replay
from replay import Bindings, MarkedNames, RecordedNames, drop, fulfils, hide_descriptions, normalize

pytestmark = pytest.mark.replay

ONE = "11111111-2222-3333-4444-555555555555"
TWO = "66666666-7777-8888-9999-000000000000"


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
            self.assertEqual(normalize(value, RecordedNames()), want)

    def test_recorded_names_are_numbered_by_first_appearance(self):
        names = RecordedNames()
        got = normalize([{"uid": TWO}, {"uid": ONE}, {"uid": TWO}, {"resourceVersion": "9"}, {"resourceVersion": "0"}], names)
        self.assertEqual(got, [{"uid": "<uid:1>"}, {"uid": "<uid:2>"}, {"uid": "<uid:1>"}, {"resourceVersion": "<rv:1>"}, {"resourceVersion": "0"}])

    def test_only_unordered_lists_are_sorted(self):
        self.assertEqual(normalize({"verbs": ["b", "a"], "items": ["b", "a"]}, RecordedNames()), {"verbs": ["a", "b"], "items": ["b", "a"]})

    def test_messages_that_join_causes_ignore_their_order(self):
        def status(message):
            return {"message": message, "details": {"causes": [{"field": "b"}, {"field": "a"}]}}

        a, b = (normalize(status(text), RecordedNames()) for text in ("x is invalid: [b: no, a: no]", "x is invalid: [a: no, b: no]"))
        self.assertEqual(a, b)


class Binding(unittest.TestCase):
    def rename(self, want, got):
        return Bindings().rename(want, normalize(got, MarkedNames()))

    def test_names_must_be_equal_where_the_recorded_names_are_equal(self):
        want = [{"uid": "<uid:1>"}, {"uid": "<uid:1>"}]
        self.assertEqual(self.rename(want, [{"uid": ONE}, {"uid": ONE}]), want)
        self.assertNotEqual(self.rename(want, [{"uid": ONE}, {"uid": TWO}]), want)

    def test_names_must_differ_where_the_recorded_names_differ(self):
        want = [{"resourceVersion": "<rv:1>"}, {"resourceVersion": "<rv:2>"}]
        self.assertEqual(self.rename(want, [{"resourceVersion": "7"}, {"resourceVersion": "9"}]), want)
        self.assertNotEqual(self.rename(want, [{"resourceVersion": "7"}, {"resourceVersion": "7"}]), want)

    def test_a_uid_is_not_bound_to_a_resource_version(self):
        self.assertNotEqual(self.rename({"x": "<rv:1>"}, {"x": ONE}), {"x": "<rv:1>"})


class Comparison(unittest.TestCase):
    def test_numbers_and_booleans_are_distinguished(self):
        self.assertEqual(len({replay.canonical(value) for value in (1, 1.0, True, "1")}), 4)

    def test_descriptions_are_compared_only_if_the_scenario_sent_them(self):
        sent = replay.sent_text({"steps": [{"body": {"description": 'mine "quoted"'}}, {"text": "description: plain"}]})
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
