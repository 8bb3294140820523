"""What a whole round says."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.model import PlayerId, Team
from matchpod.core.stats.round_record import Fall, PlayerRound, RoundRecord
from matchpod.core.stats.settlement import TRADE_WINDOW_MS, settle
from tests.unit.core.stats.rounds import ANNA, BEN, CARL, TEAM1, TEAM2, XENA, YURI, ZOE, are_enemies

WINNERS_EXTRA = ("2004", "2005", "2006")


class Round:
    """Builds a settled round; times are in milliseconds."""

    def __init__(self, team1: tuple[PlayerId, ...] = TEAM1, team2: tuple[PlayerId, ...] = TEAM2) -> None:
        self.record = RoundRecord(1)
        self.record.start(team1, team2)
        self.at_ms = 0

    def kill(self, killer: PlayerId, victim: PlayerId, *, after_ms: int = 10_000) -> Round:
        self.at_ms += after_ms
        self.record.counts(killer).kills += are_enemies(killer, victim)
        self.record.add_fall(Fall(self.at_ms, victim, killer, are_enemies(killer, victim)))
        return self

    def fall(self, player_id: PlayerId, *, is_death: bool = True) -> Round:
        self.record.add_fall(Fall(self.at_ms, player_id, is_death=is_death))
        return self

    def decide(self, winner: Team | None) -> Round:
        self.record.decide(winner)
        return self

    def settled(self) -> dict[PlayerId, PlayerRound]:
        settle(self.record)
        return self.record.players


def test_first_enemy_kill_opens_the_round() -> None:
    players = Round().kill(ANNA, XENA).kill(YURI, BEN).decide(Team.TEAM1).settled()
    assert [players[who].first_kills for who in (ANNA, YURI)] == [1, 0]
    assert [players[who].first_deaths for who in (XENA, BEN)] == [1, 0]


def test_a_team_kill_opens_nothing_but_its_victim_dies_first() -> None:
    players = Round().kill(ANNA, BEN).kill(ANNA, XENA).decide(None).settled()
    assert players[BEN].first_deaths == 1
    assert players[XENA].first_deaths == 0
    assert players[ANNA].first_kills == 1


def test_leaving_is_not_the_first_death() -> None:
    players = Round().fall(ANNA, is_death=False).fall(BEN).decide(None).settled()
    assert [players[who].first_deaths for who in (ANNA, BEN)] == [0, 1]


def test_a_kill_after_the_decision_opens_nothing() -> None:
    players = Round().decide(Team.TEAM1).kill(ANNA, XENA).settled()
    assert players[ANNA].first_kills == 0
    assert players[XENA].first_deaths == 0


@pytest.mark.parametrize(("after_ms", "trades"), [(TRADE_WINDOW_MS, 1), (TRADE_WINDOW_MS + 1, 0)])
def test_a_trade_avenges_a_team_mate_in_time(after_ms: int, trades: int) -> None:
    players = Round().kill(XENA, ANNA).kill(BEN, XENA, after_ms=after_ms).decide(None).settled()
    assert players[BEN].trade_kills == trades
    assert players[ANNA].traded_deaths == trades


def test_one_kill_that_avenges_two_is_one_trade_and_two_traded_deaths() -> None:
    players = Round().kill(XENA, ANNA).kill(XENA, BEN, after_ms=1).kill(CARL, XENA, after_ms=1).decide(None).settled()
    assert players[CARL].trade_kills == 1
    assert [players[who].traded_deaths for who in (ANNA, BEN)] == [1, 1]


def test_a_dead_mans_grenade_trades_nobody() -> None:
    players = Round().kill(XENA, ANNA).kill(ANNA, XENA, after_ms=1).decide(None).settled()
    assert players[ANNA].trade_kills == 0
    assert players[ANNA].traded_deaths == 0


def test_a_team_killer_is_not_traded_by_his_own_team() -> None:
    players = Round().kill(ANNA, BEN).kill(CARL, ANNA, after_ms=1).decide(None).settled()
    assert players[CARL].trade_kills == 0


def test_an_enemy_killing_a_team_killer_trades_nobody() -> None:
    players = Round().kill(ANNA, BEN).kill(XENA, ANNA, after_ms=1).decide(None).settled()
    assert players[XENA].trade_kills == 0
    assert players[BEN].traded_deaths == 0


def test_players_outside_the_line_up_trade_nobody() -> None:
    players = Round(team1=(ANNA,)).kill(XENA, BEN).kill(CARL, XENA, after_ms=1).decide(None).settled()
    assert players[CARL].trade_kills == 0


def test_last_one_alive_wins_a_clutch_of_the_class_when_it_began() -> None:
    # Anna is alone against three, then two, then one: it stays a 1v3.
    round_ = Round().kill(XENA, BEN).kill(XENA, CARL)
    players = round_.kill(ANNA, XENA).kill(ANNA, YURI).kill(ANNA, ZOE).decide(Team.TEAM1).settled()
    assert players[ANNA].clutch1v3 == 1
    assert players[ANNA].clutch1v2 == players[ANNA].clutch1v1 == 0
    assert players[ANNA].clutch_kills == 3


def test_a_clutch_needs_the_round_not_survival() -> None:
    round_ = Round().kill(XENA, BEN).kill(XENA, CARL).kill(XENA, ANNA)
    assert round_.decide(Team.TEAM1).settled()[ANNA].clutch1v3 == 1


def test_a_lost_round_is_no_clutch() -> None:
    players = Round().kill(XENA, BEN).kill(XENA, CARL).kill(XENA, ANNA).decide(Team.TEAM2).settled()
    assert players[ANNA].clutch1v3 == 0


def test_both_sides_can_be_in_a_clutch_and_one_wins_it() -> None:
    round_ = Round().kill(ANNA, XENA).kill(ANNA, YURI).kill(ZOE, BEN).kill(ZOE, CARL)
    players = round_.kill(ZOE, ANNA).decide(Team.TEAM2).settled()
    assert players[ZOE].clutch1v3 == 1
    assert players[ANNA].clutch1v1 == 0
    assert players[ZOE].clutch_kills == 3


def test_a_clutch_against_more_than_five_counts_as_five() -> None:
    round_ = Round(team2=TEAM2 + WINNERS_EXTRA).kill(XENA, BEN).kill(XENA, CARL)
    assert round_.decide(Team.TEAM1).settled()[ANNA].clutch1v5 == 1


def test_dropping_to_one_when_no_enemy_is_left_is_no_clutch() -> None:
    round_ = Round(team1=(ANNA, BEN), team2=(XENA,)).kill(ANNA, XENA).kill(ANNA, BEN)
    assert round_.decide(Team.TEAM1).settled()[ANNA].clutch1v1 == 0


def test_a_team_mate_who_leaves_starts_a_clutch() -> None:
    players = Round(team1=(ANNA, BEN)).fall(BEN, is_death=False).decide(Team.TEAM1).settled()
    assert players[ANNA].clutch1v3 == 1


def test_a_team_of_one_from_the_start_is_in_no_clutch() -> None:
    players = Round(team1=(ANNA,)).kill(ANNA, XENA).decide(Team.TEAM1).settled()
    assert players[ANNA].clutch1v3 == players[ANNA].clutch1v2 == 0


def test_deaths_after_the_decision_start_no_clutch() -> None:
    players = Round().kill(ANNA, XENA).decide(Team.TEAM1).kill(ANNA, BEN).kill(ANNA, CARL).settled()
    assert players[ANNA].clutch1v2 == 0


def test_a_stranger_who_falls_changes_no_clutch() -> None:
    players = Round().fall("3001").decide(Team.TEAM1).settled()
    assert sum(players[who].clutch1v3 for who in TEAM1) == 0


@pytest.mark.parametrize(
    ("kills", "name"),
    [(2, "double_kills"), (3, "triple_kills"), (4, "quad_kills"), (5, "aces"), (6, "aces")],
)
def test_multi_kills_count_exactly_and_an_ace_is_five_or_more(kills: int, name: str) -> None:
    round_ = Round(team2=TEAM2 + WINNERS_EXTRA).decide(None)
    for victim in (TEAM2 + WINNERS_EXTRA)[:kills]:
        round_.kill(ANNA, victim)
    row = round_.settled()[ANNA]
    counted = {each: getattr(row, each) for each in ("double_kills", "triple_kills", "quad_kills", "aces")}
    assert counted == dict.fromkeys(counted, 0) | {name: 1}


def test_kast_counts_kill_assist_survival_and_trade() -> None:
    round_ = Round().kill(YURI, ANNA).kill(CARL, YURI, after_ms=1).kill(ZOE, CARL, after_ms=20_000).kill(ZOE, BEN)
    round_.record.counts(BEN).assists = 1
    players = round_.decide(Team.TEAM2).settled()
    # Anna was traded, Ben assisted, Carl and Yuri killed, Xena and Zoe survived.
    assert [players[who].kast_rounds for who in TEAM1 + TEAM2] == [1] * 6


def test_a_flash_assist_is_no_part_in_kast() -> None:
    round_ = Round().kill(XENA, ANNA)
    round_.record.counts(ANNA).flash_assists = 1
    assert round_.decide(None).settled()[ANNA].kast_rounds == 0


def test_who_dies_after_the_decision_survived_the_round() -> None:
    assert Round().decide(Team.TEAM2).kill(XENA, ANNA).settled()[ANNA].kast_rounds == 1


def test_who_left_did_not_survive_the_round() -> None:
    assert Round().fall(ANNA, is_death=False).decide(None).settled()[ANNA].kast_rounds == 0


def test_only_the_line_up_has_kast() -> None:
    players = Round(team1=(BEN,)).kill(ANNA, XENA).decide(None).settled()
    assert players[ANNA].kast_rounds == 0


def test_a_round_with_respawns_says_nothing() -> None:
    round_ = Round().kill(ANNA, XENA).kill(ANNA, XENA).kill(ANNA, YURI).decide(Team.TEAM1)
    assert round_.settled()[ANNA] == PlayerRound(rounds_played=1, kills=3)


def test_settling_twice_changes_nothing() -> None:
    round_ = Round().kill(XENA, BEN).kill(XENA, CARL).kill(ANNA, XENA, after_ms=1).kill(ANNA, YURI).decide(Team.TEAM1)
    once = msgspec.msgpack.encode(round_.settled())
    assert msgspec.msgpack.encode(round_.settled()) == once
