"""Liveness, readiness, numbers, the description of the API and its page; and the public list of regions."""

from __future__ import annotations

import re

import msgspec
import pytest

from matchpod.service.callback_bodies import CallbackSubject, match_canceled, match_over
from matchpod.service.metrics import CONTENT_TYPE
from matchpod.storage import region_flags
from matchpod.web.docs import read_pages
from matchpod.web.endpoint import EVENT_STREAM
from matchpod.web.routes import ENDPOINTS
from tests.unit.web import sites
from tests.unit.web.sites import Site, away, check_error

site = sites.site
SUBJECT = CallbackSubject(server_id="srv_1", session_id="session")


def test_process_is_alive_even_without_its_database(site: Site) -> None:
    site.db.trouble = away()
    assert site.ask("GET", "/healthz").json() == {"status": "ok", "version": "1.2.3"}


def test_process_that_can_work_is_ready(site: Site) -> None:
    assert site.ask("GET", "/readyz").json() == {"status": "ready", "version": "1.2.3"}


def test_process_without_its_database_is_not_ready_and_says_why(site: Site) -> None:
    site.db.trouble = away()
    answer = site.ask("GET", "/readyz")
    body = check_error(answer, 503, "SERVICE_UNAVAILABLE")
    assert body["details"] == [{"path": "", "message": "The database is away."}]
    assert "retry-after" in answer.headers


def test_process_that_drains_is_not_ready(site: Site) -> None:
    site.readiness.drain()
    body = check_error(site.ask("GET", "/readyz"), 503, "SERVICE_UNAVAILABLE")
    assert "draining" in str(body["details"])


def test_requests_are_counted_by_route_and_status(site: Site) -> None:
    site.get("/api/v1/servers/srv_0")
    site.ask("GET", "/nobody/knows")
    answer = site.ask("GET", "/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    assert 'matchpod_http_requests_total{route="/api/v1/servers/{id}",method="GET",status="404"} 1' in answer.text
    assert 'matchpod_http_requests_total{route="unknown",method="unknown",status="404"} 1' in answer.text
    assert 'matchpod_http_request_seconds_count{route="/api/v1/servers/{id}",status_class="4xx"} 1' in answer.text


def test_regions_are_listed_for_everybody(site: Site) -> None:
    site.run(region_flags.set_active(site.db, "eu-west", False))
    answer = site.ask("GET", "/api/v1/regions")
    assert answer.status_code == 200
    assert answer.json() == [
        {"code": "sandbox", "name": "Sandbox", "location": "Here", "isActive": True},
        {"code": "eu-west", "name": "Europe West", "location": "Paris", "isActive": False},
    ]


def test_bad_key_does_not_hurt_where_none_is_needed(site: Site) -> None:
    assert site.ask("GET", "/api/v1/regions", key="nonsense").status_code == 200


# --- the description ----------------------------------------------------------------------------------------------


def test_description_has_every_endpoint_with_its_errors(site: Site) -> None:
    document = site.ask("GET", "/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.2.3"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["operationId"] == endpoint.name
        expected = {str(endpoint.status), *(str(error.status) for error in endpoint.errors)}
        if endpoint.content_type == EVENT_STREAM:
            expected.add("204")
        assert set(operation["responses"]) == expected
        assert ("security" in operation) == (endpoint.access is not None)


def test_every_reference_of_the_description_leads_somewhere(site: Site) -> None:
    text = site.ask("GET", "/openapi.json").text
    schemas = msgspec.json.decode(text)["components"]["schemas"]
    assert {name.rsplit("/", 1)[1] for name in re.findall(r'"\$ref":"([^"]+)"', text)} <= set(schemas)
    assert {"Server", "Match", "Region", "Error", "CreateMatch", "LiveMatch", "SeriesResult"} <= set(schemas)


def test_path_parameters_of_every_endpoint_are_described() -> None:
    for endpoint in ENDPOINTS:
        described = [parameter.name for parameter in endpoint.parameters if parameter.place == "path"]
        assert described == re.findall(r"\{(\w+)\}", endpoint.path)


def test_no_two_operations_look_the_same_in_the_menu(site: Site) -> None:
    paths = site.ask("GET", "/openapi.json").json()["paths"]
    summaries = [operation["summary"] for methods in paths.values() for operation in methods.values()]
    assert len(set(summaries)) == len(summaries)


def test_only_what_can_be_null_is_said_to_be(site: Site) -> None:
    schemas = site.ask("GET", "/openapi.json").json()["components"]["schemas"]
    for name, schema in schemas.items():
        for field, described in schema.get("properties", {}).items():
            if "null" in described.get("description", "").lower():
                kinds = [described, *described.get("anyOf", ()), *described.get("oneOf", ())]
                assert any("null" in kind.get("type", ()) or None in kind.get("enum", ()) for kind in kinds), (
                    name,
                    field,
                )


def test_description_has_no_words_of_the_code(site: Site) -> None:
    text = site.ask("GET", "/openapi.json").text
    assert not re.findall(r'"description":"[^"]*\b(?:None|True|False|[a-z]+_seq)\b[^"]*"', text)


def test_regions_of_the_service_are_those_of_the_description(site: Site) -> None:
    schema = site.ask("GET", "/openapi.json").json()["components"]["schemas"]["CreateMatch"]
    assert schema["properties"]["region"]["enum"] == ["sandbox", "eu-west"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("MatchOver", match_over(SUBJECT, at_ms=0, result=b"{}")),
        ("MatchCanceled", match_canceled(SUBJECT, at_ms=0, reason="incomplete_roster", missing_players=("1",))),
    ],
)
def test_callbacks_have_the_fields_of_the_description(site: Site, name: str, body: bytes) -> None:
    schema = site.ask("GET", "/openapi.json").json()["components"]["schemas"][name]
    sent = msgspec.json.decode(body)
    assert set(sent) == set(schema["properties"])
    assert set(schema["required"]) <= set(sent)
    assert sent["eventType"] == schema["properties"]["eventType"]["const"]


# --- the page -----------------------------------------------------------------------------------------------------


def test_page_is_made_of_files_that_are_served(site: Site) -> None:
    page = site.ask("GET", "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    used = re.findall(r'(?:src|href)="(/docs/[^"]+)"', page.text)
    assert sorted(used) == ["/docs/assets/docs.css", "/docs/assets/docs.js"]
    assert {site.ask("GET", path).status_code for path in used} == {200}


def test_page_fetches_nothing_from_elsewhere() -> None:
    for page in read_pages().values():
        assert not re.findall(rb"https?://", page.body)


@pytest.mark.parametrize("name", ["docs.html", "docs.py", "nothing", "..%2F__init__.py"])
def test_no_other_file_is_served(site: Site, name: str) -> None:
    check_error(site.ask("GET", f"/docs/assets/{name}"), 404, "NOT_FOUND")
