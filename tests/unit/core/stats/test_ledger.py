"""The ledger of a map: map flow, missing data, and reports of the game and its plugins."""

from __future__ import annotations

import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.stats.player_line import LiveCount
from tests.unit.core.stats.event_builder import (
    ANNA,
    BEN,
    CARL,
    TEAM1,
    TEAM2,
    XENA,
    YURI,
    ZOE,
    EventBuilder,
    game_count,
    line_of,
    live,
)


def test_nothing_counts_before_the_map_is_live() -> None:
    ledger = EventBuilder().start(1).kill(ANNA, XENA).restore(0).end().ledger()
    assert ledger.lines() == []


def test_nothing_counts_after_the_map_ended() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).end().kill(ANNA, YURI).ledger()
    assert line_of(ledger, ANNA).kills == 1


def test_going_live_resets_the_ledger() -> None:
    builder = live().kill(ANNA, XENA).hit(ANNA, YURI, 50, 50).add(ev.LogGap, 10).live()
    assert builder.ledger() == EventBuilder().live().ledger()


def test_other_events_do_not_change_the_ledger() -> None:
    builder = live().kill(ANNA, XENA)
    before = builder.ledger()
    assert builder.add(ev.ChatMessage, ANNA, "Anna", False, "gg").add(ev.BombExploded).ledger() == before


def test_kills_before_the_next_freeze_time_belong_to_the_decided_round() -> None:
    ledger = live().decide(1).kill(ANNA, XENA).kill(ANNA, YURI).game_counts(2).start(2).decide(2).end().ledger()
    assert ledger.rounds[0].counts(ANNA).kills == 2
    assert ledger.rounds[0].counts(ANNA).double_kills == 1
    assert ledger.is_complete


def test_round_counts_for_the_players_in_its_line_ups() -> None:
    ledger = live().decide(1).start(2, team1=(ANNA, BEN)).kill(CARL, XENA).decide(2).ledger()
    assert [line_of(ledger, who).rounds_played for who in TEAM1] == [2, 2, 1]


def test_restore_drops_later_rounds_and_the_open_one() -> None:
    builder = live().kill(ANNA, XENA).decide(1).start(2).kill(ANNA, YURI).decide(2).start(3).kill(ANNA, ZOE)
    ledger = builder.restore(1).ledger()
    assert line_of(ledger, ANNA).kills == 1
    assert [record.number for record in ledger.rounds] == [1]
    assert ledger.open_round is None


def test_suicides_caused_by_a_restore_are_removed_from_the_kept_round() -> None:
    builder = live().kill(ANNA, XENA).decide(1)
    for player_id in (*TEAM1, YURI, ZOE):
        builder.at(60_000).die(player_id)
    ledger = builder.at(60_000).leave(ANNA).at(60_400).restore(1).ledger()
    assert {player_id: count.deaths for player_id, count in ledger.live_counts().items() if count.deaths} == {XENA: 1}
    assert line_of(ledger, ANNA).kast_rounds == 1


def test_earlier_suicide_of_a_kept_round_stays() -> None:
    ledger = live().die(ANNA).decide(1).at(60_000).restore(1).ledger()
    assert line_of(ledger, ANNA).deaths == 1


def test_restore_reopens_an_ended_map() -> None:
    builder = live().kill(ANNA, XENA).decide(1).start(2).kill(ANNA, YURI).decide(2).end()
    ledger = builder.restore(1).start(2).kill(BEN, ZOE).decide(2).end().ledger()
    assert [line_of(ledger, who).kills for who in (ANNA, BEN)] == [1, 1]
    assert ledger.is_complete


def test_round_played_again_replaces_the_earlier_one() -> None:
    ledger = live().kill(ANNA, XENA).start(1).kill(BEN, XENA).decide(1).end().ledger()
    assert [line_of(ledger, who).kills for who in (ANNA, BEN)] == [0, 1]
    assert ledger.torn_rounds == [1], "lines of a restore are missing"


