"""The wrapper as a real process, with a game and a stand-in for the SDK of Agones."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cs2_simulator.wire.rcon_bans import MIN_FAILURES
from gameserver_tests.process.fake_sdk import NAME, FakeSdk, SdkFault
from gameserver_tests.process.stand_in_game import ABANDONS_A_CHILD, IGNORES_QUIT, IGNORES_SIGTERM, NO_MIRROR
from gameserver_tests.process.wrapper_process import (
    QUICK,
    SECRET,
    SIMULATE,
    TIMEOUT_S,
    WRAPPER,
    Wrapper,
    free_ports,
    oldest_python,
    wait_until,
)
from matchpod_gameserver.game import MAX_REFUSED
from matchpod_gameserver.password import bootstrap_password
from simulator_tests.rcon_client import RconClient

STAND_IN = str(Path(__file__).parent / "stand_in_game.py")
LOOKS = 15
"""After this many looks at a server, any limit of the tests is over."""
IDLE = ("--idle-exit", "1")


class Place:
    """Where a test runs its wrapper: a folder, a free port for the game, and an SDK."""

    def __init__(self, folder: Path, sdk: FakeSdk, port: int) -> None:
        self.folder, self.sdk, self.port = folder, sdk, port
        self.password = bootstrap_password(SECRET, NAME)
        self.wrappers: list[Wrapper] = []

    def start(self, *arguments: str, start: tuple[str, ...] = QUICK) -> Wrapper:
        self.wrappers.append(Wrapper(self.folder, self.sdk.port, *arguments, start=start))
        return self.wrappers[-1]

    def stand_in(self, *flags: str, options: tuple[str, ...] = (), start: tuple[str, ...] = QUICK) -> Wrapper:
        """Start a stand-in for a game, whose map is loaded when `load_map` is called."""
        command = (sys.executable, STAND_IN, "{port}", str(self.folder), *flags)
        return self.start(*options, "--", *command, start=start)

    def load_map(self) -> None:
        (self.folder / "loaded").touch()

    def wait_until_ready(self) -> None:
        last = self.wrappers[-1]
        wait_until(lambda: self.sdk.count("POST /ready") or last.popen.poll() is not None, "ready reported")
        assert self.sdk.count("POST /ready"), last.err

    def wait_for_looks(self) -> None:
        """Wait until the wrapper has looked at the usage of its server so often that a limit would have ended it."""
        before = self.sdk.count("GET /gameserver")
        wait_until(lambda: self.sdk.count("GET /gameserver") > before + LOOKS, "the state was read")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (port,) = free_ports(1)
    with FakeSdk({"game-tcp": port, "game-udp": port}) as sdk:
        place = Place(tmp_path, sdk, port)
        yield place
        for wrapper in place.wrappers:
            if wrapper.popen.poll() is None:
                # Its group of processes ends with the grace period, so nothing is left after a failed test.
                wrapper.stop()


def test_ready_is_reported_only_when_the_map_is_loaded_and_health_all_the_time(place: Place) -> None:
    wrapper = place.stand_in()
    wait_until(lambda: wrapper.out.count("command status") >= 2, "two answers without a map")
    wait_until(lambda: place.sdk.count("POST /health") >= 2, "health reported while the map loads")
    assert place.sdk.count("POST /ready") == 0
    place.load_map()
    place.wait_until_ready()
    before = place.sdk.count("POST /health")
    wait_until(lambda: place.sdk.count("POST /health") > before + 1, "health reported after ready")
    assert place.sdk.count("POST /ready") == 1
    assert wrapper.out.count("password rejected") == 0
    wrapper.wait_for("game server ready  map=de_nuke")


def test_simulated_server_is_ready_after_its_slow_map_load_and_quits_on_request(place: Place) -> None:
    arguments = ("--speed", "30", "--scenario", "slow_map_load", "+changelevel", "de_mirage")
    wrapper = place.start("--", *SIMULATE, *arguments)
    place.wait_until_ready()
    wrapper.wait_for("game server ready  map=de_mirage")
    assert "waiting for the game server" in wrapper.err
    assert wrapper.stop() == 0
    assert f"127.0.0.1:{place.port} quit" in wrapper.err, "the game's own output is forwarded"
    assert "signal sent" not in wrapper.err
    assert "listening on" in wrapper.out


def test_server_whose_password_was_changed_is_ended_by_a_signal_after_one_attempt(place: Place) -> None:
    place.load_map()
    wrapper = place.stand_in()
    place.wait_until_ready()
    (place.folder / "password").write_text("the service's own")
    assert wrapper.stop() == 0
    assert "signal sent to game server  signal=SIGTERM" in wrapper.err
    assert wrapper.out.count("password rejected") == 1


def test_game_that_does_not_mirror_packets_becomes_ready(place: Place) -> None:
    place.load_map()
    place.stand_in(NO_MIRROR)
    place.wait_until_ready()


def test_stubborn_game_is_killed_when_the_grace_period_is_over(place: Place) -> None:
    place.load_map()
    wrapper = place.stand_in(IGNORES_QUIT, IGNORES_SIGTERM, options=("--grace-period", "1"))
    place.wait_until_ready()
    began_s = time.monotonic()
    assert wrapper.stop() == 128 + signal.SIGKILL
    assert time.monotonic() - began_s >= 1
    assert wrapper.out.count("command quit") == 1
    assert "SIGTERM ignored" in wrapper.out
    assert not Path(f"/proc/{wrapper.game_pid}").exists()


def test_game_that_was_never_reached_by_rcon_is_ended_by_a_signal(place: Place) -> None:
    wrapper = place.start("--", "sleep", "1000")
    wrapper.wait_for("waiting for the game server")
    assert wrapper.stop() == 0
    assert "signal=SIGTERM" in wrapper.err


@pytest.mark.parametrize(("script", "code"), [("exit 0", 1), ("kill -SEGV $$", 139)])
def test_exit_of_the_game_is_passed_on_and_never_a_success(place: Place, script: str, code: int) -> None:
    wrapper = place.start("--", "sh", "-c", script)
    assert wrapper.popen.wait(TIMEOUT_S) == code
    assert "ERROR game server ended" in wrapper.err


def test_output_of_the_game_is_forwarded_unchanged(place: Place) -> None:
    wrapper = place.start("--", "sh", "-c", r"printf 'a\377\033[1m{B}\n\nend'; printf 'e\376' >&2; exit 3")
    assert wrapper.popen.wait(TIMEOUT_S) == 3
    assert (place.folder / "out").read_bytes() == b"a\xff\x1b[1m{B}\n\nend"
    assert b"e\xfe" in (place.folder / "err").read_bytes()


def test_game_starts_with_default_signals_no_input_and_its_own_group(place: Place) -> None:
    # Not in a shell, which would unblock signals itself.
    wrapper = place.start("--", "cat", "/proc/self/status", "/proc/self/stat", "-")
    wrapper.popen.wait(TIMEOUT_S)
    *status, stat = wrapper.out.splitlines()
    fields = dict(line.split(":\t", 1) for line in status)
    assert int(fields["SigBlk"], 16) == 0
    # Python ignores SIGPIPE; a game that inherited this would not end when the reader of its output does.
    assert int(fields["SigIgn"], 16) & 1 << (signal.SIGPIPE - 1) == 0
    pid, *_, group = stat.split()[:5]
    assert group == pid


def test_sdk_may_start_after_the_wrapper(tmp_path: Path) -> None:
    sdk_port, port = free_ports(2)
    (tmp_path / "loaded").touch()
    wrapper = Wrapper(tmp_path, sdk_port, "--", sys.executable, STAND_IN, "{port}", str(tmp_path))
    wrapper.wait_for("waiting for the Agones SDK")
    with FakeSdk({"default": port}, port=sdk_port) as sdk:
        wait_until(lambda: sdk.count("POST /ready"), "ready reported")
        assert wrapper.stop() == 0


@pytest.mark.parametrize("fault", [SdkFault.ERROR, SdkFault.HANG, SdkFault.DROP])
def test_faults_of_the_sdk_are_survived(place: Place, fault: SdkFault) -> None:
    place.load_map()
    place.sdk.faults["/gameserver"] = fault
    wrapper = place.stand_in()
    wrapper.wait_for("waiting for the Agones SDK")
    place.sdk.faults = {"/ready": fault, "/health": fault}
    wrapper.wait_for("/ready")
    wrapper.wait_for("/health")
    assert place.sdk.requests == ["GET /gameserver"] * place.sdk.count("GET /gameserver")
    place.sdk.faults = {}
    place.wait_until_ready()
    wait_until(lambda: place.sdk.count("POST /health"), "health reported")
    assert wrapper.stop() == 0


@pytest.mark.parametrize("state", ["RequestReady", "Allocated"])
def test_ready_is_not_reported_again_if_only_the_answer_was_lost(place: Place, state: str) -> None:
    place.load_map()
    place.sdk.state_after_ready = state
    place.sdk.faults["/ready"] = SdkFault.LOST_ANSWER
    wrapper = place.stand_in()
    wrapper.wait_for("game server ready")
    assert place.sdk.count("POST /ready") == 1


def test_no_sdk_within_the_limit_is_one_sentence(tmp_path: Path) -> None:
    (sdk_port,) = free_ports(1)
    wrapper = Wrapper(tmp_path, sdk_port, "--sdk-timeout", "0.1", "--", *SIMULATE)
    assert wrapper.popen.wait(TIMEOUT_S) == 1
    last = wrapper.err.splitlines()[-1]
    assert "ERROR waited 0.1 s for the Agones SDK: GET /gameserver at 127.0.0.1:" in last
    assert "Connection refused" in last


def test_program_that_does_not_exist_is_one_sentence(place: Place) -> None:
    wrapper = place.start("--", "no-such-game", "-port", "{port}")
    assert wrapper.popen.wait(TIMEOUT_S) == 1
    assert wrapper.err.count("\n") == 1
    assert "ERROR the program `no-such-game` cannot be started: No such file or directory" in wrapper.err


def test_request_to_end_while_waiting_for_the_sdk_is_followed(tmp_path: Path) -> None:
    (sdk_port,) = free_ports(1)
    wrapper = Wrapper(tmp_path, sdk_port, "--", *SIMULATE)
    wrapper.wait_for("waiting for the Agones SDK")
    assert wrapper.stop() == 0


def test_game_that_loads_no_map_in_time_is_ended(place: Place) -> None:
    wrapper = place.stand_in(options=("--start-timeout", "3"))
    assert wrapper.popen.wait(TIMEOUT_S) == 1
    assert "ERROR waited 3 s for the game server: no map is loaded yet" in wrapper.err
    assert place.sdk.count("POST /ready") == 0


def test_password_is_not_tried_often_enough_for_a_ban(place: Place) -> None:
    (place.folder / "password").write_text("set by server.cfg")
    wrapper = place.stand_in()
    assert wrapper.popen.wait(TIMEOUT_S) == 1
    assert wrapper.out.count("password rejected") == MAX_REFUSED < MIN_FAILURES
    assert "ERROR RCON rejected the password; does another .cfg file of the game set rcon_password?" in wrapper.err


def test_cfg_file_has_the_password_and_is_deleted_in_the_end(place: Place) -> None:
    folder = place.folder / "cfg"
    folder.mkdir()
    script = "cd cfg && stat -c %a $1 && cat $1 && echo $2 && tr '\\0' '\\n' < /proc/$$/cmdline"
    wrapper = place.start("--cfg-dir", str(folder), "--", "sh", "-c", script, "sh", "{cfg}", "{name}")
    wrapper.popen.wait(TIMEOUT_S)
    mode, line, name, *command = wrapper.out.splitlines()
    assert (mode, line, name) == ("600", f'rcon_password "{place.password}"', NAME)
    assert place.password not in " ".join(command)
    assert list(folder.iterdir()) == []


def test_password_is_neither_logged_nor_in_an_argument(place: Place) -> None:
    place.load_map()
    wrapper = place.stand_in()
    place.wait_until_ready()
    for pid in (wrapper.popen.pid, wrapper.game_pid):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert place.password.encode() not in arguments
        assert SECRET not in arguments
    wrapper.stop()
    assert place.password not in wrapper.err + wrapper.out
    assert SECRET.decode() not in wrapper.err + wrapper.out


def test_abandoned_children_of_the_game_are_reaped(place: Place) -> None:
    # The kernel gives orphans to the nearest process that asked for them, as it does to process 1 of a container.
    subreaper = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1); os.execv(sys.argv[1], sys.argv[1:])"
    place.load_map()
    start = (sys.executable, "-c", subreaper, sys.executable, str(WRAPPER))
    wrapper = place.stand_in(ABANDONS_A_CHILD, start=start)
    place.wait_until_ready()
    orphan, parent = _orphan(wrapper)
    assert parent == wrapper.popen.pid
    wait_until(lambda: not Path(f"/proc/{orphan}").exists(), "orphan reaped")
    assert wrapper.stop() == 0


def test_it_works_as_process_1_of_a_container(place: Place) -> None:
    namespace = ("unshare", "--user", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, "true"], stderr=subprocess.DEVNULL, check=False).returncode
    ):
        pytest.skip("this system does not allow a PID namespace")
    place.load_map()
    wrapper = place.stand_in(ABANDONS_A_CHILD, start=(*namespace, sys.executable, str(WRAPPER)))
    place.wait_until_ready()
    assert _orphan(wrapper)[1] == 1
    (init,) = _children(wrapper.popen.pid)
    wait_until(lambda: len(_children(init)) == 1, "orphan reaped")
    os.kill(init, signal.SIGTERM)
    assert wrapper.popen.wait(TIMEOUT_S) == 0
    assert "command quit" in wrapper.out


def test_it_runs_with_the_oldest_python(place: Place) -> None:
    python = oldest_python()
    if python is None:
        pytest.skip("no Python from 3.9 to 3.10 is installed")
    place.load_map()
    wrapper = place.stand_in(start=(python, "-I", "-W", "error", str(WRAPPER)))
    place.wait_until_ready()
    assert wrapper.stop() == 0
    assert "command quit" in wrapper.out


# --- a match whose owner is gone -----------------------------------------------------------------------------------------


def started(place: Place, *options: str) -> Wrapper:
    """Start a stand-in for a game, whose server is ready and not allocated yet."""
    place.load_map()
    wrapper = place.stand_in(options=options)
    place.wait_until_ready()
    return wrapper


@contextmanager
def moving_player() -> Iterator[None]:
    """Send packets as a player does, to a program of this test: the kernel counts those of all programs."""
    has_left = threading.Event()

    def move() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as game, socket.socket(type=socket.SOCK_DGRAM) as player:
            game.bind(("127.0.0.1", 0))
            while not has_left.wait(1 / 128):
                player.sendto(b"move", game.getsockname())
                game.recv(16)  # counted when a program has received it

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        has_left.set()
        thread.join()


def test_match_with_a_console_connection_is_not_idle_until_it_is_closed(place: Place) -> None:
    wrapper = started(place, *IDLE)
    with RconClient(place.port) as console:
        assert console.log_in(place.password)
        place.sdk.state = "Allocated"
        place.wait_for_looks()
        assert wrapper.popen.poll() is None
    assert wrapper.popen.wait(TIMEOUT_S) == 1, "a failure, so that Agones replaces the server"
    assert "ERROR the server has a match, but no player or console connection for 1 s" in wrapper.err


def test_match_with_players_is_not_idle_until_they_leave(place: Place) -> None:
    wrapper = started(place, *IDLE)
    with moving_player():
        place.sdk.state = "Allocated"
        place.wait_for_looks()
        assert wrapper.popen.poll() is None
    assert wrapper.popen.wait(TIMEOUT_S) == 1


def test_match_that_takes_too_long_is_ended_even_if_it_is_used(place: Place) -> None:
    wrapper = started(place, "--max-life", "0.5")
    with RconClient(place.port) as console:
        assert console.log_in(place.password)
        place.sdk.state = "Allocated"
        assert wrapper.popen.wait(TIMEOUT_S) == 1
    assert "ERROR the match is older than --max-life, 0.5 s" in wrapper.err


def test_outage_of_the_sdk_does_not_begin_the_idle_time_anew(place: Place) -> None:
    wrapper = started(place, *IDLE)
    before = place.sdk.count("GET /gameserver")
    place.sdk.state = "Allocated"
    wait_until(lambda: place.sdk.count("GET /gameserver") > before + 2, "the state was read")
    place.sdk.faults["/gameserver"] = SdkFault.ERROR
    assert wrapper.popen.wait(TIMEOUT_S) == 1


# --- the password from an init container ---------------------------------------------------------------------------------


def test_game_gets_the_password_that_an_init_container_has_derived(place: Place) -> None:
    secret, password = place.folder / "mounted", place.folder / "password.derived"
    secret.write_bytes(SECRET + b"\n")
    derive = ("derive-password", "--secret-file", str(secret), "--name", NAME, "--out", str(password))
    subprocess.run([sys.executable, str(WRAPPER), *derive], check=True, timeout=TIMEOUT_S)
    assert password.read_text().strip() == place.password
    secret.unlink()
    place.load_map()
    wrapper = place.stand_in(options=("--password-file", str(password)))
    place.wait_until_ready()
    assert wrapper.out.count("password rejected") == 0
    assert place.password not in wrapper.err


def _orphan(wrapper: Wrapper) -> tuple[int, int]:
    pattern = r"orphan (\d+) has the parent (\d+)"
    wait_until(lambda: re.search(pattern, wrapper.out), "orphan adopted")
    found = re.search(pattern, wrapper.out)
    assert found is not None
    return int(found[1]), int(found[2])


def _children(pid: int) -> list[int]:
    stats = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats.append(file.read_text())
    # After the name, which may contain blanks and parentheses: state, parent.
    return [int(stat.split()[0]) for stat in stats if stat.rpartition(")")[2].split()[1] == str(pid)]
