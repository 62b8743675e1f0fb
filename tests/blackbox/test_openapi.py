"""OpenAPI documents of built-in kinds."""

import openapi


def test_documents_are_those_of_kube_apiserver(launch):
    """Paths and schemas of all documents equal, but for descriptions, what was recorded from kube-apiserver 1.37.2."""
    want = openapi.RECORD.read_text().splitlines()
    with launch() as server:
        found = openapi.record(openapi.documents(server))
    lacking, further = sorted(set(want) - set(found)), sorted(set(found) - set(want))
    assert not lacking and not further, f"{len(lacking)} recorded, such as {lacking[:10]}; {len(further)} found, such as {further[:10]}"
