"""Read everything that the API returns about an ended match, and check that it is consistent.

The rules for a timeline are those documented for callers on the page about events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from tests.contract.same_numbers import check_leaderboard, check_map_item, check_rounds, check_series
from tests.e2e.service.running_service import Json, RunningService

VARIED_LIMITS = (1, 7, 2, 101, 13, 5000)
"""Page sizes that make pages end at arbitrary items; the last one is above the maximum."""
MAX_ITEMS = 1000

SORTS = {
    "kills": "kills",
    "damage": "damageDealt",
    "headshots": "headshots",
    "accuracy": "accuracyPercent",
    "utility": "utility",
    "plants": "bombPlants",
    "defuses": "bombDefuses",
}
"""The sort orders of a leaderboard, with the field that each sorts by."""

PRESENCE_TYPES = ("player_connected", "player_disconnected")
NOT_PLAY = ("action", *PRESENCE_TYPES, "chat", "anti_cheat")
"""Types of items that may occur while a map is not live."""


class History(NamedTuple):
    """Everything read about one match."""

    maps: list[Json]
    """The details of its maps, in order."""
    series: Json | None
    timelines: list[list[Json]]
    """The items of each map."""

    @property
    def statuses(self) -> list[str]:
        return [detail["status"] for detail in self.maps]


def read_history(service: RunningService, server_id: str) -> History:
    """Read everything about a match that no longer changes, and check that it is consistent."""
    listed = read_page(service, f"/api/v1/cs2/matches?serverId={server_id}")
    assert [one["startedAt"] or "" for one in listed] == sorted(
        (one["startedAt"] or "" for one in listed), reverse=True
    )
    maps = sorted((_read_map(service, item) for item in listed), key=lambda detail: int(detail["mapNumber"]))
    assert [detail["mapNumber"] for detail in maps] == list(range(1, len(maps) + 1))
    timelines = [read_timeline(service, detail["id"]) for detail in maps]
    for detail, items in zip(maps, timelines, strict=True):
        check_timeline(detail, items)
    return History(maps, _read_series(service, server_id, maps), timelines)


def read_page(service: RunningService, path: str) -> list[Json]:
    """Return the items of a list that fits on one page."""
    found = get_json(service, path)
    assert list(found) == ["page", "pageSize", "total", "items"]
    assert found["total"] == len(found["items"]) <= found["pageSize"]
    items: list[Json] = found["items"]
    return items


def get_json(service: RunningService, path: str) -> Json:
    response = service.call("GET", path)
    assert response.status == 200, (path, response.raw)
    found: Json = response.json
    return found


def read_timelines(service: RunningService, server_id: str) -> dict[str, list[Json]]:
    """Return the timelines of all maps of a match by map id, in map order."""
    ids = [item["id"] for item in read_page(service, f"/api/v1/cs2/matches?serverId={server_id}")]
    ids.sort(key=lambda map_id: int(get_json(service, f"/api/v1/cs2/matches/{map_id}")["mapNumber"]))
    return {map_id: read_timeline(service, map_id) for map_id in ids}


def read_timeline(service: RunningService, map_id: str, limits: Sequence[int] = VARIED_LIMITS) -> list[Json]:
    """Read the whole timeline of a map page by page, with these page sizes in turn."""
    items: list[Json] = []
    for limit in cycle(limits):
        query = f"{map_id}/events?afterSeq={len(items)}&limit={limit}"
        response = service.call("GET", f"/api/v1/cs2/matches/{query}")
        assert response.status == 200, response.raw
        assert service.call("GET", f"/api/v1/cs2/maps/{query}").raw == response.raw
        found, max_items = response.json, min(limit, MAX_ITEMS)
        assert (found["mapId"], found["afterSeq"], found["limit"]) == (map_id, len(items), max_items)
        assert len(found["items"]) <= max_items
        items += found["items"]
        assert found["nextAfterSeq"] == len(items)
        if not found["items"]:
            break
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    return items


def is_final(service: RunningService, map_id: str, items: Sequence[Json]) -> bool:
    """True if nothing will be added to these items of a map: a stream that starts after them is already complete."""
    path = f"/api/v1/cs2/matches/{map_id}/events/stream"
    return service.call("HEAD", f"{path}?lastEventId={len(items)}").status == 204


def _read_map(service: RunningService, item: Json) -> Json:
    path = f"/api/v1/cs2/matches/{item['id']}"
    response = service.call("GET", path)
    assert response.status == 200, response.raw
    assert service.call("GET", f"/api/v1/cs2/maps/{item['id']}").raw == response.raw
    detail: Json = response.json
    check_map_item(item, detail)
    assert detail["statsVersion"] >= 1
    check_rounds(get_json(service, f"{path}/rounds"), detail)
    for sort, field in SORTS.items():
        board = get_json(service, f"{path}/leaderboard?sortBy={sort}&limit=32")
        check_leaderboard(board, detail)
        values = [_sort_value(row[field]) for row in board["players"]]
        assert values == sorted(values, reverse=True), sort
    first = get_json(service, f"{path}/leaderboard?sortBy={sort}&limit=1")
    assert first == {**board, "players": board["players"][:1]}
    return detail


def _sort_value(value: Json | float | None) -> float:
    if isinstance(value, dict):
        return float(value["total"])
    return -1.0 if value is None else value


def _read_series(service: RunningService, server_id: str, maps: list[Json]) -> Json | None:
    listed = read_page(service, f"/api/v1/cs2/series?serverId={server_id}")
    assert read_page(service, f"/api/v1/cs2/servers/{server_id}/series") == listed
    ids = {detail["seriesId"] for detail in maps}
    if not listed:
        assert ids == {None}
        return None
    (item,) = listed
    assert ids == {item["seriesId"]}
    whole = get_json(service, f"/api/v1/cs2/series/{item['seriesId']}")
    assert get_json(service, f"/api/v1/cs2/series/{item['id']}") == whole
    check_series(item, whole, maps)
    return whole


# --- timelines ------------------------------------------------------------------------------------------------------


def is_end_lost(items: list[Json]) -> bool:
    """True if the map ended while the service was down: the server drops its unsent log at the next map load."""
    ends = [item for item in items if item["type"] == "map_end"]
    return (
        bool(ends) and ends[-1]["status"] == "finished" and ends[-1]["winner"] is None and ends[-1]["score"] is not None
    )


def check_timeline(detail: Json, items: list[Json]) -> None:
    """The timeline agrees with the detail of its map."""
    played = [item for item in items if item["type"] not in NOT_PLAY]
    if detail["startedAt"] is None:
        assert played == []
        return
    # Nothing follows the end except detections that were reported late.
    last = [item for item in items if item["type"] != "anti_cheat"][-1]
    is_scored = detail["gameMode"] != "deathmatch"
    score = {"team1": detail["team1Score"], "team2": detail["team2Score"]} if is_scored else None
    assert played[0]["type"] == "map_live"
    assert played[0]["mapName"] == detail["map"]
    assert detail["startedAt"] <= [item["timestamp"] for item in items if item["type"] == "map_live"][-1]
    assert (last["type"], last["status"]) == ("map_end", detail["status"])
    if is_end_lost(items):
        return  # its last rounds are not in the log
    assert last["winner"] == detail["winner"]
    # An end whose lines were lost is concluded later, and does not stand before the items in front of it.
    before = [] if detail["complete"] else [item["timestamp"] for item in items[: items.index(last)]]
    assert (last["score"], last["timestamp"]) == (score, max([detail["finishedAt"], *before[-1:]]))
    assert [item["detection"] for item in items if item["type"] == "anti_cheat"] == detail["antiCheat"]


def check_counts(detail: Json, items: list[Json]) -> None:
    """Counting the items of a timeline as documented for callers gives the statistics in the detail."""
    counted = counted_items(items)
    kills = [item for item in counted if item["type"] == "kill" and not item["teamKill"]]
    found = {
        "kills": Counter(item["killer"]["steamId"] for item in kills),
        "headshots": Counter(item["killer"]["steamId"] for item in kills if item["headshot"]),
        "assists": Counter(item["player"]["steamId"] for item in counted if item["type"] == "assist"),
    }
    for name, numbers in found.items():
        expected = {player["steamId"]: player[name] for player in detail["players"] if player[name]}
        assert dict(numbers) == expected, name
    if detail["gameMode"] != "deathmatch":
        rounds = [item["winner"] for item in counted if item["type"] == "round_end"]
        assert [rounds.count(team) for team in ("team1", "team2")] == [detail["team1Score"], detail["team2Score"]]


def counted_items(items: list[Json]) -> list[Json]:
    """Return the items that still count after all restarts and restored rounds."""
    counted: list[Json] = []
    for item in items:
        if item["type"] == "map_live":
            counted.clear()
        elif item["type"] == "round_restored":
            counted = [one for one in counted if (one["roundNumber"] or 0) <= item["roundsKept"]]
        counted.append(item)
    return counted


def play_items(items: list[Json]) -> list[Json]:
    """Return the items since the map went live, without connects and disconnects and without `seq` and `timestamp`.

    Which players write that they are ready before the match starts depends on speed. Connects and disconnects while the
    service was down are recorded when the log or the console first shows them.
    """
    live = next((index for index, item in enumerate(items) if item["type"] == "map_live"), len(items))
    kept = [item for index, item in enumerate(items) if index >= live and item["type"] not in PRESENCE_TYPES]
    return [{name: value for name, value in item.items() if name not in ("seq", "timestamp")} for item in kept]


def presence_changes(items: list[Json]) -> dict[str, list[str]]:
    """Return the types of connects and disconnects of each player, in order."""
    changes: dict[str, list[str]] = {}
    for item in items:
        if item["type"] in PRESENCE_TYPES:
            changes.setdefault(item["player"]["steamId"], []).append(item["type"])
    return changes
