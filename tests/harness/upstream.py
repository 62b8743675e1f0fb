"""A kube-apiserver on an etcd, for comparisons. It is built from its Go module, which takes some ten minutes."""

import pathlib
import subprocess
import urllib.error

from pintle import STARTED, TOKEN, Pintle, eventually
from programs import ROOT, built, free_port, openssl

# the newest release; earlier ones are in `older`
MODULE = ROOT / "tests" / "upstream"
SECONDS = 120
# what a release is built with; without it, kube-apiserver warns of versions that a later release deprecates
VERSION = " ".join(f"-X k8s.io/component-base/version.{name}" for name in ("gitVersion={version}", "gitMajor=1", "gitMinor={minor}"))


def build(release=None):
    """Builds kube-apiserver unless its binary exists: the newest, or a release such as "1.35". Returns the path of the binary."""
    module = MODULE / "older" / release if release else MODULE
    return built(module, r"k8s\.io/kubernetes", pathlib.Path("upstream/kube-apiserver"), VERSION)


def component(name):
    """Builds another component of Kubernetes, such as kube-scheduler, unless its binary exists. Returns the path of the binary."""
    return built(MODULE, r"k8s\.io/kubernetes", pathlib.Path("upstream") / name, VERSION, f"k8s.io/kubernetes/cmd/{name}")


class Upstream(Pintle):
    """`with Upstream(etcd) as server:` runs a kube-apiserver; the object has the interface of `Pintle`."""

    def __init__(self, etcd, *flags, release=None):
        super().__init__(build(release), *flags)
        self.etcd = etcd

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.tokens.write_text(f'{TOKEN},tester,1,"system:masters"\n')
        key, port = self.dir / "accounts.key", free_port()
        openssl("genrsa", "-out", key, "2048")
        flags = {
            "etcd-servers": self.etcd.urls,
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self.dir / "certificates",
            "token-auth-file": self.tokens,
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.0.0.0/24",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
        }
        command = [self.binary, *(f"--{name}={value}" for name, value in flags.items()), *self.flags]
        self.errors = open(self.dir / "stderr.log", "a+")
        if self not in STARTED:
            STARTED.append(self)
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.url = f"https://127.0.0.1:{port}"
        eventually(self.is_ready, SECONDS)
        return self

    def is_ready(self):
        assert self.process.poll() is None, pathlib.Path(self.errors.name).read_text()
        try:
            return self.request("GET", "/readyz")[0] == 200
        except (OSError, urllib.error.URLError):
            return False
