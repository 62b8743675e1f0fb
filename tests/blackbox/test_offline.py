"""Verdicts without a server: the examples for continuous integration are executed as printed."""

import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from documentation import ROOT

CI = ROOT / "examples" / "ci"
PAGE = ROOT / "docs" / "src" / "guides" / "check-manifests.md"
PROBLEM = "spec.replicas: Invalid value: 30"


class Repository:
    """A repository with manifests and definitions, whose target branch is `origin/main`, and a shell that has `pintle`."""

    def __init__(self, directory, binary):
        self.directory = directory / "repository"
        programs = directory / "bin"
        programs.mkdir()
        (programs / "pintle").symlink_to(binary)
        (self.directory / "crds").mkdir(parents=True)
        shutil.copy(ROOT / "examples" / "crontab.yaml", self.directory / "crds")
        (self.directory / "manifests").mkdir()
        self.manifest = self.directory / "manifests" / "crontab.yaml"
        self.manifest.write_text((ROOT / "examples" / "my-crontab.yaml").read_text() + "  replicas: 3\n")
        branch = {"GITHUB_BASE_REF": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
        self.environment = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(directory), **branch}
        commit = "git -c user.name=a -c user.email=a@example.com commit -qm first"
        done = self.run(f"git init -q . && git add . && {commit} && git update-ref refs/remotes/origin/main HEAD")
        assert done.returncode == 0, done

    def run(self, command):
        return subprocess.run(["bash", "-ec", command], cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=60)

    def spoil(self):
        self.manifest.write_text(self.manifest.read_text().replace("replicas: 3", "replicas: 30"))


@pytest.fixture
def repository(tmp_path, launch):
    return Repository(tmp_path, launch.binary)


def command_of(file, pattern):
    """The command in an example, whose line matches the pattern."""
    (command,) = re.findall(pattern, (CI / file).read_text(), re.M)
    return command


def test_github_workflow(repository):
    command = command_of("github.yaml", r"^ +run: (pintle .*)$")
    done = repository.run(command)
    assert (done.returncode, done.stdout) == (0, "1 file, 1 object: 0 errors, 0 warnings\n"), done
    repository.spoil()
    done = repository.run(command)
    line = "::error file=manifests/crontab.yaml,line=8,col=13,endColumn=15,title=CronTab my-new-cron-object::" + PROBLEM
    assert done.returncode == 1 and done.stdout.startswith(line), done


def test_gitlab_job(repository):
    command = command_of("gitlab.yaml", r"^ +- (pintle .*)$")
    for spoiled in (False, True):
        if spoiled:
            repository.spoil()
        done = repository.run(command)
        assert done.returncode == int(spoiled), done
        suites = xml.etree.ElementTree.parse(repository.directory / "pintle.xml").getroot()
        failures = [failure.get("message") for failure in suites.iter("failure")]
        assert len(failures) == int(spoiled) and all(failure.startswith(PROBLEM) for failure in failures), failures


def test_pre_commit_hook(repository):
    command = command_of("pre-commit.yaml", r"^ +entry: (pintle .*)$") + " manifests/crontab.yaml"
    assert repository.run(command).returncode == 0
    repository.spoil()
    done = repository.run(command)
    assert done.returncode == 1 and PROBLEM in done.stdout, done


