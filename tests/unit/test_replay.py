"""Replaying recordings, and rejecting files that are not recordings."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from cs2_protocol.game import Team
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat, Winner
from matchpod.cs2.match_reader import MatchReader
from matchpod.replay import MAX_RECORDING_BYTES, ReplayError, open_recording, replay
from tests.unit.cs2.server_log import MAP, ServerLog, competitive
from tests.unit.cs2.test_interpreter import restore


def won_map(team: Team = Team.TEAM1) -> ServerLog:
    """Return the log of a short map that the team wins; team1 starts as CT."""
    side = "CT" if team is Team.TEAM1 else "TERRORIST"
    return ServerLog().go_live().kill(1, 3).play(side).round_end(side).game_over()


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def replayed(folder: Path, *logs: ServerLog) -> MatchReader:
    """Replay one file per log."""
    return replay([open_recording(write(folder, f"{number}.log", log.file())) for number, log in enumerate(logs)])


def test_duplicate_posts_are_counted_once(tmp_path: Path) -> None:
    posts = won_map().posts()
    twice = posts + posts.rstrip("\n").rpartition("\n")[2] + "\n"
    reader = replay([open_recording(write(tmp_path, "a.jsonl", twice))])
    assert reader.match.settings.series_format is SeriesFormat.BO1


def test_unconfirmed_map_end_is_accepted_at_the_end_of_the_file(tmp_path: Path) -> None:
    log = ServerLog().go_live().play("CT").game_over(score=(13, 4))
    assert replayed(tmp_path, log).match.winner is Winner.TEAM1


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", b"\xef\xbb\xbf" + won_map().file().encode())
    assert replay([open_recording(path)]).lines_unknown == 0
    path = write(tmp_path, "a.jsonl", b"\xef\xbb\xbf" + won_map().posts().encode())
    assert replay([open_recording(path)]).match.winner is Winner.TEAM1


def test_series_format_fits_the_maps_in_several_files(tmp_path: Path) -> None:
    reader = replayed(tmp_path, won_map(), won_map(Team.TEAM2), won_map())
    assert reader.match.settings.series_format is SeriesFormat.BO3
    assert (reader.match.winner, len(reader.match.maps)) == (Winner.TEAM1, 3)


def test_second_file_without_a_loading_line_is_another_map(tmp_path: Path) -> None:
    second = won_map().file().split("\n")
    text = "\n".join(line for line in second if "Loading map" not in line)
    paths = [write(tmp_path, "1.log", won_map().file()), write(tmp_path, "2.log", text)]
    assert len(replay([open_recording(path) for path in paths]).match.maps) == 2


def test_map_that_was_restored_after_its_end_is_one_map(tmp_path: Path) -> None:
    log = ServerLog().go_live().play("CT").round_end("CT").game_over()
    restore(log, 1, 1, 0)
    log.round_start().play("TERRORIST").round_end("TERRORIST").game_over()
    reader = replayed(tmp_path, log)
    assert reader.match.settings.series_format is SeriesFormat.BO1
    assert reader.match.winner is Winner.TEAM1  # a match ends once: a live server would have been released by then


def test_match_type_is_taken_from_the_game_over_line(tmp_path: Path) -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,), dm_sub_mode=DmSubMode.FFA)
    log = ServerLog(ffa).load().join(1, 2).match_start(0).kill(1, 2).game_over("deathmatch", (0, 0))
    reader = replayed(tmp_path, log)
    assert reader.match.settings.match_type is MatchType.DEATHMATCH
    unknown_mode = ServerLog(competitive()).go_live().play("CT").game_over("gungameprogressive")
    reader = replayed(tmp_path, unknown_mode)
    assert reader.match.settings.match_type is MatchType.CUSTOM


def test_chat_that_imitates_a_game_over_line_does_not_set_the_match_type(tmp_path: Path) -> None:
    log = ServerLog().go_live()
    log.write(f'{log.token(1)} say "Game Over: deathmatch  {MAP} score 1:0 after 1 min"').round_end("CT").game_over()
    reader = replayed(tmp_path, log)
    assert reader.match.settings.match_type is MatchType.COMPETITIVE


def test_log_that_stops_in_the_middle_gives_an_unfinished_match(tmp_path: Path) -> None:
    log = ServerLog().go_live().play("CT", "CT")
    reader = replayed(tmp_path, log)
    assert reader.match.outcome is None
    assert reader.match.current_map.team1_score == 2


def test_progress_is_reported_in_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", won_map().file())
    read: list[int] = []
    replay([open_recording(path)], progress=read.append)
    assert sum(read) == 2 * path.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xff\xfeL\x00 \x00", "UTF-16"),
        (b"\xfe\xff\x00L", "UTF-16"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_error_names_the_format_of_a_file_that_is_not_text(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        open_recording(write(tmp_path, "a.log", content))


def test_file_that_cannot_be_opened_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no such file"):
        open_recording(tmp_path / "none.log")
    with pytest.raises(ReplayError, match="is a folder"):
        open_recording(tmp_path)
    with pytest.raises(ReplayError, match="x"):
        open_recording(write(tmp_path, "f", "x") / "x")
    with pytest.raises(ReplayError, match="is not a regular file"):
        open_recording(Path("/dev/null"))


@pytest.mark.parametrize("content", [b"hello\nworld\n", bytes(range(256)) * 100, b"x" * 1_000_000])
def test_file_without_any_log_line_is_rejected(tmp_path: Path, content: bytes) -> None:
    recording = open_recording(write(tmp_path, "a.log", content))
    with pytest.raises(ReplayError, match="is not a Counter-Strike server log"):
        replay([recording])


def test_error_about_an_invalid_recording_names_the_line(tmp_path: Path) -> None:
    text = won_map().posts() + "{not json}\n"
    with pytest.raises(ReplayError, match=rf"line {text.count(chr(10))}\b"):
        replay([open_recording(write(tmp_path, "a.jsonl", text))])


def test_recording_that_is_too_large_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", won_map().posts())
    os.truncate(path, MAX_RECORDING_BYTES)
    assert open_recording(path).size == MAX_RECORDING_BYTES
    os.truncate(path, MAX_RECORDING_BYTES + 1)
    with pytest.raises(ReplayError, match="must not be larger than 256 MB"):
        open_recording(path)


def test_log_without_a_live_map_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", ServerLog().load().join(1).file())
    with pytest.raises(ReplayError, match="no map went live"):
        replay([open_recording(path)])


def test_more_maps_than_a_series_can_have_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", won_map().file() * 6)
    with pytest.raises(ReplayError, match="have 6 maps"):
        replay([open_recording(path)])


def test_line_of_100_megabytes_needs_little_memory(tmp_path: Path) -> None:
    log = won_map().file().encode()
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.write(log[: len(log) // 2].rsplit(b"\n", 1)[0] + b"\n")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + log[len(log) // 2 :].split(b"\n", 1)[1])
    tracemalloc.start()
    reader = replay([open_recording(path)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.match.outcome is not None
    assert reader.lines_unknown == 1
    assert peak < 20_000_000
