"""A sample CRD `boats` with two versions, and its conversion function."""

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
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
    def version(name, spec):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
        return {"name": name, "served": True, "storage": name == storage, "schema": {"openAPIV3Schema": schema}}

    number = {"type": "integer"}
    return {
        "metadata": {"name": "boats.harbor.example.com"},
        "spec": {
            "group": "harbor.example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [version("v1", {"sails": number}), version("v2", {"rig": {"type": "object", "properties": {"sails": number}}})],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}},
        },
    }


def boat(version, name, **spec):
    return {"apiVersion": "harbor.example.com/" + version, "kind": "Boat", "metadata": {"name": name}, "spec": spec}
