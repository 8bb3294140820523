"""The console sessions in the README of this package print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gameserver_tests.process.wrapper_process import TIMEOUT_S

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
SESSIONS = re.findall(r"^```console\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("session", SESSIONS, ids=["password", "help"])
def test_session_prints_what_the_readme_says(session: str, tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.*)", session, re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    printed = [line for line in session.splitlines() if not line.startswith("$ ")]
    assert done.stdout.splitlines() == printed, done.stderr
