"""Stored entries always give the same match: live, after a restart, and from any snapshot."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache

import msgspec
import pytest

from cs2_protocol.log_clock import ZONE_STEP_MS
from cs2_simulator.scenarios import Scenario
from matchpod.core.effects import Effect, EndMatch, StartPlay
from matchpod.core.match.actions import ActionRequest, ActionType
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.servers.server_loss import SILENCE_MS
from matchpod.core.views.attention import Signals
from matchpod.core.views.progress import Stays
from matchpod.core.views.result import build_result, live_match
from matchpod.core.views.timeline_items import AssistItem, TimelineItem
from matchpod.service.match_log import fold as fold_module
from matchpod.service.match_log.entries import EntryKind, action_body
from matchpod.service.match_log.fold import MAX_STEP_MS, Fold, SnapshotVersionError, settings_of
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from tests.server_rows import server_row
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings

PLAYERS = tuple(str(76561198000000001 + number) for number in range(4))
JOIN_MS = round(Timers().join_s * 1000)


class RecordedMatch(PlayedMatch):
    """Records what the server sends as the entries that the service would store."""

    def __init__(self, settings: GameSettings, scenario: Scenario = Scenario.FULL_MATCH) -> None:
        super().__init__(settings, seed=4, scenario=scenario)
        self.entries: list[RawEntry] = []

    def send_report(self, url: str, headers: object, body: bytes) -> None:
        self._store(EntryKind.REPORT, self.now_ms, b"{}", body)
        super().send_report(url, {}, body)

    def receive_posts(self) -> None:
        before = len(self.posts)
        super().receive_posts()
        for received_ms, headers, body in self.posts[before:]:
            stored = {name.lower(): value for name, value in headers.items()}
            self._store(EntryKind.LOG, received_ms, msgspec.json.encode(stored), body)

    def _store(self, kind: str, received_ms: int, headers: bytes, body: bytes) -> None:
        seq = len(self.entries) + 1
        self.entries.append(
            RawEntry(server_id="srv_1", seq=seq, kind=kind, received_ms=received_ms, headers=headers, body=body)
        )


@cache
def recorded() -> RecordedMatch:
    """A series of up to three maps with plugin reports."""
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
    assert {entry.kind for entry in played.entries} == {EntryKind.LOG, EntryKind.REPORT}
    assert len(played.reader.match.maps) > 1
    return played


def row_of(settings: GameSettings, **fields: object) -> ServerRow:
    times = {"created_at_ms": START_MS, "allocated_at_ms": START_MS, "next_at_ms": START_MS}
    return server_row("srv_1", **({"settings": msgspec.json.encode(settings)} | times | fields))


def entry(kind: str, at_ms: int, body: bytes = b"") -> RawEntry:
    return RawEntry(server_id="srv_1", seq=1, kind=kind, received_ms=at_ms, headers=b"{}", body=body)


def fold_all(fold: Fold, entries: Iterable[RawEntry]) -> list[Effect]:
    return [effect for entry in entries for effect in fold.apply(entry).effects]


def new_fold(**fields: object) -> Fold:
    """A match that no player has joined."""
    return Fold.begin(row_of(recorded().settings, **fields), 1.0)


# --- the same match ---------------------------------------------------------------------------------------------------


def test_entries_give_the_match_that_was_played() -> None:
    played = recorded()
    fold = new_fold()
    effects = fold_all(fold, played.entries)
    assert effects[-1] == EndMatch()
    assert [effect for effect in effects if isinstance(effect, StartPlay)] == [
        effect for effect in played.effects if isinstance(effect, StartPlay)
    ]
    assert build_result(fold.match) == build_result(played.reader.match)


def test_match_waits_for_the_report_of_its_last_round_and_for_nothing_after_it() -> None:
    entries = recorded().entries
    last_report = max(one.seq for one in entries if b'"event":"round_end"' in one.body)
    complete, short = new_fold(), new_fold()
    fold_all(complete, entries)
    fold_all(short, [one for one in entries if one.seq != last_report])
    assert complete.is_over
    assert short.is_over
    assert (complete.awaits_reports, short.awaits_reports) == (False, True)
    fold_all(short, [entries[last_report - 1]])
    assert not short.awaits_reports


@pytest.mark.parametrize("scenario", [Scenario.RAGE_QUIT_REJOIN, Scenario.LEAVER, Scenario.LOADING_CRASH])
def test_who_came_and_left_is_known_after_every_entry(scenario: Scenario) -> None:
    played = RecordedMatch(recorded().settings, scenario)
    played.play()
    fold, expected, left = new_fold(), Stays(), set[str]()
    for entry in played.entries:
        fold.apply(entry)
        expected.update(fold.match, entry.received_ms, match_ms=fold.reader.match_ms(entry.received_ms))
        assert fold.stays == expected
        left.update(player for player, stay in expected.by_player.items() if stay.has_left)
    assert left


def test_snapshot_after_every_entry_changes_nothing() -> None:
    entries = recorded().entries
    whole, again = new_fold(), new_fold()
    for one in entries:
        assert again.apply(one) == whole.apply(one)
        again = Fold.load(again.dump())
    assert again == whole
    assert again.reader.match.phase is MatchPhase.OVER


def test_resuming_a_match_repeatedly_does_not_change_it() -> None:
    entries = recorded().entries
    whole, resumed = new_fold(), new_fold()
    for number, one in enumerate(entries):
        if number % 5 == 0:
            assert resumed.apply(entry(EntryKind.RESUMED, one.received_ms)).effects == []
        resumed.apply(one)
        whole.apply(one)
        assert live_match(resumed.reader.match) == live_match(whole.reader.match)
    assert build_result(resumed.reader.match) == build_result(whole.reader.match)


@pytest.mark.parametrize("later", [0, 1, 5])
def test_repeated_entries_count_once(later: int) -> None:
    """A sender repeats what was not acknowledged, although it may have been stored."""
    fold, entries = new_fold(), recorded().entries
    for number, one in enumerate(entries):
        fold.apply(one)
        if number >= later:
            fold.apply(entries[number - later])
    assert build_result(fold.match) == build_result(recorded().reader.match)


def test_match_begins_with_the_values_of_its_row() -> None:
    fold = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + 7, was_pending=True), 30.0)
    match = fold.match
    assert (match.created_at_ms, match.allocated_at_ms, match.was_pending) == (START_MS, START_MS + 7, True)
    assert match.timers == Timers().at_speed(30.0)
    assert match.settings == recorded().settings


def test_join_time_counts_from_the_allocation_if_starting_the_server_took_over_half_of_it() -> None:
    half_ms = round(Timers().at_speed(30.0).join_s * 500)
    in_time = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + half_ms), 30.0)
    late = Fold.begin(row_of(recorded().settings, allocated_at_ms=START_MS + half_ms + 1), 30.0)
    assert in_time.due_ms() == START_MS + 2 * half_ms
    assert late.due_ms() == START_MS + half_ms + 1 + 2 * half_ms


def test_caller_sets_the_time_to_join() -> None:
    settings = msgspec.structs.replace(recorded().settings, join_seconds=90)
    assert Fold.begin(row_of(settings), 30.0).due_ms() == START_MS + 3_000


@pytest.mark.parametrize(("gap_ms", "is_disturbed"), [(SILENCE_MS - 1, False), (SILENCE_MS, True)])
def test_silence_of_the_server_disturbs_the_time_to_join(*, gap_ms: int, is_disturbed: bool) -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.PRESENCE, START_MS, b"{}"))
    fold.apply(entry(EntryKind.OBSERVED, START_MS + gap_ms // 2))
    fold.apply(entry(EntryKind.DEADLINE, START_MS + gap_ms))
    assert (fold.match.disturbed_ms is not None) is is_disturbed


def test_long_silence_disturbs_no_time_to_join_that_begins_after_it() -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.PRESENCE, START_MS, b"{}"))
    fold.apply(entry(EntryKind.PRESENCE, START_MS + 10 * MAX_STEP_MS, b"{}"))
    assert fold.match.disturbed_ms == START_MS + MAX_STEP_MS


def test_replaced_server_disturbs_the_first_time_to_join() -> None:
    assert new_fold().match.disturbed_ms is None
    assert new_fold(log_from_seq=7).match.disturbed_ms == START_MS


def test_presence_is_doubtful_after_a_resume_and_completed_by_the_console_list() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    assert not fold.match.presence.is_doubtful
    fold.apply(entry(EntryKind.RESUMED, START_MS))
    assert fold.match.presence.is_doubtful
    names = dict.fromkeys(recorded().settings.roster, "x")
    fold.apply(entry(EntryKind.PRESENCE, START_MS + 1, msgspec.json.encode(names)))
    assert fold.match.presence.missing() == ()


def test_settings_contain_the_server_password_only_if_it_is_passed() -> None:
    row = row_of(recorded().settings)
    assert settings_of(row).server_password is None
    assert settings_of(row, "secret") == msgspec.structs.replace(recorded().settings, server_password="secret")


def test_invalid_snapshot_is_rejected() -> None:
    for state in (b"", b"\xc1", msgspec.msgpack.encode({"reader": {}}), new_fold().dump()[:-20]):
        with pytest.raises(SnapshotVersionError):
            Fold.load(state)


def test_snapshot_with_other_types_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    state = new_fold().dump()
    monkeypatch.setattr(fold_module, "fold_fingerprint", lambda: b"other types")
    with pytest.raises(SnapshotVersionError, match="fingerprint is"):
        Fold.load(state)


def test_snapshot_of_a_version_that_did_not_compress_is_read() -> None:
    fold = new_fold()
    assert Fold.load(zlib.decompress(fold.dump())) == fold


def test_ended_entry_does_not_change_the_match() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    before = fold.dump()
    assert fold.apply(entry(EntryKind.ENDED, START_MS + 2 * JOIN_MS)).effects == []
    assert fold.dump() == before


def test_snapshot_without_a_fingerprint_is_rejected() -> None:
    _, state = msgspec.msgpack.decode(zlib.decompress(Fold.begin(row_of(recorded().settings), 1.0).dump()))
    del state["reader"]["timeline"]
    with pytest.raises(SnapshotVersionError, match="no fingerprint"):
        Fold.load(msgspec.msgpack.encode(state))


def test_durations_are_in_game_time_at_any_speed() -> None:
    speed = 1 / 8
    fold = Fold.begin(row_of(recorded().settings), speed)
    late = [
        msgspec.structs.replace(one, received_ms=START_MS + round((one.received_ms - START_MS) / speed))
        for one in recorded().entries
    ]
    fold_all(fold, late)
    # At the end, the server's clock differs a lot from ours; this must not be taken for another time zone.
    assert late[-1].received_ms - recorded().entries[-1].received_ms > ZONE_STEP_MS
    assert [one.duration_s for one in fold.match.maps] == [one.duration_s for one in recorded().reader.match.maps]


def test_all_detections_of_an_entry_are_applied() -> None:
    fold = new_fold()
    for one in recorded().entries[: len(recorded().entries) // 2]:
        fold.apply(one)
    observations = [
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
    before = len(fold.match.detections)
    report = entry(EntryKind.DETECTION, START_MS + 60_000, msgspec.json.encode({"Observations": observations}))
    assert len(fold.apply(report).events) == len(fold.match.detections) - before == 2
    fold.apply(report)
    assert len(fold.match.detections) - before == 2, "a repeated report counts once"


# --- timelines of other versions ----------------------------------------------------------------------------------


def items_of_first_map(fold: Fold) -> list[TimelineItem]:
    return [one.item for one in fold.drain_timeline() if one.map_number == 1]


def folded_twice() -> tuple[list[TimelineItem], Fold]:
    """The items of the first map, and another fold that has them all pending."""
    folds = [Fold.begin(row_of(recorded().settings), 1.0) for _ in range(2)]
    for fold in folds:
        for entry in recorded().entries:
            fold.apply(entry)
    return items_of_first_map(folds[0]), folds[1]


def test_timeline_of_a_version_with_fewer_items_is_continued_after_its_last_one() -> None:
    items, fold = folded_twice()
    older = [item for item in items[:40] if not isinstance(item, AssistItem)]
    assert len(older) < 40
    stored = [msgspec.structs.replace(item, seq=seq) for seq, item in enumerate(older, 1)]
    last = stored[-1]
    fold.align_timeline(1, [(item.seq, msgspec.json.encode(item)) for item in stored])
    aligned = items_of_first_map(fold)
    rest = [msgspec.structs.replace(item, seq=0) for item in items[items.index(older[-1]) + 1 :]]
    assert [msgspec.structs.replace(item, seq=0) for item in aligned if item.seq > last.seq] == rest
    assert [item.seq for item in aligned][-len(rest) :] == list(range(last.seq + 1, last.seq + 1 + len(rest)))


def test_timeline_of_the_same_version_or_without_known_items_keeps_its_numbers() -> None:
    items, fold = folded_twice()
    fold.align_timeline(1, [(item.seq, msgspec.json.encode(item)) for item in items[:40]])
    fold.align_timeline(1, [(1, b"{}")])
    fold.align_timeline(1, [])
    assert items_of_first_map(fold) == items


def test_error_in_what_only_views_use_does_not_cost_the_entry(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def update(*_args: object, **_options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Stays, "update", update)
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for entry in recorded().entries:
        fold.apply(entry)
    assert fold.is_over
    assert set(caplog.messages) == {"match signals could not be updated"}


@pytest.mark.parametrize("kind", [EntryKind.ACTION, EntryKind.ACTION_SENT, EntryKind.ACTION_ANSWERED])
@pytest.mark.parametrize("body", [b'{"action":{"id":"action_1","type":"dance"}}', b'{"other":1}', b"[]", b"", b"\xff"])
def test_action_of_a_later_version_is_ignored(kind: EntryKind, body: bytes) -> None:
    """If it were set aside, it would count as a gap of the log."""
    fold = new_fold()
    assert fold_all(fold, [entry(kind, START_MS, body)]) == []
    assert fold.match.actions == {}


def test_action_answers_a_call_for_an_admin() -> None:
    fold = new_fold()
    fold.signals = Signals(called_ms=START_MS, call="Ann: !admin")
    fold_all(
        fold, [entry(EntryKind.ACTION, START_MS, action_body(ActionRequest(id="action_1", type=ActionType.PAUSE)))]
    )
    assert (fold.signals.called_ms, fold.signals.call) == (None, "")