def test_hooks_of_the_repository(repository):
    shutil.copytree(ROOT / "examples" / "crd-tests", repository.directory / "suites")
    validate, test = re.findall(r"^  entry: (pintle .*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.M)
    assert repository.run(f"{validate} --crds crds manifests/crontab.yaml").returncode == 0
    assert repository.run(test).stdout == "11 cases passed, 0 failed\n"


def test_file_of_the_project(repository):
    head = "apiVersion: config.pintle.dev/v1alpha1\nkind: ProjectConfiguration\n"
    file = repository.directory / ".pintle.yaml"
    file.write_text(head + "validate:\n  crds: [crds]\n  quiet: true\n")
    for command in ("pintle validate manifests", "cd manifests && pintle validate crontab.yaml"):
        done = repository.run(command)
        assert (done.returncode, done.stdout) == (0, ""), done
    # what is given wins
    done = repository.run("pintle validate manifests --crds manifests --ignore-missing --quiet")
    assert (done.returncode, done.stdout) == (0, ""), done
    for text, error in (
        ("validate: {crd: [a]}\n", '.pintle.yaml: there is no flag "crd"; did you mean "crds"?'),
        ("validate: {output: html}\n", "invalid value 'html' for '--output <OUTPUT>'"),
    ):
        file.write_text(head + text)
        done = repository.run("pintle validate manifests")
        assert done.returncode != 0 and error in done.stderr, done


def output_on_a_terminal(command, environment):
    ours, its = pty.openpty()
    with subprocess.Popen(command, stdout=its, env=environment) as process:
        os.close(its)
        assert process.wait(timeout=60) == 1
        text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return text


def test_colours_on_terminals(tmp_path, launch):
    (tmp_path / "a.yaml").write_text(MAP % "Bad_Name")
    command = [launch.binary, "validate", str(tmp_path / "a.yaml")]
    terminal = {"TERM": "xterm", "HOME": str(tmp_path)}
    assert output_on_a_terminal(command, terminal).startswith("\x1b[1;31merror[")
    for environment in ({**terminal, "NO_COLOR": "1"}, {**terminal, "TERM": "dumb"}):
        assert output_on_a_terminal(command, environment).startswith("error[")
    done = subprocess.run(command, env=terminal, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("error["), done


def test_page_shows_the_steps_of_the_workflow():
    shown = PAGE.read_text().split("## Run it in continuous integration", 1)[1].split("```yaml\n", 1)[1].split("```", 1)[0]
    assert shown in (CI / "github.yaml").read_text()


def test_definitions_and_objects_of_a_server(launch, repository, kubectl_binary):
    with launch() as server:
        environment = {**repository.environment, "KUBECONFIG": str(server.kubeconfig)}
        for path in (repository.directory / "crds", repository.manifest):
            subprocess.run([kubectl_binary, "create", "-f", str(path)], env=environment, check=True, capture_output=True, timeout=60)
        repository.spoil()
        done = subprocess.run(
            [launch.binary, "validate", "-", "--crds", "kubeconfig", "--old", f"kubeconfig:{server.kubeconfig}", "-o", "json"],
            input=repository.manifest.read_text(),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    report = json.loads(done.stdout)
    assert done.returncode == 1 and [finding["field"] for finding in report["findings"]] == ["spec.replicas"], done


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def test_ignore_file_pipes_and_flags(tmp_path, launch):
    (tmp_path / "m" / "templates").mkdir(parents=True)
    (tmp_path / "m" / "a.yaml").write_text(MAP % "a")
    (tmp_path / "m" / "templates" / "b.yaml").write_text(MAP % "Bad_Name")
    os.mkfifo(tmp_path / "m" / "pipe.yaml")
    (tmp_path / ".pintleignore").write_text("# rendered elsewhere\ntemplates/\n")

    def validate(*arguments, text=""):
        command = [launch.binary, "validate", *arguments]
        return subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60)

    done = validate("m", "--kubernetes-version", "v1.36,1.37.2")
    ignored = "1 file is left out as no manifest or as ignored: m/templates/b.yaml; see --strict-files\n"
    assert (done.returncode, done.stdout) == (0, ignored + "1 file, 1 object: 0 errors, 0 warnings\n"), done
    (tmp_path / ".pintleignore").unlink()
    assert validate("m").returncode == 1
    assert validate("m", "--skip", "ConfigMap").returncode == 0
    assert validate("-").returncode == 2
    assert validate("-", "--allow-empty").returncode == 0
    assert validate("m/a.yaml", "--crds", "nosuch", "--ignore-missing").returncode == 2


def test_reader_that_closes_the_pipe_ends_the_command_in_silence(tmp_path, launch):
    (tmp_path / "a.yaml").write_text("---\n".join(MAP % f"Bad_{number}" for number in range(4000)))
    command = [launch.binary, "validate", str(tmp_path / "a.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_kubeconfig_that_skips_verification_or_names_the_server(tmp_path, launch):
    (tmp_path / "a.yaml").write_text(MAP % "a")
    with launch() as server:
        text = pathlib.Path(server.kubeconfig).read_text()
        authority = re.search(r"^ *certificate-authority-data: .*\n", text, re.M)[0]
        indent = authority[: len(authority) - len(authority.lstrip())]
        for name, line, code in (
            ("untrusted", "", 2),
            ("skips", "insecure-skip-tls-verify: true", 0),
            ("named", authority.strip() + f"\n{indent}tls-server-name: kubernetes.default.svc", 0),
            ("misnamed", authority.strip() + f"\n{indent}tls-server-name: nowhere.example.com", 2),
        ):
            kubeconfig = tmp_path / name
            kubeconfig.write_text(text.replace(authority, f"{indent}{line}\n"))
            command = [launch.binary, "validate", str(tmp_path / "a.yaml"), "--crds", f"kubeconfig:{kubeconfig}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == code, (name, done)
