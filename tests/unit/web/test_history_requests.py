"""Query parameters of the history endpoints: all faults are reported before any lookup."""

from __future__ import annotations

import re

import pytest

from matchpod.web.endpoint import Endpoint
from matchpod.web.handlers.history_routes import HISTORY
from matchpod.web.query_strings import MAX_QUERY_BYTES
from tests.unit.web import sites
from tests.unit.web.histories import map_ids
from tests.unit.web.sites import Site, check_error

site = sites.site
API = "/api/v1/cs2"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
SERIES, MAPS = f"{API}/series", f"{API}/matches"
OF_SERVER = f"{API}/servers/srv_0/series"
EVENTS, LEADERBOARD = f"{API}/matches/{UNKNOWN}/events", f"{API}/matches/{UNKNOWN}/leaderboard"
LISTS = [SERIES, MAPS, OF_SERVER]
WITH_QUERY = [*LISTS, EVENTS, f"{API}/maps/{UNKNOWN}/events", LEADERBOARD]


def faults(site: Site, url: str, key: str | None = None) -> dict[str, str]:
    """Return the reported faults by parameter."""
    details = check_error(site.get(url, key), 400, "INVALID_PARAMS")["details"]
    assert isinstance(details, list)
    messages = {fault["path"]: fault["message"] for fault in details}
    assert len(messages) == len(details)
    return messages


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=1.5", "page=", "page", "page=1000000001", "page=%2B1", "page=+1", "page=1%00",
     "pageSize=0", "pageSize=101", "pageSize=ten", "status=canceled", "status=LIVE", "serverId=a%20b", "serverId=%ff",
     f"serverId={'x' * 65}", "dateFrom=today", "dateTo=2026-02-29", "dateTo=2026-09-21T25:00", "page=1&page=1",
     "dateFrom=%C2%B2026-09-21", "page=%D9%A3"]
)  # fmt: skip
def test_invalid_list_parameter_is_reported(site: Site, query: str) -> None:
    for path in LISTS:
        assert list(faults(site, f"{path}?{query}")) == [query.split("=")[0]], path


@pytest.mark.parametrize("query", ["map=", "map=%00", "map=a%0Ab", "map=%ff", f"map={'x' * 129}", "map=a&map=b"])
def test_invalid_map_name_is_reported(site: Site, query: str) -> None:
    assert list(faults(site, f"{MAPS}?{query}")) == ["map"]


def test_invalid_utf8_is_reported(site: Site) -> None:
    assert faults(site, f"{MAPS}?map=%ff") == {"map": "must be percent-encoded UTF-8"}


@pytest.mark.parametrize("path", WITH_QUERY)
def test_empty_parameter_name_is_reported_in_quotes(site: Site, path: str) -> None:
    assert list(faults(site, f"{path}?=1")) == ['""']
    assert str(site.get(f"{path}?=1").json()["message"]).startswith('"" is not a known parameter; ')


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=10&pageSize=11", "limit="])
def test_invalid_limit_parameter_of_the_maps_list_is_reported(site: Site, query: str) -> None:
    assert list(faults(site, f"{MAPS}?{query}")) == ["limit"]


@pytest.mark.parametrize("query", ["afterSeq=-1", f"afterSeq={2**53}", "afterSeq=last", "limit=0", "limit=x", "limit="])
def test_invalid_timeline_parameter_is_reported(site: Site, query: str) -> None:
    assert list(faults(site, f"{EVENTS}?{query}")) == [query.split("=")[0]]


@pytest.mark.parametrize("query", ["sortBy=deaths", "sortBy=KILLS", "sortBy=", "limit=0", "limit=33"])
def test_invalid_leaderboard_parameter_is_reported(site: Site, query: str) -> None:
    assert list(faults(site, f"{LEADERBOARD}?{query}")) == [query.split("=")[0]]


