"""Check that a match has the same numbers in lists, details, leaderboard, rounds and result."""

from __future__ import annotations

from collections import Counter
from typing import Any

from matchpod.core.match.match import Match
from matchpod.core.model import Winner
from matchpod.core.views.result import players_of_map, published_lines

SHARED_BY_MAPS = (
    "id", "serverId", "serverName", "map", "playedMapName", "gameMode", "team1Name", "team2Name", "team1Score",
    "team2Score", "status", "startedAt", "finishedAt", "duration", "playerCount", "ruling",
)  # fmt: skip
LEFT_OUT_IF_NONE = ("labels", "simulated")
SUMMED = ("kills", "deaths", "assists", "headshots", "damageDealt", "utilityDamage")
COUNTED_TWICE = ("kills", "deaths", "assists", "headshots", "damageDealt", "bombPlants", "bombDefuses")

Json = dict[str, Any]
"""Decoded JSON of a response."""


def current_numbers(match: Match) -> dict[str, object]:
    """Scores and player statistics of a match in its current state."""
    maps = [
        {
            "map": played.name,
            "score": [played.team1_score, played.team2_score],
            "players": players_of_map(match, played, published_lines(match, played)),
        }
        for played in match.maps
    ]
    return {"seriesScore": match.series_score, "maps": maps}


def check_map_item(item: Json, detail: Json) -> None:
    """A map in a list has the same fields as alone, without those that only the map alone has."""
    assert set(SHARED_BY_MAPS) <= item.keys() <= {*SHARED_BY_MAPS, *LEFT_OUT_IF_NONE}
    assert {name: detail[name] for name in item} == item


def check_leaderboard(board: Json, detail: Json) -> None:
    """The leaderboard has the same map, players and numbers as the detail."""
    assert board["mapId"] == detail["id"]
    assert board["mapName"] == detail["map"]
    for name in ("seriesId", "mapNumber", "status", "startedAt", "finishedAt"):
        assert board[name] == detail[name]
    ranked = {player["steamId"]: player for player in board["players"]}
    assert len(ranked) == len(detail["players"]) == detail["playerCount"]
    for player in detail["players"]:
        row = ranked[player["steamId"]]
        extra = player["extraStats"]
        for name in COUNTED_TWICE:
            assert row[name] == player.get(name, extra.get(name)), (name, player["name"])
        assert row["name"] == player["name"]
        assert row["accuracyPercent"] == extra.get("accuracyPercent")
        if "team" in player:
            assert row["team"] == {"team1": 1, "team2": 2, None: 0}[player["team"]]
        utility = row["utility"]
        assert utility["total"] == sum(utility.values()) - utility["total"]
        assert (row["topWeapon"] or {"kills": 0})["kills"] <= row["kills"]


def check_rounds(found: Json, detail: Json) -> None:
    """The rounds add up to the numbers of the detail."""
    assert (found["mapId"], found["mapName"]) == (detail["id"], detail["map"])
    for name in ("seriesId", "mapNumber", "status", "complete", "missingRounds"):
        assert found[name] == detail[name]
    rounds = found["rounds"]
    if detail["gameMode"] == "deathmatch":
        assert rounds == []
        return
    totals: dict[str, Counter[str]] = {player["steamId"]: Counter() for player in detail["players"]}
    for one in rounds:
        assert one["complete"] == (one["number"] not in detail["missingRounds"])
        for player in one["players"]:
            totals[player["steamId"]].update({name: player[name] for name in SUMMED})
        check_pairs(one)
    for player in detail["players"]:
        assert {name: totals[player["steamId"]][name] for name in SUMMED} == {name: player[name] for name in SUMMED}
    if detail["complete"]:
        numbers = [one["number"] for one in rounds]
        assert numbers == list(range(1, len(numbers) + 1))
        last = next((one["score"] for one in reversed(rounds) if one["score"]), {"team1": 0, "team2": 0})
        assert last == {"team1": detail["team1Score"], "team2": detail["team2Score"]}


def check_pairs(one: Json) -> None:
    """The damage pairs of a round add up to the damage of its players and teams."""
    dealt: Counter[str] = Counter()
    for pair in one["damagePairs"]:
        assert pair["damage"] > 0
        dealt[pair["attackerSteamId"]] += pair["damage"]
    assert dealt == Counter({player["steamId"]: player["damageDealt"] for player in one["players"]})
    for team in ("team1", "team2"):
        players = [player for player in one["players"] if player["team"] == team]
        for name in ("kills", "damageDealt"):
            assert one[team][name] >= sum(player[name] for player in players)
        if one[team]["survivors"] is not None:
            assert one[team]["survivors"] >= sum(player["survived"] is True for player in players)


def check_series(item: Json, detail: Json, maps: list[Json]) -> None:
    """The list, the detail of the series and the details of its maps agree."""
    assert {**detail, "maps": None} == {**item, "maps": None}
    assert [
        {name: one[name] for name in ("id", "mapNumber", "mapName", "playedMapName", "status", "needed")}
        for one in detail["maps"]
    ] == item["maps"]
    for one, whole in zip(detail["maps"], maps, strict=True):
        assert one["mapName"] == whole["map"]
        shared = [name for name in one if name not in ("mapName", "needed")]
        assert {name: one[name] for name in shared} == {name: whole[name] for name in shared}
    # Maps that a team was given before the series count for it, and are not listed.
    given = [
        detail[f"{team}MapsWon"] - sum(one["winner"] == team for one in detail["maps"]) for team in ("team1", "team2")
    ]
    assert min(given) >= 0
    assert sum(given) == int(detail["format"].removeprefix("bo")) - len(maps)


def check_series_result(detail: Json, result: Json) -> None:
    assert (detail["format"], detail["gameMode"]) == (result["format"], result["gameMode"])
    for team in ("team1", "team2"):
        entry = result[team]
        assert (detail[f"{team}Name"], detail[f"{team}MapsWon"]) == (entry["name"], entry["seriesScore"])
        assert entry["totalRounds"] == sum(one[f"{team}Score"] for one in detail["maps"])
    names = {"team1": result["team1"]["name"], "team2": result["team2"]["name"]}
    assert detail["winnerTeam"] == names.get(result["winner"])
    assert detail["status"] == "finished"


def check_map_result(detail: Json, result: Json) -> None:
    if result["gameMode"] == "deathmatch":
        entry, winner, name = result, None, result["map"]
        score = (detail["team1Score"], detail["team2Score"])
        assert sum(score) in (0, sum(player["kills"] for player in result["players"]))
        if result["winnerTeam"] is not None:
            assert result["winnerTeam"] == Winner.of(*score)
    else:
        entry = result["maps"][detail["mapNumber"] - 1]
        score, winner = (entry["team1Score"], entry["team2Score"]), entry["winner"]
        name = entry["mapName"]
        assert entry["mapNumber"] == detail["mapNumber"]
    assert detail["players"] == entry["players"]
    assert (detail["team1Score"], detail["team2Score"]) == score
    assert (detail["winner"], detail["duration"], detail["map"]) == (winner, entry["duration"], name)
    assert detail["antiCheat"] == [one for one in result["antiCheat"] if one["mapNumber"] == detail["mapNumber"]]
    assert detail["status"] == "finished"
