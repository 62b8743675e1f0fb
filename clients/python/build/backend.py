"""Builds the wheel of pintle-server: the Python files and a binary. It needs nothing but Python, and the same files give the same bytes.

As a backend of pip: `PINTLE_BINARY=target/release/pintle pip wheel --no-deps clients/python`. As a program, which `cargo xtask packages`
runs: `backend.py BINARY DIRECTORY`.
"""

import base64
import hashlib
import os
import pathlib
import platform
import struct
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPOSITORY = ROOT.parents[1]
NAME, SUMMARY = "pintle_server", "The Kubernetes API for tests: a server in the package, a workspace for each test, and fixtures for pytest."
# the earliest time that a zip file can have
TIME = (1980, 1, 1, 0, 0, 0)
# from 1, fastest, to 9, smallest
LEVEL = int(os.environ.get("PINTLE_PACK_LEVEL", "9"))
PT_INTERP = 3
ENTRY_POINTS = """\
[console_scripts]
pintle = pintle_server.binary:main

[pytest11]
pintle = pintle_server.pytest_plugin
"""


def is_static(binary):
    """Whether an ELF file needs no dynamic linker, and so no C library of the system."""
    head = binary.read_bytes()[:8192]
    if head[:5] != b"\x7fELF\x02":
        return False
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    return all(struct.unpack_from("<I", head, offset + i * size)[0] != PT_INTERP for i in range(count))


def tag(binary):
    """The platform that a binary runs on."""
    machine = platform.machine()
    if sys.platform == "darwin":
        return f"macosx_11_0_{machine}"
    return f"manylinux2014_{machine}.musllinux_1_1_{machine}" if is_static(binary) else f"linux_{machine}"


def metadata(version):
    readme = (ROOT / "README.md").read_text()
    fields = {
        "Metadata-Version": "2.4",
        "Name": "pintle-server",
        "Version": version,
        "Summary": SUMMARY,
        "Requires-Python": ">=3.9",
        "License-Expression": "Apache-2.0",
        "License-File": "LICENSE",
        "Classifier": "Framework :: Pytest",
        "Description-Content-Type": "text/markdown",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items()) + f"\n{readme}"


def build(binary, directory):
    """Writes the wheel, and returns its path."""
    binary, directory = pathlib.Path(binary), pathlib.Path(directory)
    if not binary.is_file():
        sys.exit(f"{binary} is missing: build it with cargo build --release, or name another one in PINTLE_BINARY")
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    info = f"{NAME}-{version}.dist-info"
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in sorted((ROOT / "src" / NAME).glob("*.py"))}
    files[f"{NAME}/py.typed"] = b""
    files[f"{NAME}/bin/pintle"] = binary.read_bytes()
    tags = [f"Tag: py3-none-{one}\n" for one in tag(binary).split(".")]
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: pintle\nRoot-Is-Purelib: false\n" + "".join(tags)).encode()
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    files[f"{info}/licenses/LICENSE"] = (REPOSITORY / "LICENSE").read_bytes()
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD").encode()
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{NAME}-{version}-py3-none-{tag(binary)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100755 if name.endswith("/bin/pintle") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=LEVEL)
    return wheel


def record(files, own):
    def line(name, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    return "".join(line(name, content) for name, content in files.items()) + f"{own},,\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook of PEP 517."""
    binary = os.environ.get("PINTLE_BINARY") or REPOSITORY / "target" / "release" / "pintle"
    return build(binary, wheel_directory).name


if __name__ == "__main__":
    print(build(*sys.argv[1:]))
