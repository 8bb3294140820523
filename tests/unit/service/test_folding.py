"""Stored entries make the same match whoever reads them: at once, after a restart, from any snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
import pytest

from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch, StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.result import build_result, live_match
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.timers import Timers
from matchpod.cs2.log_clock import ZONE_STEP_MS
from matchpod.service.folding import (
    DETECTION,
    ENDED,
    HEARING_MS,
    LATE_MS,
    LOG,
    PRESENCE,
    REPORT,
    RESUMED,
    Fold,
    SnapshotVersionError,
    settings_of,
)
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings

PLAYERS = tuple(str(76561198000000001 + number) for number in range(4))
JOIN_MS = round(Timers().join_s * 1000)


class RecordedMatch(PlayedMatch):
    """Keeps everything the server sent as the entries that a service would have stored."""

    def __init__(self, settings: GameSettings) -> None:
        super().__init__(settings, seed=4)
        self.entries: list[RawEntry] = []

    def send_report(self, url: str, headers: object, body: bytes) -> None:
        self._store(REPORT, self.now_ms, b"{}", body)
        super().send_report(url, {}, body)

    def take_posts(self) -> None:
        before = len(self.posts)
        super().take_posts()
        for received_ms, headers, body in self.posts[before:]:
            kept = {name.lower(): value for name, value in headers.items()}
            self._store(LOG, received_ms, msgspec.json.encode(kept), body)

    def _store(self, kind: str, received_ms: int, headers: bytes, body: bytes) -> None:
        seq = len(self.entries) + 1
        self.entries.append(
            RawEntry(server_id="srv_1", seq=seq, kind=kind, received_ms=received_ms, headers=headers, body=body)
        )


@cache
def recorded() -> RecordedMatch:
    """A series of three maps, so that maps change in it, with a plugin that reports."""
    settings = mode_settings(
        MatchType.WINGMAN,
        maps=("de_vertigo", "de_nuke", "de_inferno"),
        series_format=SeriesFormat.BO3,
        max_rounds=4,
        team1=TeamRoster("Alpha", PLAYERS[:2]),
        team2=TeamRoster("Beta", PLAYERS[2:]),
    )
    played = RecordedMatch(settings)
    assert played.play()
    assert {entry.kind for entry in played.entries} == {LOG, REPORT}
    assert len(played.reader.match.maps) > 1
    return played


def row_of(settings: GameSettings, **fields: object) -> ServerRow:
    row = ServerRow(
        id="srv_1",
        game_id="game",
        org_id="org_1",
        region="eu",
        phase=ServerPhase.RUNNING,
        status=ServerStatus.RUNNING,
        settings=msgspec.json.encode(settings),
        log_token="l",
        report_token="r",
        plugin_match_id=27,
        created_at_ms=START_MS,
        allocated_at_ms=START_MS,
        next_at_ms=START_MS,
    )
    return msgspec.structs.replace(row, **fields)


def entry(kind: str, at_ms: int, body: bytes = b"") -> RawEntry:
    return RawEntry(server_id="srv_1", seq=1, kind=kind, received_ms=at_ms, headers=b"{}", body=body)


def fold_all(fold: Fold, entries: Iterable[RawEntry]) -> list[Effect]:
    return [effect for entry in entries for effect in fold.take(entry).effects]


def waiting(**fields: object) -> Fold:
    """A match whose players have not come."""
    return Fold.begin(row_of(recorded().settings, **fields), 1.0)


# --- the same match ---------------------------------------------------------------------------------------------------


def test_entries_make_the_match_that_was_played() -> None:
    played = recorded()
    fold = waiting()
    effects = fold_all(fold, played.entries)
    assert effects[-1] == EndMatch()
    assert [effect for effect in effects if isinstance(effect, StartPlay)] == [
        effect for effect in played.effects if isinstance(effect, StartPlay)
    ]
    assert build_result(fold.reader.match) == build_result(played.reader.match)


def test_a_match_stored_and_loaded_at_every_entry_goes_on_as_if_nothing_had_happened() -> None:
    entries = recorded().entries
    whole, again = waiting(), waiting()
    for one in entries:
        assert again.take(one) == whole.take(one)
        again = Fold.from_bytes(again.to_bytes())
    assert again == whole
    assert again.reader.match.phase is Phase.OVER


def test_picking_a_match_up_again_and_again_changes_nothing_but_who_listens() -> None:
    entries = recorded().entries
    whole, resumed = waiting(), waiting()
    for number, one in enumerate(entries):
        if number % 5 == 0:
            assert resumed.take(entry(RESUMED, one.received_ms)).effects == []
        resumed.take(one)
        whole.take(one)
        assert live_match(resumed.reader.match) == live_match(whole.reader.match)
    assert build_result(resumed.reader.match) == build_result(whole.reader.match)


def test_entries_that_are_sent_twice_count_once() -> None:
    fold = waiting()
    for one in recorded().entries:
        fold.take(one)
        if one.kind == LOG:
            fold.take(one)
    assert build_result(fold.reader.match) == build_result(recorded().reader.match)


def test_a_match_begins_with_what_its_row_knows() -> None:
    fold = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + 7, was_pending=True), 30.0)
    match = fold.reader.match
    assert (match.created_at_ms, match.allocated_at_ms, match.was_pending) == (START_MS, START_MS + 7, True)
    assert match.timers == Timers().at_speed(30.0)
    assert match.settings == recorded().settings


def test_a_server_that_took_half_of_the_time_to_join_gives_it_from_its_allocation() -> None:
    half_ms = round(Timers().at_speed(30.0).join_s * 500)
    in_time = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + half_ms), 30.0)
    late = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + half_ms + 1), 30.0)
    assert in_time.next_deadline_ms() == START_MS + 2 * half_ms
    assert late.next_deadline_ms() == START_MS + half_ms + 1 + 2 * half_ms


def test_who_is_on_the_server_is_asked_again_after_nobody_listened() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    assert not fold.reader.match.presence.is_doubtful
    fold.take(entry(RESUMED, START_MS))
    assert fold.reader.match.presence.is_doubtful
    names = dict.fromkeys(recorded().settings.roster, "x")
    fold.take(entry(PRESENCE, START_MS + 1, msgspec.json.encode(names)))
    assert fold.reader.match.presence.missing() == ()


def test_the_password_of_a_match_is_put_in_only_where_it_is_needed() -> None:
    row = row_of(recorded().settings)
    assert settings_of(row).server_password is None
    assert settings_of(row, "secret") == msgspec.structs.replace(recorded().settings, server_password="secret")


def test_a_snapshot_of_another_version_is_refused() -> None:
    for state in (b"", b"\xc1", msgspec.msgpack.encode({"reader": {}}), waiting().to_bytes()[:-20]):
        with pytest.raises(SnapshotVersionError):
            Fold.from_bytes(state)


# --- time -------------------------------------------------------------------------------------------------------------


def test_what_fell_due_before_an_entry_happens_before_it() -> None:
    (cancel,) = waiting().take(entry(LOG, START_MS + JOIN_MS, b"x\n")).effects
    assert isinstance(cancel, CancelMatch)
    assert cancel.reason == CancelReason.NO_PLAYERS_JOINED
    assert waiting().take(entry(LOG, START_MS + JOIN_MS - 1, b"x\n")).effects == []


def test_nothing_falls_due_while_nobody_had_the_time_to_listen() -> None:
    fold = waiting()
    back_ms = START_MS + JOIN_MS * 3
    assert fold.take(entry(RESUMED, back_ms)).effects == []
    assert fold.next_deadline_ms() == back_ms + HEARING_MS
    assert fold.take(entry(LOG, back_ms + HEARING_MS - 1, b"x\n")).effects == []
    assert fold.advance(back_ms + HEARING_MS - 1) == []
    (cancel,) = fold.advance(back_ms + HEARING_MS)
    assert isinstance(cancel, CancelMatch)


def test_who_came_while_nobody_listened_is_heard_before_the_alarm() -> None:
    played = recorded()
    late_ms = JOIN_MS * 2
    fold = waiting()
    fold.take(entry(RESUMED, START_MS + late_ms))
    # The server sends again what nobody took from it, all at once.
    for one in played.entries:
        if one.received_ms > START_MS + JOIN_MS // 2:
            break
        fold.take(msgspec.structs.replace(one, received_ms=START_MS + late_ms + 1_000))
    assert fold.reader.match.phase is not Phase.WARMUP
    assert fold.advance(START_MS + late_ms + HEARING_MS) == []


def test_an_entry_long_after_an_alarm_is_late_and_the_alarm_can_be_slept_through() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    due_ms = START_MS + JOIN_MS
    assert not fold.is_late(entry(LOG, due_ms + LATE_MS))
    late = entry(LOG, due_ms + LATE_MS + 1)
    assert fold.is_late(late)
    assert not fold.is_late(entry(RESUMED, late.received_ms))
    assert not fold.is_late(entry(ENDED, late.received_ms))
    fold.sleep_through(late)
    assert not fold.is_late(late)
    assert fold.next_deadline_ms() == late.received_ms + HEARING_MS
    assert fold.take(late).effects == []
    fold.advance(late.received_ms + HEARING_MS)
    assert fold.reader.match.phase is Phase.OVER
    assert not fold.is_late(entry(LOG, late.received_ms * 2)), "nothing is due any more"


def test_the_entry_of_its_end_says_nothing_about_a_match() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    before = fold.to_bytes()
    assert fold.take(entry(ENDED, START_MS + 2 * JOIN_MS)).effects == []
    assert fold.to_bytes() == before


def test_a_snapshot_from_before_there_were_timelines_is_refused() -> None:
    _, state = msgspec.msgpack.decode(Fold.begin(row_of(recorded().settings), 1.0).to_bytes())
    del state["reader"]["timeline"]
    with pytest.raises(SnapshotVersionError, match="no fingerprint"):
        Fold.from_bytes(msgspec.msgpack.encode(state))


def test_a_world_of_another_speed_keeps_its_own_time() -> None:
    speed = 1 / 8
    fold = Fold.begin(row_of(recorded().settings), speed)
    late = [
        msgspec.structs.replace(one, received_ms=START_MS + round((one.received_ms - START_MS) / speed))
        for one in recorded().entries
    ]
    fold_all(fold, late)
    # Its clock and ours are far apart in the end, which is no change of its time zone.
    assert late[-1].received_ms - recorded().entries[-1].received_ms > ZONE_STEP_MS
    assert [one.duration_s for one in fold.reader.match.maps] == [
        one.duration_s for one in recorded().reader.match.maps
    ]


def test_a_deadline_is_told_until_there_is_none() -> None:
    fold = waiting()
    assert fold.next_deadline_ms() == START_MS + JOIN_MS
    fold.advance(START_MS + JOIN_MS)
    assert fold.next_deadline_ms() is None
    assert fold.advance(START_MS + JOIN_MS * 9) == []


def test_what_one_witness_said_is_believed_when_the_server_says_no_more() -> None:
    played = recorded()
    fold = waiting()
    # Without the plugin and without the last words of the server.
    for one in played.entries:
        if one.kind != LOG:
            continue
        effects = fold.take(one).effects
        if any(isinstance(effect, EndMatch) for effect in effects):
            return  # the log alone had two witnesses
    assert fold.settle() == [EndMatch()]


def test_a_match_that_goes_on_has_nothing_to_settle() -> None:
    assert waiting().settle() == []


def test_detections_of_one_entry_are_all_taken() -> None:
    fold = waiting()
    for one in recorded().entries[: len(recorded().entries) // 2]:
        fold.take(one)
    seen = [
        {
            "SteamID": player,
            "PlayerName": "",
            "Source": "detection_module",
            "Kind": "Aimbot",
            "Summary": "",
            "Weapon": "",
        }
        for player in PLAYERS[:2]
    ]
    before = len(fold.reader.match.detections)
    reading = fold.take(entry(DETECTION, START_MS + 60_000, msgspec.json.encode({"Observations": seen})))
    assert len(reading.events) == len(fold.reader.match.detections) - before == 2
