"""The examples in docs/capacity.md follow from its figures and formulas."""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "capacity.md").read_text("utf-8")
FIGURES = {
    name: float(value.replace(",", "")) for name, value in re.findall(r"^\| (\w) \|[^|]*\| ([\d.,]+) \|", PAGE, re.M)
}


def row(matches: int) -> str:
    """Return the line of the table for a number of matches."""
    f = FIGURES
    replicas = 1 + ceil(matches / f["p"])
    servers = ceil(round(matches * 1.1, 6))
    numbers = [
        f"{matches:,}",
        f"{replicas}",
        decimal(matches * f["c"] / 3600),
        f"{ceil(f['m'] + f['n'] * matches / (replicas - 1)):,}",
        decimal(matches * f["d"] / 3600),
        f"{ceil(f['k'] * (replicas + 1))}",
        f"{ceil(matches * f['r'] / 3600):,}",
        decimal(matches * f["t"] * 8 / 3600),
        decimal(matches * f["w"] / 1000),
        f"{ceil(f['y'] * 8 * matches / 1000):,}",
        f"{servers:,}",
        f"{ceil(servers * f['g']):,}",
        f"{ceil(servers * f['h']):,}",
    ]
    return f"| {' | '.join(numbers)} |"


def decimal(number: float) -> str:
    """Round up to a tenth, or to a hundredth below a tenth."""
    return f"{ceil(round(number * 10, 6)) / 10:g}" if number >= 0.1 else f"{ceil(round(number * 100, 6)) / 100:g}"


def test_figures_are_found() -> None:
    assert sorted(FIGURES) == sorted("cdpmnrtwkygh")


@pytest.mark.parametrize("matches", [10, 100, 500, 2_000])
def test_example_follows_from_the_figures(matches: int) -> None:
    assert row(matches) in PAGE
