"""The style sheet of the charts."""

from __future__ import annotations

import re
from importlib import resources

SHEET = (resources.files("matchpod.console") / "assets" / "charts.css").read_text(encoding="utf-8")
VARIABLES = {"ink", "muted", "line", "surface", "team1", "team2", "ct", "t", "good", "bad", "accent"}


def test_colours_are_variables_of_the_main_sheet() -> None:
    assert not re.search(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(", SHEET)
    assert set(re.findall(r"var\(--([a-z0-9]+)\)", SHEET)) <= VARIABLES


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert "url(" not in SHEET
    assert "@import" not in SHEET
