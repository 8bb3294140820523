"""Keep a file in the data folder that belongs to its SQLite database, so that a copy of one without the other shows.

The file holds a token that is in the database too and changes from time to time. A copied file has another inode and
another time of change; only one of the two may differ, because some file systems have no stable inodes, and changing
the owner of a file sets its time.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from matchpod.adapters.private_files import open_private

PLACE_FILE: Final = "matchpod.place"
BACKUP: Final = "backup of "
"""How the text that a backup writes begins; the time follows."""
_MAX_BYTES: Final = 200
"""More than a token, or the text of a backup, needs."""


class PlaceFile:
    def __init__(self, folder: Path) -> None:
        self._path = folder / PLACE_FILE

    def read(self) -> str | None:
        """Return its token, or the text that a backup wrote; None if there is no file."""
        try:
            with self._path.open("rb") as file:
                return file.readline(_MAX_BYTES).decode(errors="replace").strip()
        except FileNotFoundError:
            return None

    def write(self, token: str) -> None:
        """Write a token durably. The file itself stays, and with it its inode."""
        descriptor = open_private(self._path, os.O_WRONLY)
        try:
            # One write of one block: there is never half a token. What is left of a longer line follows the first.
            os.pwrite(descriptor, token.encode() + b"\n", 0)
            os.ftruncate(descriptor, len(token) + 1)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def place(self) -> str:
        """Return the place to store in the database: the token, and properties that a copy of the file lacks."""
        status = self._path.stat()
        return f"{self.read()} {status.st_ino} {status.st_ctime_ns}"

    def is_at(self, place: str) -> bool:
        """True if the file has the token of this place and has not been copied."""
        token, *numbers = place.split()
        if self.read() != token:
            return False
        status = self._path.stat()
        return not numbers or [str(status.st_ino)] == numbers[:1] or [str(status.st_ctime_ns)] == numbers[1:]


def new_token() -> str:
    return secrets.token_hex(16)
