"""The folder of a server: what it has of its own, what it shares, and who may remove it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gameserver_tests.game_folder import (
    FILES,
    GAMEINFO,
    LEFT_BEHIND,
    METAMOD_LINE,
    PLUGINS,
    fingerprint,
    make_installation,
)
from matchpod_gameserver import instance
from matchpod_gameserver.command import main
from matchpod_gameserver.instance import (
    FORBIDDEN,
    REMOVED,
    USED,
    InstanceError,
    Plan,
    build,
    remove_unused,
    with_metamod,
)

OWN = "mp-1"
PROGRAM = "game/bin/linuxsteamrt64/cs2"


@pytest.fixture(autouse=True)
def _same_folder() -> Iterator[None]:
    """Return to the current folder: an instance is entered, and left for the root when it is removed."""
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return make_installation(tmp_path / "cs2", "#!/bin/sh\n")


def plan(installed: Path, name: str = "srv_1", owner: str = OWN, **changes: Any) -> Plan:
    return Plan(str(installed), str(installed.parent / "instances"), owner, name)._replace(**changes)


def names(installed: Path) -> list[str]:
    return sorted(path.name for path in (installed.parent / "instances").iterdir())


def test_all_folders_are_real_and_files_are_links_unless_they_are_written_to(installed: Path) -> None:
    made = build(plan(installed))
    own = Path(made.path)
    for parent, folders, _ in os.walk(own):
        assert os.access(parent, os.W_OK)
        assert not [name for name in folders if os.path.islink(os.path.join(parent, name))], parent
    files = {str(path.relative_to(own)) for path in own.rglob("*") if not path.is_dir()}
    steam = "steamcmd/linux64/steamclient.so"
    assert files == {*FILES, PROGRAM, "home/.steam/sdk64/steamclient.so"} - {steam}
    assert {name for name in files if (own / name).is_symlink()} == {
        "game/bin/linuxsteamrt64/steamapps/workshop/content/730/1/map.vpk",
        "game/core/pak01_000.vpk",
        "game/csgo/bin/linuxsteamrt64/libserver.so",
        "game/csgo/maps/de_nuke.vpk",
        "game/csgo/pak01_000.vpk",
        "home/.steam/sdk64/steamclient.so",
    }
    assert (own / "home/.steam/sdk64/steamclient.so").read_text() == FILES[steam]
    assert (own / "game/csgo/logs").is_dir()
    assert os.access(own / PROGRAM, os.X_OK)
    assert not set(LEFT_BEHIND) & files
    assert own.stat().st_mode & 0o777 == 0o700, "backups contain tokens"


def test_what_a_server_writes_is_not_written_into_the_installation(installed: Path) -> None:
    before = fingerprint(installed)
    own = Path(build(plan(installed)).path)
    for parent, _, files in os.walk(own):
        (Path(parent) / "new").write_text("new")
        for name in files:
            path = Path(parent) / name
            if not path.is_symlink():
                path.write_text("changed")
    remove_all(own)
    assert fingerprint(installed) == before


def remove_all(own: Path) -> None:
    instance._remove_tree(str(own))
    assert not own.exists()


def test_metamod_is_put_back_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    own = Path(build(plan(installed)).path)
    text = (own / "game/csgo/gameinfo.gi").read_text()
    assert text == GAMEINFO.replace("\t\t\tGame\tcsgo\n", f"{METAMOD_LINE}\t\t\tGame\tcsgo\n")
    plain = make_installation(tmp_path / "plain", "#!/bin/sh\n")
    instance._remove_tree(str(plain / "game/csgo/addons"))
    own = Path(build(plan(plain, "srv_2")).path)
    assert (own / "game/csgo/gameinfo.gi").read_text() == GAMEINFO


def test_line_of_metamod_comes_once_and_before_that_of_the_game() -> None:
    done = with_metamod(GAMEINFO.encode())
    assert with_metamod(done) == done
    late = GAMEINFO.replace("\t\t\tMod", f"{METAMOD_LINE}\t\t\tMod").encode()
    assert with_metamod(late) == done
    assert with_metamod(b'\t"Game"\t"csgo"\r\nrest') == b'\tGame\tcsgo/addons/metamod\r\n\t"Game"\t"csgo"\r\nrest'
    with pytest.raises(InstanceError, match="has no line `Game csgo`"):
        with_metamod(b"Game csgo_core\n")


@pytest.mark.parametrize(
    ("missing", "changes", "sentence"),
    [
        (PROGRAM, {}, f"there is no installation of the game in .*: it has no file {PROGRAM}$"),
        ("game/csgo/gameinfo.gi", {}, "it has no file game/csgo/gameinfo.gi$"),
        ("steamcmd/linux64/steamclient.so", {}, r"steamclient.so of SteamCMD \(in its folder linux64\) does not exist"),
        ("", {"steamclient": "/nowhere"}, "steamclient.so of SteamCMD .* does not exist: /nowhere$"),
        ("game/csgo/addons/metamod", {}, "has counterstrikesharp, but not metamod, which loads it$"),
        ("", {"addons": ("metamod", "Fun")}, "has no addon Fun, neither in game/csgo/addons nor in .*/plugins$"),
        (f"{PLUGINS}/MatchZy", {"addons": ("MatchZy",)}, "has no addon MatchZy"),
    ],
)
def test_what_is_missing_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch, missing: str, changes: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setenv("HOME", str(installed))
    if missing:
        path = installed / missing
        path.parent.chmod(0o755)
        path.unlink() if path.is_file() else instance._remove_tree(str(path))
    with pytest.raises(InstanceError, match=sentence):
        build(plan(installed, **changes))
    assert not (installed.parent / "instances").exists()


def test_folder_for_instances_inside_of_the_installation_is_refused(installed: Path) -> None:
    with pytest.raises(InstanceError, match="inside the installation"):
        build(plan(installed, instances_dir=str(installed / "game/instances")))


def test_full_disk_is_reported_before_anything_is_copied(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = os.statvfs(installed)
    full = os.statvfs_result([*space[:4], 0, *space[5:]])
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(
        InstanceError, match=r"^No space left on device: .* has 0 MiB free, and a server needs 1 MiB"
    ) as f:
        build(plan(installed))
    assert f.value.number == errno.ENOSPC
    assert names(installed) == []


def test_disk_that_becomes_full_meanwhile_leaves_nothing(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a file")

    monkeypatch.setattr(os, "symlink", fail)
    with pytest.raises(InstanceError, match=r"cannot be made: No space left on device \(a file\)$") as failed:
        build(plan(installed))
    assert failed.value.number == errno.ENOSPC
    assert names(installed) == []


def test_only_unused_folders_of_the_owner_are_removed(installed: Path) -> None:
    folder = installed.parent / "instances"
    live, left, other = build(plan(installed)), build(plan(installed, "srv_2")), build(plan(installed, owner="mp-10"))
    os.close(left.lock)
    os.close(other.lock)
    (folder / "notes").mkdir()
    (folder / f"{OWN}.txt").write_text("")
    assert remove_unused(str(folder), OWN) == {f"{OWN}.srv_1": USED, f"{OWN}.srv_2": REMOVED}
    assert names(installed) == [f"{OWN}.srv_1", f"{OWN}.txt", "mp-10.srv_1", "notes"]
    os.close(live.lock)
    assert remove_unused(str(folder), OWN, "srv_2") == {}
    assert remove_unused(str(folder), OWN, "srv_1") == {f"{OWN}.srv_1": REMOVED}
    assert remove_unused(str(folder / "nowhere"), OWN) == {}


def test_folder_of_another_user_is_reported(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(plan(installed))
    os.close(made.lock)

    def refuse(*_: object) -> int:  # root may open everything
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    assert remove_unused(str(installed.parent / "instances"), OWN) == {f"{OWN}.srv_1": FORBIDDEN}


def test_folder_that_cannot_be_removed_is_logged_and_keeps_no_other(
    installed: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("srv_1", "srv_2"):
        os.close(build(plan(installed, name)).lock)
    remove = shutil.rmtree

    def fail(path: str) -> None:
        if path.endswith("srv_1"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", fail)
    folder = installed.parent / "instances"
    assert main(["remove-instances", f"--instances-dir={folder}", f"--owner={OWN}"]) == 1
    assert names(installed) == [f"{OWN}.srv_1"]
    found = capfd.readouterr().err
    assert f"folder of an ended game server removed  folder={OWN}.srv_2" in found
    assert (
        f'folder of a game server not removed  folder={OWN}.srv_1 reason="[Errno 16] Device or resource busy' in found
    )


def test_folder_for_instances_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstanceError, match=r"folder for instances .*/file cannot be read: Not a directory$"):
        remove_unused(str(tmp_path / "file"), OWN)


def test_folder_that_is_being_removed_is_waited_for(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = build(plan(installed))

    def sleep(_: float) -> None:
        ended.remove()
        os.close(ended.lock)

    with monkeypatch.context() as patched:
        patched.setattr(instance, "LOCK_WAIT_S", 0.0)
        with pytest.raises(InstanceError, match="is in use by another server"):
            build(plan(installed))
    monkeypatch.setattr(time, "sleep", sleep)
    again = build(plan(installed))
    assert names(installed) == [f"{OWN}.srv_1"]
    assert (Path(again.path) / PROGRAM).exists()


@pytest.mark.parametrize("keeps", ["the lock", "its working folder"])
def test_folder_of_a_running_game_is_not_removed(installed: Path, keeps: str) -> None:
    made = build(plan(installed))
    folder = str(installed.parent / "instances")
    if keeps == "its working folder":
        fcntl.flock(made.lock, fcntl.LOCK_UN)  # as with a game that closes what it has inherited
    program = [sys.executable, "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, cwd=made.game, pass_fds=(made.lock,)) as game:
        os.close(made.lock)
        assert remove_unused(folder, OWN) == {f"{OWN}.srv_1": USED}
        with pytest.raises(InstanceError, match="is in use by another server"):
            build(plan(installed))
        game.communicate(b"\n")
    assert remove_unused(folder, OWN) == {f"{OWN}.srv_1": REMOVED}


def test_folder_that_a_crash_left_is_replaced_by_a_server_of_the_same_name(installed: Path) -> None:
    left = build(plan(installed))
    (Path(left.path) / "game/csgo/old.dem").touch()
    (Path(left.path) / "game/csgo/locked").mkdir(mode=0o000)
    os.close(left.lock)
    again = build(plan(installed))
    assert not (Path(again.path) / "game/csgo/old.dem").exists()
    again.remove()
    assert names(installed) == []


def test_file_with_the_name_of_the_folder_is_named(installed: Path) -> None:
    folder = installed.parent / "instances"
    folder.mkdir()
    (folder / f"{OWN}.srv_1").touch()
    with pytest.raises(InstanceError, match=rf"instances/{OWN}\.srv_1 must be the folder .* remove it$"):
        build(plan(installed))
    assert remove_unused(str(folder), OWN) == {}
    assert names(installed) == [f"{OWN}.srv_1"]


def test_links_to_folders_in_the_installation_become_folders_even_in_circles(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/own.dll").write_text("own")
    csgo = installed / "game/csgo"
    csgo.chmod(0o755)
    (csgo / "addons").chmod(0o755)
    (csgo / "addons/linked").symlink_to(tmp_path / "plugins")
    (csgo / "circle").symlink_to(csgo)
    (csgo / "broken").symlink_to("nowhere")
    own = Path(build(plan(installed)).path) / "game/csgo"
    assert not (own / "addons/linked").is_symlink()
    assert (own / "addons/linked/own.dll").read_text() == "own"
    assert not (own / "addons/linked/own.dll").is_symlink()
    assert not (own / "circle").exists()


def test_game_gets_a_home_and_its_libraries_if_it_is_started_itself(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib/more")
    made = build(plan(installed))
    try:
        libraries = f"{made.game}/bin/linuxsteamrt64:/lib/more"
        home = {"HOME": f"{made.path}/home"}
        assert made.enter(["sh", f"{made.game}/cs2.sh"]) == home
        assert made.enter(["start.sh", f"{made.path}/{PROGRAM}"]) == {**home, "LD_LIBRARY_PATH": libraries}
        assert os.getcwd() == made.game
        assert os.get_inheritable(made.lock)
    finally:
        made.remove()
