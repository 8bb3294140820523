"""The record of one round."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core.events import EconomyCounted, LineupGrown, RoundDecided
from matchpod.core.stats.round_record import MAX_FALLS, Fall, RoundRecord
from tests.unit.core.stats.event_builder import (
    ANNA,
    BEN,
    TEAM1,
    TEAM2,
    XENA,
    round_decided,
    round_started,
    started_record,
)


def test_player_seen_late_joins_the_line_up_until_the_decision() -> None:
    record = started_record()
    record.add_to_lineup(LineupGrown(1, "3001", Team.TEAM1))
    record.add_to_lineup(LineupGrown(2, "3002", Team.TEAM2))
    record.add_to_lineup(LineupGrown(3, ANNA, Team.TEAM2))
    record.decide(round_decided(Team.TEAM2))
    record.add_to_lineup(LineupGrown(4, "3003", Team.TEAM1))
    assert (record.team1, record.team2) == ((*TEAM1, "3001"), (*TEAM2, "3002"))
    assert [record.counts(player).rounds_played for player in ("3001", "3002", "3003")] == [1, 1, 0]


def test_player_unseen_since_lost_lines_joins_the_line_up_also_after_the_decision() -> None:
    record = RoundRecord(1)
    record.start(msgspec.structs.replace(round_started(), unseen=("3001", "3002")))
    record.decide(round_decided(Team.TEAM2))
    record.add_to_lineup(LineupGrown(4, "3001", Team.TEAM1, was_unseen=True))
    record.add_to_lineup(LineupGrown(4, "3003", Team.TEAM1, was_unseen=True))
    record.add_to_lineup(LineupGrown(4, "3002", Team.TEAM1))
    assert (record.team1, record.unseen) == ((*TEAM1, "3001"), ("3002",))
    assert "3001" in record.alive(Team.TEAM1)


def test_side_of_a_round_is_unknown_if_it_was_uncertain_or_its_winner_is() -> None:
    uncertain = RoundRecord(1)
    uncertain.start(msgspec.structs.replace(round_started(), is_certain=False))
    assert uncertain.team1_side is None
    record = started_record()
    record.decide(RoundDecided(0, 1, None, Side.CT, RoundEndReason.CTS_WIN, 0, 0))
    assert (record.winner, record.winner_side, record.team1_side) == (None, Side.CT, None)


def test_kills_by_weapon_stay_when_the_falls_are_dropped() -> None:
    record = started_record()
    for at_ms, weapon in ((1, "ak47"), (2, "awp"), (3, "ak47")):
        record.add_fall(Fall(at_ms, f"victim {at_ms}", XENA, is_enemy=True, weapon=weapon))
        record.add_weapon_kill(XENA, weapon)
    assert record.weapon_kills() == {XENA: {"ak47": 2, "awp": 1}}
    record.add_fall(Fall(4, "victim 1", XENA, is_enemy=True, weapon="ak47"))
    record.add_weapon_kill(XENA, "ak47")
    assert record.falls == []
    assert record.weapon_kills() == {XENA: {"ak47": 3, "awp": 1}}


def test_removing_suicides_keeps_kills_and_earlier_deaths() -> None:
    record = started_record()
    record.add_fall(Fall(5, XENA))
    record.add_fall(Fall(9, ANNA, XENA, is_enemy=True))
    record.add_fall(Fall(9, BEN))
    record.add_fall(Fall(9, "1003", is_death=False))
    record.remove_suicides(9)
    assert [fall.victim for fall in record.falls] == [XENA, ANNA]
    assert [record.counts(player_id).deaths for player_id in (XENA, ANNA, BEN, "1003")] == [1, 1, 0, 0]


def test_players_alive_at_the_decision_survive_the_round() -> None:
    record = started_record()
    record.add_fall(Fall(1, ANNA, XENA, is_enemy=True))
    record.add_fall(Fall(2, BEN, is_death=False))
    assert record.alive(Team.TEAM1) == {"1003"}
    record.decide(round_decided(Team.TEAM2))
    record.add_fall(Fall(3, XENA))
    assert (record.alive(Team.TEAM1), record.alive(Team.TEAM2)) == ({"1003"}, set(TEAM2))


def test_sides_follow_the_side_of_the_winner() -> None:
    record = RoundRecord(1)
    record.decide(RoundDecided(1, 1, Team.TEAM2, Side.CT, RoundEndReason.CTS_WIN, 0, 1))
    assert record.team1_side is Side.T
    assert (record.score, record.reason, record.decided_at_ms) == ((0, 1), RoundEndReason.CTS_WIN, 1)


def test_number_of_falls_and_of_players_in_the_damage_is_bounded() -> None:
    record = started_record()
    for number in range(3 * MAX_FALLS):
        record.add_fall(Fall(number, f"forged {number}", ANNA, is_enemy=True))
        record.add_damage(f"forged {number}", ANNA, 1)
    assert record.has_respawns
    assert not record.falls
    assert len(record.read_details().damage_to) == MAX_FALLS


def test_details_of_a_closed_round_are_packed_and_read_the_same() -> None:
    record = started_record()
    record.add_damage(ANNA, XENA, 70)
    record.count_economy(EconomyCounted(1, 1, {ANNA: 4000}, {ANNA: 700}, {ANNA: 900}, has_money_lines=True))
    before = record.read_details()
    record.pack()
    assert record.details != before
    assert record.read_details() == before
    record.add_damage(ANNA, XENA, 5)
    assert record.read_details().damage_to == {ANNA: {XENA: 75}}, "it can be opened again"


def test_removed_suicide_takes_its_assist_back() -> None:
    record = started_record()
    record.counts(XENA).assists = 1
    record.add_fall(Fall(5, ANNA, weapon="hegrenade", helper=XENA))
    record.remove_suicides(5)
    assert (record.counts(XENA).assists, record.counts(ANNA).deaths) == (0, 0)


def test_no_player_helped_if_players_respawn() -> None:
    record = started_record()
    record.add_damage(XENA, ANNA, 90)
    assert record.helper_against(ANNA) == XENA
    record.has_respawns = True
    assert record.helper_against(ANNA) is None
