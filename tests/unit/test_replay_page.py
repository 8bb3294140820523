"""The console sessions in docs/replay.md match the output of the commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from matchpod.cli import create_app

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text("utf-8")
SESSIONS = re.findall(r"```console\n\$ \.venv/bin/matchpod ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SESSIONS)
def test_session_on_the_page_matches_the_output(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments, _, pipe = command.partition(" | ")
    done = CliRunner().invoke(create_app(), shlex.split(arguments))
    printed = [line.rstrip() for line in done.output.split("\n")]
    if pipe:
        printed = [*printed[: int(pipe.removeprefix("head -"))], ""]
    assert printed == shown.split("\n")


def test_page_has_the_expected_sessions() -> None:
    assert len(SESSIONS) == 3
