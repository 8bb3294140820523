"""The description of the API refers to itself correctly."""

from __future__ import annotations

import msgspec

from matchpod.web.openapi.openapi import describe
from matchpod.web.routes import ENDPOINTS


def test_link_gives_every_id_in_the_path_of_its_operation() -> None:
    document = msgspec.json.decode(describe(ENDPOINTS, "1"))
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    in_path = {
        operation["operationId"]: {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        for operation in operations
    }
    links = [
        link
        for one in operations
        for response in one["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert {link["operationId"] for link in links} > {"getServer", "getAction"}
    for link in links:
        assert link["parameters"].keys() == in_path[link["operationId"]]
