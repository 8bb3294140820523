"""Keep the data folder to its owner: create files and folders without access for others, whatever the umask is.

A data folder of an earlier version may be readable by others; it is corrected. A folder that does not look like ours is
never changed: it may be a system folder, or the home of a person.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

OWN_NAMES: Final = (
    *("matchpod.sqlite3*", "matchpod.lock", "matchpod.place", "secret.key", "*.begun", "fleets"),
    "first-key.txt",
)
"""The names of what the service creates in its data folder."""

SETTINGS_NAME: Final = "matchpod.toml"
"""A file of the operator, who chooses its mode; a folder with it is a data folder too."""

_OTHERS: Final = 0o077


class SharedFolderError(Exception):
    """Others have access to a folder that we must not change; the message says why, and what to do."""


def create_folder(folder: Path) -> None:
    """Create a folder and its parents for us only; an existing one is not changed."""
    # mkdir gives its mode to the last folder only, and would create the others for everyone.
    for parent in (*reversed(folder.parents), folder):
        if not parent.is_dir():
            try:
                parent.mkdir(FOLDER_MODE)
            except FileExistsError:
                if not parent.is_dir():  # else another process has just created it
                    raise


def make_data_folder(folder: Path) -> list[Path]:
    """Create the data folder, or take the access of others to an existing one; return the paths that changed.

    Raise SharedFolderError if it belongs to another user, or has the files of others; OSError if it cannot be created.
    """
    create_folder(folder)
    status = folder.stat()
    changed = []
    if status.st_mode & _OTHERS:
        _check_is_ours(folder, status)
        folder.chmod(FOLDER_MODE)
        changed.append(folder)
    return [*changed, *(path for path in _own_paths(folder) if _make_private(path))]


def open_private(path: Path, flags: int) -> int:
    """Open a file for writing, and create it for us only; return its descriptor."""
    return os.open(path, flags | os.O_CREAT, FILE_MODE)


def is_open_to_others(path: Path) -> bool:
    """True if all users can read or change a file. Not if a folder on the way to it is closed to them.

    A group may have access: services read files that belong to root. False if there is no such file.
    """
    try:
        file = path.resolve(strict=True)
        is_open = file.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH)
        return bool(is_open) and all(folder.stat().st_mode & stat.S_IXOTH for folder in file.parents)
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Flush a folder: a new file name is durable only after that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_is_ours(folder: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise SharedFolderError(
            f"belongs to another user (uid {status.st_uid}), and others have access to it; use a new folder inside it,"
            f" or run as its owner: chmod 700 {folder}"
        )
    if status.st_mode & stat.S_ISVTX:
        raise SharedFolderError("is a folder for all users; use a new folder for Matchpod only")
    names = os.listdir(folder)
    if names and not any(_is_own(name) or name == SETTINGS_NAME for name in names):
        raise SharedFolderError(
            "has files of others, and others have access to it; use a folder for Matchpod only, or run:"
            f" chmod 700 {folder}"
        )


def _is_own(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in OWN_NAMES)


def _own_paths(folder: Path) -> Iterator[Path]:
    for name in sorted(os.listdir(folder)):
        if _is_own(name):
            path = folder / name
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from (Path(root) / name for root, folders, files in os.walk(path) for name in (*folders, *files))


def _make_private(path: Path) -> bool:
    """Take the access of others to a file or folder; False if they had none, or if it is not ours to change."""
    with suppress(FileNotFoundError, PermissionError):  # a file of the running service comes and goes
        mode = path.lstat().st_mode
        if mode & _OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE)
            return True
    return False
