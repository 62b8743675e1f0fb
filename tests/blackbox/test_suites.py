"""`pintle test`: suites of cases, without a server."""

import json
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from programs import ROOT

pytestmark = pytest.mark.cli

EXAMPLE = ROOT / "examples" / "crd-tests"


@pytest.fixture
def suite(tmp_path):
    """A copy of the example's suite, which can be changed."""
    shutil.copytree(EXAMPLE, tmp_path / "suite")
    return tmp_path / "suite" / "boats.testsuite.yaml"


@pytest.fixture
def run(launch, tmp_path):
    def test(*arguments):
        command = [launch.binary, "test", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    return test


def test_passed_and_failed_cases(run, suite):
    done = run("suite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "11 cases passed, 0 failed\n", "")
    suite.write_text(suite.read_text().replace("every member", "each member"))
    done = run()
    assert done.returncode == 1 and done.stdout.startswith("FAIL ./suite/boats.testsuite.yaml onCreate[1]: the crew needs seats\n"), done
    report = json.loads(run("suite", "-o", "json").stdout)
    assert (report["passed"], report["failed"]) == (10, 1)
    tree = xml.etree.ElementTree.fromstring(run("suite", "-o", "junit").stdout)
    assert len(tree.findall("*/testcase")) == 11 and len(tree.findall("*/testcase/failure")) == 1


def test_a_suite_in_the_current_directory(run, suite, tmp_path):
    text = suite.read_text().replace("crds: [boats.crd.yaml]", "crdName: boats.harbor.example.com")
    (tmp_path / "boats.testsuite.yaml").write_text(text)
    for file in ("boats.crd.yaml", "policy.yaml"):
        shutil.copy(suite.parent / file, tmp_path)
    done = run("boats.testsuite.yaml")
    assert (done.returncode, done.stdout) == (0, "11 cases passed, 0 failed\n"), done


def test_expected_objects_are_updated(run, suite):
    before = suite.read_text()
    suite.write_text(before.replace("seats: 4\n  - name: the crew", "seats: 5\n  - name: the crew"))
    done = run("--update", "suite")
    assert done.returncode == 0 and suite.read_text() == before, done


def test_coverage_names_what_was_not_seen(run, suite):
    done = run("suite", "--coverage")
    assert done.returncode == 0 and "suite/boats.crd.yaml\n  never true: v1 spec.home: self == oldSelf\n" in done.stdout, done
    assert done.stdout == run("suite", "--coverage").stdout
    report = json.loads(run("suite", "--coverage", "-o", "json").stdout)
    assert len(report["coverage"]) == 7
    done = run("suite", "--coverage-min", "90")
    assert done.returncode == 1 and done.stderr == "pintle: the coverage is 42 %, less than 90 %\n", done
    assert run("suite", "--coverage-min", "40").returncode == 0


def test_schema_is_json(run):
    assert json.loads(run("--schema").stdout)["title"].startswith("Test suite")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("a: [", "bad.yaml: line 2: "),
        ("a: 1", "it is not a suite: it has no tests"),
        ("tests: {}", "the suite names no definition"),
        ("tests: {}\ncrds: [none.yaml]", "cannot read none.yaml"),
    ],
)
def test_suites_that_cannot_run(run, tmp_path, text, reason):
    (tmp_path / "bad.yaml").write_text(text)
    done = run("bad.yaml")
    assert done.returncode == 2 and reason in done.stdout and done.stdout.count("\n") == 2, done
    done = run("missing.yaml")
    assert done.returncode == 2 and "missing.yaml: cannot read it" in done.stdout, done
