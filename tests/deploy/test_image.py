"""The images can be built, and the service works inside: any user, a read-only root, a match, and a quick stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from scripts import build_image
from tests.deploy.tools import find_tool
from tests.e2e.service.running_service import free_port_range, wait_until
from tests.first_key import first_key

pytestmark = pytest.mark.timeout(1800)
"""Two root file systems of Debian are made from a mirror: a busy machine needs longer than the limit of other tests."""

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted((ROOT / "deploy/image").glob("*Dockerfile"))
TOKEN_SCRIPT = ROOT / "deploy/image/start_with_token.sh"
USER = 65532
WAIT_S = 120.0
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM")
START = """
set -e
mount --bind "$ROOT" "$ROOT"
mount --bind "$DATA" "$ROOT/var/lib/matchpod"
mount -t proc proc "$ROOT/proc"
mount --bind /dev "$ROOT/dev"
mount -t tmpfs tmpfs "$ROOT/tmp"
mount -o remount,bind,ro "$ROOT"
cd "$ROOT"
exec env -i $VARIABLES /usr/sbin/chroot --userspec="$USER_ID:0" --groups= "$ROOT" "$@"
"""
"""A container without a runtime: the file system of the image read-only, a data folder, a user, and process 1."""


def fails(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 2
    return process.stderr.splitlines()[-1].removeprefix("build_image.py: error: ")


def build(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/build_image.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": ""})


def test_bad_arguments_get_one_sentence(tmp_path: Path) -> None:
    assert (
        fails(build("matchpood"))
        == "there is no image matchpood; images: matchpod, matchpod-simulated-server, matchpod-cs2"
    )
    assert fails(build("--pip-config", f"{tmp_path}/x")) == f"there is no file {tmp_path}/x"
    assert fails(build()) == "none of docker, podman, buildah is installed"
    assert fails(build("--engine", "podman")) == "podman is not installed"


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.name)
def test_dockerfile_has_no_warning(dockerfile: Path) -> None:
    lint = subprocess.run([*find_tool("hadolint"), str(dockerfile)], capture_output=True, text=True, check=False)
    assert (lint.returncode, lint.stdout) == (0, "")


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda file: file.name)
def test_uv_is_the_version_that_make_installs(dockerfile: Path) -> None:
    if "pip install" not in dockerfile.read_text():
        return
    (pinned,) = [word for word in (ROOT / "Makefile").read_text().split() if word.startswith("'uv==")]
    assert f" {pinned.strip(chr(39))} " in dockerfile.read_text()


def start_game(folder: Path, number: int) -> tuple[subprocess.Popen[str], str]:
    """Start a game that prints its .cfg file; return it with the first line of its output."""
    cfg = folder / f"{number}.cfg"
    words = ["sh", str(TOKEN_SCRIPT), str(folder / "tokens"), str(folder), str(cfg), "sh", "-c", f"cat {cfg}; cat"]
    game = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert game.stdout is not None
    return game, game.stdout.readline().strip()


def test_every_game_server_of_a_machine_has_a_login_token_of_its_own(tmp_path: Path) -> None:
    if not shutil.which("flock"):
        pytest.skip("flock is not installed")
    (tmp_path / "tokens").write_text("AAAA\n\nBBBB\n")
    games = [start_game(tmp_path, number) for number in range(3)]
    assert [line for _, line in games] == [
        "sv_setsteamaccount AAAA",
        "sv_setsteamaccount BBBB",
        f"all 2 login tokens in {tmp_path}/tokens are in use; add one per server of this machine",
    ]
    first, second, third = (game for game, _ in games)
    assert third.wait(timeout=WAIT_S) == 1
    # The standard input of the game is its own: it does not get the tokens as commands.
    assert first.communicate("quit\n", timeout=WAIT_S)[0] == "quit\n"
    again, line = start_game(tmp_path, 3)
    assert line == "sv_setsteamaccount AAAA"
    for game in (second, third, again):
        game.communicate(timeout=WAIT_S)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build all images from nothing; the bases are Debian 12 and 11."""
    missing = [name for name in ("buildah", "mmdebstrap", "unshare") if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        pytest.skip(f"building images needs root, and {', '.join(missing) or 'all programs are there'}")
    folder = tmp_path_factory.mktemp("images")
    words = ["--engine", "buildah", "--debian", "--tag", "test", "--storage", str(folder)]
    words += ["--certificates", "/etc/ssl/certs"] if Path("/etc/ssl/certs").is_dir() else []
    words += ["--pip-config", "/etc/pip.conf"] if Path("/etc/pip.conf").is_file() else []
    command = [sys.executable, str(ROOT / "scripts/build_image.py"), *words]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    yield folder
    buildah(folder, "umount", "--all")


def buildah(storage: Path, *words: str) -> str:
    command = [*build_image.engine_command("buildah", storage), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Running:
    """A command in the file system of an image, as process 1 of its own namespace."""

    def __init__(self, storage: Path, image: str, folder: Path, *command: str, **variables: str) -> None:
        container = buildah(storage, "from", f"localhost/{image}:test")
        config = json.loads(buildah(storage, "inspect", container))["Docker"]["config"]
        root = buildah(storage, "mount", container)
        (Path(root) / "var/lib/matchpod").mkdir(exist_ok=True)
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, 0, 0)
        self.data.chmod(0o770)
        (self.data / "password").write_text("A" * 43)
        words = [*config["Env"], *(f"{key}={value}" for key, value in variables.items())]
        environment = {"ROOT": root, "DATA": str(self.data), "USER_ID": str(USER + 1), "VARIABLES": " ".join(words)}
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*UNSHARE, "sh", "-c", START, "sh", *config["Entrypoint"], *(command or config["Cmd"])],
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
            )

    @property
    def inner_id(self) -> int:
        """The process outside of its namespace."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])


def until(what: str, running: Running, is_true: Callable[[], bool]) -> None:
    def is_done() -> bool:
        assert running.process.poll() is None, f"{what} did not happen:\n{running.log.read_text()[-3000:]}"
        with suppress(httpx.TransportError):
            return is_true()
        return False

    wait_until(is_done, lambda: f"{what}:\n{running.log.read_text()[-3000:]}")


@pytest.mark.soak
def test_match_goes_live_inside_the_image_and_sigterm_ends_it(storage: Path, tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    service = Running(storage, "matchpod", tmp_path, MATCHPOD_HOST="127.0.0.1", MATCHPOD_PORT=str(port))
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            until("readiness", service, lambda: client.get("/readyz").is_success)
            client.headers["Authorization"] = f"Bearer {first_key(service.data / 'data')}"
            settings = {"matchType": "deathmatch", "map": "de_dust2"}
            body = {"region": "sandbox", "gameType": "cs2", "externalMatchId": "a", "gameSettings": settings}
            address = (
                f"/api/v1/servers/{client.post('/api/v1/matches', json=body).raise_for_status().json()['serverId']}"
            )
            until("a live match", service, lambda: client.get(address).json()["status"] == "running")
    finally:
        stopped_s = time.monotonic()
        os.kill(service.inner_id, signal.SIGTERM)
        code = service.process.wait(timeout=60)
    assert code == 0
    # It takes 0.2 s; the rest is for a busy machine.
    assert time.monotonic() - stopped_s < 10


@pytest.mark.soak
def test_simulated_server_waits_for_agones_and_says_so(storage: Path, tmp_path: Path) -> None:
    password = "/var/lib/matchpod/password"
    command = ["--password-file", password, "--", "cs2-simulator", "-port", "{port}", "-ip", "{ip}", "--quiet"]
    port = str(free_port_range(1)[0])
    server = Running(storage, "matchpod-simulated-server", tmp_path, *command, AGONES_SDK_HTTP_PORT=port)
    try:
        until("a line about the SDK", server, lambda: "waiting for the Agones SDK" in server.log.read_text())
    finally:
        os.kill(server.inner_id, signal.SIGTERM)
        server.process.wait(timeout=60)


@pytest.mark.soak
def test_entry_point_of_cs2_starts_without_the_game(storage: Path, tmp_path: Path) -> None:
    server = Running(storage, "matchpod-cs2", tmp_path, "--help")
    assert server.process.wait(timeout=WAIT_S) == 0
    assert "--password-file" in server.log.read_text()


@pytest.mark.soak
def test_image_says_what_it_is(storage: Path) -> None:
    for name in build_image.IMAGES:
        config = json.loads(buildah(storage, "inspect", "--type", "image", f"localhost/{name}:test"))["Docker"][
            "config"
        ]
        assert config["User"] == ("1000:1000" if name == "matchpod-cs2" else f"{USER}:{USER}")
        assert config["Labels"]["org.opencontainers.image.version"] == build_image.version()
        assert config["Labels"]["org.opencontainers.image.revision"] == build_image.revision()
        layers = json.dumps(json.loads(buildah(storage, "inspect", "--type", "image", f"localhost/{name}:test")))
        assert "index-url" not in layers, "the registry of the build is in no layer"
