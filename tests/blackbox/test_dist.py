"""The published packages: archives, the Debian package, the container image, manifests and the Helm chart."""

import contextlib
import hashlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tarfile

import pytest

from commands import run
from pintle import Pintle
from programs import ROOT, built, helm, locked, require, xtask

pytestmark = pytest.mark.dist

PACKAGING = ROOT / "packaging"


def dist(output, *flags):
    """Builds the packages of a release in a directory."""
    run(*xtask("dist", "--output", output, *flags), cwd=ROOT, timeout=None)
    return output


@pytest.fixture(scope="session")
def packages(launch, tmp_path_factory):
    """The packages of the binary under test, without debug information. The processes of a run share them, since packing takes
    longer than the tests."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent
    with locked(directory / "dist"):
        if not (directory / "dist").exists():
            unfinished = directory / "dist.unfinished"
            unfinished.mkdir()
            shutil.copy(launch.binary, unfinished / "pintle")
            if shutil.which("strip"):
                subprocess.run(["strip", unfinished / "pintle"], check=True)
            dist(unfinished / "one", "--architecture", os.uname().machine, "--binary", unfinished / "pintle")
            unfinished.rename(directory / "dist")
    return directory / "dist" / "one"


def only(directory, pattern):
    """The only file in the directory that matches the pattern."""
    files = list(directory.glob(pattern))
    assert len(files) == 1, files
    return files[0]


def test_tarball_and_checksums(packages, tmp_path):
    sums = dict(reversed(line.split("  ")) for line in (packages / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in packages.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == digest, name
    with tarfile.open(only(packages, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    root = only(tmp_path, "pintle-*")
    for name in (
        "LICENSE",
        "NOTICE",
        "README.md",
        "completions/bash/pintle",
        "completions/zsh/_pintle",
        "completions/fish/pintle.fish",
        "man/man1/pintle-serve.1",
    ):
        assert (root / name).stat().st_size > 100, name
    assert run(root / "pintle", "version").startswith("pintle ")


def test_same_input_gives_the_same_bytes(packages):
    binary = str(packages.parent / "pintle")
    again = dist(packages.parent / "two", "--architecture", os.uname().machine, "--binary", binary)
    assert (again / "SHA256SUMS").read_text() == (packages / "SHA256SUMS").read_text()


def test_image_is_valid(packages, tmp_path):
    """go-containerregistry validates digests, sizes, the configuration, and every layer."""
    with tarfile.open(only(packages, "*-oci.tar")) as archive:
        archive.extractall(tmp_path, filter="data")
    index = json.loads((tmp_path / "index.json").read_text())
    blob = lambda descriptor: tmp_path / "blobs" / descriptor["digest"].replace(":", "/")
    image = json.loads(blob(index["manifests"][0]).read_text())["manifests"][0]
    manifest = json.loads(blob(image).read_text())
    configuration = json.loads(blob(manifest["config"]).read_text())["config"]
    assert configuration["User"] == "65532:65532" and configuration["Volumes"] == {"/data": {}}, configuration
    with tarfile.open(blob(manifest["layers"][0])) as layer:
        data, binary = layer.getmember("data"), layer.getmember("pintle")
        assert (data.mode, data.uid, binary.mode, binary.uid) == (0o700, 65532, 0o755, 0)
    validator = built(ROOT / "tests" / "oci", r"github.com/google/go-containerregistry", pathlib.Path("oci/validate"))
    subprocess.run([validator, tmp_path], check=True)


@contextlib.contextmanager
def notify_socket(start="/tmp/"):
    """A socket like systemd's, and its path; a start of `@` makes it abstract, as systemd names that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = f"{start}pintle-notify-{os.getpid()}"
        listener.bind(path.replace("@", "\0"))
        listener.settimeout(30)
        yield listener, path
        if start != "@":
            os.unlink(path)


@pytest.mark.parametrize("start", ["/tmp/", "@"])
def test_start_and_stop_are_reported_to_systemd(launch, start):
    with notify_socket(start) as (listener, path):
        with launch(environment={"NOTIFY_SOCKET": path}) as server:
            lines = listener.recv(4096).decode().splitlines()
            assert "READY=1" in lines and any(line.startswith(f"STATUS=pintle is ready on {server.url}") for line in lines), lines
            server.process.send_signal(signal.SIGTERM)
            assert listener.recv(4096) == b"STOPPING=1\n"


