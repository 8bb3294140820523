"""Write the secrets of a game server to a `.cfg` file that only the server can read.

On a command line, all users of the machine could read them. The file is written by a shell that runs as the server's
user, not as root. This user owns the folder, and could replace the file with a symbolic link that root would follow
anywhere.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from matchpod.adapters.fleets.server_user import ServerUser

WRITE_S: Final = 10.0
"""Timeout in seconds for writing the file."""

_SCRIPT: Final = 'umask 077 && rm -f -- "$1" && set -C && cat > "$1"'


def cfg_name(server_id: str) -> str:
    """Return the name of a server's file, as the console command `exec` needs it."""
    return f"matchpod_{server_id}.cfg"


def cfg_text(commands: Mapping[str, str]) -> str:
    """Return the text of the file: a line per console command, with its value in quotes."""
    for value in commands.values():
        if '"' in value or not value.isprintable():
            raise ValueError("a value in a .cfg file may not contain quotes or unprintable characters")
    return "".join(f'{name} "{value}"\n' for name, value in commands.items())


def write_cfg(folder: Path, server_id: str, text: str, user: ServerUser | None) -> None:
    """Write the file of a server as this user; raise OSError if that fails."""
    done = subprocess.run(
        ["/bin/sh", "-c", _SCRIPT, "sh", str(folder / cfg_name(server_id))],
        input=text.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={},
        timeout=WRITE_S,
        check=False,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=user.groups if user else None,
    )
    if done.returncode != 0:
        raise OSError(f"the server's .cfg file cannot be written: {done.stderr.decode(errors='replace').strip()}")


def remove_cfg(folder: Path, server_id: str) -> None:
    """Delete the file of a server that has ended."""
    with suppress(OSError):
        (folder / cfg_name(server_id)).unlink(missing_ok=True)
