"""Programs of other projects that tests need, each built once from its Go module into target."""
import os
import pathlib
import re
import subprocess

from report import require

ROOT = pathlib.Path(__file__).resolve().parents[2]


def built(module, requirement, place, takes):
    """Builds the main package of a folder unless the required version has been built. Returns the binary's path, which is
    `place` below target with the version before the name. Skips the case where Go is not installed."""
    version = re.search(requirement + r" (\S+)", (module / "go.mod").read_text()).group(1)
    path = ROOT / "target" / place.parent / version / place.name
    if not path.exists():
        require("go")
        print(f"building {place.name} {version}, which takes {takes}", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(unfinished), "."], cwd=module, check=True)
        unfinished.rename(path)
    return path