def test_debian_package_installs_and_starts(packages, tmp_path):
    """dpkg unpacks the package into a directory; the systemd unit is verified, and its command runs."""
    require("dpkg-deb")
    package = only(packages, "*.deb")
    control = run("dpkg-deb", "--field", package)
    assert "Package: pintle\n" in control and "\nArchitecture: " in control, control
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    scripts = tmp_path / "control"
    subprocess.run(["dpkg-deb", "--control", package, scripts], check=True)
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", scripts / script], check=True)
    unit = root / "usr/lib/systemd/system/pintle.service"
    lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line)
    assert (lines["Type"], lines["User"], lines["StateDirectory"], lines["LogsDirectory"]) == ("notify", "pintle", "pintle", "pintle")
    assert lines["AmbientCapabilities"] == lines["CapabilityBoundingSet"] == "CAP_NET_BIND_SERVICE", "for --secure-port 443"
    if shutil.which("systemd-analyze"):
        # the paths of the unit are those of an installed system
        checked = tmp_path / "pintle.service"
        checked.write_text(unit.read_text().replace("/usr/bin/pintle", str(root / "usr/bin/pintle")).replace("Documentation=", "#"))
        assert "Unknown" not in run("systemd-analyze", "verify", "--man=no", checked)
    program, *arguments = lines["ExecStart"].split()
    config = (root / "etc/pintle/config.yaml").read_text().replace("/var/lib/pintle", str(tmp_path / "state"))
    (tmp_path / "config.yaml").write_text(config)
    arguments = [word.replace("/etc/pintle", str(tmp_path)) for word in arguments]
    with notify_socket() as (listener, path):
        process = subprocess.Popen(
            [root / program.lstrip("/"), *arguments, "--secure-port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"NOTIFY_SOCKET": path},
        )
        assert b"READY=1" in listener.recv(4096)
        assert (tmp_path / "state" / "admin.kubeconfig").exists()
        process.terminate()
        assert process.wait(timeout=30) == 0


PATHS = [
    "/etc/pintle",
    "/var/lib/pintle",
    "/usr/bin/pintle",
    "/usr/lib/systemd/system/pintle.service",
    "/usr/lib/sysusers.d/pintle.conf",
    "/usr/share/doc/pintle",
]


@contextlib.contextmanager
def installed(package):
    """Installs the package on this machine, unless it is already installed; afterwards removes the package, its user and its data."""
    if os.geteuid() != 0:
        pytest.skip("only root installs packages")
    require("dpkg")
    missing = lambda: subprocess.run(["getent", "passwd", "pintle"], capture_output=True).returncode == 2
    present = [path for path in PATHS if os.path.exists(path)]
    if present or not missing():
        pytest.skip(f"pintle is already installed: {present or 'the user pintle'}")
    try:
        run("dpkg", "--install", package, timeout=120)
        yield
    finally:
        subprocess.run(["dpkg", "--purge", "pintle"], capture_output=True, timeout=120)
        shutil.rmtree("/var/lib/pintle", ignore_errors=True)
        for command in (["userdel", "pintle"], ["groupdel", "pintle"]):
            subprocess.run(command, capture_output=True)
    assert missing() and not [path for path in PATHS if os.path.exists(path)]


@pytest.mark.slow
def test_debian_package_is_installed_and_removed_by_root(packages):
    """dpkg runs the maintainer scripts: the user exists, the service runs as this user, a removal keeps its data."""
    state = pathlib.Path("/var/lib/pintle")
    with installed(only(packages, "*.deb")):
        user = pwd.getpwnam("pintle")
        assert (user.pw_dir, user.pw_shell) == (str(state), "/usr/sbin/nologin") and user.pw_uid < 1000, user
        assert subprocess.run(["dpkg", "--verify", "pintle"], capture_output=True, text=True, check=True).stdout == ""
        if shutil.which("systemd-analyze"):
            assert "pintle" not in run("systemd-analyze", "verify", "--man=no", "pintle.service").stderr
        unit = pathlib.Path("/usr/lib/systemd/system/pintle.service").read_text()
        lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
        # as systemd creates the StateDirectory
        state.mkdir(mode=int(lines["StateDirectoryMode"], 8))
        shutil.chown(state, lines["User"], lines["Group"])
        with notify_socket() as (listener, path):
            os.chmod(path, 0o777)
            process = subprocess.Popen(
                [*lines["ExecStart"].split(), "--secure-port", "0"],
                user=lines["User"],
                group=lines["Group"],
                extra_groups=[],
                umask=int(lines["UMask"], 8),
                cwd="/",
                env={"NOTIFY_SOCKET": path, "PATH": os.environ["PATH"]},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                assert b"READY=1" in listener.recv(4096)
                files = [state, *state.rglob("*")]
                assert {file.owner() for file in files} == {"pintle"} and not [file for file in files if file.stat().st_mode & 0o077]
                kubeconfig = str(state / "admin.kubeconfig")
                assert "written; all objects" in run("/usr/bin/pintle", "storage", "rewrite", "--kubeconfig", kubeconfig)
            finally:
                process.terminate()
                assert process.wait(timeout=30) == 0
        subprocess.run(["dpkg", "--remove", "pintle"], check=True, capture_output=True, timeout=60)
        assert not pathlib.Path("/usr/bin/pintle").exists() and pathlib.Path("/etc/pintle/config.yaml").exists()
        subprocess.run(["dpkg", "--purge", "pintle"], check=True, capture_output=True, timeout=60)
        assert not pathlib.Path("/etc/pintle").exists() and (state / "admin.kubeconfig").exists()


def test_manifests_apply(server, kubectl_binary):
    applied = run(kubectl_binary, "--kubeconfig", server.kubeconfig, "apply", "-f", PACKAGING / "kubernetes" / "pintle.yaml")
    assert applied.splitlines() == ["service/pintle created", "statefulset.apps/pintle created"], applied
    stateful = server.ok("GET", "/apis/apps/v1/namespaces/default/statefulsets/pintle")
    container = stateful["spec"]["template"]["spec"]["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] and container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_chart_installs(server, kubectl_binary, launch):
    """helm installs the chart; building helm takes minutes."""
    chart = PACKAGING / "helm" / "pintle"
    subprocess.run([helm(), "lint", "--strict", chart], check=True)
    files = [
        "--set-json",
        'extraVolumes=[{"name":"audit","configMap":{"name":"audit"}}]',
        "--set-json",
        'extraVolumeMounts=[{"name":"audit","mountPath":"/etc/audit"}]',
    ]
    command = [helm(), "--kubeconfig", server.kubeconfig, "install", "small", chart, "--set", "config.event-ttl=2h", *files]
    notes = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True).stdout
    assert "kubeconfig create" in notes and "https://small.default.svc:443" in notes, notes
    template = server.ok("GET", "/apis/apps/v1/namespaces/default/statefulsets/small")["spec"]["template"]["spec"]
    assert "audit" in [volume["name"] for volume in template["volumes"]]
    assert "/etc/audit" in [mount["mountPath"] for mount in template["containers"][0]["volumeMounts"]]
    assert server.ok("GET", "/apis/apps/v1/namespaces/default/statefulsets/small")["spec"]["replicas"] == 1
    config = server.ok("GET", "/api/v1/namespaces/default/configmaps/small")["data"]["config.yaml"]
    file = server.dir / "chart.yaml"
    file.write_text(config)
    done = launch.run("config", "view", "--config", file)
    assert "event-ttl: 2h # file" in done.stdout and "- small.default.svc" in done.stdout, done


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_static_binaries(tmp_path):
    """Both architectures link statically, and the binary of x86_64 serves."""
    require("rustup", "file")
    output = dist(tmp_path / "dist")
    for machine in ("x86_64", "aarch64"):
        with tarfile.open(only(output, f"*-linux-{machine}.tar.gz")) as archive:
            archive.extractall(tmp_path, filter="data")
        binary = only(tmp_path, f"pintle-*-linux-{machine}") / "pintle"
        description = run("file", binary)
        assert "static" in description and "dynamically" not in description, description
    with Pintle(str(only(tmp_path, "pintle-*-linux-x86_64") / "pintle")) as server:
        assert server.ok("GET", "/version")["major"] == "1"
