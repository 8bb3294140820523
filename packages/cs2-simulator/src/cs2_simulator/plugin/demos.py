"""Record demos as MatchZy does, and post each demo once after its map.

A recording begins when a map goes live. A restored backup ends the recording and begins another. After the end of the
map and the broadcast delay, the last recording is stopped, and all recordings of the map are posted. A map change
truncates a running recording. The content of a file is invented, except for its first bytes and, if it is complete, its
last bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from cs2_simulator.outside import Outside, Upload
from cs2_simulator.play.arena import Arena
from cs2_simulator.plugin.faults import is_header
from cs2_simulator.plugin.series import Series
from cs2_simulator.plugin.settings import PluginSettings
from cs2_simulator.scenarios import DemoFault
from cs2_simulator.sim_settings import words_in

STOP_AFTER_DELAY_MS = 14_500
"""Milliseconds from the end of a map until its recording stops, in addition to the broadcast delay."""

UPLOAD_AFTER_STOP_MS = 15_000

BYTES_PER_S = 100_000
"""Bytes per second of a demo. With this value, a demo of 40 minutes has 240 MB; real demos have 100 to 400 MB."""

BYTES_PER_MB = 1_000_000

BEGIN = b"PBDEMS2\0"
"""The first bytes of every CS2 demo."""

END = b"DEM_Stop"
"""The last bytes of a complete file. A real demo ends with a packet of this name."""

_BLOCK_BYTES = 64 * 1024
_MIN_BYTES = 4096


class DemoFile(msgspec.Struct, frozen=True):
    """A recorded demo file. Its content depends only on its name and size."""

    name: str
    size: int
    is_complete: bool = True
    """False if a map change truncated the recording."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the content in blocks. It is never in memory as a whole."""
        noise = random.Random(self.name).randbytes(_BLOCK_BYTES)
        yield BEGIN
        left = self.size - len(BEGIN) - len(END)
        while left > 0:
            yield noise[:left]
            left -= _BLOCK_BYTES
        yield END if self.is_complete else b"\0" * len(END)


class _Recording:
    """A recording that is running, or that has stopped and waits to be posted."""

    def __init__(self, name: str, began_ms: int) -> None:
        self.name = name
        self.began_ms = began_ms
        self.stopped_ms: int | None = None
        self.is_complete = True

    def stop(self, now_ms: int, *, is_cut: bool = False) -> None:
        if self.stopped_ms is None:
            self.stopped_ms, self.is_complete = now_ms, not is_cut

    def file(self, *, speed: float, megabytes: float) -> DemoFile:
        """Return the file.

        At a higher simulation speed the file is smaller, so that its upload takes the same simulated time.
        """
        recorded_s = ((self.stopped_ms or self.began_ms) - self.began_ms) / 1000
        size = megabytes * BYTES_PER_MB if megabytes else recorded_s * BYTES_PER_S / speed
        return DemoFile(self.name, max(_MIN_BYTES, int(size)), self.is_complete)


class Demos:
    """The demos of one server."""

    def __init__(self, arena: Arena, settings: PluginSettings, outside: Outside) -> None:
        self._arena = arena
        self._settings = settings
        self._outside = outside
        self._has_broadcast = False
        self._recordings: list[_Recording] = []
        """Recordings of the map that is played; the last of them runs."""
        self._ending: list[_Recording] = []
        """Recordings of the map that has ended."""

    def map_loaded(self) -> None:
        """Start the broadcast if `tv_enable` was on when the map was loaded. Only then can demos be recorded."""
        self._has_broadcast = self._arena.variables.is_on("tv_enable")

    def map_closing(self) -> None:
        """Truncate the running recording."""
        for recording in (*self._recordings, *self._ending):
            recording.stop(self._arena.agenda.now_ms, is_cut=True)

    def start(self, series: Series) -> None:
        """Start a recording, because the map goes live or continues after a restore. A running recording ends."""
        now_ms, recordings = self._arena.agenda.now_ms, self._recordings
        for recording in recordings:
            recording.stop(now_ms)
        is_wanted = self._has_broadcast and self._settings.is_on("matchzy_demo_recording_enabled")
        if is_wanted and DemoFault.NO_RECORDING not in self._faults:
            recordings.append(_Recording(f"{self._name(series)}.dem", now_ms))

    def forget(self) -> None:
        """Discard the recordings, because the match was reset before its map ended."""
        self._recordings = []

    def map_ended(self, series: Series, *, rounds_played: int) -> None:
        """Schedule the end and the posts of this map's recordings. `series` must not have advanced to the next map."""
        ended, self._recordings = self._recordings, []
        self._ending = ended
        about = {
            "MatchId": str(series.match_id),
            "MapNumber": str(series.map_number),
            "RoundNumber": str(rounds_played),
        }
        agenda, delay_ms = self._arena.agenda, self._arena.variables.whole("tv_delay") * 1000 + STOP_AFTER_DELAY_MS
        agenda.call_in(delay_ms, lambda: self._stop_all(ended))
        agenda.call_in(delay_ms + UPLOAD_AFTER_STOP_MS, lambda: self._post_all(ended, about))

    @property
    def _faults(self) -> list[str]:
        return words_in(self._arena.variables.text("sim_demo_faults"))

    def _name(self, series: Series) -> str:
        now = datetime.fromtimestamp(self._arena.agenda.now_ms / 1000, UTC)
        return self._settings.formatted(
            "matchzy_demo_name_format",
            {
                "TIME": now.strftime("%Y-%m-%d_%H-%M-%S"),
                "MATCH_ID": str(series.match_id),
                "MAP": self._arena.map_name.rpartition("/")[2],
                "MAPNUMBER": str(series.map_number),
                "TEAM1": series.match.team1.name.replace(" ", "_"),
                "TEAM2": series.match.team2.name.replace(" ", "_"),
            },
        ).replace(" ", "_")

    def _stop_all(self, recordings: list[_Recording]) -> None:
        for recording in recordings:
            recording.stop(self._arena.agenda.now_ms)

    def _post_all(self, recordings: list[_Recording], about: dict[str, str]) -> None:
        variables = self._arena.variables
        speed, megabytes = variables.number("sim_speed") or 1.0, variables.number("sim_demo_mb")
        for recording in recordings:
            self._post(recording.file(speed=speed, megabytes=megabytes), about)

    def _post(self, file: DemoFile, about: dict[str, str]) -> None:
        """Post a file once. If a header, such as the file name, is not ASCII, nothing is sent, as in .NET."""
        url = self._settings.text("matchzy_demo_upload_url")
        if not url.startswith(("http://", "https://")) or DemoFault.NO_UPLOAD in self._faults:
            return
        values = {"FileName": file.name, **about}
        headers = {"Content-Type": "application/octet-stream"}
        headers |= {f"{prefix}-{name}": value for prefix in ("MatchZy", "Get5") for name, value in values.items()}
        name, value = (self._settings.text(f"matchzy_demo_upload_header_{part}").strip() for part in ("key", "value"))
        if name and value:
            headers[name] = value
        if not all(is_header(*header) for header in headers.items() if header[0] != "Content-Type"):
            return
        stops_after = file.size // 2 if DemoFault.CUT_UPLOAD in self._faults else None
        bytes_per_s = self._arena.variables.number("sim_demo_rate") * BYTES_PER_MB
        self._outside.upload(url, headers, Upload(file.size, file.blocks, stops_after, bytes_per_s))
