"""The workflows run code of pull requests, which anyone can open, without special rights, and pinned actions only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).resolve().parents[2] / ".github/workflows").glob("*.yml"))
ONLY_PUSHES = re.compile(r"\$\{\{ github\.event_name == 'push' && '[^']*' \|\| '' \}\}")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_pull_requests_get_no_privileged_container_and_no_rights(file: Path) -> None:
    text = ONLY_PUSHES.sub("", file.read_text("utf-8"))
    assert "privileged" not in text
    assert "pull_request_target" not in text
    assert "secrets." not in text
    assert re.findall(r"^ *permissions:\n((?: +.*\n)+)", text, re.M) == ["  contents: read\n"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text("utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
