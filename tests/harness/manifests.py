"""Scenarios made of real CRDs and manifests: YAML files of Go modules, which `go` downloads."""

import json
import pathlib
import re
import subprocess

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
# larger files are bundles of other files
BYTES_MAX = 300_000
OBJECTS_MAX = 12


def module_directory(module):
    """The directory of `path@version` in Go's module cache."""
    done = subprocess.run(["go", "mod", "download", "-json", module], check=True, capture_output=True, text=True, cwd="/")
    return pathlib.Path(json.loads(done.stdout)["Dir"])


def documents(directory):
    """The distinct YAML documents below a directory."""
    seen = set()
    for file in sorted(directory.rglob("*.y*ml")):
        if not file.is_file() or file.stat().st_size > BYTES_MAX:
            continue
        for document in re.split(r"(?m)^---.*\n", file.read_text(errors="replace")):
            if document.strip() and document not in seen and "{{" not in document:
                seen.add(document)
                yield document


def field(document, name, indent=""):
    found = re.search(rf"(?m)^{indent}{name}: *['\"]?([^'\"\s#]+)", document)
    return found.group(1) if found else ""


def scenarios(modules):
    """A scenario for each CRD of these modules, with the objects of its kind that the modules contain."""
    for module in modules:
        every = list(documents(module_directory(module)))
        definitions, taken = {}, set()
        for document in every:
            name = field(document.partition("metadata:")[2], "name", r"\s+")
            if field(document, "kind") == "CustomResourceDefinition" and "." in name:
                definitions.setdefault(name, document)
        for name, document in sorted(definitions.items()):
            # a CRD that several modules contain is used once, as in the first of them
            if name not in taken:
                taken.add(name)
                yield scenario(module, name, document, every)


def scenario(module, name, document, every):
    plural, _, group = name.partition(".")
    kind = field(document.partition("names:")[2], "kind", r"\s+")
    namespaced = field(document, "scope", r"\s+") == "Namespaced"
    steps = [
        step("define", "PATCH", f"{DEFINITIONS}/{name}?fieldManager=m&force=true", document, APPLY),
        {"id": "established", "method": "GET", "path": f"{DEFINITIONS}/{name}", "until": {"has": '"NamesAccepted"'}},
        {"sleep": 3},
    ]
    objects = [text for text in every if field(text, "kind") == kind and field(text, "apiVersion").startswith(group + "/")]
    for number, text in enumerate(objects[:OBJECTS_MAX]):
        version = field(text, "apiVersion").partition("/")[2]
        place = f"/apis/{group}/{version}/" + ("namespaces/default/" if namespaced else "") + plural
        text = re.sub(r"(?m)^( +)namespace: .*\n", "", text, count=1)
        own = field(text.partition("metadata:")[2], "name", r"\s+") or "x"
        steps += [
            step(f"create-{number}", "POST", place, text, {"Content-Type": "application/yaml"}),
            step(f"apply-{number}", "PATCH", f"{place}/{own}?fieldManager=a&force=true", text, APPLY),
            {"id": f"get-{number}", "method": "GET", "path": f"{place}/{own}", "expand": True},
            {"id": f"list-{number}", "method": "GET", "path": place},
        ]
    steps.append({"id": "remove", "method": "DELETE", "path": f"{DEFINITIONS}/{name}"})
    return {"name": "real-" + re.sub(r"\W+", "-", name), "about": f"a CRD of {module}", "steps": steps}


def step(identity, method, path, text, headers):
    return {"id": identity, "method": method, "path": path, "text": text, "headers": dict(headers)}
