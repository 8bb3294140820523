"""Set the wall clock of single processes, with a small library that is loaded into them. Needs a C compiler."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class SetClock:
    """The wall clock of one process; `environment` is for its start."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._library = folder / "set_clock.so"
        self.fault: str | None = None
        """Why the clock cannot be set."""
        self._set(0.0)
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.fault = "setting the clock of a process needs a C compiler"
            return
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.fault = f"the library that sets the clock cannot be compiled: {done.stderr[:300]}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Return variables for the start of a process; none if its clock cannot be set."""
        if self.fault is not None:
            return {}
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK_FILE": str(self._file)}

    async def step(self, by_s: float, lasts_s: float) -> None:
        """Set the clock forward or back, and right again after a while."""
        self._set(by_s)
        await asyncio.sleep(lasts_s)
        self._set(0.0)

    def _set(self, by_s: float) -> None:
        is_new = not self._file.exists()
        with self._file.open("wb" if is_new else "r+b") as file:  # in place: processes have mapped it
            file.write(struct.pack("=q", int(by_s * 1e9)))
