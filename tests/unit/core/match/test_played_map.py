"""One map: status, score, names, times, and the events applied to its ledger."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.match.played_map import MAX_NAMES, MapStatus, PlayedMap
from matchpod.core.model import GameSettings, Winner
from tests.unit.core.match_driver import ANN, BEN, deathmatch, duel, open_match


def upcoming(*events: ev.GameEvent, settings: GameSettings | None = None) -> PlayedMap:
    played = PlayedMap.upcoming(settings or duel(), 1)
    for event in events:
        played.apply(event)
    return played


def live(**changes: int | str | None) -> ev.MapLive:
    event = ev.MapLive(2_000, "de_nuke", 1_000, Side.T, "log name 1", "log name 2")
    return msgspec.structs.replace(event, **changes)


def live_map(*events: ev.GameEvent, settings: GameSettings | None = None) -> PlayedMap:
    return upcoming(live(), *events, settings=settings)


def decided(number: int, team1: int, team2: int) -> ev.RoundDecided:
    return ev.RoundDecided(9_000, number, Team.TEAM1, Side.T, RoundEndReason.TERRORISTS_WIN, team1, team2)


def kill() -> ev.Kill:
    return ev.Kill(8_000, ANN, BEN, "ak47", is_enemy=True)


def kills_of(played: PlayedMap) -> int:
    return sum(line.kills for line in played.ledger.live_counts().values())


def test_going_live_sets_name_start_time_and_side() -> None:
    played = live_map()
    assert (played.status, played.played_name) == (MapStatus.LIVE, "de_nuke")
    assert (played.started_at_ms, played.team1_side) == (1_000, Side.T)


def test_map_without_a_requested_name_has_that_of_the_server_if_only_at_its_end() -> None:
    played = PlayedMap.upcoming(msgspec.structs.replace(open_match(), maps=("",)), 1)
    played.apply(live(map_name=""))
    assert (played.name, played.played_name) == ("", None)
    played.apply(ev.MapEnded(9_000, "de_nuke", 13, 1))
    assert (played.name, played.played_name) == ("de_nuke", "de_nuke")


def test_team_names_are_those_of_the_newest_start() -> None:
    played = live_map()
    assert played.team_names == ("log name 1", "log name 2")
    played.apply(live(team1_name=None, team2_name=None))
    assert played.team_names == ("log name 1", "log name 2")
    played.apply(live(team1_name="log name 2", team2_name=None))
    assert played.team2_name is None  # not mixed: it would play against itself
    played.apply(ev.MapEnded(2, "de_mirage", 0, 1, team1_name="log name 2", team2_name="Cats"))
    assert played.team_names == ("log name 2", "Cats")


def test_nothing_counts_before_the_map_is_live() -> None:
    played = upcoming(kill(), decided(1, 1, 0), ev.MapEnded(9_000, "de_nuke", 13, 1), ev.RoundRestored(9_000, 3, 2, 1))
    assert (played.status, played.team1_score, played.last_event_at_ms) == (MapStatus.UPCOMING, 0, None)
    assert kills_of(played) == 0


def test_sides_and_pauses_are_tracked() -> None:
    played = live_map(ev.SidesSwapped(3_000, Side.CT), ev.Paused(3_000, "mp_pause_match"))
    assert (played.team1_side, played.is_paused) == (Side.CT, True)
    played.apply(ev.Unpaused(3_500, "mp_unpause_match"))
    assert not played.is_paused


def test_map_stays_paused_when_a_timeout_ends_during_a_pause() -> None:
    played = live_map(ev.Paused(3_000, "TimeOutTs"), ev.Paused(3_100, "mp_pause_match"))
    played.apply(ev.Unpaused(3_500, "TimeOutTs"))
    assert (played.is_paused, played.has_timeout) == (True, False)
    played.apply(ev.Unpaused(3_600, "mp_unpause_match"))
    assert not played.is_paused


def test_play_that_has_resumed_is_in_no_timeout() -> None:
    played = live_map(ev.Paused(3_000, "TimeOutTs"), ev.Unpaused(3_500, ""))
    assert not played.is_paused


def test_duration_is_not_negative_if_the_clock_was_set_back() -> None:
    played = live_map(ev.MapEnded(500, "de_nuke", 13, 7))
    assert played.duration_s == 0


def test_only_a_late_mvp_report_counts_after_the_end() -> None:
    played = live_map(ev.RoundStarted(7_000, 1, (ANN,), (BEN,), Side.T), decided(1, 1, 0))
    played.apply(ev.MapEnded(10_000, "de_nuke", 1, 0))
    for event in (kill(), decided(2, 9, 9), live(), ev.MvpNamed(11_000, 1, ANN, 1)):
        played.apply(event)
    assert (played.status, played.team1_score, kills_of(played)) == (MapStatus.FINISHED, 1, 0)
    assert [line.mvps for line in played.ledger.lines() if line.player_id == ANN] == [1]


def test_map_first_seen_mid_game_starts_with_its_current_score() -> None:
    played = live_map(ev.MapLive(0, "de_nuke", 0, Side.CT, rounds_played=4, team1_score=3, team2_score=1))
    assert (played.team1_score, played.team2_score, played.latest_round) == (3, 1, 4)


def test_restored_backup_reopens_a_finished_map() -> None:
    played = live_map(ev.MapEnded(60_000, "de_nuke", 13, 11), ev.RoundRestored(70_000, 20, 10, 10))
    assert (played.status, played.winner, played.finished_at_ms) == (MapStatus.LIVE, None, None)
    assert (played.team1_score, played.team2_score, played.latest_round) == (10, 10, 20)
    played.apply(ev.MapEnded(90_000, "de_nuke", 10, 13))
    assert (played.winner, played.duration_s) == (Winner.TEAM2, 89)


def test_latest_name_of_a_human_is_stored() -> None:
    played = upcoming(
        ev.PlayerConnected(1, ANN, "first", 1),
        ev.PlayerEntered(1, BEN, "ben", 2),
        ev.PlayerRenamed(2, ANN, "second"),
        ev.PlayerConnected(3, "BOT:Han", "Han", 3),
    )
    assert played.names == {ANN: "second", BEN: "ben"}


def test_names_are_updated_until_the_end() -> None:
    played = live_map(ev.ChatMessage(3_000, ANN, "ann", is_team_only=False, text="hi"))
    played.apply(ev.MapEnded(4_000, "de_nuke", 13, 1))
    played.apply(ev.PlayerRenamed(5_000, ANN, "later"))
    assert played.names == {ANN: "ann"}


def test_number_of_names_is_limited() -> None:
    played = upcoming()
    for number in range(MAX_NAMES + 10):
        played.remember_name(str(number), "x")
    played.remember_name("0", "known ones still change")
    assert len(played.names) == MAX_NAMES
    assert played.names["0"] == "known ones still change"


def test_canceled_live_map_ends_at_its_last_event() -> None:
    played = live_map(ev.Paused(31_000, "mp_pause_match"), kill())
    played.cancel()
    assert (played.status, played.finished_at_ms, played.duration_s) == (MapStatus.CANCELLED, 31_000, 30)
    assert not played.is_paused


def test_canceled_map_that_never_started_has_no_times() -> None:
    played = upcoming()
    played.cancel()
    assert (played.status, played.started_at_ms, played.finished_at_ms) == (MapStatus.CANCELLED, None, None)
    played.apply(live())
    assert played.status is MapStatus.CANCELLED


def test_finished_map_stays_finished_when_the_match_is_canceled() -> None:
    played = live_map(ev.MapEnded(60_000, "de_nuke", 13, 1))
    played.cancel()
    assert played.is_finished


# --- missing parts of the log -----------------------------------------------------------------------------------------


def started(number: int) -> ev.RoundStarted:
    return ev.RoundStarted(7_000, number, (ANN,), (BEN,), Side.T)


def gap() -> ev.LogGap:
    return ev.LogGap(8_000, 100)


def after(*happened: ev.GameEvent) -> tuple[bool, tuple[int, ...]]:
    """Whether a map is complete after these events, and its missing rounds."""
    played = live_map(*happened)
    return played.is_complete, played.missing_rounds


END = ev.MapEnded(9_500, "de_nuke", 2, 0)
TWO_ROUNDS = (started(1), decided(1, 1, 0), started(2), decided(2, 2, 0))


@pytest.mark.parametrize(
    ("happened", "is_complete", "missing"),
    [
        ((), True, ()),
        ((started(1), kill()), True, ()),
        ((*TWO_ROUNDS, END), True, ()),
        ((started(1), gap()), False, (1,)),
        ((started(1), gap(), decided(1, 1, 0), started(2), decided(2, 2, 0), END), False, (1,)),
        ((started(1), decided(1, 1, 0), gap()), False, (1,)),
        ((started(1), decided(1, 1, 0), gap(), started(2)), False, (1,)),
        ((started(1), decided(1, 1, 0), gap(), msgspec.structs.replace(started(2), is_cut=True)), False, (1, 2)),
        ((started(1), decided(1, 1, 0), msgspec.structs.replace(gap(), is_freeze=True)), False, (2,)),
        ((*TWO_ROUNDS, gap(), END), False, (2,)),
        ((started(1), decided(1, 1, 0), started(3)), False, (2,)),
        ((started(1), decided(1, 1, 0), decided(3, 2, 1)), False, (2, 3)),
        ((started(1), decided(1, 1, 0), END), False, (2,)),
        ((*TWO_ROUNDS, msgspec.structs.replace(END, team1_score=1, team2_score=1)), False, (2,)),
        ((started(1), decided(1, 1, 0), started(2), decided(2, 0, 2), started(3), decided(3, 2, 1)), False, (2, 3)),
        ((started(1), decided(1, 1, 0), msgspec.structs.replace(END, team1_score=1, is_complete=False)), False, (1,)),
    ],
    ids=[
        "nothing played",
        "open round",
        "all there",
        "loss in the open round",
        "loss in a round",
        "loss after a round",
        "loss before the freeze time",
        "loss of the start of the freeze time",
        "loss in the freeze time",
        "loss after the last round",
        "number skipped",
        "start lost",
        "other final score",
        "round that does not lead to its score",
        "last round lost",
        "end lost",
    ],
)
def test_missing_rounds(happened: tuple[ev.GameEvent, ...], *, is_complete: bool, missing: tuple[int, ...]) -> None:
    assert after(*happened) == (is_complete, missing)


def test_round_is_unknown_after_a_loss_until_the_next_score_or_start() -> None:
    played = live_map(started(5), gap(), started(5))
    assert (played.round_number, played.latest_round) == (None, None), "its number is only assumed"
    played.apply(decided(7, 4, 3))
    assert (played.round_number, played.latest_round) == (None, 7)
    played.apply(started(8))
    assert (played.round_number, played.latest_round) == (8, 8)


def test_round_is_known_again_by_the_statistics_of_the_game() -> None:
    played = live_map(gap(), ev.GameCounted(8_500, 4, ()))
    assert (played.round_number, played.latest_round) == (None, 3)
    played.apply(started(4))
    assert (played.round_number, played.latest_round) == (4, 4)


def test_map_whose_log_is_missing_altogether_is_incomplete() -> None:
    played = upcoming()
    played.end_without_result()
    assert (played.is_complete, played.missing_rounds) == (False, ())
    played.set_result(2, 1)
    assert played.missing_rounds == (1, 2, 3)


def test_restored_backup_drops_losses_of_later_rounds() -> None:
    restored = ev.RoundRestored(9_800, 1, 1, 0)
    assert after(*TWO_ROUNDS[:3], gap(), restored) == (True, ())


def test_deathmatch_has_no_missing_rounds() -> None:
    played = live_map(gap(), settings=deathmatch())
    assert (played.is_complete, played.missing_rounds) == (False, ())


def test_rounds_after_the_last_certain_score_stay_marked_when_the_map_is_over() -> None:
    played = live_map(decided(1, 1, 0), ev.LogGap(9_500, 100))
    for number in (2, 3, 4):
        played.apply(ev.RoundDecided(9_600, number, None, Side.T, RoundEndReason.TERRORISTS_WIN, 1, 0))
    played.apply(ev.MapEnded(9_900, "de_nuke", 1, 0, is_complete=False, is_winner_known=False))
    assert set(played.missing_rounds) >= {2, 3, 4}
    assert played.winner is None


# --- on which side team1 began ------------------------------------------------------------------------------------


def round_start(number: int, side: Side, *, is_certain: bool = True) -> ev.RoundStarted:
    return ev.RoundStarted(3_000, number, (ANN,), (BEN,), side, is_certain)


def test_start_side_is_that_of_the_first_round() -> None:
    played = live_map(round_start(1, Side.T), decided(1, 1, 0), ev.SidesSwapped(4_000, Side.CT))
    played.apply(round_start(2, Side.CT))
    assert (played.start_side, played.team1_side) == (Side.T, Side.CT)


def test_start_side_is_corrected_during_the_first_round_only() -> None:
    played = live_map(round_start(1, Side.T, is_certain=False))
    assert played.start_side is None
    played.apply(ev.SidesSwapped(4_000, Side.CT))
    assert played.start_side is Side.CT
