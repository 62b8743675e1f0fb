"""`pintle assets`: pintle under the names kube-apiserver and etcd, as controller-runtime's envtest starts them."""
import os
import pathlib
import subprocess

import pytest

from programs import ROOT, built, require

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


@pytest.fixture
def binary(launch):
    return launch.binary


@pytest.fixture
def assets(binary, tmp_path):
    """The directory that `pintle assets` writes."""
    directory = tmp_path / "assets"
    done = subprocess.run([binary, "assets", directory], check=True, capture_output=True, text=True)
    assert done.stdout.endswith(f"export KUBEBUILDER_ASSETS='{directory}'\n")
    return directory


def test_the_directory_is_printed_as_by_setup_envtest(binary, assets):
    command = [binary, "assets", "use", "--directory", assets]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == str(assets)
    exported = subprocess.run([*command, "-p", "env"], check=True, capture_output=True, text=True).stdout
    assert exported == f"export KUBEBUILDER_ASSETS='{assets}'\n"
    assert pathlib.Path(os.readlink(assets / "etcd")).resolve() == pathlib.Path(binary).resolve()


def test_envtest_starts_and_stops_it(assets):
    require("go")
    program = built(ROOT / "tests" / "envtest", r"sigs\.k8s\.io/controller-runtime", pathlib.Path("envtest/envtest"))
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("1 passed, 0 failed\n")
