"""Clients generated from the API description compile, and read results of both shapes without casts.

The generators are installed from npm and PyPI into a folder that is kept for the next run. Without Node, uv or the
network these tests are skipped; `tests/unit/web/handlers/test_ops.py` checks what the generators rely on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from matchpod.web.openapi.examples import read_examples
from matchpod.web.openapi.openapi import describe
from matchpod.web.routes import ENDPOINTS

pytestmark = pytest.mark.soak

NPM = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")
PYPI = ("openapi-python-client==0.29.1",)
SOURCES = Path(__file__).with_name("clients")
TIMEOUT_S = 300
UV = Path(sys.executable).with_name("uv")

TSCONFIG = {
    "compilerOptions": {
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "exactOptionalPropertyTypes": True,
        "skipLibCheck": True,
        "target": "es2022",
        "module": "nodenext",
        "lib": ["es2022", "dom"],
        "types": [],
    },
    "files": ["read.ts"],
}


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def check_run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = run(command, folder, **environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def kept_folder() -> Path:
    """Return the folder for installed packages, which only its owner can write; skip the test if there is none."""
    folder = Path("/var/tmp" if sys.platform == "linux" else tempfile.gettempdir()) / f"matchpod-clients-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as exc:
        pytest.skip(f"The generators have no folder: {exc}.")
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        pytest.skip(f"Others may have written {folder}, so the generators in it cannot be trusted.")
    return folder


def installed(name: str, packages: Sequence[str], install: Callable[[Path], bool]) -> Path:
    """Return the folder with these packages; install them if that was not done before, or skip the test."""
    kept = kept_folder()
    folder = kept / "-".join([name, *packages])
    if not folder.exists():
        made = Path(tempfile.mkdtemp(dir=kept))
        try:
            if not install(made):
                pytest.skip(f"{', '.join(packages)} cannot be installed: the registry is out of reach.")
            with suppress(OSError):  # another process was faster
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def responses(folder: Path) -> Path:
    """Write what the clients read: recorded matches of both shapes, one without a result, and an error."""
    examples = read_examples().operations["getMatchByExternalId"].responses
    matches = [examples["200"][label] for label in ("competitive", "deathmatch", "in-progress")]
    listed: list[dict[str, Any]] = [{"status": 200, "body": body} for body in matches]
    listed.append({"status": 404, "body": examples["404"]["unknown"]})
    file = folder / "responses.json"
    file.write_text(json.dumps(listed), encoding="utf-8")
    return file


def expected() -> list[str]:
    """Return what every client reads."""
    examples = read_examples().operations["getMatchByExternalId"].responses["200"]
    series, flat = examples["competitive"]["result"], examples["deathmatch"]["result"]
    player, best = series["maps"][0]["players"][0], flat["players"][0]
    score = f"{series['team1']['seriesScore']}:{series['team2']['seriesScore']}"
    return [
        f"competitive bo1: {score}, {player['name']} {player['kastPercent']:g}",
        f"deathmatch on de_dust2: {best['name']} {best['kpm']:g} kills per minute, won by {flat['winnerSteamId']}",
        "in progress",
        "404 NOT_FOUND",
    ]


# --- TypeScript ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node_modules() -> Path:
    """The folder with the generator and the compiler for TypeScript."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Node is not installed, which the TypeScript client needs.")

    def install(folder: Path) -> bool:
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--prefer-offline")
        return run(["npm", "install", *options, *NPM], folder).returncode == 0

    return installed("npm", NPM, install) / "node_modules"


def test_typescript_client_is_strict_and_reads_both_results(node_modules: Path, tmp_path: Path) -> None:
    for name in ("read.ts", "run.mjs"):
        shutil.copy(SOURCES / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    (tmp_path / "openapi.json").write_bytes(describe(ENDPOINTS, "1.2.3"))
    binaries = node_modules / ".bin"
    check_run([binaries / "openapi-typescript", "openapi.json", "--output", "schema.ts"], tmp_path)
    check_run([binaries / "tsc", "--project", "."], tmp_path)
    printed = check_run(["node", "run.mjs", responses(tmp_path)], tmp_path)
    assert printed.splitlines() == expected()


# --- Python -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with the generator for Python."""
    if not UV.exists():
        pytest.skip("uv is not installed, which installs the generator of the Python client.")

    def install(folder: Path) -> bool:
        # Links into the folder must hold after it is renamed.
        if run([UV, "venv", "--quiet", "--relocatable", "--python", sys.executable, "venv"], folder).returncode:
            return False
        return run([UV, "pip", "install", "--quiet", "--python", "venv", *PYPI], folder).returncode == 0

    return installed("pypi", PYPI, install) / "venv" / "bin" / "python"


def generate_python(python: Path, folder: Path, document: bytes) -> None:
    """Generate the package `generated`; a warning means that a part of the description was left out."""
    (folder / "openapi.json").write_bytes(document)
    (folder / "config.yml").write_text("post_hooks: []\n")
    options = ("--meta", "none", "--output-path", "generated", "--config", "config.yml", "--fail-on-warning")
    check_run([python, "-m", "openapi_python_client", "generate", "--path", "openapi.json", *options], folder)


def test_python_client_is_typed_and_reads_both_results(python: Path, tmp_path: Path) -> None:
    generate_python(python, tmp_path, describe(ENDPOINTS, "1.2.3"))
    command = [python, SOURCES / "read.py", responses(tmp_path)]
    printed = check_run(command, tmp_path, PYTHONPATH=str(tmp_path))
    assert [line.replace(".0 ", " ").removesuffix(".0") for line in printed.splitlines()] == expected()
    options = ("--strict", "--python-executable", python, "--follow-imports", "silent", "--config-file", os.devnull)
    check_run([sys.executable, "-m", "mypy", *options, SOURCES / "read.py"], tmp_path, MYPYPATH=str(tmp_path))
