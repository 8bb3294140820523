"""Reading series, maps, timelines and leaderboards over HTTP: responses and permissions."""

from __future__ import annotations

import pytest

from matchpod.core.match.played_map import MapStatus
from tests.unit.web import sites
from tests.unit.web.histories import (
    DAY_MS,
    STARTED_MS,
    append_events,
    chat,
    finish,
    map_ids,
    new_series,
    set_status,
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
def test_pages_make_up_the_whole_list_newest_first(site: Site, what: str) -> None:
    server_ids = [site.new_server() for _ in range(5)]
    for days, server_id in enumerate(server_ids):
        set_status(site, server_id, MapStatus.LIVE, started_ms=STARTED_MS + days * DAY_MS)
    pages = [site.get(f"{API}/{what}?page={page}&pageSize=2").json() for page in (1, 2, 3, 4)]
    assert [(page["page"], page["pageSize"], page["total"], len(page["items"])) for page in pages] == [
        (1, 2, 5, 2),
        (2, 2, 5, 2),
        (3, 2, 5, 1),
        (4, 2, 5, 0),
    ]
    assert [item["serverId"] for page in pages for item in page["items"]] == server_ids[::-1]
    assert site.get(f"{API}/{what}?page=1000000000&pageSize=100").json()["items"] == []


def test_limit_parameter_of_the_maps_list_is_its_page_size(site: Site) -> None:
    new_series(site)
    responses = [site.get(f"{API}/matches?{query}") for query in ("limit=2", "pageSize=2", "pageSize=2&limit=2")]
    assert responses[0].json()["pageSize"] == 2
    assert len(responses[0].json()["items"]) == 2
    assert responses[0].content == responses[1].content == responses[2].content


@pytest.mark.parametrize("what", LISTS)
def test_date_filters_exclude_unstarted_matches(site: Site, what: str) -> None:
    site.new_server()
    for query in ("dateFrom=0001-01-01", "dateFrom=1970-01-01", "dateTo=9999-12-31"):
        assert site.get(f"{API}/{what}?{query}").json()["total"] == 0


def test_filters_can_be_combined(site: Site) -> None:
    server_id, other = new_series(site), new_series(site)
    set_status(site, server_id, MapStatus.FINISHED)
    set_status(site, other, MapStatus.LIVE)
    query = f"status=finished&serverId={server_id}&map=de_nuke&dateFrom=2026-09-21&dateTo=2026-09-21&page=1&limit=1"
    assert ids(site, f"matches?{query}") == [server_id]
    assert ids(site, f"matches?{query.replace('finished', 'live')}") == []


def test_series_of_a_server_equal_the_filtered_list(site: Site) -> None:
    server_id, _ = new_series(site), new_series(site)
    own = site.get(f"{API}/servers/{server_id}/series")
    assert own.content == site.get(f"{API}/series?serverId={server_id}").content
    assert own.json()["total"] == 1
    assert ids(site, f"servers/{server_id}/series?status=upcoming") == [server_id]
    assert ids(site, f"servers/{server_id}/series?status=live") == []
    assert ids(site, f"servers/{server_id}/series?page=2") == []


# --- details ------------------------------------------------------------------------------------------------------


def test_series_is_found_by_either_id_in_any_case(site: Site) -> None:
    new_series(site)
    (item,) = site.get(f"{API}/series").json()["items"]
    by_id = site.get(f"{API}/series/{item['id']}")
    assert by_id.status_code == 200
    assert by_id.content == site.get(f"{API}/series/{item['seriesId']}").content
    assert by_id.content == site.get(f"{API}/series/{item['id'].upper()}").content
    assert by_id.json()["seriesId"] == item["seriesId"] == "ser_" + item["serverId"].removeprefix("srv_")


@pytest.mark.parametrize("shape", OF_MAP)
def test_map_is_found_by_its_id_in_any_case(site: Site, shape: str) -> None:
    server_id = new_series(site)
    finish(site, server_id)
    map_id = map_ids(site, server_id)[0]
    response = site.get(f"{API}/{shape.format(map_id)}")
    assert response.status_code == 200
    assert response.content == site.get(f"{API}/{shape.format(map_id.upper())}").content


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


# --- timelines ----------------------------------------------------------------------------------------------------


def test_response_has_the_limit_that_was_applied(site: Site) -> None:
    (map_id,) = map_ids(site, site.new_server())
    append_events(site, map_id, chat(1, 1002))
    path = f"{API}/matches/{map_id}/events"
    for query, limit in (("", 100), ("?limit=1", 1), ("?limit=1000", 1000), ("?limit=1001", 1000)):
        page = site.get(path + query).json()
        assert (page["limit"], len(page["items"]), page["nextAfterSeq"]) == (limit, limit, limit)


# --- leaderboards -------------------------------------------------------------------------------------------------


def test_leaderboard_is_sorted_by_the_given_statistic(site: Site) -> None:
    server_id = new_series(site)
    finish(site, server_id)
    path = f"{API}/matches/{map_ids(site, server_id)[0]}/leaderboard"
    names = {
        query: [player["name"] for player in site.get(path + query).json()["players"]]
        for query in ("", "?sortBy=kills", "?sortBy=damage", "?sortBy=damage&limit=1", "?limit=32")
    }
    assert names == {
        "": ["Ann", "Bob"],
        "?sortBy=kills": ["Ann", "Bob"],
        "?sortBy=damage": ["Bob", "Ann"],
        "?sortBy=damage&limit=1": ["Bob"],
        "?limit=32": ["Ann", "Bob"],
    }


# --- permissions ------------------------------------------------------------------------------------------------


def every_path(site: Site) -> list[str]:
    """Return all paths of one match's history."""
    server_id = new_series(site)
    finish(site, server_id)
    (item,) = site.get(f"{API}/series").json()["items"]
    own = [f"series/{item['id']}", f"series/{item['seriesId']}", f"servers/{server_id}/series"]
    return [f"{API}/{path}" for path in (*own, *(shape.format(map_ids(site, server_id)[0]) for shape in OF_MAP))]


@pytest.mark.parametrize("text", [UNKNOWN, "x", "a%2Fb", "%00", "%ff", "ser_", UNKNOWN + "%0A"])
def test_unknown_series_or_map_is_not_found(site: Site, text: str) -> None:
    for shape in ("series/{}", *OF_MAP):
        check_error(site.get(f"{API}/{shape.format(text)}"), 404, "NOT_FOUND")


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
