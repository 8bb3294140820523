"""Build and remove a separate folder (instance) for each game server, from an installation that all servers share.

The directories of an instance are real, so files that a server creates are only in its own folder. Most files are
symbolic links into the installation, which may be read-only. Some files are copies: those that the game and its plugins
write to, and those that they search for next to the program. A server keeps its folder locked while it runs, so a
folder without a lock was left by a crash.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from .log import FatalError

BINARIES = "game/bin/linuxsteamrt64"
PROGRAM = f"{BINARIES}/cs2"
CSGO = "game/csgo"
ADDONS = f"{CSGO}/addons"
PLUGINS = f"{ADDONS}/counterstrikesharp/plugins"
GAMEINFO = f"{CSGO}/gameinfo.gi"
STEAMCLIENT = ".steam/sdk64/steamclient.so"

COPIED = (ADDONS, f"{CSGO}/cfg", f"{CSGO}/maps/soundcache", BINARIES)
DOWNLOADED = f"{BINARIES}/steamapps"  # maps from the workshop: large, and never changed once downloaded
LEFT_OUT = frozenset(
    {
        *(f"{CSGO}/logs", f"{CSGO}/MatchZy", f"{CSGO}/MatchZyDataBackup", f"{CSGO}/MatchZy_Stats"),
        *(f"{CSGO}/MatchZyPlayerNames", f"{ADDONS}/counterstrikesharp/logs"),
    }
)
"""Folders that are not part of an instance. They exist if a server was once run in the installation itself."""

MAX_COPIED_BYTES = 1024 * 1024  # maximum size of a copied file in `game` or CSGO; larger files are game data
IN_USE = -1  # returned by `_lock` instead of a file descriptor
REMOVED, USED, FORBIDDEN = "removed", "in use", "of another user"
LOCK_WAIT_S = 5.0  # how long to wait while another process removes the folder of the same name
LOCK_RETRY_S = 0.05
FICLONE = 0x40049409  # ioctl that copies a file by sharing its blocks, if the file system supports it

_LEFT_OUT_FILE = re.compile(r".*\.dem|(backup|matchzy)_.*\.(txt|json)")
_GAME_LINE = re.compile(rb'([ \t]*)"?Game"?[ \t]+"?csgo"?[ \t]*(//.*)?(\r?\n?)')
_METAMOD_LINE = re.compile(rb'[ \t]*"?Game"?[ \t]+"?csgo/addons/metamod"?[ \t]*(//.*)?(\r?\n?)')


class InstanceError(FatalError):
    """The folder of a server could not be created. `number` is the errno, or 0 if there is none."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class Plan(NamedTuple):
    """The parameters of an instance: installation, parent folder, owner, name, and what it must contain."""

    install_dir: str
    instances_dir: str
    owner: str
    name: str
    addons: tuple[str, ...] = ()
    """Names of addons that must be installed. Each is a folder in ADDONS or PLUGINS."""
    steamclient: str = ""
    """Path of SteamCMD's steamclient.so. If empty, the usual places are searched."""

    @property
    def path(self) -> str:
        """The folder of the instance. Its name is `OWNER.NAME`."""
        return os.path.join(os.path.realpath(self.instances_dir), f"{self.owner}.{self.name}")


