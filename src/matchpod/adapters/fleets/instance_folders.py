"""Run each server in its own folder, which `matchpod-gameserver` creates from a shared installation and removes again.

`matchpod-gameserver` runs as the user of the servers, who owns the folders. It locks the folder, and then becomes the
server by `exec`. The server keeps the lock, so a folder in use is never removed.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from matchpod.adapters.fleets.server_user import ServerUser, find_user

MAKE_S: Final = 120.0
"""Timeout in seconds for creating a folder. Programs and plugins of the game are copied to it."""

REMOVE_S: Final = 60.0
"""Timeout in seconds for removing folders."""

GAME_FOLDER: Final = "{game}"
"""The placeholder for the server's own folder; `matchpod-gameserver` replaces it."""

_log = logging.getLogger(__name__)


class InstanceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The shared installation that the folders link to, and the parent folder in which they are created."""

    install_dir: Path
    instances_dir: Path
    addons: tuple[str, ...] = ()
    """Addons that must be installed. If an addon is missing, the server is not started."""
    steamclient: Path | None = None
    """The path of SteamCMD's steamclient library; if None, the usual places are searched."""


class InstanceFolders:
    """Creates and removes the folders of a fleet's servers. The folder names begin with the owner."""

    def __init__(self, options: InstanceOptions, *, owner: str, user: str | None) -> None:
        self._options, self._owner, self._user = options, owner, user

    def start(
        self,
        spawn: Callable[..., subprocess.Popen[bytes]],
        server_id: str,
        command: Sequence[str],
        cfg: tuple[str, str],
    ) -> subprocess.Popen[bytes]:
        """Create the folder of a server and start the server there; raise OSError if that fails.

        `cfg` is the name and text of a file with console commands. `spawn` starts a process, as `Popen` does.
        """
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as report:
            try:
                child = spawn(
                    [*self._run(server_id, cfg[0], writing), "--", *command],
                    stdin=subprocess.PIPE,
                    pass_fds=(writing,),
                )
            finally:
                os.close(writing)
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(cfg[1].encode())
            # The pipe closes when the program executes the server, because the server does not inherit the writing end.
            waiting = select.poll()  # unlike select(), it supports descriptors above 1,023
            waiting.register(report, select.POLLIN)
            if not waiting.poll(MAKE_S * 1000):
                child.kill()
                child.wait()
                raise OSError(f"the folder of the server was not created within {MAKE_S:g} s")
            number, _, reason = report.read().decode(errors="replace").partition(" ")
        if reason:
            child.wait()
            raise OSError(int(number), reason) if int(number) else OSError(reason)
        return child

    def remove(self, server_id: str) -> None:
        """Remove the folder of a server that has ended. A failure is logged, not raised."""
        with suppress(PermissionError):  # perhaps only the servers' user may read the folder
            if not (self._options.instances_dir / f"{self._owner}.{server_id}").exists():
                return
        self._remove("--name", server_id)

    def remove_unused(self) -> None:
        """Remove all folders that no server uses. A crash of the machine or of a server leaves such folders."""
        self._remove()

    def _run(self, server_id: str, cfg_name: str, report: int) -> Iterator[str]:
        options = self._options
        yield from (*self._program("run-instance"), "--name", server_id, "--install-dir", str(options.install_dir))
        yield from ("--cfg", cfg_name, "--report-fd", str(report))
        if options.addons:
            yield from ("--addons", ",".join(options.addons))
        if options.steamclient is not None:
            yield from ("--steamclient", str(options.steamclient))

    def _program(self, command: str) -> tuple[str, ...]:
        # Isolated mode (-I) keeps the server's environment variables from changing how Python runs.
        program = (sys.executable, "-I", "-m", "matchpod_gameserver", command, "--owner", self._owner)
        return (*program, "--instances-dir", str(self._options.instances_dir))

    def _remove(self, *words: str) -> None:
        try:
            user: ServerUser | None = find_user(self._user) if self._user else None
            done = subprocess.run(
                [*self._program("remove-instances"), *words, "--log-format", "json"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                env=user.environment if user else {},
                timeout=REMOVE_S,
                check=False,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=user.groups if user else None,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            _log.warning("folders of servers not removed", extra={"error": str(exc)})
            return
        for line in done.stderr.splitlines():
            self._log(line)

    def _log(self, line: bytes) -> None:
        try:
            entry: Mapping[str, Any] = json.loads(line)
            level = logging.INFO if entry["level"] == "INFO" else logging.WARNING
            extra = {name: entry[name] for name in ("folder", "reason") if name in entry}
            _log.log(level, "%s", entry["message"], extra=extra)
        except (ValueError, KeyError, TypeError):
            _log.warning("folders of servers not removed", extra={"error": line.decode(errors="replace")})
