"""A knife round before a map: nothing of it counts."""

from __future__ import annotations

from typing import Self

import msgspec

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import GameSettings, SeriesFormat, StartSides
from matchpod.core.views.progress import PublicPhase, public_phase, round_number, sides_of
from matchpod.core.views.result import build_result
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, duel

CT, T, KNIFE = StartSides.TEAM1_CT, StartSides.TEAM1_T, StartSides.KNIFE


def knife_duel(series_format: SeriesFormat = SeriesFormat.BO1, *sides: StartSides) -> GameSettings:
    return msgspec.structs.replace(duel(series_format), sides=sides or (KNIFE,))


class KnifeDriver(MatchDriver):
    """A duel whose players have joined."""

    def __init__(self, settings: GameSettings | None = None) -> None:
        super().__init__(settings or knife_duel())
        self.join(ANN, BEN)

    def start_round(self, number: int = 1, side: Side = Side.CT, map_name: str = MAPS[0]) -> Self:
        """Start a round; with the first one the log shows the map as live."""
        if number == 1:
            self.apply(ev.MapLive(self.now_ms, map_name, self.now_ms, side))
        return self.apply(ev.RoundStarted(self.now_ms, number, (ANN,), (BEN,), side))

    def kill(self, killer: str = ANN, victim: str = BEN) -> Self:
        return self.apply(ev.Kill(self.now_ms, killer, victim, "knife", is_enemy=True))

    def decide(self, number: int, team1: int, team2: int) -> Self:
        reason = RoundEndReason.CTS_WIN
        return self.apply(ev.RoundDecided(self.now_ms, number, Team.TEAM1, Side.CT, reason, team1, team2))

    def play_knife_round(self, map_name: str = MAPS[0]) -> Self:
        return self.start_round(map_name=map_name).kill().decide(1, 1, 0).apply(ev.WarmupBegan(self.now_ms))

    @property
    def phases(self) -> tuple[MatchPhase, PublicPhase]:
        return self.match.phase, public_phase(self.match)


STARTING = (MatchPhase.STARTING, PublicPhase.STARTING)
LIVE = (MatchPhase.LIVE, PublicPhase.LIVE)


def test_match_is_starting_during_the_knife_round_and_the_choice_of_sides() -> None:
    driver = KnifeDriver().start_round()
    assert driver.phases == STARTING
    assert (round_number(driver.match), sides_of(driver.match)) == (None, None)
    driver.kill().decide(1, 1, 0)
    assert driver.phases == STARTING
    driver.apply(ev.WarmupBegan(driver.now_ms))
    assert driver.phases == STARTING
    assert driver.match.current_map.status is MapStatus.UPCOMING


def test_nothing_of_the_knife_round_counts() -> None:
    driver = KnifeDriver().play_knife_round()
    played = driver.match.current_map
    assert (played.team1_score, played.team2_score, played.ledger.lines()) == (0, 0, [])
    driver.start_round(side=Side.T)
    assert driver.phases == LIVE
    assert (played.team1_score, played.team2_score, played.start_side) == (0, 0, Side.T)
    assert [line.kills for line in played.ledger.lines()] == [0, 0]
    (entry,) = build_result(driver.match).maps  # type: ignore[union-attr]
    assert (entry.team1_start_side, entry.sides_by) == (Side.T, "knife")


def test_restarted_knife_round_is_still_one() -> None:
    driver = KnifeDriver().start_round().play_knife_round()
    assert driver.phases == STARTING
    driver.start_round()
    assert driver.phases == LIVE


def test_return_to_warmup_ends_a_knife_round_whose_decision_was_lost() -> None:
    driver = KnifeDriver().start_round()
    driver.apply(ev.WarmupBegan(driver.now_ms)).start_round()
    assert driver.phases == LIVE


def test_map_that_the_plugin_reports_live_needs_no_knife_round() -> None:
    driver = KnifeDriver()
    driver.apply(ev.LiveReported(driver.now_ms, 1)).start_round()
    assert driver.phases == LIVE


def test_second_round_shows_that_there_was_no_knife_round() -> None:
    driver = KnifeDriver().start_round().start_round(2)
    assert driver.phases == LIVE
    driver.kill().decide(2, 2, 0)
    played = driver.match.current_map
    assert ((played.team1_score, played.team2_score), played.missing_rounds) == ((2, 0), (1,))
    assert (played.start_side, [line.kills for line in played.ledger.lines()]) == (None, [1, 0])


def test_map_restarted_after_its_knife_round_is_live() -> None:
    driver = KnifeDriver().play_knife_round().start_round().start_round()
    assert driver.phases == LIVE


def test_start_is_requested_again_while_a_side_is_chosen() -> None:
    driver = KnifeDriver().play_knife_round()
    assert StartPlay(1) in driver.wait(60)


def test_last_map_of_a_series_begins_with_its_own_knife_round() -> None:
    driver = KnifeDriver(knife_duel(SeriesFormat.BO3, KNIFE, T, KNIFE)).play_knife_round()
    for number, score in ((1, (13, 5)), (2, (5, 13))):
        driver.start_round(map_name=MAPS[number - 1])
        assert (driver.phases, driver.match.current_map.number) == (LIVE, number)
        driver.end_map(*score, map_name=MAPS[number - 1]).change_map(MAPS[number], ANN, BEN)
    driver.play_knife_round(MAPS[2])
    assert (driver.phases, len(driver.match.maps)) == (STARTING, 2)
    driver.start_round(map_name=MAPS[2])
    assert (driver.phases, driver.match.current_map.number) == (LIVE, 3)


def test_only_the_plugin_plays_a_knife_round() -> None:
    settings = knife_duel()
    for changed in (
        msgspec.structs.replace(settings, sides=(CT,)),
        msgspec.structs.replace(settings, sides=()),
    ):
        driver = KnifeDriver(changed).start_round()
        assert driver.phases == LIVE
