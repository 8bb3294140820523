"""Callers see the phase of a match, who is on the server, and what the match waits for."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side
from matchpod.core import events as ev
from matchpod.core.effects import Effect
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings, SeriesFormat
from matchpod.core.views.progress import (
    PlayerState,
    Stays,
    expected_roster,
    live_roster,
    round_number,
    sides_of,
)
from tests.unit.core.match_driver import (
    ANN,
    BEN,
    MAPS,
    START_MS,
    MatchDriver,
    deathmatch,
    duel,
)

GRACE_S = Timers().map_change_grace_s
SKEW_MS = 7_000_000
"""How far our clock is ahead of the time that the timeouts count."""


class RosterDriver(MatchDriver):
    """A match whose stays are updated after every event, as the fold does after every entry."""

    def __init__(self, settings: GameSettings) -> None:
        super().__init__(settings)
        self.stays = Stays()

    def apply_one(self, event: ev.GameEvent) -> list[Effect]:
        effects = super().apply_one(event)
        self.update()
        return effects

    def update(self) -> None:
        self.stays.update(self.match, self.now_ms + SKEW_MS, match_ms=self.now_ms)

    def states(self) -> dict[str, tuple[PlayerState, int | None]]:
        """Return state and time of each listed player, in seconds after the start."""
        shown = live_roster(self.match, self.stays)
        times = {iso_time(START_MS + SKEW_MS + second * 1000): second for second in range(1_000)}
        return {one.steam_id: (one.state, None if one.since is None else times[one.since]) for one in shown}


CONNECTED, LEFT, NEVER = PlayerState


# --- the roster -------------------------------------------------------------------------------------------------------


def test_listed_players_have_a_team_and_have_not_joined_at_first() -> None:
    shown = expected_roster(duel())
    assert [(one.steam_id, one.team, one.name, one.state, one.since) for one in shown] == [
        (ANN, "team1", None, NEVER, None),
        (BEN, "team2", None, NEVER, None),
    ]
    driver = RosterDriver(duel())
    assert live_roster(driver.match, driver.stays) == shown


def test_players_of_a_deathmatch_have_no_team() -> None:
    assert [one.team for one in expected_roster(deathmatch(ANN, BEN))] == [None, None]


def test_roster_says_since_when_a_player_is_connected_or_has_left() -> None:
    driver = RosterDriver(duel()).after(5).join(ANN)
    assert driver.states() == {ANN: (CONNECTED, 5), BEN: (NEVER, None)}
    assert live_roster(driver.match, driver.stays)[0].name == "name of 1"
    driver.after(5).leave(ANN).after(5)
    driver.update()
    assert driver.states()[ANN] == (LEFT, 10)
    driver.join(ANN)
    assert driver.states()[ANN] == (CONNECTED, 15)


def test_player_who_came_and_went_between_two_updates_has_left() -> None:
    driver = MatchDriver(duel()).join(ANN).leave(ANN)
    stays = Stays()
    stays.update(driver.match, START_MS, match_ms=START_MS)
    assert [one.state for one in live_roster(driver.match, stays)] == [LEFT, NEVER]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_player_who_leaves_during_a_map_change_has_left(is_loaded: bool) -> None:
    driver = RosterDriver(duel(SeriesFormat.BO3)).join(ANN, BEN).live().end_map()
    if is_loaded:
        driver.load(MAPS[1])
    driver.leave(BEN)
    assert {player: state for player, (state, _) in driver.states().items()} == {ANN: CONNECTED, BEN: LEFT}


# --- round and sides --------------------------------------------------------------------------------------------------


def start_round(driver: MatchDriver, number: int) -> None:
    driver.apply(ev.RoundStarted(driver.now_ms, number, (ANN,), (BEN,), Side.T))


def test_round_and_sides_are_those_of_the_live_map() -> None:
    driver = MatchDriver(duel(SeriesFormat.BO3))
    assert (round_number(driver.match), sides_of(driver.match)) == (None, None)
    driver.join(ANN, BEN).live()
    assert round_number(driver.match) is None
    start_round(driver, 4)
    sides = sides_of(driver.match)
    assert sides is not None
    assert (round_number(driver.match), sides.team1, sides.team2) == (4, Side.T, Side.CT)
    driver.apply(ev.LogGap(driver.now_ms, 100))
    assert sides_of(driver.match) is None, "the teams may have changed sides"
    driver.end_map()
    assert (round_number(driver.match), sides_of(driver.match)) == (None, None)


def test_deathmatch_has_neither_round_nor_sides() -> None:
    driver = MatchDriver(deathmatch(ANN)).join(ANN).live()
    start_round(driver, 1)
    assert (round_number(driver.match), sides_of(driver.match)) == (None, None)
