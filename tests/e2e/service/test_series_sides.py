"""Series in the sandbox begin their maps on the requested sides, and all their numbers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.contract.same_numbers import check_map_result, check_series_result
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import History, read_history
from tests.e2e.service.running_service import Json, RunningService, cvars, short_match, teams

LENGTHS = {"bo3": 3, "bo5": 5}
MAPS = ["de_nuke", "de_inferno", "de_vertigo", "de_train", "de_mirage"]
ALTERNATING = ["team1_ct", "team1_t", "team1_ct", "team1_t"]
GIVEN = ["team1_t", "knife", "team1_ct", "team1_t", "team1_t"]
SIZES = {"wingman": 2, "competitive": 5}
SIDES = {"team1_ct": "CT", "team1_t": "TERRORIST"}
EXTRA_STATS = 24
"""The members of `extraStats` in the specification."""

SUMMED = ("kills", "deaths", "assists", "headshots", "damageDealt", "roundsPlayed")

SERIES = [
    *product(SIZES, LENGTHS, ("alternating", "given", "knife"), ("tie", "full_match")),
    *product(SIZES, ("bo3",), ("open", "unnamed"), ("full_match",)),
    *product(("wingman",), ("bo5",), ("open", "unnamed"), ("full_match",)),
]
NUMBERS = list(range(len(SERIES)))
pytestmark = pytest.mark.soak
"""`make test` plays one series in test_results.py, and all kinds without a service."""


def settings_of(number: int) -> Json:
    match_type, series_format, kind, scenario = SERIES[number]
    is_open = kind in ("open", "unnamed")
    settings = short_match(
        matchType=match_type,
        map=MAPS[0],
        maps=MAPS[1 : LENGTHS[series_format]],
        seriesFormat=series_format,
        maxRounds=2 if scenario == "tie" else 4,
        teams=teams(SIZES[match_type]),
        # Without a roster nothing waits for the players: they must not join before the server is configured.
        customCvars=cvars(
            100, scenario, sim_lockstep=1, sim_seed=number + 1, **({"sim_roster_delay": 300} if is_open else {})
        ),
    )
    if kind == "open":
        settings["teams"] = {"team1": {"name": "Reds"}, "team2": {"name": "Blues"}}
    elif kind == "unnamed":
        del settings["teams"]
    elif kind != "alternating":
        settings["sides"] = wanted_sides(number)
    return settings


def wanted_sides(number: int) -> list[str]:
    """Return the sides that the maps of a series must have; a side that is drawn is empty."""
    _, series_format, kind, _ = SERIES[number]
    length = LENGTHS[series_format]
    match kind:
        case "knife":
            return ["knife"] * length
        case "given":
            return GIVEN[:length]
        case "alternating":
            return [*ALTERNATING[: length - 1], "knife"]
        case _:
            return [*ALTERNATING[: length - 1], ""]


class PlayedSeries:
    """All series, created at once on one service."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.servers = {
            number: service.create(settings_of(number), callbackUrl=receiver.url(f"/{number}"))["serverId"]
            for number in NUMBERS
        }

    def result(self, number: int) -> Any:
        """Wait for the callback of a series and return its result."""
        body = self.receiver.wait_for(f"/{number}")[0].json
        assert body["eventType"] == "match_over", body
        return body["result"]

    def history(self, number: int) -> History:
        return read_history(self.service, self.servers[number])


@pytest.fixture(scope="module")
def played(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedSeries]:
    folder = tmp_path_factory.mktemp("sides")
    with CallbackReceiver() as receiver, RunningService(folder, database_url=database_url) as service:
        yield PlayedSeries(service, receiver)


@pytest.mark.parametrize("number", NUMBERS)
def test_maps_begin_on_the_requested_sides(played: PlayedSeries, number: int) -> None:
    result, wanted = played.result(number), wanted_sides(number)
    maps = result["maps"]
    assert len(maps) == len(wanted) or result["winner"] in ("team1", "team2")
    for entry, sides in zip(maps, wanted, strict=False):
        assert entry["sidesBy"] == ("knife" if sides == "knife" else "given")
        assert entry["team1StartSide"] == SIDES.get(sides, entry["team1StartSide"])
        assert entry["team1StartSide"] in SIDES.values()
        assert entry["complete"]


@pytest.mark.parametrize("number", NUMBERS)
def test_details_and_timelines_agree_on_the_sides(played: PlayedSeries, number: int) -> None:
    result, history = played.result(number), played.history(number)
    assert history.series is not None
    unplayed = [(None, None)] * (len(history.maps) - len(result["maps"]))
    expected = [(entry["team1StartSide"], entry["sidesBy"]) for entry in result["maps"]] + unplayed
    assert [(one["team1StartSide"], one["sidesBy"]) for one in history.maps] == expected
    assert [(one["team1StartSide"], one["sidesBy"]) for one in history.series["maps"]] == expected
    for (side, by), items in zip(expected, history.timelines, strict=True):
        lives = [(item["team1Side"], item["sidesBy"]) for item in items if item["type"] == "map_live"]
        assert lives == ([] if side is None else [(side, by)])
        first = next((item for item in items if item["type"] == "round_end"), None)
        assert first is None or (first["winnerSide"] == side) == (first["winner"] == "team1")


@pytest.mark.parametrize("number", NUMBERS)
def test_every_player_has_all_extra_stats_on_every_map(played: PlayedSeries, number: int) -> None:
    result = played.result(number)
    for players in (result["overall"], *(entry["players"] for entry in result["maps"])):
        assert [len(player["extraStats"]) for player in players] == [EXTRA_STATS] * len(players)
        assert sum(player["extraStats"]["shotsFired"] for player in players) > 0
    for name in ("shotsFired", "shotsHit", "mvps", "enemiesFlashed"):
        totals: Counter[str] = Counter()
        for entry in result["maps"]:
            totals.update({player["steamId"]: player["extraStats"][name] for player in entry["players"]})
        assert totals == {player["steamId"]: player["extraStats"][name] for player in result["overall"]}


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_a_series_agree(played: PlayedSeries, number: int) -> None:
    result, history = played.result(number), played.history(number)
    for name in SUMMED:
        totals: Counter[str] = Counter()
        for entry in result["maps"]:
            totals.update({player["steamId"]: player[name] for player in entry["players"]})
        assert totals == {player["steamId"]: player[name] for player in result["overall"]}
    for detail in history.maps[: len(result["maps"])]:
        check_map_result(detail, result)
    assert history.series is not None
    check_series_result(history.series, result)
