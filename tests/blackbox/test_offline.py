"""Verdicts without a server."""

import json
import os
import pathlib
import pty
import re
import subprocess

import commands
from documentation import ROOT, command_tests

PAGE = ROOT / "docs" / "src" / "guides" / "check-manifests.md"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


test_commands = command_tests("offline")


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
    assert shown in (ROOT / "examples" / "ci" / "github.yaml").read_text()


def test_definitions_and_objects_of_a_server(launch, tmp_path, kubectl_binary):
    manifest = (ROOT / "examples" / "my-crontab.yaml").read_text() + "  replicas: 3\n"
    (tmp_path / "crontab.yaml").write_text(manifest)
    with launch() as server:
        environment = {"KUBECONFIG": str(server.kubeconfig)}
        for path in (ROOT / "examples" / "crontab.yaml", tmp_path / "crontab.yaml"):
            commands.run(kubectl_binary, "create", "-f", path, env=environment)
        flags = ("--crds", "kubeconfig", "--old", f"kubeconfig:{server.kubeconfig}", "-o", "json")
        done = launch.run("validate", "-", *flags, input=manifest.replace("replicas: 3", "replicas: 30"), server=server, status=1, lines=None)
    assert [finding["field"] for finding in json.loads(done.stdout)["findings"]] == ["spec.replicas"], done


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
            launch.run("validate", tmp_path / "a.yaml", "--crds", f"kubeconfig:{kubeconfig}", status=code)
