"""Figures are written into their own section of a page."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.__main__ import DATABASES, TRIALS
from tests.chaos.judge import Difference
from tests.chaos.report import LAB, session_lines, write_section
from tests.chaos.session import Totals


def test_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n")
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- figures: one -->\nold\n<!-- end of figures: one -->\n\nrest\n")
    write_section("one", ["new"], tmp_path)
    write_section("one", ["newer"], tmp_path)
    assert page.read_text() == "# Title\n\n<!-- figures: one -->\n\nnewer\n\n<!-- end of figures: one -->\n\nrest\n"


def test_unknown_section_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Title\n")
    with pytest.raises(ValueError, match="has a section for 'one'"):
        write_section("one", [], tmp_path)


def test_some_page_has_a_section_for_each_run(tmp_path: Path) -> None:
    for page in LAB.glob("*.md"):
        shutil.copy(page, tmp_path)
    for name, trial in TRIALS.items():
        for section in [f"{name}-{database}" for database in DATABASES] if trial.is_of_database else [name]:
            write_section(section, ["x"], tmp_path)
    for section in (*DATABASES, "simulated matches", "simulated cheaters"):
        write_section(section, ["x"], tmp_path)


def test_figures_of_a_session_name_every_field_that_differs() -> None:
    totals = Totals(database="sqlite", seed=3, rounds=2, matches=1234, injected=Counter(server_kill=5))
    totals.differences = [Difference("m1", f".result.maps[{index}].players[1].mvps", "None", "1") for index in (0, 1)]
    lines = session_lines(totals, "make chaos")
    assert "| matches | 1,234 |" in lines
    assert "| fault: server kill | 5 |" in lines
    assert "| `result.maps[].players[].mvps` | 2 |" in lines
