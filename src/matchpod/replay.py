"""Replay a recorded match from log files or recorded posts, with the same reader as for a live server.

A recording does not contain the settings of the match, so they are inferred: the match type from the `Game Over` lines,
and the series format as the shortest with enough maps. Log files are read in chunks, so files of any size need little
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from cs2_protocol.log_batches import LogPost, split_lines
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import GameOver, LoadingMap, Unknown, WorldTriggered
from cs2_protocol.post_order import read_in_order
from cs2_protocol.recorded_posts import RecordingError, detect_form, read_posts
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from matchpod.cs2.map_flow import MapPhase
from matchpod.cs2.match_reader import MatchReader

CHUNK_BYTES = 1 << 20
MAX_RECORDING_BYTES = 256 << 20
"""Maximum size in bytes of a file with recorded posts, which is read into memory at once. A match has a few
megabytes."""

SURVEY_LINES = 2000
"""Number of lines at the beginning of a file that are always parsed. In a server log, at least one of them is known."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURVEY_MARKERS = (b"Game Over: ", b"Loading map ", b"Match_Reloaded")
_MODES = {
    "competitive": MatchType.COMPETITIVE,
    "casual": MatchType.CASUAL,
    "scrimcomp2v2": MatchType.WINGMAN,
    "deathmatch": MatchType.DEATHMATCH,
    "retakes": MatchType.RETAKES,
    "custom": MatchType.CUSTOM,
}
_NOT_TEXT = {
    b"\xff\xfe": "is UTF-16 text; server logs are UTF-8, convert it first",
    b"\xfe\xff": "is UTF-16 text; server logs are UTF-8, convert it first",
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"PK": "is a zip archive; unpack it first",
}

Progress = Callable[[int], None]


class ReplayError(Exception):
    """A file cannot be replayed. The message contains the file's path and the reason."""


class Survey(msgspec.Struct):
    """What the first pass over the files finds out about the match."""

    lines: int = 0
    lines_known: int = 0
    modes: list[str] = []
    """Game modes of the maps that ended, in order."""
    is_map_over: bool = False


class Recording(msgspec.Struct, frozen=True):
    """One file of a match: log lines or log posts."""

    path: Path
    is_posts: bool
    size: int

    def lines(self, progress: Progress | None = None) -> Iterator[bytes]:
        """Yield the lines of a log file."""
        return split_lines(self._chunks(progress))

    def posts(self) -> Iterator[LogPost]:
        """Yield the posts of a recording. ReplayError if a line is invalid; the message says which."""
        try:
            yield from read_posts(self.path.read_bytes().removeprefix(_BYTE_ORDER_MARK))
        except RecordingError as exc:
            raise ReplayError(f"{self.path}: {exc}") from exc

    def _chunks(self, progress: Progress | None) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            if file.read(3) != _BYTE_ORDER_MARK:
                file.seek(0)
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
                if progress is not None:
                    progress(len(chunk))