@pytest.mark.parametrize(
    ("path", "query", "hint"),
    [
        (SERIES, "pagesize=1", "did you mean pageSize?"),
        (SERIES, "datefrom=x", "did you mean dateFrom?"),
        (MAPS, "mapName=de_dust2", "did you mean map?"),
        (MAPS, "server_id=x", "did you mean serverId?"),
        (OF_SERVER, "limit=1", "known parameters: page, pageSize, status, serverId, dateFrom, dateTo"),
        (EVENTS, "after=1", "did you mean afterSeq?"),
        (EVENTS, "page=2", "known parameters: afterSeq, limit"),
        (LEADERBOARD, "sort=kills", "did you mean sortBy?"),
    ],
)
def test_unknown_parameter_is_reported_with_a_suggestion(site: Site, path: str, query: str, hint: str) -> None:
    assert faults(site, f"{path}?{query}") == {query.split("=")[0]: f"is not a known parameter; {hint}"}


@pytest.mark.parametrize(
    "endpoint", [e for e in HISTORY if any(p.place == "query" for p in e.parameters)], ids=lambda e: e.name
)
def test_documented_parameters_are_those_that_are_read(site: Site, endpoint: Endpoint) -> None:
    described = [parameter.name for parameter in endpoint.parameters if parameter.place == "query"]
    in_path = [parameter.name for parameter in endpoint.parameters if parameter.place == "path"]
    (message,) = faults(site, re.sub(r"\{\w+\}", UNKNOWN, endpoint.path) + "?zzz=1").values()
    start, _, read = message.partition("; known parameters: ")
    assert start == "is not a known parameter"
    # The series of a server may be filtered by the same server, which is not worth documenting.
    assert [name for name in read.split(", ") if name not in in_path] == described


def test_all_faults_are_reported_at_once(site: Site) -> None:
    query = "page=0&pageSize=x&limit=0&map=&status=on&serverId=%20&dateFrom=a&dateTo=b&colour=red&map=de_nuke"
    messages = faults(site, f"{MAPS}?{query}")
    assert set(messages) == {name.split("=")[0] for name in query.split("&")}
    response = site.get(f"{MAPS}?{query}").json()
    assert response["message"] == "9 faults in the query"


@pytest.mark.parametrize("path", WITH_QUERY)
def test_malformed_queries_are_rejected(site: Site, path: str) -> None:
    for query in (
        "%ff=1",
        "%00",
        "=",
        "=1",
        "%F0%9F%8E%AE=1",
        "a" * 300,
        "%ED%A0%80=1",
        "%7F=1",
        "?page=1",
        "page;=1",
    ):
        assert faults(site, f"{path}?{query}")


@pytest.mark.parametrize("path", LISTS[:2])
@pytest.mark.parametrize("query", ["", "&", "&&page=1&", "page=1&", "p%61ge=%31"])
def test_unusual_but_valid_queries_are_accepted(site: Site, path: str, query: str) -> None:
    assert site.get(f"{path}?{query}").json()["page"] == 1


def test_query_length_is_limited(site: Site) -> None:
    filler = "&" * (MAX_QUERY_BYTES - len("page=1"))
    assert site.get(f"{SERIES}?page=1{filler}").status_code == 200
    body = check_error(site.get(f"{SERIES}?page=1{filler}&"), 400, "INVALID_PARAMS")
    assert "4096" in str(body["message"])


# --- the order of checks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WITH_QUERY)
def test_key_is_checked_before_the_query(site: Site, path: str) -> None:
    check_error(site.request("GET", f"{path}?x=1"), 401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", WITH_QUERY)
def test_query_is_checked_before_the_lookup(site: Site, path: str) -> None:
    assert list(faults(site, f"{path}?x=1")) == ["x"]


@pytest.mark.parametrize("rest", ["events", "leaderboard"])
def test_query_is_checked_before_the_organization(site: Site, rest: str) -> None:
    server_id = site.new_server()
    (map_id,) = map_ids(site, server_id)
    assert list(faults(site, f"{API}/matches/{map_id}/{rest}?x=1", site.other_key)) == ["x"]
    assert list(faults(site, f"{API}/servers/{server_id}/series?x=1", site.other_key)) == ["x"]
    check_error(site.get(f"{API}/matches/{map_id}/{rest}?limit=1", site.other_key), 403, "FORBIDDEN")