class Instance:
    """The folder of one server.

    It stays locked until this process, and all processes that inherited the lock, have ended.
    """

    def __init__(self, path: str, lock: int) -> None:
        self.path, self.lock = path, lock
        self.game = os.path.join(path, "game")
        self.cfg_dir = os.path.join(path, CSGO, "cfg")

    def enter(self, command: Sequence[str]) -> dict[str, str]:
        """Enter the folder, let child processes inherit its lock, and return environment variables for the command."""
        os.set_inheritable(self.lock, True)  # noqa: FBT003 (positional only)
        os.chdir(self.game)
        found = {"HOME": os.path.join(self.path, "home")}  # the game searches for Steam there
        if os.path.join(self.path, PROGRAM) in command:  # `cs2.sh` sets it itself
            libraries = (os.path.join(self.path, BINARIES), os.environ.get("LD_LIBRARY_PATH", ""))
            found["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
        return found

    def remove(self) -> None:
        """Remove the folder. Files that cannot be removed now are removed at the next start."""
        with suppress(OSError):
            os.chdir("/")
            _remove_tree(self.path)


def build(plan: Plan) -> Instance:
    """Create an instance. If that fails, remove the incomplete folder and raise InstanceError."""
    install_dir = os.path.realpath(plan.install_dir)
    steamclient = _check(plan, install_dir)
    try:
        instance = Instance(plan.path, _claim(plan.path))
        try:
            _fill(plan, install_dir)
            os.symlink(steamclient, os.path.join(plan.path, "home", STEAMCLIENT))
        except BaseException:
            instance.remove()
            os.close(instance.lock)
            raise
    except OSError as exc:
        where = exc.filename2 or exc.filename
        message = f"the folder {plan.path} of the server cannot be made: {exc.strerror}{f' ({where})' if where else ''}"
        raise InstanceError(message, exc.errno or 0) from exc
    return instance


def remove_unused(instances_dir: str, owner: str, name: str = "") -> dict[str, str]:
    """Remove the owner's instances that no server uses, or only the instance `name`; return the outcome per folder.

    An outcome is REMOVED, USED, FORBIDDEN, or the text of the error that prevented the removal.
    """
    found, instances_dir = {}, os.path.realpath(instances_dir)
    try:
        names = sorted(os.listdir(instances_dir))
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise InstanceError(f"the folder for instances {instances_dir} cannot be read: {exc.strerror}") from exc
    for folder in names:
        if folder == f"{owner}.{name}" if name else folder.startswith(f"{owner}."):
            state = _remove_if_unused(os.path.join(instances_dir, folder))
            if state:
                found[folder] = state
    return found


def _remove_if_unused(path: str) -> str:
    try:
        lock = _lock(path)
    except PermissionError:
        return FORBIDDEN
    except OSError as exc:
        return str(exc)
    if lock is None or lock == IN_USE:
        return "" if lock is None else USED
    try:
        if _has_process(path):
            return USED
        _remove_tree(path)
        return REMOVED
    except OSError as exc:
        return str(exc)
    finally:
        os.close(lock)


def with_metamod(gameinfo: bytes) -> bytes:
    """Return the text of `gameinfo.gi` in which the line that loads Metamod precedes the game's own line."""
    lines = gameinfo.splitlines(keepends=True)
    numbers = [number for number, line in enumerate(lines) if _GAME_LINE.fullmatch(line)]
    if not numbers:
        raise InstanceError(f"{GAMEINFO} has no line `Game csgo`, before which Metamod is loaded")
    if any(_METAMOD_LINE.fullmatch(line) for line in lines[: numbers[0]]):
        return gameinfo
    found = _GAME_LINE.fullmatch(lines[numbers[0]])
    assert found is not None
    line = found[1] + b"Game\tcsgo/addons/metamod" + (found[3] or b"\n")
    rest = [line for line in lines[numbers[0] :] if not _METAMOD_LINE.fullmatch(line)]
    return b"".join([*lines[: numbers[0]], line, *rest])


def _check(plan: Plan, install_dir: str) -> str:
    """Check the installation and return the path of steamclient.so.

    Raise InstanceError if a required file or addon is missing, or if `instances_dir` is inside the installation.
    """
    for part in (GAMEINFO, PROGRAM):
        if not os.path.isfile(os.path.join(install_dir, part)):
            raise InstanceError(f"there is no installation of the game in {plan.install_dir}: it has no file {part}")
    if f"{os.path.realpath(plan.instances_dir)}/".startswith(f"{install_dir}/"):
        raise InstanceError(f"the folder for instances {plan.instances_dir} is inside the installation")
    for addon in plan.addons:
        if not any(os.path.isdir(os.path.join(install_dir, folder, addon)) for folder in (ADDONS, PLUGINS)):
            raise InstanceError(
                f"the installation in {plan.install_dir} has no addon {addon}, neither in {ADDONS} nor in {PLUGINS}"
            )
    if os.path.isdir(os.path.join(install_dir, ADDONS, "counterstrikesharp")) and not _has_metamod(install_dir):
        raise InstanceError(f"{plan.install_dir}/{ADDONS} has counterstrikesharp, but not metamod, which loads it")
    places = (
        os.path.join(os.path.expanduser("~"), STEAMCLIENT),
        os.path.join(install_dir, "steamcmd/linux64/steamclient.so"),
        os.path.join(os.path.dirname(install_dir), "steamcmd/linux64/steamclient.so"),
    )
    for place in (plan.steamclient,) if plan.steamclient else places:
        if os.path.isfile(place):
            return os.path.realpath(place)
    looked = plan.steamclient or ", ".join(places)
    raise InstanceError(f"steamclient.so of SteamCMD (in its folder linux64) does not exist: {looked}")


def _fill(plan: Plan, install_dir: str) -> None:
    folders, files = [f"{CSGO}/logs", os.path.dirname(f"home/{STEAMCLIENT}")], []
    for relative, entry in _walk(install_dir, "game", ()):
        if entry is None:
            folders.append(relative)
        else:
            files.append((relative, entry, _is_copied(relative, entry)))
    _require_space(plan, sum(entry.stat().st_size for _, entry, is_copied in files if is_copied))
    for relative in folders:
        os.makedirs(os.path.join(plan.path, relative), exist_ok=True)
    for relative, entry, is_copied in files:
        target = os.path.join(plan.path, relative)
        if is_copied:
            _copy(entry.path, target)
        else:
            os.symlink(entry.path, target)
    if _has_metamod(plan.path):
        with open(os.path.join(plan.path, GAMEINFO), "r+b") as file:
            text = with_metamod(file.read())
            file.seek(0)
            file.write(text)


def _has_metamod(folder: str) -> bool:
    return os.path.isdir(os.path.join(folder, ADDONS, "metamod"))


def _require_space(plan: Plan, needed: int) -> None:
    space = os.statvfs(plan.path)
    free = space.f_bavail * space.f_frsize
    if free < needed:
        raise InstanceError(
            f"{os.strerror(errno.ENOSPC)}: {plan.instances_dir} has {free >> 20} MiB free, and a server needs "
            f"{(needed >> 20) + 1} MiB, besides its demos and backups",
            errno.ENOSPC,
        )


def _walk(
    install_dir: str, relative: str, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, os.DirEntry[str] | None]]:
    """Yield every folder with None and every file with its entry, except what an instance leaves out.

    Links to folders are followed, unless they lead to a parent folder.
    """
    status = os.stat(os.path.join(install_dir, relative))
    this = (status.st_dev, status.st_ino)
    if this in above:
        return
    yield relative, None
    with os.scandir(os.path.join(install_dir, relative)) as entries:
        for entry in entries:
            inner = f"{relative}/{entry.name}"
            if entry.is_dir():
                if inner not in LEFT_OUT:
                    yield from _walk(install_dir, inner, (*above, this))
            elif entry.is_file() and not (relative == CSGO and _LEFT_OUT_FILE.fullmatch(entry.name)):
                yield inner, entry


