"""`pintle assets`: pintle under the names kube-apiserver and etcd, as controller-runtime's envtest starts them."""

import os
import pathlib
import re
import socket
import subprocess

import pytest

from commands import run
from pintle import eventually
from programs import ROOT, built, free_port, require

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def binary(launch):
    return launch.binary


@pytest.fixture
def assets(binary, tmp_path):
    """The directory that `pintle assets` writes."""
    directory = tmp_path / "assets"
    assert run(binary, "assets", directory).endswith(f"export KUBEBUILDER_ASSETS='{directory}'\n")
    return directory


def test_the_directory_is_printed_as_by_setup_envtest(binary, assets):
    command = [binary, "assets", "use", "--directory", assets]
    assert run(*command).stdout == str(assets)
    assert run(*command, "-p", "env").stdout == f"export KUBEBUILDER_ASSETS='{assets}'\n"
    assert pathlib.Path(os.readlink(assets / "etcd")).resolve() == pathlib.Path(binary).resolve()


def test_the_directory_of_kube_api_test_has_kubectl(binary, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    command = [binary, "assets", "use", "--kube-api-test", tmp_path / "tests"]
    assert "kube-api-test needs kubectl, which is not in PATH" in run(*command, env={"PATH": str(programs)}, status=1)
    (programs / "kubectl").touch()
    done = run(*command, env={"PATH": str(programs)})
    directory = pathlib.Path(done.stdout)
    assert directory.parent == tmp_path / "tests" / "k8s" and re.fullmatch(r"1\.\d+\.\d+-(linux|darwin)-(amd64|arm64)", directory.name), done
    assert sorted(path.name for path in directory.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]


def test_envtest_starts_and_stops_it(assets):
    require("go")
    program = built(ROOT / "tests" / "envtest", r"sigs\.k8s\.io/controller-runtime", pathlib.Path("envtest/envtest"))
    assert run(program, env={"KUBEBUILDER_ASSETS": str(assets)}, timeout=300).stdout.endswith("1 passed, 0 failed\n")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name, flags", (("kube-apiserver", "--secure-port {port} --cert-dir"), ("etcd", "--listen-client-urls http://127.0.0.1:{port} --data-dir"))
)
def test_nothing_stays_behind_when_a_test_is_killed(assets, tmp_path, name, flags):
    port = free_port()
    script = f"{assets / name} {flags.format(port=port)} {tmp_path / 'files'} & wait"
    runner = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    eventually(lambda: is_open(port))
    runner.kill()
    runner.wait()
    # the program holds the other end of the pipe until its end
    runner.stdout.read()
    assert not is_open(port)