def open_recording(path: Path) -> Recording:
    """Detect whether a file has log lines or recorded posts. ReplayError if it cannot be a recording."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise ReplayError(f"{path}: is a folder; give the log files in it")
        if not path.is_file():
            raise ReplayError(f"{path}: is not a regular file; save it to a file first, because it is read twice")
        with path.open("rb") as file:
            first = file.read(4096).removeprefix(_BYTE_ORDER_MARK)
    except FileNotFoundError:
        raise ReplayError(f"{path}: no such file") from None
    except OSError as exc:
        raise ReplayError(f"{path}: {exc.strerror or exc}") from exc
    if not first.strip():
        raise ReplayError(f"{path}: is empty")
    for magic, meaning in _NOT_TEXT.items():
        if first.startswith(magic):
            raise ReplayError(f"{path}: {meaning}")
    is_posts = detect_form(first) is not None
    if is_posts and size > MAX_RECORDING_BYTES:
        raise ReplayError(f"{path}: recorded posts must not be larger than {MAX_RECORDING_BYTES >> 20} MB")
    return Recording(path, is_posts, size)


def survey(recordings: Sequence[Recording], progress: Progress | None = None) -> Survey:
    """Find the maps that ended. ReplayError if a file has no known line of a server log."""
    found = Survey()
    for recording in recordings:
        before = found.lines_known
        reader = LineReader()
        lines = _lines_of_posts(recording) if recording.is_posts else recording.lines(progress)
        for number, raw in enumerate(lines):
            if number < SURVEY_LINES or any(marker in raw for marker in _SURVEY_MARKERS):
                _survey_line(found, reader, raw)
        if found.lines_known == before:
            raise ReplayError(f"{recording.path}: is not a Counter-Strike server log")
    return found


def _lines_of_posts(recording: Recording) -> Iterator[bytes]:
    return (line for new in read_in_order(recording.posts()) for line in new.lines)


def _survey_line(found: Survey, reader: LineReader, raw: bytes) -> None:
    at_ms, line = reader.read(raw)
    found.lines += 1
    if at_ms is not None and not isinstance(line, Unknown):
        found.lines_known += 1
    match line:
        case GameOver():
            found.modes.append(line.mode)
            found.is_map_over = True
        case LoadingMap():
            found.is_map_over = False
        case WorldTriggered(trigger="Match_Reloaded") if found.is_map_over:
            found.modes.pop()  # a backup was restored, so this end of the map does not count
            found.is_map_over = False
        case _:
            pass


def replay(
    recordings: Sequence[Recording],
    *,
    match_type: MatchType | None = None,
    series_format: SeriesFormat | None = None,
    progress: Progress | None = None,
) -> MatchReader:
    """Read all files and return the reader with the whole match."""
    found = survey(recordings, progress)
    kind = match_type or _match_type(found.modes)
    formats = [series_format] if series_format else _formats(kind, len(found.modes))
    readers: list[MatchReader] = []
    for candidate in formats:
        settings = GameSettings(match_type=kind, maps=("",), series_format=candidate)
        readers.append(_read(recordings, settings, progress))
        if _maps_ended(readers[-1]) >= len(found.modes):
            break
    # Shorter formats come first, so if several readers have equally many ended maps, `max` returns the shortest format.
    reader = max(readers, key=_maps_ended)
    if all(played.status is MapStatus.UPCOMING for played in reader.match.maps):
        raise ReplayError("no map went live in these files, so there is no match to show")
    return reader


def _maps_ended(reader: MatchReader) -> int:
    return sum(played.is_finished for played in reader.match.maps)


def _match_type(modes: list[str]) -> MatchType:
    return _MODES.get(modes[0], MatchType.CUSTOM) if modes else MatchType.COMPETITIVE


def _formats(kind: MatchType, maps_ended: int) -> list[SeriesFormat]:
    if not kind.has_series:
        return [SeriesFormat.BO1]
    fitting = [candidate for candidate in SeriesFormat if candidate.length >= maps_ended]
    if not fitting:
        raise ReplayError(
            f"these files have {maps_ended} maps, but a series has at most 5; give the files of one series"
        )
    return fitting


def _read(recordings: Sequence[Recording], settings: GameSettings, progress: Progress | None) -> MatchReader:
    reader = MatchReader.create(settings, 0)
    for recording in recordings:
        if reader.interpreter.flow.phase is MapPhase.OVER:
            # The previous map is over, and this file may start after the line that loads the next map.
            reader.interpreter.restart()
        if recording.is_posts:
            for post in recording.posts():
                reader.read_post(post)
            reader.read_held(None)
        else:
            reader.read_file(recording.lines(progress))
    if (deadline_ms := reader.interpreter.flow.next_deadline_ms()) is not None:
        reader.accept_unconfirmed_end(deadline_ms)
    return reader