def test_round_that_began_after_a_lost_restore_is_the_first_one_played_again() -> None:
    builder = live().kill(ANNA, XENA).decide(1).start(2).decide(2).start(3).kill(ANNA, YURI)
    builder.add(ev.LogGap, 5).start(3).kill(BEN, ZOE).add(ev.RoundRestored, 1, 1, 0, is_inferred=True)
    ledger = builder.decide(2).ledger()
    assert [record.number for record in ledger.records()] == [1, 2]
    assert [line_of(ledger, who).kills for who in (ANNA, BEN)] == [1, 1]
    assert sorted(ledger.torn_rounds) == [2, 3], "rounds that were played before stay incomplete"


def test_round_that_lost_lines_itself_is_dropped_by_a_lost_restore() -> None:
    builder = live().decide(1).start(2).decide(2).start(3).kill(ANNA, YURI).add(ev.LogGap, 5)
    ledger = builder.add(ev.RoundRestored, 1, 1, 0, is_inferred=True).start(2).kill(BEN, ZOE).decide(2).ledger()
    assert [(line.player_id, line.kills) for line in ledger.lines() if line.kills] == [(BEN, 1)]
    assert sorted(ledger.torn_rounds) == [2, 3]


def test_rounds_before_a_score_that_may_be_of_a_new_match_are_marked() -> None:
    ledger = live().decide(1).start(2).add(ev.RoundRestored, 1, 1, 0, is_inferred=True, may_be_new=True).ledger()
    assert sorted(ledger.torn_rounds) == [1, 2]


def test_player_seen_again_is_in_all_rounds_since_lost_lines() -> None:
    builder = live().decide(1)
    for number in (2, 3):
        builder.add(ev.RoundStarted, number, (ANNA,), TEAM2, Side.CT, unseen=(BEN, CARL)).decide(number)
    ledger = builder.add(ev.LineupGrown, BEN, Team.TEAM1, was_unseen=True).ledger()
    assert [line_of(ledger, who).rounds_played for who in TEAM1] == [3, 3, 1]
    assert line_of(ledger, BEN).kast_rounds == 3
    assert ledger.is_complete


def test_rounds_in_which_a_leaver_may_have_been_are_marked() -> None:
    builder = live().decide(1)
    for number in (2, 3):
        builder.add(ev.RoundStarted, number, (ANNA, CARL), TEAM2, Side.CT, unseen=(BEN,)).decide(number)
    ledger = builder.add(ev.LineupShrunk, CARL).add(ev.LineupShrunk, BEN).ledger()
    assert sorted(ledger.torn_rounds) == [2, 3]
    assert line_of(ledger, BEN).rounds_played == 1


def test_round_in_which_a_player_returns_without_a_line_is_marked() -> None:
    ledger = live().decide(1).start(2, team1=(ANNA,)).add(ev.LineupGrown, BEN, Team.TEAM1, is_return=True).ledger()
    assert ledger.torn_rounds == [2]
    assert line_of(ledger, BEN).rounds_played == 2


def test_combat_before_the_start_of_a_round_is_not_of_that_round() -> None:
    builder = EventBuilder().live(1).kill(ANNA, XENA).start(2).kill(BEN, ZOE).decide(2)
    assert [(line.player_id, line.kills) for line in builder.ledger().lines() if line.kills] == [(BEN, 1)]


def test_rounds_whose_winners_do_not_lead_to_the_score_are_found() -> None:
    builder = live()
    for number, team1, team2 in ((1, 1, 0), (2, 1, 0), (3, 2, 0)):
        builder.start(number) if number > 1 else builder
        builder.add(ev.RoundDecided, number, Team.TEAM1, Side.CT, RoundEndReason.CTS_WIN, team1, team2)
    ledger = builder.ledger()
    assert ledger.rounds_against((2, 0)) == [2]
    assert ledger.rounds_against((3, 0)) == [2, 3]
    assert ledger.rounds_against((4, 0)) == [2], "the fourth round is missing altogether"


def test_score_after_a_round_with_an_unknown_winner_is_not_compared() -> None:
    builder = live().add(ev.RoundDecided, 1, None, Side.CT, RoundEndReason.CTS_WIN, 0, 0).start(2)
    builder.add(ev.RoundDecided, 2, Team.TEAM1, Side.CT, RoundEndReason.CTS_WIN, 1, 1)
    assert builder.ledger().rounds_against((1, 1)) == []


