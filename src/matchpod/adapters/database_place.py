"""Maintain a file beside the SQLite database that shows whether the database, or the data folder, was copied.

File and database store the same token, which a running service changes from time to time. The database also stores the
file's inode number and its time of change (ctime), which both differ in a copy. If only one of them differs, the file
does not count as a copy: some file systems have no stable inode numbers, and changing the owner of a file sets its
ctime.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from matchpod.adapters.private_files import open_private

PLACE_FILE: Final = "matchpod.place"
BACKUP: Final = "backup of "
"""Prefix of the text that a backup has instead of a token; the time of the backup follows."""
_MAX_BYTES: Final = 200
"""Maximum number of bytes to read from the file, more than a token or the text of a backup needs."""


class PlaceFile:
    def __init__(self, folder: Path) -> None:
        self._path = folder / PLACE_FILE

    def read(self) -> str | None:
        """Return the token in the file, or the text that a backup has instead; None if there is no file."""
        try:
            with self._path.open("rb") as file:
                return file.readline(_MAX_BYTES).decode(errors="replace").strip()
        except FileNotFoundError:
            return None

    def write(self, token: str) -> None:
        """Write a token durably. The existing file is overwritten, so it keeps its inode number."""
        descriptor = open_private(self._path, os.O_WRONLY)
        try:
            # A write within one disk block never leaves half a token. The rest of a longer old text is on line 2.
            os.pwrite(descriptor, token.encode() + b"\n", 0)
            os.ftruncate(descriptor, len(token) + 1)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def place(self) -> str:
        """Return the identity of this file, which is stored in the database: token, inode number and ctime."""
        status = self._path.stat()
        return f"{self.read()} {status.st_ino} {status.st_ctime_ns}"

    def is_at(self, place: str) -> bool:
        """True if the file is not a copy: it has the token and, if `place` has them, the inode number or ctime."""
        token, *numbers = place.split()
        if self.read() != token:
            return False
        status = self._path.stat()
        return not numbers or [str(status.st_ino)] == numbers[:1] or [str(status.st_ctime_ns)] == numbers[1:]


def new_token() -> str:
    return secrets.token_hex(16)
