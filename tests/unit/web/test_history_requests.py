"""Query strings of the history over HTTP: all faults are told, before anything is looked up."""

from __future__ import annotations

import re

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.web.endpoint import Endpoint
from matchpod.web.history_routes import HISTORY
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
    """What is told to be wrong, by parameter."""
    details = check_error(site.get(url, key), 400, "INVALID_PARAMS")["details"]
    assert isinstance(details, list)
    told = {fault["path"]: fault["message"] for fault in details}
    assert len(told) == len(details)
    return told


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=1.5", "page=", "page", "page=1000000001", "page=%2B1", "page=+1", "page=1%00",
     "pageSize=0", "pageSize=101", "pageSize=ten", "status=canceled", "status=LIVE", "serverId=a%20b", "serverId=%ff",
     f"serverId={'x' * 65}", "dateFrom=today", "dateTo=2026-02-29", "dateTo=2026-09-21T25:00", "page=1&page=1",
     "dateFrom=%C2%B2026-09-21", "page=%D9%A3"]
)  # fmt: skip
def test_wrong_value_of_a_list_is_told(site: Site, path: str, query: str) -> None:
    assert list(faults(site, f"{path}?{query}")) == [query.split("=")[0]]


@pytest.mark.parametrize("query", ["map=", "map=%00", "map=a%0Ab", "map=%ff", f"map={'x' * 129}", "map=a&map=b"])
def test_wrong_name_of_a_map_is_told(site: Site, query: str) -> None:
    assert list(faults(site, f"{MAPS}?{query}")) == ["map"]


def test_bytes_that_are_no_text_are_told_so(site: Site) -> None:
    assert faults(site, f"{MAPS}?map=%ff") == {"map": "must be UTF-8, percent-encoded; it has bytes that are not"}


@pytest.mark.parametrize("path", WITH_QUERY)
def test_parameter_without_a_name_is_told_in_quotes(site: Site, path: str) -> None:
    assert list(faults(site, f"{path}?=1")) == ['""']
    assert str(site.get(f"{path}?=1").json()["message"]).startswith('"" is not a known parameter; ')


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=10&pageSize=11", "limit="])
def test_wrong_limit_of_maps_is_told(site: Site, query: str) -> None:
    assert list(faults(site, f"{MAPS}?{query}")) == ["limit"]


@pytest.mark.parametrize("query", ["afterSeq=-1", f"afterSeq={2**53}", "afterSeq=last", "limit=0", "limit=x", "limit="])
def test_wrong_value_of_a_timeline_is_told(site: Site, query: str) -> None:
    assert list(faults(site, f"{EVENTS}?{query}")) == [query.split("=")[0]]


@pytest.mark.parametrize("query", ["sortBy=deaths", "sortBy=KILLS", "sortBy=", "limit=0", "limit=33"])
def test_wrong_value_of_a_leaderboard_is_told(site: Site, query: str) -> None:
    assert list(faults(site, f"{LEADERBOARD}?{query}")) == [query.split("=")[0]]


@pytest.mark.parametrize(
    ("path", "query", "meant"),
    [
        (SERIES, "pagesize=1", "did you mean pageSize?"),
        (SERIES, "datefrom=x", "did you mean dateFrom?"),
        (MAPS, "mapName=de_dust2", "did you mean map?"),
        (MAPS, "server_id=x", "did you mean serverId?"),
        (OF_SERVER, "limit=1", "known are page, pageSize, status, serverId, dateFrom, dateTo"),
        (EVENTS, "after=1", "did you mean afterSeq?"),
        (EVENTS, "page=2", "known are afterSeq, limit"),
        (LEADERBOARD, "sort=kills", "did you mean sortBy?"),
    ],
)
def test_unknown_parameter_is_told_which_was_meant(site: Site, path: str, query: str, meant: str) -> None:
    assert faults(site, f"{path}?{query}") == {query.split("=")[0]: f"is not a known parameter; {meant}"}


@pytest.mark.parametrize("endpoint", [e for e in HISTORY if InvalidParamsError in e.errors], ids=lambda e: e.name)
def test_described_parameters_are_those_that_are_read(site: Site, endpoint: Endpoint) -> None:
    described = [parameter.name for parameter in endpoint.parameters if parameter.place == "query"]
    told = faults(site, re.sub(r"\{\w+\}", UNKNOWN, endpoint.path) + "?zzz=1")
    assert told == {"zzz": f"is not a known parameter; known are {', '.join(described)}"}


def test_all_faults_are_told_at_once(site: Site) -> None:
    query = "page=0&pageSize=x&limit=0&map=&status=on&serverId=%20&dateFrom=a&dateTo=b&colour=red&map=de_nuke"
    told = faults(site, f"{MAPS}?{query}")
    assert set(told) == {name.split("=")[0] for name in query.split("&")}
    answer = site.get(f"{MAPS}?{query}").json()
    assert answer["message"] == "9 faults in the query"


@pytest.mark.parametrize("path", WITH_QUERY)
def test_strange_queries_are_refused_and_can_be_answered(site: Site, path: str) -> None:
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
def test_odd_but_clear_queries_are_read(site: Site, path: str, query: str) -> None:
    assert site.get(f"{path}?{query}").json()["page"] == 1


def test_query_has_a_limit(site: Site) -> None:
    filler = "&" * (MAX_QUERY_BYTES - len("page=1"))
    assert site.get(f"{SERIES}?page=1{filler}").status_code == 200
    body = check_error(site.get(f"{SERIES}?page=1{filler}&"), 400, "INVALID_PARAMS")
    assert "4096" in str(body["message"])


# --- the order of checks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WITH_QUERY)
def test_key_comes_before_the_query(site: Site, path: str) -> None:
    check_error(site.ask("GET", f"{path}?x=1"), 401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", WITH_QUERY)
def test_query_comes_before_the_look_up(site: Site, path: str) -> None:
    assert list(faults(site, f"{path}?x=1")) == ["x"]


@pytest.mark.parametrize("rest", ["events", "leaderboard"])
def test_query_comes_before_the_owner(site: Site, rest: str) -> None:
    server_id = site.new_server()
    (map_id,) = map_ids(site, server_id)
    assert list(faults(site, f"{API}/matches/{map_id}/{rest}?x=1", site.stranger)) == ["x"]
    assert list(faults(site, f"{API}/servers/{server_id}/series?x=1", site.stranger)) == ["x"]
    check_error(site.get(f"{API}/matches/{map_id}/{rest}?limit=1", site.stranger), 403, "FORBIDDEN")
