"""The tables in docs/capacity.md and in the chart follow from the figures of that page."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from scripts import sizing

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "capacity.md").read_text("utf-8")
FIGURES = {
    symbol: Decimal(value)
    for symbol, value in zip("cdpmnrtwkyguh", (36, 9, 50, 100, 1, 3600, 9, 10, 5, 2, 2, 3, 3), strict=True)
}
"""Others than those of the page, for which the results are easily computed by hand."""


def test_figures_of_the_page_are_found() -> None:
    figures = sizing.read_figures(PAGE)
    assert sorted(figures) == sorted(FIGURES)
    assert (figures["c"], figures["r"], figures["t"]) == (Decimal(4), Decimal(2700), Decimal("3.5"))


@pytest.mark.parametrize(
    ("matches", "row"),
    [
        (100, "| 100 | 3 | 1.0 | 150 | 0.3 | 20 | 100 | 2.0 | 1.0 | 2 | 110 | 220 | 330 |"),
        (101, "| 101 | 4 | 1.1 | 134 | 0.3 | 25 | 101 | 2.1 | 1.1 | 2 | 112 | 224 | 336 |"),
        (5, "| 5 | 2 | 0.05 | 105 | 0.02 | 15 | 5 | 0.1 | 0.05 | 1 | 6 | 12 | 18 |"),
    ],
)
def test_example_follows_from_the_figures(matches: int, row: str) -> None:
    assert sizing.example_row(matches, FIGURES) == row


def test_chart_requests_what_a_pod_needs_while_another_is_missing() -> None:
    rows = sizing.chart_table(FIGURES).splitlines()[2:]
    assert rows[0] == "| up to 100 | 3 | 500m | 256Mi |"
    assert sizing.chart_table({**FIGURES, "n": Decimal(4)}).splitlines()[2] == "| up to 100 | 3 | 500m | 320Mi |"
