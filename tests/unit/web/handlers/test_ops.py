"""Liveness, readiness, metrics, the OpenAPI document, the documentation page and the list of regions."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from cs2_protocol.game import Team
from matchpod.core.effects import CancelReason
from matchpod.core.errors import ErrorCode
from matchpod.core.model import MatchType
from matchpod.core.outcome import Outcome
from matchpod.core.views.marks import encode_marks
from matchpod.service.callback_bodies import callback_body
from matchpod.service.telemetry.prometheus import CONTENT_TYPE
from matchpod.web.endpoint import Tag
from matchpod.web.http.responses import EVENT_STREAM
from matchpod.web.openapi.callback_schema import callback_schemas
from matchpod.web.openapi.docs import read_pages
from matchpod.web.openapi.request_schema import create_match_schemas
from matchpod.web.routes import ENDPOINTS
from tests.unit.service.test_callback_bodies import SERVER
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error, unavailable

site = sites.site


def test_process_is_alive_even_without_its_database(site: Site) -> None:
    site.db.failure = unavailable()
    assert site.request("GET", "/healthz").json() == {"status": "ok", "version": "1.2.3"}


def test_process_without_its_database_is_not_ready_and_gives_the_reason(site: Site) -> None:
    site.db.failure = unavailable()
    response = site.request("GET", "/readyz")
    body = check_error(response, 503, "SERVICE_UNAVAILABLE")
    assert body["details"] == [{"path": "", "message": "The database is unavailable."}]
    assert "retry-after" in response.headers


def test_requests_are_counted_by_route_and_status(site: Site) -> None:
    site.get("/api/v1/servers/srv_0")
    site.request("GET", "/unknown/path")
    response = site.request("GET", "/metrics")
    assert response.headers["content-type"] == CONTENT_TYPE
    assert 'matchpod_http_requests_total{route="/api/v1/servers/{id}",method="GET",status="404"} 1' in response.text
    assert 'matchpod_http_requests_total{route="unknown",method="unknown",status="404"} 1' in response.text
    assert 'matchpod_http_request_seconds_count{route="/api/v1/servers/{id}",status_class="4xx"} 1' in response.text


def test_invalid_key_is_ignored_where_none_is_needed(site: Site) -> None:
    assert site.request("GET", "/api/v1/regions", key="nonsense").status_code == 200


# --- the OpenAPI document -----------------------------------------------------------------------------------------


CALLERS, INTERNAL = "/openapi.json", "/openapi-internal.json"


def schemas_of(site: Site) -> dict[str, Any]:
    """Return the schemas of both documents."""
    both = [site.request("GET", path).json()["components"]["schemas"] for path in (CALLERS, INTERNAL)]
    return {**both[0], **both[1]}


def test_each_endpoint_is_in_the_document_of_its_audience_with_its_errors(site: Site) -> None:
    paths = {name: site.request("GET", name).json()["paths"] for name in (CALLERS, INTERNAL)}
    for endpoint in ENDPOINTS:
        own, other = (CALLERS, INTERNAL) if endpoint.tag is Tag.API else (INTERNAL, CALLERS)
        assert endpoint.path not in paths[other]
        operation = paths[own][endpoint.path][endpoint.method.lower()]
        assert operation["operationId"] == endpoint.name
        expected = {str(endpoint.status), *(str(error.status) for error in endpoint.all_errors)}
        if endpoint.content_type == EVENT_STREAM and endpoint.events == "TimelineItem":
            expected.add("204")  # the stream of an organization does not end
        if endpoint.has_etag:
            expected.add("304")
        if endpoint.is_file:
            expected |= {"206", "302"}
        assert set(operation["responses"]) == expected
        assert operation["security"] == ([] if endpoint.access is None else [{"apiKey": []}])


@pytest.mark.parametrize("path", [CALLERS, INTERNAL])
def test_document_has_version_server_and_the_schemas_it_refers_to(site: Site, path: str) -> None:
    text = site.request("GET", path).text
    document = msgspec.json.decode(text)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.2.3"
    assert [server["url"] for server in document["servers"]] == ["/"]
    used = {name.rsplit("/", 1)[1] for name in re.findall(r'"\$ref":"(#/components/schemas/[^"]+)"', text)}
    assert used == set(document["components"]["schemas"])
    assert [tag["name"] for tag in document["tags"]] == (["api"] if path == CALLERS else ["ingest", "operations"])


def test_schemas_have_published_names_only(site: Site) -> None:
    schemas = schemas_of(site)
    assert {"Server", "Match", "Region", "Error", "CreateMatch", "LiveMatch", "SeriesResult"} <= set(schemas)
    assert not {"ServerView", "MatchView", "ErrorBody"} & set(schemas)
    assert '"title"' not in msgspec.json.encode(schemas).decode()


@pytest.mark.parametrize("path", [CALLERS, INTERNAL])
def test_codes_of_errors_are_an_enum(site: Site, path: str) -> None:
    schemas = site.request("GET", path).json()["components"]["schemas"]
    assert schemas["Error"]["properties"]["error"]["$ref"] == "#/components/schemas/ErrorCode"
    assert sorted(schemas["ErrorCode"]["enum"]) == sorted(ErrorCode)


def test_path_parameters_of_every_endpoint_are_documented() -> None:
    for endpoint in ENDPOINTS:
        described = [parameter.name for parameter in endpoint.parameters if parameter.place == "path"]
        assert described == re.findall(r"\{(\w+)\}", endpoint.path)


def test_no_endpoint_has_two_parameters_of_one_name() -> None:
    for endpoint in ENDPOINTS:
        names = [parameter.name for parameter in endpoint.parameters]
        assert len(set(names)) == len(names), (endpoint.name, names)


def test_second_names_are_deprecated_and_others_are_not(site: Site) -> None:
    paths = site.request("GET", CALLERS).json()["paths"]
    operations = {op["operationId"]: op for methods in paths.values() for op in methods.values()}
    deprecated = {name for name, operation in operations.items() if operation.get("deprecated")}
    assert deprecated == {"getMapAlias", "getMapEventsAlias", "streamMapEventsAlias"}
    parameters = {
        (name, parameter["name"])
        for name, operation in operations.items()
        for parameter in operation.get("parameters", ())
        if parameter.get("deprecated")
    }
    assert parameters == {("listMaps", "limit")}


def test_summaries_of_operations_are_unique(site: Site) -> None:
    paths = [site.request("GET", path).json()["paths"] for path in (CALLERS, INTERNAL)]
    summaries = [op["summary"] for found in paths for methods in found.values() for op in methods.values()]
    assert len(set(summaries)) == len(summaries)


def test_every_published_field_has_a_description(site: Site) -> None:
    schemas = schemas_of(site)
    published = schemas.keys() - create_match_schemas().keys() - callback_schemas().keys()
    missing = [
        f"{name}.{field} has no description"
        for name in sorted(published)
        for field, described in schemas[name].get("properties", {}).items()
        if not described.get("description")
    ]
    assert not missing, "\n".join(missing)


def test_only_nullable_fields_mention_null(site: Site) -> None:
    for name, schema in schemas_of(site).items():
        for field, described in schema.get("properties", {}).items():
            if "null" in described.get("description", "").lower():
                kinds = [described, *described.get("anyOf", ()), *described.get("oneOf", ())]
                assert any("null" in kind.get("type", ()) or None in kind.get("enum", ()) for kind in kinds), (
                    name,
                    field,
                )


def test_descriptions_contain_no_python_names(site: Site) -> None:
    for path in (CALLERS, INTERNAL):
        text = site.request("GET", path).text
        assert not re.findall(r'"description":"[^"]*(?<!If-)\b(?:None|True|False|[a-z]+_seq)\b[^"]*"', text)


def test_document_does_not_depend_on_the_regions_of_the_service(site: Site) -> None:
    region = schemas_of(site)["CreateMatch"]["properties"]["region"]
    assert region["type"] == "string"
    assert "enum" not in region


def test_game_mode_tells_the_shapes_of_a_result_apart(site: Site) -> None:
    schemas = schemas_of(site)
    assert schemas["DeathmatchResult"]["properties"]["gameMode"]["const"] == "deathmatch"
    modes = schemas["SeriesResult"]["properties"]["gameMode"]["enum"]
    assert sorted([*modes, "deathmatch"]) == sorted(MatchType)
    at = "#/components/schemas/"
    union = schemas["MatchResult"]
    assert union["oneOf"] == [{"$ref": f"{at}SeriesResult"}, {"$ref": f"{at}DeathmatchResult"}]
    mapping = {**dict.fromkeys(modes, f"{at}SeriesResult"), "deathmatch": f"{at}DeathmatchResult"}
    assert union["discriminator"] == {"propertyName": "gameMode", "mapping": mapping}
    for used in (schemas["Match"]["properties"]["result"]["anyOf"][0], schemas["MatchOver"]["properties"]["result"]):
        assert used["$ref"] == f"{at}MatchResult"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("CallbackBody", "eventType"),
        ("GameSettings", "matchType"),
        ("TimelineItem", "type"),
        ("MatchResult", "gameMode"),
    ],
)
def test_every_value_of_a_discriminator_leads_to_a_shape_that_has_it(site: Site, name: str, field: str) -> None:
    schemas = schemas_of(site)
    union = schemas[name]
    assert union["discriminator"]["propertyName"] == field
    for value, ref in union["discriminator"]["mapping"].items():
        shape = schemas[ref.rsplit("/", 1)[1]]["properties"][field]
        assert value in shape.get("enum", [shape.get("const")])
        assert shape["type"] == "string"


LABELED = msgspec.structs.replace(SERVER, marks=encode_marks({"event": "finals"}, is_simulated=True))
INCOMPLETE = Outcome(at_ms=0, reason=CancelReason.INCOMPLETE_ROSTER, missing_players=("1",), is_log_complete=False)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("MatchOver", callback_body(LABELED, Outcome(at_ms=0, forfeited_to=Team.TEAM1), b"{}")),
        ("MatchCanceled", callback_body(LABELED, INCOMPLETE, None)),
    ],
)
def test_callbacks_have_the_documented_fields(site: Site, name: str, body: bytes) -> None:
    schema = schemas_of(site)[name]
    sent = msgspec.json.decode(body)
    assert set(sent) == set(schema["properties"])
    assert set(schema["required"]) <= set(sent)
    assert sent["eventType"] == schema["properties"]["eventType"]["const"]


# --- the documentation page ---------------------------------------------------------------------------------------


def test_files_of_the_page_are_served(site: Site) -> None:
    page = site.request("GET", "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    used = re.findall(r'(?:src|href)="(/docs/[^"]+)"', page.text)
    assert sorted(used) == ["/docs/assets/docs.css", "/docs/assets/docs.js"]
    assert {site.request("GET", path).status_code for path in used} == {200}


def test_page_has_no_external_resources() -> None:
    for page in read_pages().values():
        assert not re.findall(rb"https?://", page.body)


@pytest.mark.parametrize("name", ["docs.html", "docs.py", "nothing", "..%2F__init__.py"])
def test_no_other_file_is_served(site: Site, name: str) -> None:
    check_error(site.request("GET", f"/docs/assets/{name}"), 404, "NOT_FOUND")