def test_lower_round_number_drops_later_rounds() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).start(2).decide(2).start(1).decide(1).end().ledger()
    assert [record.number for record in ledger.rounds] == [1]
    assert line_of(ledger, ANNA).kills == 0


def test_deathmatch_without_rounds_has_one_implicit_round() -> None:
    builder = EventBuilder().live().kill(ANNA, XENA).kill(XENA, ANNA).kill(ANNA, XENA).die(ANNA).die(ANNA).end()
    ledger = builder.ledger(is_free_for_all=True)
    assert ledger.live_counts() == {ANNA: LiveCount(2, 3, 0), XENA: LiveCount(1, 2, 0)}
    assert ledger.is_complete
    assert {line.team for line in ledger.lines()} == {None}


def test_deathmatch_start_adds_its_line_up_to_the_open_round() -> None:
    ledger = EventBuilder().live().kill(ANNA, XENA).start(1).kill(ANNA, YURI).end().ledger(is_free_for_all=True)
    assert len(ledger.rounds) == 1
    assert line_of(ledger, ANNA).kills == 2
    assert line_of(ledger, ANNA).rounds_played == 1


def test_team_deathmatch_is_detected_by_respawns() -> None:
    ledger = live().kill(ANNA, XENA).kill(ANNA, XENA).kill(ANNA, XENA).decide(1, None).end().ledger()
    line = line_of(ledger, ANNA)
    assert (line.kills, line.triple_kills, line.first_kills, line.kast_rounds) == (3, 0, 0, 0)
    assert line_of(ledger, XENA).deaths == 3
    assert ledger.is_complete


@pytest.mark.parametrize(
    ("builder", "missing", "torn"),
    [
        pytest.param(EventBuilder().live(rounds_played=2).start(3).decide(3), [1, 2], [], id="log begins late"),
        pytest.param(live().add(ev.LogGap, 100).add(ev.LogGap, 100).decide(1), [], [1], id="gaps"),
        pytest.param(live().add(ev.ServerRestarted).add(ev.ServerRestarted).decide(1), [], [1], id="restarts"),
        pytest.param(live().decide(1).game_counts(2).add(ev.LogGap, 1).start(2), [], [2], id="gap between rounds"),
        pytest.param(live().decide(1).restore(3), [2, 3], [], id="restore to rounds that are not in the log"),
        pytest.param(live().kill(ANNA, XENA).decide(4), [2, 3], [1, 4], id="skipped numbers of decisions"),
        pytest.param(live().kill(ANNA, XENA).start(2), [], [1], id="lost decision before a start"),
        pytest.param(live().game_counts(2), [], [1], id="lost decision before game totals"),
        pytest.param(live().decide(1).game_counts(4), [2, 3], [], id="game totals of rounds that are not in the log"),
        pytest.param(live().decide(1).game_counts(2).kill(ANNA, XENA).decide(3), [2], [3], id="lost start of combat"),
        pytest.param(live().decide(1).game_counts(2).decide(2).end(), [], [2], id="lost start of a decision"),
        pytest.param(live().decide(1).end(is_complete=False), [], [1], id="lost end of the map"),
    ],
)
def test_rounds_with_lost_lines_are_marked(builder: EventBuilder, missing: list[int], torn: list[int]) -> None:
    ledger = builder.ledger()
    assert (ledger.missing_rounds, ledger.torn_rounds, ledger.is_complete) == (missing, torn, False)


def test_what_rounds_with_lost_lines_have_is_counted() -> None:
    undecided, unstarted = live().kill(ANNA, XENA).start(2), live().decide(1).game_counts(2).kill(ANNA, XENA).decide(3)
    assert [line_of(builder.ledger(), ANNA).kills for builder in (undecided, unstarted)] == [1, 1]
    assert [record.number for record in live().decide(1).game_counts(2).decide(2).end().ledger().rounds] == [1, 2]


