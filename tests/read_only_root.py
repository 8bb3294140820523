"""Run a command as in a hardened container: a read-only root, no capabilities, and a user that no file knows.

Called as `python read_only_root.py FOLDER UID COMMAND...` in a new user and mount namespace; only FOLDER can be
written. Standard library only, since it is started by its path.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

UID = 54321
"""A user without an entry in /etc/passwd."""

_MOUNT_SETATTR = 442  # the number of this system call on all machines
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MS_BIND = 4096
_READ_ONLY = 1


def hardened(folder: Path, *command: str, has_own_processes: bool = False) -> list[str]:
    """Return a command that runs another one so that only the folder can be written.

    With `has_own_processes` it is process 1 of a namespace of its own.
    """
    own = ["--pid", "--fork", "--kill-child", "--mount-proc"] if has_own_processes else []
    return [
        *("unshare", "--map-root-user", "--mount", *own, sys.executable, str(Path(__file__))),
        *(str(folder), str(UID), *command),
    ]


def missing_namespaces(folder: Path) -> str:
    """Return why this machine cannot run a command so; empty if it can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    command = hardened(folder, "true", has_own_processes=True)
    tried = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return f"this machine allows no namespaces: {tried.stderr.strip()[-200:]}" if tried.returncode else ""


def _mount_setattr(path: str, flags: int, *, sets: int = 0, clears: int = 0) -> None:
    attributes = struct.pack("QQQQ", sets, clears, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes)):
        raise OSError(ctypes.get_errno(), "mount_setattr failed", path)


def _main(folder: str, uid: str, command: Sequence[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(folder.encode(), folder.encode(), None, _MS_BIND, None):
        raise OSError(ctypes.get_errno(), "mount failed", folder)
    _mount_setattr("/", _AT_RECURSIVE, sets=_READ_ONLY)
    for path in (folder, "/proc"):  # the user of a new namespace is written there
        _mount_setattr(path, 0, clears=_READ_ONLY)
    # A user other than root loses all capabilities when it starts a program.
    os.execvp("unshare", ["unshare", "--user", f"--map-user={uid}", f"--map-group={uid}", *command])


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
