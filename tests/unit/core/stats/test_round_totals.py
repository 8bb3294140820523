"""Statistics computed from a whole round."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import PlayerId, Team
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Fall, RoundRecord
from matchpod.core.stats.round_totals import TRADE_WINDOW_MS, compute_totals
from tests.unit.core.stats.event_builder import (
    ANNA,
    BEN,
    CARL,
    TEAM1,
    TEAM2,
    XENA,
    YURI,
    ZOE,
    are_enemies,
    round_decided,
    round_started,
)

MORE_OF_TEAM2 = ("2004", "2005", "2006")


class RoundBuilder:
    """Builds a round and computes its totals; times are in milliseconds."""

    def __init__(self, team1: tuple[PlayerId, ...] = TEAM1, team2: tuple[PlayerId, ...] = TEAM2) -> None:
        self.record = RoundRecord(1)
        self.record.start(round_started(team1, team2))
        self.at_ms = 0

    def kill(self, killer: PlayerId, victim: PlayerId, *, after_ms: int = 10_000) -> RoundBuilder:
        self.at_ms += after_ms
        self.record.counts(killer).kills += are_enemies(killer, victim)
        self.record.add_fall(Fall(self.at_ms, victim, killer, are_enemies(killer, victim)))
        return self

    def fall(self, player_id: PlayerId, *, is_death: bool = True) -> RoundBuilder:
        self.record.add_fall(Fall(self.at_ms, player_id, is_death=is_death))
        return self

    def decide(self, winner: Team | None) -> RoundBuilder:
        self.record.decide(round_decided(winner))
        return self

    def totals(self) -> dict[PlayerId, PlayerRound]:
        compute_totals(self.record)
        return self.record.players


def test_first_kill_of_an_enemy_is_the_first_kill_of_the_round() -> None:
    players = RoundBuilder().kill(ANNA, XENA).kill(YURI, BEN).decide(Team.TEAM1).totals()
    assert [players[who].first_kills for who in (ANNA, YURI)] == [1, 0]
    assert [players[who].first_deaths for who in (XENA, BEN)] == [1, 0]


def test_team_kill_is_no_first_kill_but_a_first_death() -> None:
    players = RoundBuilder().kill(ANNA, BEN).kill(ANNA, XENA).decide(None).totals()
    assert players[BEN].first_deaths == 1
    assert players[XENA].first_deaths == 0
    assert players[ANNA].first_kills == 1


def test_leaving_is_not_the_first_death() -> None:
    players = RoundBuilder().fall(ANNA, is_death=False).fall(BEN).decide(None).totals()
    assert [players[who].first_deaths for who in (ANNA, BEN)] == [0, 1]


def test_kill_after_the_decision_is_no_first_kill() -> None:
    players = RoundBuilder().decide(Team.TEAM1).kill(ANNA, XENA).totals()
    assert players[ANNA].first_kills == 0
    assert players[XENA].first_deaths == 0


@pytest.mark.parametrize(("after_ms", "trades"), [(TRADE_WINDOW_MS, 1), (TRADE_WINDOW_MS + 1, 0)])
def test_kill_of_the_killer_of_a_teammate_is_a_trade_only_within_the_window(after_ms: int, trades: int) -> None:
    players = RoundBuilder().kill(XENA, ANNA).kill(BEN, XENA, after_ms=after_ms).decide(None).totals()
    assert players[BEN].trade_kills == trades
    assert players[ANNA].traded_deaths == trades


def test_one_kill_can_trade_two_deaths() -> None:
    players = (
        RoundBuilder().kill(XENA, ANNA).kill(XENA, BEN, after_ms=1).kill(CARL, XENA, after_ms=1).decide(None).totals()
    )
    assert players[CARL].trade_kills == 1
    assert [players[who].traded_deaths for who in (ANNA, BEN)] == [1, 1]


def test_kill_by_a_dead_player_is_no_trade() -> None:
    players = RoundBuilder().kill(XENA, ANNA).kill(ANNA, XENA, after_ms=1).decide(None).totals()
    assert players[ANNA].trade_kills == 0
    assert players[ANNA].traded_deaths == 0


def test_killing_a_team_killer_of_the_same_team_is_no_trade() -> None:
    players = RoundBuilder().kill(ANNA, BEN).kill(CARL, ANNA, after_ms=1).decide(None).totals()
    assert players[CARL].trade_kills == 0


def test_enemy_killing_a_team_killer_is_no_trade() -> None:
    players = RoundBuilder().kill(ANNA, BEN).kill(XENA, ANNA, after_ms=1).decide(None).totals()
    assert players[XENA].trade_kills == 0
    assert players[BEN].traded_deaths == 0


def test_players_outside_the_line_ups_make_no_trades() -> None:
    players = RoundBuilder(team1=(ANNA,)).kill(XENA, BEN).kill(CARL, XENA, after_ms=1).decide(None).totals()
    assert players[CARL].trade_kills == 0


def test_clutch_size_is_the_number_of_enemies_at_its_start() -> None:
    # Anna is alone against three, then two, then one: the clutch stays a 1v3.
    round_ = RoundBuilder().kill(XENA, BEN).kill(XENA, CARL)
    players = round_.kill(ANNA, XENA).kill(ANNA, YURI).kill(ANNA, ZOE).decide(Team.TEAM1).totals()
    assert players[ANNA].clutch1v3 == 1
    assert players[ANNA].clutch1v2 == players[ANNA].clutch1v1 == 0
    assert players[ANNA].clutch_kills == 3


def test_clutch_requires_winning_the_round_but_not_survival() -> None:
    round_ = RoundBuilder().kill(XENA, BEN).kill(XENA, CARL).kill(XENA, ANNA)
    assert round_.decide(Team.TEAM1).totals()[ANNA].clutch1v3 == 1


def test_last_player_of_the_losing_team_wins_no_clutch() -> None:
    players = RoundBuilder().kill(XENA, BEN).kill(XENA, CARL).kill(XENA, ANNA).decide(Team.TEAM2).totals()
    assert players[ANNA].clutch1v3 == 0


def test_both_teams_can_be_in_a_clutch_and_one_wins_it() -> None:
    round_ = RoundBuilder().kill(ANNA, XENA).kill(ANNA, YURI).kill(ZOE, BEN).kill(ZOE, CARL)
    players = round_.kill(ZOE, ANNA).decide(Team.TEAM2).totals()
    assert players[ZOE].clutch1v3 == 1
    assert players[ANNA].clutch1v1 == 0
    assert players[ZOE].clutch_kills == 3


def test_clutch_against_more_than_five_counts_as_five() -> None:
    round_ = RoundBuilder(team2=TEAM2 + MORE_OF_TEAM2).kill(XENA, BEN).kill(XENA, CARL)
    assert round_.decide(Team.TEAM1).totals()[ANNA].clutch1v5 == 1


def test_last_player_without_enemies_left_is_in_no_clutch() -> None:
    round_ = RoundBuilder(team1=(ANNA, BEN), team2=(XENA,)).kill(ANNA, XENA).kill(ANNA, BEN)
    assert round_.decide(Team.TEAM1).totals()[ANNA].clutch1v1 == 0


def test_teammate_who_leaves_starts_a_clutch() -> None:
    players = RoundBuilder(team1=(ANNA, BEN)).fall(BEN, is_death=False).decide(Team.TEAM1).totals()
    assert players[ANNA].clutch1v3 == 1


def test_team_of_one_from_the_start_is_in_no_clutch() -> None:
    players = RoundBuilder(team1=(ANNA,)).kill(ANNA, XENA).decide(Team.TEAM1).totals()
    assert players[ANNA].clutch1v3 == players[ANNA].clutch1v2 == 0


def test_deaths_after_the_decision_start_no_clutch() -> None:
    players = RoundBuilder().kill(ANNA, XENA).decide(Team.TEAM1).kill(ANNA, BEN).kill(ANNA, CARL).totals()
    assert players[ANNA].clutch1v2 == 0


def test_death_of_a_player_outside_the_line_ups_starts_no_clutch() -> None:
    players = RoundBuilder().fall("3001").decide(Team.TEAM1).totals()
    assert sum(players[who].clutch1v3 for who in TEAM1) == 0


@pytest.mark.parametrize(
    ("kills", "name"),
    [(2, "double_kills"), (3, "triple_kills"), (4, "quad_kills"), (5, "aces"), (6, "aces")],
)
def test_multi_kill_counts_only_by_its_size_and_an_ace_is_five_or_more(kills: int, name: str) -> None:
    round_ = RoundBuilder(team2=TEAM2 + MORE_OF_TEAM2).decide(None)
    for victim in (TEAM2 + MORE_OF_TEAM2)[:kills]:
        round_.kill(ANNA, victim)
    row = round_.totals()[ANNA]
    counted = {each: getattr(row, each) for each in ("double_kills", "triple_kills", "quad_kills", "aces")}
    assert counted == dict.fromkeys(counted, 0) | {name: 1}


def test_kast_counts_kill_assist_survival_and_trade() -> None:
    round_ = (
        RoundBuilder().kill(YURI, ANNA).kill(CARL, YURI, after_ms=1).kill(ZOE, CARL, after_ms=20_000).kill(ZOE, BEN)
    )
    round_.record.counts(BEN).assists = 1
    players = round_.decide(Team.TEAM2).totals()
    # Anna was traded, Ben assisted, Carl and Yuri killed, Xena and Zoe survived.
    assert [players[who].kast_rounds for who in TEAM1 + TEAM2] == [1] * 6


def test_flash_assist_does_not_count_for_kast() -> None:
    round_ = RoundBuilder().kill(XENA, ANNA)
    round_.record.counts(ANNA).flash_assists = 1
    assert round_.decide(None).totals()[ANNA].kast_rounds == 0


def test_death_after_the_decision_counts_as_survival() -> None:
    assert RoundBuilder().decide(Team.TEAM2).kill(XENA, ANNA).totals()[ANNA].kast_rounds == 1


def test_leaving_does_not_count_as_survival() -> None:
    assert RoundBuilder().fall(ANNA, is_death=False).decide(None).totals()[ANNA].kast_rounds == 0


def test_only_players_in_the_line_ups_have_kast() -> None:
    players = RoundBuilder(team1=(BEN,)).kill(ANNA, XENA).decide(None).totals()
    assert players[ANNA].kast_rounds == 0


def test_round_with_respawns_has_no_totals() -> None:
    round_ = RoundBuilder().kill(ANNA, XENA).kill(ANNA, XENA).kill(ANNA, YURI).decide(Team.TEAM1)
    assert round_.totals()[ANNA] == PlayerRound(rounds_played=1, kills=3)


def test_computing_totals_twice_gives_the_same_result() -> None:
    round_ = (
        RoundBuilder().kill(XENA, BEN).kill(XENA, CARL).kill(ANNA, XENA, after_ms=1).kill(ANNA, YURI).decide(Team.TEAM1)
    )
    once = msgspec.msgpack.encode(round_.totals())
    assert msgspec.msgpack.encode(round_.totals()) == once
