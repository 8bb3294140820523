"""Reading series, maps, timelines and leaderboards over HTTP: responses and permissions."""

from __future__ import annotations

import pytest

from tests.unit.web import sites
from tests.unit.web.histories import (
    finish,
    map_ids,
    new_series,
)
from tests.unit.web.sites import PLAYER, Site, check_error, unavailable
from tests.vaults import tokens_of

site = sites.site
API = "/api/v1/cs2"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
LISTS = ["series", "matches"]
OF_MAP = ["matches/{}", "maps/{}", "matches/{}/events", "maps/{}/events", "matches/{}/leaderboard"]


def ids(site: Site, path: str) -> list[str]:
    """Return the server ids of a list, in its order."""
    response = site.get(f"{API}/{path}")
    assert response.status_code == 200, response.text
    return [item["serverId"] for item in response.json()["items"]]


# --- lists --------------------------------------------------------------------------------------------------------


def test_deathmatch_is_a_map_without_a_series(site: Site) -> None:
    server_id = site.new_server(gameSettings={"matchType": "deathmatch", "map": "de_dust2", "players": [PLAYER]})
    assert site.get(f"{API}/series").json()["total"] == 0
    assert site.get(f"{API}/servers/{server_id}/series").json()["total"] == 0
    (item,) = site.get(f"{API}/matches").json()["items"]
    assert (item["team1Name"], item["team2Name"], item["gameMode"]) == (None, None, "deathmatch")
    assert site.get(f"{API}/matches/{item['id']}").json()["seriesId"] is None


@pytest.mark.parametrize("what", LISTS)
def test_date_filters_exclude_unstarted_matches(site: Site, what: str) -> None:
    site.new_server()
    for query in ("dateFrom=0001-01-01", "dateFrom=1970-01-01", "dateTo=9999-12-31"):
        assert site.get(f"{API}/{what}?{query}").json()["total"] == 0


def test_series_of_a_server_equal_the_filtered_list(site: Site) -> None:
    server_id, _ = new_series(site), new_series(site)
    own = site.get(f"{API}/servers/{server_id}/series")
    assert own.content == site.get(f"{API}/series?serverId={server_id}").content
    assert own.json()["total"] == 1
    assert ids(site, f"servers/{server_id}/series?status=upcoming") == [server_id]
    assert ids(site, f"servers/{server_id}/series?status=live") == []
    assert ids(site, f"servers/{server_id}/series?page=2") == []


# --- details ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", ["", "/events", "/events?afterSeq=2&limit=3"])
def test_both_paths_of_a_map_return_the_same_bytes(site: Site, rest: str) -> None:
    server_id = new_series(site)
    finish(site, server_id)
    for map_id in (*map_ids(site, server_id), UNKNOWN):
        first, second = (site.get(f"{API}/{what}/{map_id}{rest}") for what in ("matches", "maps"))
        if first.status_code == 200:
            assert first.content == second.content
        assert first.status_code == second.status_code == (404 if map_id == UNKNOWN else 200)


def test_running_match_that_is_not_live_has_no_players(site: Site) -> None:
    server_id = site.new_server()
    site.start(server_id)
    number = int(PLAYER) - 76561197960265728
    line = f'L 09/21/2026 - 14:13:20.123 - "Ann<2><[U:1:{number}]><>" entered the game\n'
    site.request("POST", f"/ingest/logs/{tokens_of(site.row(server_id)).log}", content=line.encode())
    (map_id,) = map_ids(site, server_id)
    response = site.get(f"{API}/matches/{map_id}").json()
    assert (response["status"], response["players"], response["antiCheat"]) == ("upcoming", [], [])
    assert site.get(f"{API}/matches/{map_id}/leaderboard").json()["players"] == []


# --- permissions ------------------------------------------------------------------------------------------------


def every_path(site: Site) -> list[str]:
    """Return all paths of one match's history."""
    server_id = new_series(site)
    finish(site, server_id)
    (item,) = site.get(f"{API}/series").json()["items"]
    own = [f"series/{item['id']}", f"series/{item['seriesId']}", f"servers/{server_id}/series"]
    return [f"{API}/{path}" for path in (*own, *(shape.format(map_ids(site, server_id)[0]) for shape in OF_MAP))]


@pytest.mark.parametrize("text", ["srv_0", "a%2Fb", "%00", "%ff"])
def test_series_of_an_unknown_server_are_not_found(site: Site, text: str) -> None:
    check_error(site.get(f"{API}/servers/{text}/series"), 404, "NOT_FOUND")


@pytest.mark.parametrize("shape", ["series/{}", *OF_MAP])
def test_invalid_id_is_not_found_without_a_database_query(site: Site, shape: str) -> None:
    assert site.get(f"{API}/series").status_code == 200  # puts the key into the cache
    site.db.failure = unavailable()
    check_error(site.get(f"{API}/{shape.format('no-id')}"), 404, "NOT_FOUND")
    check_error(site.get(f"{API}/{shape.format(UNKNOWN)}"), 503, "SERVICE_UNAVAILABLE")


def test_map_id_and_series_id_are_not_interchangeable(site: Site) -> None:
    server_id = new_series(site)
    (item,) = site.get(f"{API}/series").json()["items"]
    check_error(site.get(f"{API}/series/{map_ids(site, server_id)[0]}"), 404, "NOT_FOUND")
    check_error(site.get(f"{API}/matches/{item['id']}"), 404, "NOT_FOUND")


# --- every response -----------------------------------------------------------------------------------------------


def test_responses_are_not_cacheable_by_others(site: Site) -> None:
    for path in (*every_path(site), f"{API}/series", f"{API}/matches"):
        response = site.get(path)
        assert response.status_code == 200
        assert response.headers["cache-control"] == ("private, no-cache" if "etag" in response.headers else "no-store")
        assert response.headers["content-type"] == "application/json"


# --- queries: all faults are reported before any lookup -----------------------------------------------------------


def faults(site: Site, url: str, key: str | None = None) -> dict[str, str]:
    """Return the reported faults by parameter."""
    details = check_error(site.get(url, key), 400, "INVALID_PARAMS")["details"]
    assert isinstance(details, list)
    messages = {fault["path"]: fault["message"] for fault in details}
    assert len(messages) == len(details)
    return messages


def test_series_of_a_server_cannot_be_filtered_by_server(site: Site) -> None:
    server_id = site.new_server()
    for other in (server_id, "srv_other"):
        messages = faults(site, f"{API}/servers/{server_id}/series?serverId={other}")
        assert messages == {
            "serverId": "is not a known parameter; known parameters: page, pageSize, status, dateFrom, dateTo"
        }


@pytest.mark.parametrize("rest", ["events", "leaderboard"])
def test_query_is_checked_before_the_organization(site: Site, rest: str) -> None:
    server_id = site.new_server()
    (map_id,) = map_ids(site, server_id)
    assert list(faults(site, f"{API}/matches/{map_id}/{rest}?x=1", site.other_key)) == ["x"]
    assert list(faults(site, f"{API}/servers/{server_id}/series?x=1", site.other_key)) == ["x"]
    check_error(site.get(f"{API}/matches/{map_id}/{rest}?limit=1", site.other_key), 403, "FORBIDDEN")
