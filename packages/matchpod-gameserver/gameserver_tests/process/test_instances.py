"""Game servers in folders of their own, under Agones and without it, as real processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gameserver_tests.game_folder import METAMOD_LINE, fingerprint, make_installation
from gameserver_tests.process.fake_sdk import NAME, FakeSdk
from gameserver_tests.process.test_wrapper import STAND_IN, Place
from gameserver_tests.process.wrapper_process import QUICK, TIMEOUT_S, WRAPPER, free_ports, oldest_python, wait_until

CS2 = "{game}/bin/linuxsteamrt64/cs2"
OWNER = ("--owner", "mp-1")
GAME = "#!/bin/sh\nset -e\ncat csgo/cfg/own.cfg\npwd\necho $HOME $LD_LIBRARY_PATH\n: >csgo/a.dem\nread line\n"
"""A game that shows what it has found, writes a demo, and runs until its input ends, which it has none of."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    make_installation(tmp_path / "cs2", f'#!/bin/sh\n: >csgo/a.dem\nexec {sys.executable} {STAND_IN} "$@"\n')
    (port,) = free_ports(1)
    with FakeSdk({"game-tcp": port, "game-udp": port}) as sdk:
        place = Place(tmp_path, sdk, port)
        place.load_map()
        yield place
        for wrapper in place.wrappers:
            if wrapper.popen.poll() is None:
                wrapper.stop()


def folders(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "instances").iterdir())


def in_folder(place: Place) -> tuple[str, ...]:
    folder = place.folder
    options = (f"--install-dir={folder}/cs2", f"--instances-dir={folder}/instances", "--addons=metamod,MatchZy")
    return (*options, "--", CS2, "{port}", str(folder), "+exec", "{cfg}")


def test_server_on_agones_runs_in_a_folder_of_its_own_that_is_removed_when_it_ends(place: Place) -> None:
    before = fingerprint(place.folder / "cs2")
    wrapper = place.start(*in_folder(place))
    place.wait_until_ready()
    own = place.folder / "instances" / f"agones.{NAME}"
    assert (own / "game/csgo/a.dem").exists()
    assert METAMOD_LINE in (own / "game/csgo/gameinfo.gi").read_text()
    (cfg,) = own.glob("game/csgo/cfg/matchpod_*.cfg")
    assert cfg.read_text() == f'rcon_password "{place.password}"\n'
    assert stat.S_IMODE(cfg.stat().st_mode) == 0o600
    assert Path(f"/proc/{wrapper.game_pid}/cwd").resolve() == own / "game"
    assert wrapper.stop() == 0
    assert folders(place.folder) == []
    assert fingerprint(place.folder / "cs2") == before