def _is_copied(relative: str, entry: os.DirEntry[str]) -> bool:
    if os.path.dirname(relative) in ("game", CSGO):
        return entry.stat().st_size <= MAX_COPIED_BYTES or relative == GAMEINFO
    return relative.startswith(tuple(f"{folder}/" for folder in COPIED)) and not relative.startswith(f"{DOWNLOADED}/")


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as read, open(target, "xb") as written:
        mode = os.fstat(read.fileno()).st_mode
        try:
            fcntl.ioctl(written.fileno(), FICLONE, read.fileno())
        except OSError:
            shutil.copyfileobj(read, written, 1024 * 1024)
        os.fchmod(written.fileno(), mode & 0o777 | 0o600)


def _claim(path: str) -> int:
    """Create an empty folder and return its lock.

    If a crash has left a folder of this name, remove that folder first.
    """
    until_s = time.monotonic() + LOCK_WAIT_S
    while True:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        lock = _lock(path)
        if lock is None:
            if os.path.lexists(path) and not os.path.isdir(path):
                raise InstanceError(f"{path} must be the folder of a server, but it is a file: remove it")
            continue  # another process has removed the folder
        if lock != IN_USE and not os.listdir(path):
            return lock
        is_used = _has_process(path)
        if lock == IN_USE:
            if is_used or time.monotonic() >= until_s:
                break
            time.sleep(LOCK_RETRY_S)  # no process runs in the folder: another process is removing it
            continue
        if not is_used:
            _remove_tree(path)
        os.close(lock)
        if is_used:
            break
    raise InstanceError(f"the folder {path} is in use by another server")


def _lock(path: str) -> int | None:
    """Lock a folder and return the lock; IN_USE if another process has locked it, None if the folder does not exist."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path)):
            return lock
    except BlockingIOError:
        os.close(lock)
        return IN_USE
    except FileNotFoundError:
        pass
    os.close(lock)  # the folder was removed or replaced between opening and locking it
    return None


def _has_process(path: str) -> bool:
    """True if another process has its program or working directory in this folder, even without the lock."""
    own = str(os.getpid())
    for process in filter(str.isdigit, os.listdir("/proc")):
        for link in ("cwd", "exe"):
            with suppress(OSError):  # the process has ended, or belongs to another user
                if process != own and f"{os.readlink(f'/proc/{process}/{link}')}/".startswith(f"{path}/"):
                    return True
    return False


def _remove_tree(path: str) -> None:
    try:
        shutil.rmtree(path)
    except PermissionError:
        for folder, names, _ in os.walk(path):
            for name in names:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
        shutil.rmtree(path)
