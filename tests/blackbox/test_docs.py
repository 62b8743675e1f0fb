"""The documentation: links resolve, commands work, and all pages are in the table of contents."""

import re

import pytest

import documentation
from documentation import ROOT, Shell, comparable

pytestmark = pytest.mark.docs

SOURCE = ROOT / "docs" / "src"
SUMMARY = SOURCE / "SUMMARY.md"
PAGES = sorted(SOURCE.rglob("*.md"))
MARKDOWN = [*PAGES, *sorted(ROOT.glob("*.md")), *sorted((ROOT / "tests").glob("**/README.md")), ROOT / "benches" / "README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
REPOSITORY = "https://github.com/pintle/pintle/blob/main/"


def name_of(path):
    return str(path.relative_to(ROOT))


def anchors(path):
    """The anchors of a page's headings, as GitHub and mdBook form them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", MARKDOWN, ids=name_of)
def test_links(path):
    for target in LINK.findall(path.read_text()):
        link, _, anchor = target.partition("#")
        if link.startswith(REPOSITORY):
            file = ROOT / link.removeprefix(REPOSITORY)
        elif ":" in link:
            continue  # external links are not fetched
        else:
            file = path.parent / link if link else path
        assert file.exists(), f"{name_of(path)}: {target} does not exist"
        assert not anchor or anchor in anchors(file), f"{name_of(path)}: there is no heading {target}"


def test_summary_has_every_page():
    listed = [SOURCE / target for target in LINK.findall(SUMMARY.read_text())]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(PAGES) - {SUMMARY}


def test_every_page_has_one_title():
    for path in set(PAGES) - {SUMMARY}:
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
        assert len(re.findall(r"^# ", text, re.M)) == 1, path


def test_examples_are_named():
    named = set(re.findall(r"`(?:examples/)?([\w.-]+)`|examples/([\w.-]+)", (SOURCE / "guides" / "first-minute.md").read_text()))
    named = {name for pair in named for name in pair}
    missing = {path.name for path in (ROOT / "examples").iterdir()} - named
    assert not missing, missing


@pytest.mark.parametrize("path", [path for path in [ROOT / "README.md", *PAGES] if documentation.commands(path)], ids=name_of)
def test_commands(path, launch, kubectl_binary):
    with Shell(launch.binary, kubectl_binary) as shell:
        for command in documentation.commands(path):
            output, status = shell.run(command)
            expected = "\n".join(command.output)
            assert comparable(expected) == comparable(output) or not expected, f"$ {command.text}\n{output}"
            assert status == 0 or expected, f"$ {command.text}\n{output}"


@pytest.mark.parametrize("path", [path for path in MARKDOWN if documentation.printed(path.read_text())], ids=name_of)
def test_printed_commands_are_accepted(path, launch):
    """Also those that are not executed, since they need a cluster, a bucket or an issuer: their flags and values are parsed."""
    for _, *words in documentation.printed(path.read_text()):
        if "|" in " ".join(words):  # a list of alternatives
            continue
        launch.run(*words, "--help")


def test_commands_are_found():
    assert ["pintle", "run", "--crds", "examples/crontab.yaml"] in documentation.printed((ROOT / "README.md").read_text())
    page = SOURCE / "guides" / "first-minute.md"
    assert [command.serves for command in documentation.commands(page)].count(True) == 1
    assert len(documentation.commands(page)) > 5
