"""Cells of CSV files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.console.match_csv import COLUMNS, MARK, csv_heading, csv_rows, safe_cell

INVISIBLE = (
    " \t\r\n\x00\x0b\x0c\x1c\x7f\x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u180e\u2000\u2007\u200b\u200c"
    "\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u202f\u205f\u2060\u2066\u2069\u206f\u2800\u3000\u3164\ufe0f\ufeff"
    "\uffa0\ufff9\U000e0020\U000e0100"
)
"""What shows nothing: spaces, controls, zero-width and bidirectional marks, fillers, variation selectors, tags."""
FORMULA = "=+-@＝＋－＠﹢﹣﹦﹫⁺⁻⁼−"

invisible = st.text(st.sampled_from(INVISIBLE) | st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Zs"]), max_size=6)


@given(before=invisible, first=st.sampled_from(FORMULA), rest=st.text(max_size=10))
def test_formula_after_anything_invisible_becomes_text(before: str, first: str, rest: str) -> None:
    cell = safe_cell(before + first + rest)
    assert cell == f"'{before}{first}{rest}"
    assert safe_cell(cell) == cell


@given(before=st.text(st.sampled_from(" \xa0\u200b\ufeff")), first=st.characters(categories=["L", "N"]), rest=st.text())
def test_words_and_numbers_stay_as_they_are(before: str, first: str, rest: str) -> None:
    if first not in INVISIBLE:
        assert safe_cell(before + first + rest) == before + first + rest


@pytest.mark.parametrize("mark", INVISIBLE)
def test_every_invisible_mark_is_skipped(mark: str) -> None:
    assert safe_cell(f"{mark}=1").startswith("'")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(
            (formula, f"'{formula}")
            for formula in ("=1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠x")
        ),
        *((None, ""), ("", ""), (0, "0"), ("a=1", "a=1"), ("'=1", "'=1"), (" x", " x"), ("\u200b", "\u200b")),
    ],
)
def test_formulas_become_text_and_other_cells_stay_as_they_are(value: str | int | None, text: str) -> None:
    assert safe_cell(value) == text


def test_heading_names_the_columns() -> None:
    assert csv_heading().decode() == f"{MARK}{','.join(COLUMNS)}\r\n"
    assert csv_rows([]) == b""