def test_restore_to_before_the_loss_makes_the_map_complete_again() -> None:
    builder = live().decide(1).start(2).add(ev.ServerRestarted).decide(2).start(4)
    assert builder.ledger().missing_rounds == [3]
    assert builder.restore(1).ledger().is_complete


def test_repeated_or_stale_decision_changes_nothing() -> None:
    builder = live().decide(1, Team.TEAM2)
    before = builder.ledger()
    assert builder.decide(1, Team.TEAM1).ledger() == before
    closed = builder.game_counts(2).ledger()
    assert builder.decide(1).ledger() == closed
    started = builder.start(2).ledger()
    assert builder.decide(1).ledger() == started


def test_round_interrupted_by_the_end_of_the_map_is_kept() -> None:
    ledger = live().kill(ANNA, XENA).end().ledger()
    assert line_of(ledger, ANNA).kills == 1
    assert ledger.is_complete


def test_huge_round_number_does_not_create_a_huge_list() -> None:
    assert len(EventBuilder().live(rounds_played=10**12).ledger().missing_rounds) < 1000


def mvps_of(builder: EventBuilder, *players: str) -> list[int | None]:
    """Return the complete MVPs of players, None for those that are incomplete."""
    lines = [line_of(builder.ledger(), who) for who in players]
    return [line.mvps if line.are_mvps_complete else None for line in lines]


def counted(builder: EventBuilder, next_round: int, **totals: int) -> EventBuilder:
    """The game's own totals, of both teams."""
    ids = {"anna": ANNA, "ben": BEN, "carl": CARL, "xena": XENA, "yuri": YURI, "zoe": ZOE}
    return builder.game_counts(next_round, *(game_count(ids[name], mvps=totals.get(name, 0)) for name in ids))


def test_mvps_come_from_the_game_totals() -> None:
    builder = counted(live().decide(1), 2, anna=1)
    assert mvps_of(builder, ANNA, BEN, XENA) == [1, 0, 0]
    assert mvps_of(builder.start(2), ANNA, BEN, XENA) == [1, 0, 0], "the open round has no MVP yet"


def test_mvps_of_the_winners_are_unknown_if_the_mvp_of_the_last_round_was_not_reported() -> None:
    builder = counted(live().decide(1), 2, anna=1).start(2).decide(2, Team.TEAM2)
    assert mvps_of(builder, ANNA, BEN, XENA, YURI) == [1, 0, None, None]
    assert mvps_of(builder.end(), ANNA, BEN, XENA, YURI) == [1, 0, None, None]


def test_plugin_may_report_the_mvp_of_the_last_round_after_the_end() -> None:
    def builder() -> EventBuilder:
        return counted(live().decide(1), 2, anna=1).start(2).decide(2)

    assert mvps_of(builder().mvp(2, ANNA, 2).end(), ANNA, BEN) == [2, 0]
    assert mvps_of(builder().end().mvp(2, ANNA, 2), ANNA, BEN) == [2, 0]


def test_mvp_report_may_arrive_before_the_log_of_its_round() -> None:
    assert mvps_of(live().mvp(2, ANNA, 1).mvp(2, BEN, 1).decide(1).start(2).decide(2).end(), ANNA, BEN) == [1, 1]


def test_mvps_are_unknown_if_the_map_may_have_gone_on_after_the_last_round() -> None:
    builder = counted(live().decide(1), 2, anna=1)
    assert mvps_of(builder.end(is_complete=False), ANNA, XENA) == [None, None]
    again = counted(builder.restore(1).start(2).decide(2), 3, anna=2)
    assert mvps_of(again, ANNA, XENA) == [2, 0]


def test_after_the_end_only_the_mvp_of_the_last_round_is_accepted() -> None:
    assert mvps_of(live().decide(1).start(2).decide(2).end().mvp(1, ANNA, 1), ANNA) == [None]


def test_restore_drops_the_mvps_of_dropped_rounds() -> None:
    builder = live().decide(1).game_counts(2, game_count(ANNA, mvps=1)).start(2).decide(2)
    ledger = builder.game_counts(3, game_count(ANNA, mvps=2)).restore(1).ledger()
    assert line_of(ledger, ANNA).mvps == 1


