"""A sample CRD `boats` with two versions, and its conversion function."""

from objects import definition

BOATS = "/apis/harbor.example.com/{}/namespaces/default/boats"


def convert_boats(request):
    """The response of the conversion webhook: `spec.sails` in v1 is `spec.rig.sails` in v2."""
    objects = []
    for boat in request["objects"]:
        boat["apiVersion"] = request["desiredAPIVersion"]
        spec = boat.get("spec", {})
        if request["desiredAPIVersion"].endswith("v2"):
            boat["spec"] = {"rig": {"sails": spec.get("sails", 0)}}
        else:
            boat["spec"] = {"sails": spec.get("rig", {}).get("sails", 0)}
        boat["metadata"].setdefault("annotations", {})["converted"] = "yes"
        boat["metadata"]["generation"] = 99
        objects.append(boat)
    return {"convertedObjects": objects, "result": {"status": "Success"}}


def boats(client, storage="v1"):
    number = {"type": "integer"}
    specs = {"v1": {"sails": number}, "v2": {"rig": {"type": "object", "properties": {"sails": number}}}}
    crd = definition("boats", "harbor.example.com")
    (version,) = crd["spec"]["versions"]
    schema = lambda spec: {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}
    crd["spec"]["versions"] = [{**version, "name": name, "storage": name == storage, "schema": schema(spec)} for name, spec in specs.items()]
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    return crd


def boat(version, name, **spec):
    return {"apiVersion": "harbor.example.com/" + version, "kind": "Boat", "metadata": {"name": name}, "spec": spec}
