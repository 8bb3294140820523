"""A small disk for the data folder, which can be filled up. Needs root and `mount`."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

SIZE_MB = 512
_FILLER = "filler"
_CHUNK = bytes(65_536)


class SmallDisk:
    """A context manager that mounts a small file system at a folder; the files stay there after it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fault: str | None = None
        """Why it could not be mounted."""

    def __enter__(self) -> SmallDisk:
        self._folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=700", "matchpod-chaos", str(self._folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.fault = None if done.returncode == 0 else f"cannot mount a small disk: {done.stderr.strip()}"
        except OSError as exc:
            self.fault = f"cannot mount a small disk: {exc}"
        return self

    def __exit__(self, *_: object) -> None:
        if self.fault is not None:
            return
        copy = self._folder.with_suffix(".copy")
        shutil.copytree(self._folder, copy, ignore=shutil.ignore_patterns(_FILLER, "*.sock"))
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)
        self._folder.rmdir()
        copy.rename(self._folder)

    async def fill(self, lasts_s: float) -> None:
        """Leave no free byte for a while."""
        filler = self._folder / _FILLER
        try:
            with suppress(OSError), filler.open("wb", buffering=0) as file:  # ends when the disk is full
                while True:
                    file.write(_CHUNK)
            await asyncio.sleep(lasts_s)
        finally:
            filler.unlink()
