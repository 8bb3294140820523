"""Keep the data folder private: create files and folders without access for other users, whatever the umask is.

A data folder of an earlier version may be readable by other users; their access is then removed. A folder that does not
look like a data folder is never changed, because it may be a system folder or a home folder.
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
"""Name patterns of the files and folders that the service creates in its data folder."""

SETTINGS_NAME: Final = "matchpod.toml"
"""The name of the settings file. The operator chooses its mode. A folder with such a file counts as a data folder."""

_OTHERS: Final = 0o077


class SharedFolderError(Exception):
    """Other users can access the folder, and we may not change that. The message says why, and what to do."""


def create_folder(folder: Path) -> None:
    """Create a folder and missing parents, accessible by this user only. Existing folders are not changed."""
    # `mkdir(parents=True)` applies the mode to the last folder only; its parents would be accessible by everyone.
    for parent in (*reversed(folder.parents), folder):
        if not parent.is_dir():
            try:
                parent.mkdir(FOLDER_MODE)
            except FileExistsError:
                if not parent.is_dir():  # if it is a folder, another process has just created it
                    raise


def make_data_folder(folder: Path) -> list[Path]:
    """Create the data folder, or remove other users' access to an existing data folder; return the changed paths.

    Raise SharedFolderError if others can access it, and it belongs to another user, is for all users, or contains only
    files that are not Matchpod's. Raise OSError if it cannot be created.
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
    """Open a file and return its descriptor. If the file does not exist, create it with access for this user only."""
    return os.open(path, flags | os.O_CREAT, FILE_MODE)


def is_open_to_others(path: Path) -> bool:
    """True if all users can read or change the file. That also needs access to all of its parent folders.

    Access for a group is fine, because services read files that belong to root. False if the file does not exist.
    """
    try:
        file = path.resolve(strict=True)
        is_open = file.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH)
        return bool(is_open) and all(folder.stat().st_mode & stat.S_IXOTH for folder in file.parents)
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that the names of new files survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_is_ours(folder: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise SharedFolderError(
            f"belongs to another user (uid {status.st_uid}), and other users can access it; use a new folder inside it,"
            f" or run as its owner: chmod 700 {folder}"
        )
    if status.st_mode & stat.S_ISVTX:
        raise SharedFolderError("is a folder for all users; use a new folder for Matchpod only")
    names = os.listdir(folder)
    if names and not any(_is_own(name) or name == SETTINGS_NAME for name in names):
        raise SharedFolderError(
            "contains files that are not Matchpod's, and other users can access it; use a folder for Matchpod only, or"
            f" run: chmod 700 {folder}"
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
    """Remove other users' access to a file or folder; False if they had no access, or if we may not change it."""
    with suppress(FileNotFoundError, PermissionError):  # a running service may delete the file at this moment
        mode = path.lstat().st_mode
        if mode & _OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE)
            return True
    return False
