"""What can a caller read of a match afterwards, over HTTP? All of it, and all of it must say the same.

The laws of a timeline are those that callers are told of: see the page about events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from tests.contract.test_numbers_agree import SHARED_BY_MAPS, check_leaderboard, check_series
from tests.e2e.service.running_service import Json, RunningService

ODD_LIMITS = (1, 7, 2, 101, 13, 5000)
"""Pages of a timeline that end anywhere; the last is more than anybody gets at once."""
MOST_ITEMS = 1000

SORTS = {
    "kills": "kills",
    "damage": "damageDealt",
    "headshots": "headshots",
    "accuracy": "accuracyPercent",
    "utility": "utility",
    "plants": "bombPlants",
    "defuses": "bombDefuses",
}
"""What a leaderboard can be sorted by, and the field of it."""

PEOPLE = ("player_connected", "player_disconnected")
NOT_PLAY = (*PEOPLE, "chat", "anti_cheat")
"""What can happen on a map that is not live."""


class History(NamedTuple):
    """What was read of one match."""

    maps: list[Json]
    """The details of its maps, in order."""
    series: Json | None
    timelines: list[list[Json]]
    """The items of each map."""

    @property
    def statuses(self) -> list[str]:
        """Of the maps."""
        return [detail["status"] for detail in self.maps]


def read_history(service: RunningService, server_id: str) -> History:
    """All that can be read of a match that does not change any more, after a look at whether it agrees with itself."""
    listed = page(service, f"/api/v1/cs2/matches?serverId={server_id}")
    assert [one["startedAt"] or "" for one in listed] == sorted(
        (one["startedAt"] or "" for one in listed), reverse=True
    )
    maps = sorted((_read_map(service, item) for item in listed), key=lambda detail: int(detail["mapNumber"]))
    assert [detail["mapNumber"] for detail in maps] == list(range(1, len(maps) + 1))
    timelines = [read_timeline(service, detail["id"]) for detail in maps]
    for detail, items in zip(maps, timelines, strict=True):
        check_timeline(detail, items)
    return History(maps, _read_series(service, server_id, maps), timelines)


def page(service: RunningService, path: str) -> list[Json]:
    """The items of a list that is not longer than a page."""
    found = get(service, path)
    assert list(found) == ["page", "pageSize", "total", "items"]
    assert found["total"] == len(found["items"]) <= found["pageSize"]
    items: list[Json] = found["items"]
    return items


def get(service: RunningService, path: str) -> Json:
    """What is at a path."""
    answer = service.call("GET", path)
    assert answer.status == 200, (path, answer.raw)
    found: Json = answer.json
    return found


def read_timelines(service: RunningService, server_id: str) -> dict[str, list[Json]]:
    """The timelines of all maps of a match, by their ids and in their order."""
    ids = [item["id"] for item in page(service, f"/api/v1/cs2/matches?serverId={server_id}")]
    ids.sort(key=lambda map_id: int(get(service, f"/api/v1/cs2/matches/{map_id}")["mapNumber"]))
    return {map_id: read_timeline(service, map_id) for map_id in ids}


def read_timeline(service: RunningService, map_id: str, limits: Sequence[int] = ODD_LIMITS) -> list[Json]:
    """The whole timeline of a map, by its cursor."""
    items: list[Json] = []
    for limit in cycle(limits):
        query = f"{map_id}/events?afterSeq={len(items)}&limit={limit}"
        answer = service.call("GET", f"/api/v1/cs2/matches/{query}")
        assert answer.status == 200, answer.raw
        assert service.call("GET", f"/api/v1/cs2/maps/{query}").raw == answer.raw
        found, most = answer.json, min(limit, MOST_ITEMS)
        assert (found["mapId"], found["afterSeq"], found["limit"]) == (map_id, len(items), most)
        assert len(found["items"]) <= most
        items += found["items"]
        assert found["nextAfterSeq"] == len(items)
        if not found["items"]:
            break
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    return items


def is_final(service: RunningService, map_id: str, items: Sequence[Json]) -> bool:
    """Will nothing be added to these items of a map? A stream of what follows them is then over before it begins."""
    path = f"/api/v1/cs2/matches/{map_id}/events/stream"
    return service.call("HEAD", f"{path}?lastEventId={len(items)}").status == 204


def _read_map(service: RunningService, item: Json) -> Json:
    path = f"/api/v1/cs2/matches/{item['id']}"
    answer = service.call("GET", path)
    assert answer.status == 200, answer.raw
    assert service.call("GET", f"/api/v1/cs2/maps/{item['id']}").raw == answer.raw
    detail: Json = answer.json
    assert {name: detail[name] for name in SHARED_BY_MAPS} == item
    assert detail["statsVersion"] >= 1
    for sort, field in SORTS.items():
        board = get(service, f"{path}/leaderboard?sortBy={sort}&limit=32")
        check_leaderboard(board, detail)
        values = [_sorted_by(row[field]) for row in board["players"]]
        assert values == sorted(values, reverse=True), sort
    first = get(service, f"{path}/leaderboard?sortBy={sort}&limit=1")
    assert first == {**board, "players": board["players"][:1]}
    return detail


def _sorted_by(value: Json | float | None) -> float:
    if isinstance(value, dict):
        return float(value["total"])
    return -1.0 if value is None else value


def _read_series(service: RunningService, server_id: str, maps: list[Json]) -> Json | None:
    listed = page(service, f"/api/v1/cs2/series?serverId={server_id}")
    assert page(service, f"/api/v1/cs2/servers/{server_id}/series") == listed
    ids = {detail["seriesId"] for detail in maps}
    if not listed:
        assert ids == {None}
        return None
    (item,) = listed
    assert ids == {item["seriesId"]}
    whole = get(service, f"/api/v1/cs2/series/{item['seriesId']}")
    assert get(service, f"/api/v1/cs2/series/{item['id']}") == whole
    check_series(item, whole, maps)
    return whole


# --- timelines ------------------------------------------------------------------------------------------------------


def is_end_lost(items: list[Json]) -> bool:
    """True for a map that ended while the service was down: unsent log is lost at the next map load."""
    ends = [item for item in items if item["type"] == "map_end"]
    return (
        bool(ends) and ends[-1]["status"] == "finished" and ends[-1]["winner"] is None and ends[-1]["score"] is not None
    )


def check_timeline(detail: Json, items: list[Json]) -> None:
    """It tells of the map that has this detail."""
    played = [item for item in items if item["type"] not in NOT_PLAY]
    if detail["startedAt"] is None:
        assert played == []
        return
    # Nothing is said after the end but for a detection that was reported late.
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
    assert (last["score"], last["timestamp"]) == (score, detail["finishedAt"])
    assert [item["detection"] for item in items if item["type"] == "anti_cheat"] == detail["antiCheat"]


def check_counts(detail: Json, items: list[Json]) -> None:
    """Counting the items of a timeline, as documented for callers, gives the statistics."""
    counted = counting(items)
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


def counting(items: list[Json]) -> list[Json]:
    """The items that counted in the end."""
    counted: list[Json] = []
    for item in items:
        if item["type"] == "map_live":
            counted.clear()
        elif item["type"] == "round_restored":
            counted = [one for one in counted if (one["roundNumber"] or 0) <= item["roundsKept"]]
        counted.append(item)
    return counted


def play_of(items: list[Json]) -> list[Json]:
    """What a timeline says of play: all but when it happened, who came and went, and what was said before it began.

    Which players write that they are ready before the match starts depends on speed. Arrivals and departures while the
    service was down are recorded when the log or the console first shows them.
    """
    live = next((index for index, item in enumerate(items) if item["type"] == "map_live"), len(items))
    kept = [item for index, item in enumerate(items) if index >= live and item["type"] not in PEOPLE]
    return [{name: value for name, value in item.items() if name not in ("seq", "timestamp")} for item in kept]


def people_of(items: list[Json]) -> dict[str, list[str]]:
    """How often everybody came and went."""
    moves: dict[str, list[str]] = {}
    for item in items:
        if item["type"] in PEOPLE:
            moves.setdefault(item["player"]["steamId"], []).append(item["type"])
    return moves
