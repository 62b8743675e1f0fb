"""Packs the Go modules as a directory that GOPROXY can name: clients/go, clients/go/clientgo, and clients/go/embedded with a binary.

    pack.py BINARY DIRECTORY

It needs nothing but Python, and the same files give the same bytes. The version is that of the tags `clients/go/v…`,
`clients/go/clientgo/v…` and `clients/go/embedded/v…`; the last is on a commit that has the binaries of all platforms.
"""

import gzip
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPOSITORY = ROOT.parents[1]
MODULE = "github.com/pintle/pintle/clients/go"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# the earliest time that a zip file can have
TIME = (1980, 1, 1, 0, 0, 0)
PLATFORM_FILE = """\
package embedded

import (
	_ "embed"

	"github.com/pintle/pintle/clients/go/binary"
)

//go:embed pintle_{platform}.gz
var program []byte

func init() {{
	binary.Embed(binary.Packed{{Digest: "{digest}", Compressed: program, Ends: []int{{{ends}}}, Part: {part}}})
}}
"""
# of the program: parts are decompressed beside each other
PART = 4 << 20
# from 1, fastest, to 9, smallest
LEVEL = int(os.environ.get("PINTLE_PACK_LEVEL", "9"))


def write(directory, module, version, files):
    """Writes a version of a module, as a proxy serves it."""
    versions = directory / module / "@v"
    versions.mkdir(parents=True, exist_ok=True)
    (versions / "list").write_text(f"{version}\n")
    (versions / f"{version}.info").write_text(json.dumps({"Version": version}) + "\n")
    (versions / f"{version}.mod").write_bytes(files["go.mod"])
    with zipfile.ZipFile(versions / f"{version}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{module}@{version}/{name}", TIME)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return versions / f"{version}.zip"


def sources(root):
    """The files of a module: those of the modules below it are not among them."""
    others = [found.parent for found in root.rglob("go.mod") if found.parent != root]
    paths = [path for pattern in ("*.go", "go.*", "README.md") for path in root.rglob(pattern)]
    own = [path for path in paths if not any(path.is_relative_to(other) for other in others)]
    return {str(path.relative_to(root)): path.read_bytes() for path in own} | {"LICENSE": (REPOSITORY / "LICENSE").read_bytes()}


def pack(binary, directory):
    """Writes the modules, and returns the paths of their archives."""
    binary, directory = pathlib.Path(binary), pathlib.Path(directory) / "go"
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    own = re.search('Version = "(.*)"', (ROOT / "binary" / "version.go").read_text())[1]
    if own != version:
        sys.exit(f"{binary} has version {version}, and clients/go/binary/version.go has {own}: change the latter")
    name = f"{sys.platform}_{ARCHITECTURES.get(platform.machine(), platform.machine())}"
    embedded = sources(ROOT / "embedded")
    content, compressed, ends = binary.read_bytes(), b"", []
    for begin in range(0, len(content), PART):
        # a file of several members is one of gzip as well
        compressed += gzip.compress(content[begin : begin + PART], compresslevel=LEVEL, mtime=0)
        ends.append(len(compressed))
    embedded[f"pintle_{name}.gz"] = compressed
    words = {"platform": name, "digest": hashlib.sha256(content).hexdigest()[:16], "ends": ", ".join(map(str, ends)), "part": PART}
    embedded[f"pintle_{name}.go"] = PLATFORM_FILE.format(**words).encode()
    return [
        write(directory, MODULE, f"v{version}", sources(ROOT)),
        write(directory, f"{MODULE}/clientgo", f"v{version}", sources(ROOT / "clientgo")),
        write(directory, f"{MODULE}/embedded", f"v{version}", embedded),
    ]


if __name__ == "__main__":
    for written in pack(*sys.argv[1:]):
        print(written)
