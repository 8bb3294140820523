"""Build the wheels of all packages, install them one by one into empty environments, and use them there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

from gameserver_tests.process.wrapper_process import oldest_python
from simulator_tests.rcon_client import RconClient
from tests.unit.test_packages import FOLDERS, ROOT, project

pytestmark = pytest.mark.soak

UV = Path(sys.executable).with_name("uv")
TIMEOUT_S = 300.0
PARSE = """
import sys
from collections import Counter
from cs2_protocol.log_batches import split_lines
from cs2_protocol.log_lines.reader import LineReader
reader = LineReader()
with open(sys.argv[1], "rb") as file:
    kinds = Counter(type(reader.read(line)[1]).__name__ for line in split_lines(file))
print(kinds.total(), kinds["Killed"], kinds["Unknown"])
"""
REGION = """
[[regions]]
code = "eu"
[regions.fleet]
kind = "agones"
fleet = "cs2-eu"
secret_file = "{folder}/secret"
kubeconfig = "{folder}/kubeconfig"
"""
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


class Environment:
    """A virtual environment with nothing but what a test installs, and no access to this checkout."""

    def __init__(self, folder: Path, wheels: Mapping[str, Path], python: str = sys.executable) -> None:
        self.folder, self._wheels = folder, wheels
        uv("venv", "--python", python, str(folder / "venv"))

    def install(self, *packages: str) -> None:
        """Install packages one after the other; ours from their wheels, all others from the registry."""
        for package in packages:
            name, bracket, extras = package.partition("[")
            found = f"{self._wheels[name]}{bracket}{extras}" if name in self._wheels else package
            uv("pip", "install", "--python", str(self.folder / "venv"), found)

    def program(self, name: str) -> str:
        return str(self.folder / "venv" / "bin" / name)

    def run(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._variables(settings),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    @contextmanager
    def started(self, *command: str, until: str, **settings: str) -> Iterator[re.Match[str]]:
        """Run a program until the test is done with it; yield what its output had to match before."""
        with (self.folder / "output").open("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self._variables(settings), stdout=output, stderr=subprocess.STDOUT
            )
            try:
                yield self._wait_for(until, process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(TIMEOUT_S) == 0
            finally:
                process.kill()
                process.wait()

    def _wait_for(self, pattern: str, process: subprocess.Popen[bytes]) -> re.Match[str]:
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            has_ended, text = process.poll() is not None, (self.folder / "output").read_text()
            if (found := re.search(pattern, text)) is not None:
                return found
            assert not has_ended, text
            time.sleep(0.05)
        raise AssertionError(f"{pattern} was not printed")

    def _variables(self, settings: Mapping[str, str]) -> dict[str, str]:
        data = {"MATCHPOD_DATA_DIR": str(self.folder / "data"), "MATCHPOD_PORT": "0"}
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), **data, **settings}


def uv(*arguments: str) -> None:
    done = subprocess.run([UV, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    uv("build", "--all-packages", "--wheel", "--out-dir", str(folder))
    version = project("matchpod")["version"]
    found = {name: folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name in FOLDERS}
    assert sorted(folder.glob("*.whl")) == sorted(found.values())
    return found


def write_agones_region(folder: Path) -> Path:
    """Write the settings of a region in a cluster that cannot be reached, and the files they name."""
    (folder / "secret").write_text("a secret of the fleet for tests")
    (folder / "kubeconfig").write_text(KUBECONFIG)
    file = folder / "agones.toml"
    file.write_text(REGION.format(folder=folder))
    return file


@pytest.mark.parametrize("name", FOLDERS)
def test_wheel_has_source_types_licence_and_commands_and_no_tests(wheels: Mapping[str, Path], name: str) -> None:
    module = name.replace("-", "_")
    about = f"{module}-{project(name)['version']}.dist-info"
    with ZipFile(wheels[name]) as wheel:
        files = set(wheel.namelist())
        metadata = wheel.read(f"{about}/METADATA").decode()
        commands = wheel.read(f"{about}/entry_points.txt").decode() if project(name).get("scripts") else ""
    assert {f"{module}/py.typed", f"{module}/__init__.py", f"{about}/licenses/LICENSE"} <= files
    assert {file.partition("/")[0] for file in files} == {module, about}
    assert (FOLDERS[name] / "README.md").read_text() in metadata
    assert (f"\n{name} = " in commands) == (name != "cs2-protocol")


def test_protocol_alone_parses_a_log(wheels: Mapping[str, Path], tmp_path: Path, corpus: Path) -> None:
    environment = Environment(tmp_path, wheels)
    environment.install("cs2-protocol")
    done = environment.run(environment.program("python"), "-c", PARSE, str(corpus / "cs2-5v5-inferno.log"))
    log = (corpus / "cs2-5v5-inferno.log").read_bytes()
    assert done.stdout.split() == [str(log.count(b"\n")), str(log.count(b'] killed "')), "0"], done.stderr


def test_simulator_alone_answers_rcon(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheels)
    environment.install("cs2-protocol", "cs2-simulator")
    command = (environment.program("cs2-simulator"), "-port", "0", "+map", "de_nuke", "+rcon_password", "sesame")
    started = environment.started(*command, until=r"listening on 127.0.0.1:(\d+)")
    with started as found, RconClient(int(found[1])) as console:
        assert console.log_in("sesame")
        assert "---------players--------" in console.run("status")


def test_entry_point_of_images_works_on_the_oldest_python(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheels, oldest_python() or sys.executable)
    environment.install("matchpod-gameserver", "pytest")
    tests = tmp_path / "package" / "gameserver_tests"
    shutil.copytree(FOLDERS["matchpod-gameserver"] / "gameserver_tests", tests)
    done = environment.run(environment.program("matchpod-gameserver"), "--help")
    assert (done.returncode, done.stdout[:27]) == (0, "usage: matchpod-gameserver ")
    options = ("-q", "-W", "error", "-o", f"pythonpath={tests.parent}")
    done = environment.run(environment.program("python"), "-m", "pytest", *options, str(tests))
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_commands_of_the_one_box_page_install_the_service_with_all_extras(tmp_path: Path) -> None:
    """The system's Python, with the folders of the page replaced."""
    page = (ROOT / "docs/one-box.md").read_text()
    (block,) = (one for one in re.findall(r"```sh\n(.*?)```", page, re.S) if "-m venv" in one)
    wanted = ("uv build", "uv export", "-m venv", "pip install")
    lines = [line for line in block.splitlines() if any(word in line for word in wanted)]
    assert len(lines) == 5
    script = "\n".join(lines).replace("/usr/bin/python3", sys.executable).replace(".venv/bin/uv", str(UV))
    script = re.sub(r"\bdist\b", str(tmp_path / "dist"), script).replace("/opt/matchpod", str(tmp_path / "venv"))
    done = subprocess.run(
        ["sh", "-ec", script], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    program = str(tmp_path / "venv/bin/matchpod")
    listed = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert project("matchpod")["version"] in listed.stdout
    python = str(tmp_path / "venv/bin/python")
    imports = "import asyncpg, httpx, yaml, cs2_simulator, matchpod_gameserver"
    subprocess.run([python, "-c", imports], timeout=TIMEOUT_S, check=True)


def test_service_runs_without_extras_and_names_those_that_its_settings_need(
    wheels: Mapping[str, Path], tmp_path: Path
) -> None:
    environment = Environment(tmp_path, wheels)
    environment.install(*FOLDERS)
    serve = (environment.program("matchpod"), "serve")
    with environment.started(*serve, until=r"listening.*url.*127\.0\.0\.1"):
        pass
    url, key = "postgresql://matchpod@127.0.0.1:1/matchpod", "A" * 43 + "="
    postgres = {"MATCHPOD_DATABASE_URL": url, "MATCHPOD_SECRET_KEY": key}
    agones = {"MATCHPOD_CONFIG": str(write_agones_region(tmp_path))}
    for extra, settings in (("postgres", postgres), ("agones", agones)):
        done = environment.run(*serve, **settings)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"'matchpod[{extra}]'" in done.stderr
    environment.install("matchpod[postgres,agones]")
    done = environment.run(*serve, **postgres)
    assert done.returncode == 1
    assert "The PostgreSQL database cannot be opened" in done.stderr
    with environment.started(*serve, until=r"listening.*url.*127\.0\.0\.1", **agones):
        pass
