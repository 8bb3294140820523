"""Cells of CSV files."""

from __future__ import annotations

import pytest

from matchpod.console.match_csv import COLUMNS, MARK, csv_heading, csv_rows, safe_cell


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠x"])
def test_formulas_become_text(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), ("", ""), (0, "0"), ("a=1", "a=1"), ("'=1", "'=1"), (" x", " x")]
)
def test_other_cells_stay_as_they_are(value: str | int | None, text: str) -> None:
    assert safe_cell(value) == text


def test_heading_names_the_columns() -> None:
    assert csv_heading().decode() == f"{MARK}{','.join(COLUMNS)}\r\n"
    assert csv_rows([]) == b""
