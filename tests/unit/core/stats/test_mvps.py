"""Tests of MVPs: a total is right, or it is marked incomplete."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import PlayerId, Team
from matchpod.core.stats.mvps import MAX_PLAYERS, MvpCount, MvpReports
from matchpod.core.stats.round_record import RoundRecord
from tests.effort import examples
from tests.unit.core.stats.event_builder import ANNA, BEN, CARL, TEAM1, TEAM2, XENA, round_decided, started_record

PLAYERS = TEAM1 + TEAM2
GUEST = "3001"
ALL_0 = dict.fromkeys(PLAYERS, 0)


def played(number: int, winner: Team | None = Team.TEAM1) -> RoundRecord:
    record = started_record(number)
    record.decide(round_decided(winner))
    return record


Totals = dict[int, dict[PlayerId, int]]


def known(*rounds: RoundRecord, game: Totals | None = None, plugin: Totals | None = None) -> dict[PlayerId, int]:
    """Return the complete totals."""
    return complete(MvpReports(game or {}, plugin or {}), rounds)


def complete(
    reports: MvpReports, rounds: Sequence[RoundRecord], players: Sequence[PlayerId] = PLAYERS
) -> dict[PlayerId, int]:
    counts = reports.counts(rounds, players)
    assert counts.keys() == set(players)
    return {who: count.number for who, count in counts.items() if count.is_complete}


def test_nothing_is_known_without_a_report() -> None:
    assert known() == ALL_0
    assert known(played(1), played(2)) == {}
    assert MvpReports().counts([played(1)], [ANNA]) == {ANNA: MvpCount(0, is_complete=False)}


def test_total_that_is_not_proved_is_the_newest_that_was_reported() -> None:
    reports = MvpReports({1: {ANNA: 1}, 2: {ANNA: 2, BEN: 0}})
    rounds = [played(1), played(2), played(3)]
    assert reports.counts(rounds, [ANNA, BEN]) == {ANNA: MvpCount(2, False), BEN: MvpCount(0, False)}
    reports.forget()
    assert reports.counts(rounds, [ANNA]) == {ANNA: MvpCount(2, is_complete=False)}
    reports.drop_after(1)
    assert reports.counts(rounds[:1], [ANNA]) == {ANNA: MvpCount(0, is_complete=False)}


def test_everything_is_known_if_each_round_has_an_mvp() -> None:
    assert known(played(1), game={1: {ANNA: 1}}) == ALL_0 | {ANNA: 1}


def test_report_of_a_later_round_makes_up_for_a_lost_one() -> None:
    assert known(played(1), played(2), played(3), game={3: {ANNA: 2, XENA: 1}})[XENA] == 1


def test_total_is_unknown_after_an_unreported_victory_and_known_after_a_defeat() -> None:
    found = known(played(1), played(2, Team.TEAM2), game={1: {ANNA: 1}})
    assert found == {ANNA: 1, BEN: 0, CARL: 0}


def test_winner_who_is_not_in_the_report_may_be_the_mvp() -> None:
    found = known(played(1), game={1: {ANNA: 0, XENA: 0}})
    assert found.keys() == {ANNA, *TEAM2}, "only the rest of the winning team is unknown"


def test_total_of_the_game_counts_even_if_a_round_has_no_mvp_or_a_bot_is_the_mvp() -> None:
    assert known(played(1), game={1: ALL_0}) == ALL_0
    assert known(played(1), played(2), game={1: ALL_0, 2: ALL_0 | {BEN: 1}}) == ALL_0 | {BEN: 1}


def test_plugin_report_without_the_mvp_of_its_round_is_too_early_for_the_winners() -> None:
    assert known(played(1), plugin={1: ALL_0}) == dict.fromkeys(TEAM2, 0)


def test_game_takes_precedence_over_the_plugin() -> None:
    assert known(played(1), game={1: {ANNA: 1}}, plugin={1: {ANNA: 0, BEN: 1}})[BEN] == 0


def test_plugin_report_of_a_round_that_is_not_in_the_log_yet_does_not_count() -> None:
    assert known(played(1), game={1: {ANNA: 1}}, plugin={2: {ANNA: 2}})[ANNA] == 1


def test_everyone_may_be_the_mvp_of_a_round_with_an_unknown_winner_or_start() -> None:
    unstarted = RoundRecord(2)
    unstarted.decide(round_decided(Team.TEAM1))
    assert known(played(1), played(2, None), game={1: {ANNA: 1}}) == {}
    assert known(played(1), unstarted, game={1: {ANNA: 1}}) == {}


def test_player_who_did_not_take_part_is_not_the_mvp() -> None:
    reports = MvpReports({1: {ANNA: 1, GUEST: 0}})
    assert complete(reports, [played(1), played(2)], [GUEST]) == {GUEST: 0}


def test_reports_before_lost_lines_do_not_count() -> None:
    """The lost lines may hide a restored backup, and with it other totals."""
    reports = MvpReports({1: {ANNA: 1}}, {2: {ANNA: 2}})
    reports.forget()
    rounds = [played(1), played(2, Team.TEAM2)]
    assert complete(reports, rounds) == {}
    reports.game[2] = {BEN: 1}
    assert complete(reports, rounds) == {BEN: 1}
    reports.game[2] = {BEN: 1, ANNA: 1}
    assert complete(reports, rounds) == ALL_0 | {ANNA: 1, BEN: 1}


def test_reports_of_rounds_that_are_played_again_are_dropped() -> None:
    reports = MvpReports({1: {ANNA: 1}, 2: {ANNA: 2}}, {1: {ANNA: 1}, 2: {ANNA: 2}})
    reports.drop_after(1)
    assert reports == MvpReports({1: {ANNA: 1}}, {1: {ANNA: 1}})


@examples(30)
@given(st.data())
def test_known_totals_are_right_no_matter_which_reports_are_lost(data: st.DataObject) -> None:
    """Each round has at most one MVP, on the team that won. Any report may be lost, early or without some players."""
    totals = dict(ALL_0)
    rounds: list[RoundRecord] = []
    reports = MvpReports()
    for number in range(1, data.draw(st.integers(1, 6)) + 1):
        winner = data.draw(st.sampled_from(Team))
        before, team = dict(totals), TEAM1 if winner is Team.TEAM1 else TEAM2
        mvp = data.draw(st.sampled_from([*team, None]))
        if mvp is not None:
            totals[mvp] += 1
        present = data.draw(st.sets(st.sampled_from(PLAYERS)))
        kind = data.draw(st.sampled_from(["game", "plugin", "early", "none", "lost"]))
        if kind == "lost":
            reports.forget()
            continue
        rounds.append(played(number, winner))
        if kind == "game":
            reports.game[number] = {who: totals[who] for who in present}
        for who in present if kind in ("plugin", "early") else ():
            reports.count_by_plugin(number, who, (totals if kind == "plugin" else before)[who])
    found = complete(reports, rounds)
    assert found == {who: totals[who] for who in found}


def test_totals_of_forged_players_are_bounded() -> None:
    reports = MvpReports()
    for number in range(2 * MAX_PLAYERS):
        reports.count_by_plugin(1, f"forged {number}", 1)
        reports.count_by_plugin(1, "forged 0", number)
    assert len(reports.plugin[1]) == MAX_PLAYERS
    assert reports.plugin[1]["forged 0"] == 2 * MAX_PLAYERS - 1
    for number in range(5):
        reports.game[number] = {f"{number} {player}": 1 for player in range(100)}
        reports.forget()
        assert len(reports.stale) <= MAX_PLAYERS
