"""Packs pintle-server for Maven: the jar of its classes, one with a binary for the platform, one with the sources, and the POM.

    pack.py BINARY DIRECTORY

The libraries that the classes are compiled against come by Maven; the rest is done by the JDK.
"""

import hashlib
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPOSITORY = ROOT.parents[1]
NAME = "pintle-server"
RELEASE = "17"
# as Maven names systems and processors, and as os-maven-plugin names both together
PLATFORMS = {
    "linux-x86_64": ("<name>linux</name>", "amd64"),
    "linux-aarch_64": ("<name>linux</name>", "aarch64"),
    "osx-aarch_64": ("<family>mac</family>", "aarch64"),
}
SYSTEMS = {"darwin": "osx"}
PROCESSORS = {"aarch64": "aarch_64", "arm64": "aarch_64"}
# the same files give the same bytes; it is the earliest time that a zip file can have in every time zone
DATE = "1980-01-02T00:00:00Z"
# the name of the module in programs that have some
MODULE = "dev.pintle.server"
PROFILE = """\
    <profile>
      <id>{name}</id>
      <activation>
        <os>{system}<arch>{arch}</arch></os>
      </activation>
      <dependencies>
        <dependency>
          <groupId>dev.pintle</groupId>
          <artifactId>{artifact}</artifactId>
          <version>{version}</version>
          <classifier>{name}</classifier>
        </dependency>
      </dependencies>
    </profile>
"""


def run(*command):
    """Runs a command, whose failure is the end."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=sys.stderr)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is missing, which the package for Java needs: install a JDK of {RELEASE} or later and Maven")
    if done.returncode:
        sys.exit(f"{command[0]}: status {done.returncode}")


def libraries():
    """The directory of the libraries, which are copied again when the POM has changed."""
    pom = ROOT / "pom.xml"
    directory = REPOSITORY / "target" / "java" / hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    if not directory.exists():
        partial = directory.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        run("mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={partial}")
        partial.rename(directory)
    return directory


def jar(path, directory):
    """Writes a jar of the files below a directory, in the order of their names."""
    path.unlink(missing_ok=True)
    names = sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())
    run("jar", "--create", "--file", path, f"--date={DATE}", "--no-manifest", *(part for name in names for part in ("-C", directory, name)))
    return path


def classifier():
    """That of the jar with the binary of this platform."""
    return f"{SYSTEMS.get(sys.platform, sys.platform)}-{PROCESSORS.get(platform.machine(), platform.machine())}"


def pom(version):
    text = (ROOT / "pom.xml").read_text().replace("<version>0.0.0</version>", f"<version>{version}</version>")
    profiles = "".join(PROFILE.format(name=name, artifact=NAME, version=version, system=system, arch=arch) for name, (system, arch) in PLATFORMS.items())
    return text.replace("</project>", f"  <profiles>\n{profiles}  </profiles>\n</project>")


def pack(binary, directory):
    """Writes all files, and returns their paths."""
    binary, directory = pathlib.Path(binary), pathlib.Path(directory)
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    directory.mkdir(parents=True, exist_ok=True)
    own = classifier()
    sources = sorted((ROOT / "src").rglob("*.java"))
    with tempfile.TemporaryDirectory() as scratch:
        classes, natives = pathlib.Path(scratch, "classes"), pathlib.Path(scratch, "natives")
        # a JVM that has just started takes tens of milliseconds for the first concatenations of the other kind
        options = ("--release", RELEASE, "-encoding", "UTF-8", "-Xlint:all,-processing,-classfile", "-Werror", "-XDstringConcat=inline")
        run("javac", *options, "-cp", f"{libraries()}/*", "-d", classes, *sources)
        (classes / f"{NAME}.version").write_text(version)
        natives.mkdir()
        shutil.copyfile(binary, natives / f"pintle-{own}")
        (natives / f"pintle-{own}.sha256").write_text(hashlib.sha256(binary.read_bytes()).hexdigest())
        for place, module in ((classes, MODULE), (natives, f"{MODULE}.{own.replace('-', '.')}")):
            (place / "META-INF").mkdir()
            (place / "META-INF" / "MANIFEST.MF").write_text(f"Manifest-Version: 1.0\nAutomatic-Module-Name: {module}\n")
            shutil.copyfile(REPOSITORY / "LICENSE", place / "META-INF" / "LICENSE")
        written = [
            jar(directory / f"{NAME}-{version}.jar", classes),
            jar(directory / f"{NAME}-{version}-{own}.jar", natives),
            jar(directory / f"{NAME}-{version}-sources.jar", ROOT / "src"),
        ]
    written.append(directory / f"{NAME}-{version}.pom")
    written[-1].write_text(pom(version))
    return written


if __name__ == "__main__":
    for path in pack(*sys.argv[1:]):
        print(path)