def test_late_report_of_a_round_that_is_played_again_names_no_mvp_of_the_new_attempt() -> None:
    builder = live().decide(1).mvp(1, ANNA, 1).start(2).decide(2).restore(1).mvp(2, BEN, 1).start(2).decide(2).end()
    lines = [line_of(builder.ledger(), who) for who in (ANNA, BEN)]
    assert [(line.mvps, line.are_mvps_complete) for line in lines] == [(1, False), (0, False)]


def shots_of(builder: EventBuilder) -> tuple[int | None, int | None]:
    line = line_of(builder.ledger(), ANNA)
    return line.shots_fired, line.shots_hit


def test_repeated_shots_report_of_a_round_replaces_the_earlier_one() -> None:
    builder = live().shots(1, ANNA, 10, 2).decide(1).start(2).shots(2, ANNA, 5, 1).shots(1, ANNA, 12, 3)
    assert shots_of(builder.shots(2, ANNA, 5, 1)) == (17, 4)


@pytest.mark.parametrize(
    ("builder", "shots"),
    [
        pytest.param(live().shots(3, ANNA, 9, 2).decide(1).end(), (None, None), id="of a round without a record"),
        pytest.param(EventBuilder().live().shots(1, ANNA, 7, 1).start(1).decide(1).end(), (7, 1), id="early"),
        pytest.param(live().decide(1).end().shots(1, ANNA, 11, 4), (11, 4), id="after the end of the map"),
        pytest.param(live().shots(1, ANNA, 7, 1).add(ev.ShotsCounted, 1, 1, {}).decide(1).end(), (7, 1), id="empty"),
    ],
)
def test_early_and_late_reports_of_shots(builder: EventBuilder, shots: tuple[int | None, int | None]) -> None:
    assert shots_of(builder) == shots


def test_shots_are_none_if_a_round_was_not_reported() -> None:
    builder = live().shots(1, ANNA, 7, 1).decide(1).game_counts(2).start(2).decide(2)
    assert shots_of(builder) == (7, 1), "the report of the latest round may still be on its way"
    assert shots_of(builder.end()) == (None, None)


def test_restore_drops_the_shots_of_dropped_rounds() -> None:
    builder = live().shots(1, ANNA, 10, 2).decide(1).start(2).shots(2, ANNA, 50, 9).restore(1)
    assert shots_of(builder) == (10, 2)
    assert shots_of(builder.start(2).shots(2, ANNA, 3, 1)) == (13, 3)


def test_difference_from_the_game_is_recorded_and_not_corrected() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).game_counts(2, game_count(ANNA, kills=2, first_kills=1)).ledger()
    assert [(found.round_number, found.field) for found in ledger.discrepancies] == [(1, "kills")]
    assert line_of(ledger, ANNA).kills == 1
    assert ledger.is_complete


def test_restore_drops_differences_of_dropped_rounds() -> None:
    builder = live().decide(1).game_counts(2, game_count(ANNA, kills=1)).restore(0)
    assert builder.ledger().discrepancies == []


def test_incomplete_statistics_are_not_compared() -> None:
    builder = live().add(ev.LogGap, 5).decide(1).game_counts(2, game_count(ANNA, kills=1, mvps=1))
    ledger = builder.ledger()
    assert ledger.discrepancies == []
    assert line_of(ledger, ANNA).mvps == 1


def test_rounds_with_respawns_are_not_compared() -> None:
    builder = live().kill(ANNA, XENA).kill(ANNA, XENA).decide(1).game_counts(2, game_count(ANNA))
    assert builder.ledger().discrepancies == []


def test_game_totals_before_the_open_round_do_not_close_it() -> None:
    ledger = live().kill(ANNA, XENA).game_counts(1).ledger()
    assert ledger.open_round is not None
    assert ledger.is_complete


def test_uncertain_line_ups_of_a_round_that_is_played_again_are_marked() -> None:
    builder = live().decide(1).start(2).add(ev.RoundStarted, 2, (ANNA,), (XENA,), Side.CT, is_certain=False)
    assert builder.ledger().torn_rounds == [2]
