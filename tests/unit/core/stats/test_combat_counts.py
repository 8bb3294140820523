"""Combat: damage, kills, deaths, assists, grenades and the bomb."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Team
from matchpod.core import events as ev
from matchpod.core.stats.combat_counts import health_lost
from tests.unit.core.stats.event_builder import ANNA, BEN, CARL, XENA, YURI, EventBuilder, line_of, live


def test_team_damage_lowers_health_but_is_not_counted() -> None:
    ledger = live().hit(BEN, ANNA, 40, 60).hit(XENA, ANNA, 110, 0).ledger()
    assert line_of(ledger, BEN).damage == 0
    assert line_of(ledger, XENA).damage == 60


def test_pellet_that_hits_a_dead_player_does_no_damage() -> None:
    builder = live().at(5000).hit(ANNA, XENA, 120, 0).at(5000).hit(ANNA, XENA, 30, 0)
    ledger = builder.at(5000).kill(ANNA, XENA).at(5000).hit(ANNA, XENA, 30, 0).ledger()
    assert line_of(ledger, ANNA).damage == 100


def test_respawned_player_has_full_health() -> None:
    builder = EventBuilder().live().hit(ANNA, XENA, 110, 0).kill(ANNA, XENA).hit(ANNA, XENA, 60, 40).kill(ANNA, XENA)
    ledger = builder.hit(ANNA, XENA, 400, 0).kill(ANNA, XENA).ledger(is_free_for_all=True)
    assert line_of(ledger, ANNA).damage == 100 + 60 + 100


def test_player_who_rejoins_has_full_health() -> None:
    builder = EventBuilder().live().hit(ANNA, XENA, 60, 40).leave(XENA).hit(ANNA, XENA, 50, 50)
    assert line_of(builder.hit(ANNA, XENA, 70, 0).ledger(is_free_for_all=True), ANNA).damage == 60 + 50 + 50


def test_health_is_full_at_each_round_start() -> None:
    ledger = live().hit(ANNA, XENA, 90, 10).decide(1).start(2).hit(ANNA, XENA, 90, 10).ledger()
    assert line_of(ledger, ANNA).damage == 180


@pytest.mark.parametrize("cause", ["hegrenade", "inferno"])
def test_enemy_who_hurt_a_player_most_assists_their_death_by_their_own_grenade(cause: str) -> None:
    builder = live().hit(XENA, ANNA, 40, 60).hit(YURI, ANNA, 41, 19).hit(BEN, ANNA, 10, 9).die(ANNA, cause)
    assert [line_of(builder.ledger(), player).assists for player in (XENA, YURI, BEN)] == [0, 1, 0]


@pytest.mark.parametrize(
    "builder",
    [
        live().hit(XENA, ANNA, 39, 61).die(ANNA, "hegrenade"),
        live().hit(XENA, ANNA, 60, 40).die(ANNA, "world"),
        live().hit(XENA, ANNA, 60, 40).kill(YURI, ANNA).die(ANNA, "hegrenade"),
        live().hit(XENA, ANNA, 60, 40).leave(XENA).die(ANNA, "hegrenade"),
    ],
    ids=["too little", "a fall", "dead before", "left"],
)
def test_other_damage_before_a_death_without_a_killer_is_no_assist(builder: EventBuilder) -> None:
    assert line_of(builder.ledger(), XENA).assists == 0


def test_death_in_freeze_time_does_not_count() -> None:
    ledger = live().decide(1).game_counts(2).die(ANNA).leave(BEN).start(2).ledger()
    assert line_of(ledger, ANNA).deaths == 0
    assert ledger.open_round is not None
    assert ledger.open_round.falls == []


def test_leaving_alone_is_not_a_death() -> None:
    ledger = live().leave(ANNA).die(ANNA).leave(ANNA).ledger()
    assert line_of(ledger, ANNA).deaths == 0


def test_suicide_of_a_living_player_who_leaves_is_one_death() -> None:
    builder = live()
    left_ms = builder.now_ms
    ledger = builder.leave(ANNA).at(left_ms).die(ANNA).at(left_ms).die(ANNA).decide(1, Team.TEAM2).ledger()
    assert line_of(ledger, ANNA).deaths == line_of(ledger, ANNA).first_deaths == 1


def test_death_by_the_bomb_counts_only_before_the_decision() -> None:
    builder = live().die(ANNA, ev.BOMB).at(50_000).die(ANNA).decide(1, Team.TEAM2)
    ledger = builder.at(60_000).die(BEN, ev.BOMB).at(60_000).die(BEN).die(CARL).ledger()
    assert [line_of(ledger, player).deaths for player in (ANNA, BEN, CARL)] == [1, 0, 1]
    assert [line_of(ledger, player).kast_rounds for player in (ANNA, BEN, CARL)] == [0, 1, 1]


def test_spectator_who_leaves_has_no_statistics() -> None:
    assert "3001" not in {line.player_id for line in live().leave("3001").decide(1).end().ledger().lines()}


def test_thrown_grenades_are_counted_by_type() -> None:
    for kind in list(ev.GrenadeKind):
        line = line_of(live().add(ev.GrenadeThrown, ANNA, kind).add(ev.GrenadeThrown, ANNA, kind).ledger(), ANNA)
        assert getattr(line, f"{kind}_thrown") == line.grenades_thrown == 2


def test_damage_is_limited_to_the_health_before_the_hit() -> None:
    for damage, before, after, lost in [
        (108, 100, 0, 100),  # capped at the remaining health
        (27, 100, 73, 27),
        (27, 100, 72, 28),  # the log truncates the damage
        (20, 100, 40, 21),  # about 40 were lost to fall damage, which is not logged
        (30, 40, 70, 30),  # more health than recorded
        (0, 100, 100, 0),
        (12, 0, 0, 0),  # a pellet that hits a dead player
    ]:
        assert health_lost(damage, before, after) == lost
