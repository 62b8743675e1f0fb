"""The KMS v2 plugin of tests/kms, and kube-apiserver's code to read and write values with it."""

import pathlib
import subprocess

import programs
from pintle import eventually

MODULE = programs.ROOT / "tests" / "kms"


class Plugin:
    """`with Plugin(directory) as plugin:` serves at `plugin.socket`. The current key is the one that `use` has set."""

    def __init__(self, directory, name="vault"):
        self.binary = programs.built(MODULE, "k8s.io/kms", pathlib.Path("kms/kms"))
        self.name, self.socket, self.keys = name, pathlib.Path(directory) / f"{name}.sock", pathlib.Path(directory) / f"{name}.keys"
        self.process = None

    def __enter__(self):
        if not self.keys.exists():
            self.use("first")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = subprocess.Popen([self.binary, "plugin", self.socket, self.keys])
        eventually(self.socket.exists)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
        self.socket.unlink(missing_ok=True)

    def use(self, key):
        """Sets the id of the current key."""
        new = self.keys.with_suffix(".new")
        new.write_text(key + "\n")
        new.rename(self.keys)

    def provider(self):
        return {"kms": {"apiVersion": "v2", "name": self.name, "endpoint": f"unix://{self.socket}", "timeout": "3s"}}

    def transform(self, mode, path, data):
        """Encrypts (`seal`, `seal-key`) or decrypts (`open`) the value of the etcd key `path` with kube-apiserver's code."""
        done = subprocess.run([self.binary, mode, self.socket, self.name, path], input=data, capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout
