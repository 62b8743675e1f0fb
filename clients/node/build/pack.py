"""Packs pintle-server for npm: the archive of its modules, and one with a binary for the platform, which is an optional dependency.

    pack.py BINARY DIRECTORY

It needs nothing but Python, and the same files give the same bytes.
"""

import gzip
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPOSITORY = ROOT.parents[1]
NAME = "pintle-server"
PLATFORMS = ("linux-x64", "linux-arm64", "darwin-arm64")
ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
# from 1, fastest, to 9, smallest
LEVEL = int(os.environ.get("PINTLE_PACK_LEVEL", "9"))


def archive(path, files):
    """Writes an archive of npm: all is in the directory `package`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    path.write_bytes(gzip.compress(content.getvalue(), compresslevel=LEVEL, mtime=0))
    return path


def pack(binary, directory):
    """Writes both archives, and returns their paths."""
    binary, directory = pathlib.Path(binary), pathlib.Path(directory)
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    directory.mkdir(parents=True, exist_ok=True)
    manifest = json.loads((ROOT / "package.json").read_text())
    manifest |= {"version": version, "optionalDependencies": {f"{NAME}-{name}": version for name in PLATFORMS}}
    text = lambda value: (json.dumps(value, indent=2) + "\n").encode()
    files = {"package.json": (text(manifest), 0o644)}
    for path in sorted([*ROOT.glob("*.js"), *ROOT.glob("*.d.ts"), ROOT / "README.md", REPOSITORY / "LICENSE"]):
        files[path.name] = (path.read_bytes(), 0o644)
    system, processor = sys.platform, ARCHITECTURES.get(platform.machine(), platform.machine())
    own = {
        "name": f"{NAME}-{system}-{processor}",
        "version": version,
        "description": f"The binary of {NAME} for {system} on {processor}.",
        "license": "Apache-2.0",
        "os": [system],
        "cpu": [processor],
    }
    binaries = {"package.json": (text(own), 0o644), "pintle": (binary.read_bytes(), 0o755), "LICENSE": files["LICENSE"]}
    return [
        archive(directory / f"{NAME}-{version}.tgz", files),
        archive(directory / f"{own['name']}-{version}.tgz", binaries),
    ]


if __name__ == "__main__":
    for written in pack(*sys.argv[1:]):
        print(written)
