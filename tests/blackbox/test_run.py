"""`pintle run`: a command with a server of its own; and the words of setup-envtest."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from pintle import eventually
from programs import ROOT

pytestmark = [pytest.mark.cli, pytest.mark.timeout(120)]

EXAMPLE = str(ROOT / "examples" / "crontab.yaml")


def test_a_command_gets_a_server(launch, tmp_path):
    """What the command sees is gone when it has ended, and its exit status is that of `pintle run`."""
    script = 'cat "$KUBECONFIG"; ls "$KUBEBUILDER_ASSETS"; echo "$KUBECONFIG" > paths; exit 7'
    output = launch.run("run", "--crds", EXAMPLE, "--", "sh", "-c", script, status=7, cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert output.startswith("apiVersion: v1\n") and "server: https://127.0.0.1:" in output and output.endswith("etcd\nkube-apiserver\n"), output
    assert not pathlib.Path((tmp_path / "paths").read_text().strip()).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["paths"]


def test_definitions_are_there(launch, kubectl_binary, tmp_path):
    (tmp_path / "one.yaml").write_text(pathlib.Path(EXAMPLE).read_text())
    (tmp_path / "kustomization.yaml").write_text("resources: [one.yaml]\n")
    output = launch.run("run", "--crds", tmp_path, "--", kubectl_binary, "create", "-f", ROOT / "examples" / "my-crontab.yaml")
    assert "crontab.stable.example.com/my-new-cron-object created" in output, output


def test_failures_are_one_line(launch, tmp_path):
    invalid = tmp_path / "invalid.yaml"
    invalid.write_text("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {}\n")
    for arguments, reason in (
        (("--", "./no-such-program"), "cannot run ./no-such-program"),
        (("--crds", str(tmp_path / "missing"), "--", "true"), "cannot read"),
        (("--crds", str(invalid), "--", "true"), 'cannot create CustomResourceDefinition "a.b"'),
    ):
        assert reason in launch.run("run", *arguments, status=1), arguments


def test_signals_are_forwarded(launch, tmp_path):
    """The server is there until the command has ended."""
    # blocked and waited for, not handled: a signal between `print` and `signal.pause()` would leave it waiting for ever
    script = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("started", flush=True)
signal.sigwait({signal.SIGTERM})
print(pathlib.Path(os.environ["KUBECONFIG"]).exists(), flush=True)
sys.exit(9)
"""
    process = subprocess.Popen([launch.binary, "run", "--", sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.read() == "True\n"
    assert process.wait(timeout=60) == 9
    launch.run("run", "--", "sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)


def test_the_server_ends_with_a_killed_run(launch, tmp_path):
    process = subprocess.Popen(
        [launch.binary, "run", "--", "sh", "-c", 'grep -o "127.0.0.1:.*" "$KUBECONFIG"; echo $PPID; exec sleep 600'],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    port, own = process.stdout.readline().strip().split(":")[1], int(process.stdout.readline())
    children = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()
    process.kill()
    process.wait()
    server, command = (int(child) for child in children)
    os.kill(command, signal.SIGKILL)
    eventually(lambda: not pathlib.Path(f"/proc/{server}").exists())
    assert port.isdigit()


def test_words_of_setup_envtest(launch, tmp_path):
    assets = lambda *words, **options: launch.run("assets", *words, cwd=tmp_path, **options)
    bin_dir = ("--bin-dir", str(tmp_path / "bin"))
    assert assets("list", *bin_dir).startswith("(available)  v1.37.")
    assert "does not exist" in assets("use", "1.37.x", "-i", *bin_dir, status=1)
    path = assets("use", "1.37.x!", *bin_dir, "-p", "path").stdout
    assert pathlib.Path(path, "kube-apiserver").is_symlink() and path.startswith(str(tmp_path / "bin" / "k8s"))
    assert assets("use", "-i", *bin_dir, "-p", "env").stdout == f"export KUBEBUILDER_ASSETS='{path}'\n"
    assert assets("list", *bin_dir).startswith("(installed)")
    assert "serves Kubernetes 1.37" in assets("use", "~1.31.0", *bin_dir).stderr and assets("use", "latest", *bin_dir).stderr == ""
    assert "has no command cleanup" in assets("cleanup", status=2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bin"]
