"""What the packages of other platforms are called, and what their archives have: each is packed with a program that is none of them."""

import importlib.util
import json
import pathlib
import tarfile
import zipfile

import pytest

CLIENTS = pathlib.Path(__file__).resolve().parents[2]
VERSION = "0.1.0"


def script(path):
    """The module that packs a language."""
    specification = importlib.util.spec_from_file_location(path.replace("/", "_"), CLIENTS / f"{path}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "pintle"
    path.write_text(f"#!/bin/sh\necho pintle {VERSION}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "system, machine, wheel, npm, classifier, go",
    [
        ("linux", "x86_64", "linux_x86_64", "linux-x64", "linux-x86_64", "linux_amd64"),
        ("linux", "aarch64", "linux_aarch64", "linux-arm64", "linux-aarch_64", "linux_arm64"),
        ("darwin", "arm64", "macosx_11_0_arm64", "darwin-arm64", "osx-aarch_64", "darwin_arm64"),
    ],
)
def test_platforms(binary, tmp_path, monkeypatch, system, machine, wheel, npm, classifier, go):
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    content, directory = binary.read_bytes(), tmp_path / "dist"

    python = script("python/build/backend")
    assert python.tag(binary) == wheel

    node = script("node/build/pack")
    main, own = node.pack(binary, directory)
    with tarfile.open(own) as archive:
        manifest = json.load(archive.extractfile("package/package.json"))
        assert archive.extractfile("package/pintle").read() == content and archive.getmember("package/pintle").mode == 0o755
    assert (manifest["name"], f"{manifest['os'][0]}-{manifest['cpu'][0]}") == (f"pintle-server-{npm}", npm)
    with tarfile.open(main) as archive:
        # npm installs the one whose fields `os` and `cpu` fit
        assert json.load(archive.extractfile("package/package.json"))["optionalDependencies"][manifest["name"]] == VERSION

    java = script("java/build/pack")
    assert java.classifier() == classifier and f"<classifier>{classifier}</classifier>" in java.pom(VERSION)

    module = script("go/build/pack")
    embedded = module.pack(binary, directory)[-1]
    with zipfile.ZipFile(embedded) as archive:
        names = [name.rsplit("/", 1)[1] for name in archive.namelist()]
        source = archive.read(next(name for name in archive.namelist() if name.endswith(f"pintle_{go}.go"))).decode()
    # the suffix of the file is the constraint by which Go compiles it
    [program] = [name for name in names if name.startswith(f"pintle_{go}") and not name.endswith(".go")]
    assert f"//go:embed {program}\n" in source
