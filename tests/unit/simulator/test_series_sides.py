"""Test that the teams of a series begin on the sides that were requested, by what the simulator itself plays."""

from __future__ import annotations

from collections import Counter
from itertools import product

import msgspec
import pytest

from cs2_protocol.game import PlayerId, Side
from cs2_simulator.machine import Machine
from cs2_simulator.play.flow.game import GamePhase
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.scenarios import Scenario
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.match.start_sides import with_sides
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, SidesBy, StartSides, TeamRoster
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import SeriesResult
from matchpod.core.views.rounds import build_rounds
from matchpod.core.views.timeline_items import MapLiveItem
from tests.effort import IS_SOAK
from tests.unit.simulator.played_match import COUNT_SHOTS, PLAYERS, PlayedMatch, mode_settings

CT, T, KNIFE = StartSides
BO3, BO5 = SeriesFormat.BO3, SeriesFormat.BO5
MAPS = ("de_nuke", "de_mirage", "de_ancient", "de_train", "de_inferno")
SIZES = {MatchType.COMPETITIVE: 5, MatchType.WINGMAN: 2}
GIVEN = {BO3: (T, KNIFE, CT), BO5: (T, T, KNIFE, CT, T)}
SUMMED = ("kills", "deaths", "assists", "headshots", "damage_dealt")

VARIANTS = [
    *product(
        (MatchType.WINGMAN, MatchType.COMPETITIVE),
        (BO3, BO5),
        ("alternating", "given", "knife"),
        (Scenario.TIE, Scenario.FULL_MATCH),
    ),
    *product((MatchType.WINGMAN,), (BO3, BO5), ("open", "unnamed"), (Scenario.FULL_MATCH,)),
    *product((MatchType.COMPETITIVE,), (BO3,), ("open", "unnamed"), (Scenario.FULL_MATCH,)),
]
QUICK = (3, 4, 8, 24)
"""The numbers of the variants that `make test` plays; `make soak` plays all."""


class StartWatch(Watcher):
    """Records who is on the CT side in the first round of each map, and how many knife rounds there are."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.began_as_ct: list[set[PlayerId]] = []
        self.knife_rounds = 0
        machine.arena.watchers.append(self)

    def round_started(self, round_number: int) -> None:
        if round_number == 1:
            players = self._machine.arena.players_on(Side.CT)
            self.began_as_ct.append({player.person.player_id for player in players})

    def round_ended(self, round_number: int, end: object) -> None:
        self.knife_rounds += self._machine.game.phase is GamePhase.KNIFE


def series_settings(match_type: MatchType, series_format: SeriesFormat, kind: str) -> GameSettings:
    size = SIZES[match_type]
    listed = kind not in ("open", "unnamed")
    settings = mode_settings(
        match_type,
        team1=TeamRoster("Alpha", PLAYERS[:size] if listed else ()),
        team2=TeamRoster("Beta", PLAYERS[5 : 5 + size] if listed else ()),
        maps=MAPS[: series_format.length],
        series_format=series_format,
        max_rounds=4,
    )
    match kind:
        case "unnamed":
            return msgspec.structs.replace(settings, team1=None, team2=None)
        case "given":
            return msgspec.structs.replace(settings, sides=GIVEN[series_format])
        case "knife":
            return msgspec.structs.replace(settings, sides=(KNIFE,) * series_format.length)
        case _:
            return settings


def check_numbers(match: Match) -> None:
    """The maps of a result sum up to its totals, and the rounds of a map to the map."""
    result = build_result(match)
    assert isinstance(result, SeriesResult)
    overall = {player.steam_id: player for player in result.overall}
    for name in (*SUMMED, "rounds_played"):
        totals: Counter[str] = Counter()
        for entry in result.maps:
            totals.update({player.steam_id: getattr(player, name) for player in entry.players})
        assert totals == {player: getattr(line, name) for player, line in overall.items()}
    for played, entry in zip(match.maps, result.maps, strict=True):
        check_rounds(match, played, {player.steam_id: player.kills for player in entry.players})


def check_rounds(match: Match, played: PlayedMap, kills: dict[PlayerId, int]) -> None:
    rounds = build_rounds(match, played)
    in_rounds: Counter[str] = Counter()
    for one in rounds:
        in_rounds.update({player.steam_id: player.kills for player in one.players if player.steam_id})
    assert in_rounds == kills
    assert [one.number for one in rounds] == list(range(1, played.team1_score + played.team2_score + 1))


@pytest.mark.parametrize("number", range(len(VARIANTS)) if IS_SOAK else QUICK)
def test_teams_begin_on_the_requested_sides(number: int) -> None:
    match_type, series_format, kind, scenario = VARIANTS[number]
    settings = with_sides(series_settings(match_type, series_format, kind), f"srv_{number}")
    played = PlayedMatch(settings, scenario=scenario, seed=number, extra=(COUNT_SHOTS,))
    watch = StartWatch(played.machine)
    assert played.play()
    lives = [one.item for one in played.reader.timeline.drain() if isinstance(one.item, MapLiveItem)]
    maps = played.reader.match.maps
    assert len(watch.began_as_ct) == len(maps) == len(lives)
    team1 = set(settings.team1.players) if settings.team1 and settings.team1.players else watch.began_as_ct[0]
    for one, live, ct in zip(maps, lives, watch.began_as_ct, strict=True):
        assert ct == team1 or not ct & team1
        wanted = settings.sides[one.number - 1]
        assert one.start_side is (Side.CT if ct == team1 else Side.T)
        assert wanted.team1_side in (None, one.start_side)
        assert (live.team1_side, live.sides_by) == (one.start_side, SidesBy.KNIFE if wanted is KNIFE else SidesBy.GIVEN)
        assert one.is_complete
    assert watch.knife_rounds == sum(side is KNIFE for side in settings.sides[: len(maps)])
    check_numbers(played.reader.match)
    assert all(line.shots_fired is not None for one in maps for line in one.ledger.lines())


def test_winners_of_knife_rounds_choose_both_sides() -> None:
    settings = with_sides(series_settings(MatchType.WINGMAN, BO5, "knife"), "srv_1")
    played = PlayedMatch(settings, scenario=Scenario.TIE, seed=2)
    assert played.play()
    assert {one.start_side for one in played.reader.match.maps} == set(Side)
