"""The binary: the one of the package, or the one that PINTLE_BINARY names."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys

from . import errors

BUNDLED = pathlib.Path(__file__).parent / "bin" / "pintle"


def version() -> str | None:
    """The version of the package, which is that of its binary; None if the package is not installed."""
    # imported here, since it takes longer than the rest of the package
    from importlib import metadata

    try:
        return metadata.version("pintle-server")
    except metadata.PackageNotFoundError:
        return None


def find() -> str:
    """The path of the binary."""
    named = os.environ.get("PINTLE_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise errors.PintleError(f"PINTLE_BINARY names {named}, which is no program: correct or unset it")
        return os.path.abspath(named)
    if not BUNDLED.exists():
        system = f"{platform.system()} on {platform.machine()}"
        remedy = "install a wheel of this platform, or name a binary of the same version in PINTLE_BINARY"
        raise errors.PintleError(f"this package of pintle-server has no binary for {system}: {remedy}")
    return str(BUNDLED)


def main() -> None:
    """The command `pintle`."""
    try:
        path = find()
    except errors.PintleError as error:
        sys.exit(f"pintle: {error}")
    if os.name == "posix":
        os.execv(path, ["pintle", *sys.argv[1:]])
    sys.exit(subprocess.call([path, *sys.argv[1:]]))