def test_folder_of_a_killed_server_is_removed_at_the_next_start_but_not_while_its_game_runs(place: Place) -> None:
    first = place.start(*in_folder(place))
    place.wait_until_ready()
    game = first.game_pid
    first.popen.send_signal(signal.SIGKILL)
    first.popen.wait(TIMEOUT_S)
    second = place.start(*in_folder(place))
    assert second.popen.wait(TIMEOUT_S) == 1
    assert f"the folder {place.folder}/instances/agones.{NAME} is in use by another server" in second.err
    os.kill(game, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{game}/cwd").exists(), "the game is gone")
    assert folders(place.folder) == [f"agones.{NAME}"]
    third = place.start(*in_folder(place))
    third.wait_for("game server started")
    assert f"folder of an ended game server removed  folder=agones.{NAME}" in third.err
    assert third.stop() == 0
    assert folders(place.folder) == []


SLOWLY = (
    *QUICK[:2],
    "import os, time; from matchpod_gameserver import instance; build = instance.build\n"
    "def wait(plan):\n    while not os.path.exists('go'): time.sleep(0.02)\n    return build(plan)\n"
    f"instance.build = wait\n{QUICK[2]}",
)
"""The program on a slow disk: the folder is made when there is a file `go`."""


def test_health_is_reported_while_the_folder_is_made_and_sigterm_ends_that(place: Place) -> None:
    wrapper = place.start(*in_folder(place), start=SLOWLY)
    wait_until(lambda: place.sdk.count("POST /health") >= 2, "health reported")
    assert "game server started" not in wrapper.err
    (place.folder / "go").touch()
    place.wait_until_ready()
    assert wrapper.stop() == 0
    (place.folder / "go").unlink()
    before = place.sdk.count("POST /health")
    wrapper = place.start(*in_folder(place), start=SLOWLY)
    wait_until(lambda: place.sdk.count("POST /health") > before, "health reported")
    assert wrapper.stop() == 0
    assert folders(place.folder) == []


def command(tmp_path: Path, *arguments: str, python: str = sys.executable) -> list[str]:
    return [python, str(WRAPPER), arguments[0], f"--instances-dir={tmp_path}/instances", *OWNER, *arguments[1:]]


def run(tmp_path: Path, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(tmp_path, *arguments, python=python), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_program_becomes_the_game_in_its_folder_which_is_removed_afterwards(tmp_path: Path) -> None:
    make_installation(tmp_path / "cs2", GAME)
    words = (f"--install-dir={tmp_path}/cs2", "--name=srv_1", "--cfg=own.cfg", "--", CS2)
    python = oldest_python() or sys.executable
    done = subprocess.run(
        command(tmp_path, "run-instance", *words, python=python),
        input='rcon_password "secret"\n',
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        timeout=TIMEOUT_S,
        check=False,
    )
    own = tmp_path / "instances/mp-1.srv_1"
    libraries = f"{own}/game/bin/linuxsteamrt64"
    assert done.stdout.splitlines() == ['rcon_password "secret"', f"{own}/game", f"{own}/home {libraries}"]
    assert done.returncode == 1, "it has no input"
    assert (own / "game/csgo/a.dem").exists()
    removed = run(tmp_path, "remove-instances", "--name=srv_1", python=python)
    assert (removed.returncode, folders(tmp_path)) == (0, [])
    assert "folder of an ended game server removed  folder=mp-1.srv_1" in removed.stderr


def test_failure_is_reported_as_number_and_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    make_installation(tmp_path / "cs2", GAME)
    (tmp_path / "full").write_text("")
    for name, program, number, sentence in (
        ("instances", "{game}/nothing", 2, "the program cannot be started: [Errno 2] No such file or directory: "),
        ("full", CS2, 17, "cannot be made: File exists"),
    ):
        reading, writing = os.pipe()
        words = [f"--instances-dir={tmp_path}/{name}", f"--install-dir={tmp_path}/cs2", "--name=srv_1"]
        done = subprocess.run(
            [*(sys.executable, str(WRAPPER), "run-instance", *OWNER, *words), f"--report-fd={writing}", "--", program],
            pass_fds=(writing,),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        os.close(writing)
        with os.fdopen(reading) as report:
            found, _, text = report.read().partition(" ")
        assert (done.returncode, int(found)) == (1, number), done.stderr
        assert sentence in text
        assert text in done.stderr.replace('\\"', '"')
    assert folders(tmp_path) == []


def test_folder_in_use_is_named_and_kept(tmp_path: Path) -> None:
    make_installation(tmp_path / "cs2", GAME)
    words = (f"--install-dir={tmp_path}/cs2", "--name=srv_1", "--", "sh", "-c", "cd /; echo started; exec sleep 600")
    with subprocess.Popen(command(tmp_path, "run-instance", *words), stdout=subprocess.PIPE, text=True) as game:
        assert game.stdout is not None
        assert game.stdout.readline() == "started\n"
        kept = run(tmp_path, "remove-instances", "--name=srv_1")
        assert (kept.returncode, folders(tmp_path)) == (1, ["mp-1.srv_1"])
        assert 'not removed  folder=mp-1.srv_1 reason="in use"' in kept.stderr
        game.kill()
    assert run(tmp_path, "remove-instances").returncode == 0
    assert folders(tmp_path) == []
