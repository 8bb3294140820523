"""The list of servers over HTTP: filters, pages, ownership and bad values."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.views.progress import PublicPhase
from matchpod.storage import servers
from tests.unit.web import sites
from tests.unit.web.sites import NOW_MS, OTHER_PLAYER, PLAYER, Site, check_error

site = sites.site
LIST = "/api/v1/servers"


def listed(site: Site, query: str = "") -> list[str]:
    """Return the server ids of a page; all matching servers must fit on it."""
    page = site.get(f"{LIST}?{query}").json()
    assert page["total"] == len(page["items"])
    return [item["serverId"] for item in page["items"]]


def new_servers(site: Site, count: int, **fields: object) -> list[str]:
    """Create servers a second apart; return their ids, newest first."""
    ids = []
    for _ in range(count):
        site.clock.at_ms += 1_000
        ids.append(site.new_server(**fields))
    return ids[::-1]


def test_item_has_the_fields_of_its_server_without_secrets(site: Site) -> None:
    server_id = site.new_server(externalMatchId="cup", callbackUrl="https://caller.example/done")
    site.start(server_id)
    (item,) = site.get(LIST).json()["items"]
    server = site.get(f"{LIST}/{server_id}").json()
    live = {"rconPassword", "match", "deadline", "round", "sides", "roster", "lastHeardAt", "connect", "phase"}
    live.add("pendingAction")
    maps = {name: item[name] for name in ("mapNumber", "seriesScore", "maps")}
    assert {name: value for name, value in item.items() if name not in {"phase", "createdByName", *maps}} == {
        name: value for name, value in server.items() if name not in live
    }
    assert {name: server["match"][name] for name in maps} == maps
    assert "assword" not in str(item)


def test_match_without_a_series_has_one_map_and_no_series_score(site: Site) -> None:
    site.new_server(gameSettings={"matchType": "deathmatch", "map": "de_dust2", "players": [PLAYER]})
    (item,) = site.get(LIST).json()["items"]
    assert (item["mapNumber"], item["seriesScore"]) == (1, None)
    assert [(one["name"], one["status"], one["score"]) for one in item["maps"]] == [("de_dust2", "upcoming", None)]


def test_ended_server_explains_itself_in_the_list(site: Site) -> None:
    incomplete, lost = site.new_server(), site.new_server()
    missing = Outcome(
        at_ms=NOW_MS,
        reason=CancelReason.INCOMPLETE_ROSTER,
        missing_players=(PLAYER,),
        connected_players=(OTHER_PLAYER,),
    )
    site.end(incomplete, missing)
    site.end(lost, reason=CancelReason.SERVER_LOST)
    items = {item["serverId"]: item for item in site.get(LIST).json()["items"]}
    first, second = items[incomplete], items[lost]
    assert (first["phase"], first["reason"], first["error"]) == ("ended", "incomplete_roster", None)
    assert (first["missingPlayers"], first["connectedPlayers"]) == ([PLAYER], [OTHER_PLAYER])
    assert (second["status"], second["reason"], second["missingPlayers"]) == ("failed", "server_lost", None)
    assert second["error"] == "The server stopped responding, or its process ended."


def test_servers_are_filtered_by_status_and_phase(site: Site) -> None:
    allocating, running, stopped, failed = new_servers(site, 4)
    site.start(running)
    site.run(site.db.write([servers.change(running, site.row(running).fence, match_phase=PublicPhase.LIVE)]))
    site.cancel(stopped)
    site.end(failed, reason=CancelReason.NO_CAPACITY)
    for query, expected in {
        "status=allocating": [allocating],
        "status=running": [running],
        "status=stopped": [stopped],
        "status=failed": [failed],
        "status=pending": [],
        "phase=allocating": [allocating],
        "phase=live": [running],
        "phase=paused": [],
        "phase=ended": [stopped, failed],
        "status=running&phase=live": [running],
        "status=stopped&phase=ended": [stopped],
        "status=stopped&phase=live": [],
    }.items():
        assert listed(site, query) == expected, query


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("phase=warmup", "phase"),
        ("externalMatchId=%0A", "externalMatchId"),
        ("state=running", "state"),
    ],
)
def test_message_for_a_bad_value_names_the_parameter(site: Site, query: str, name: str) -> None:
    body = check_error(site.get(f"{LIST}?{query}"), 400, "INVALID_PARAMS")
    assert str(body["message"]).startswith(f"{name} ")
