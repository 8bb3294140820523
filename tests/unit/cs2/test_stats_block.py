"""Tests of the game's statistics block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_lines.world_grammar import STATS_BEGIN, STATS_END, STATS_PLAYERS
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, StatsPlayer
from matchpod.core.events import GameCount
from matchpod.cs2.stats_block import MAX_ROWS, StatsBlock
from protocol_tests.log_lines.samples import STATS_ROW
from tests.unit.cs2.server_log import id64


def block_with(*rows: str, number: str = "8") -> StatsBlock:
    block = StatsBlock()
    block.read_mark(StatsMark(STATS_BEGIN))
    block.read_field(StatsField("round_number", number))
    block.read_field(StatsField("score_t", "5"))
    block.read_mark(StatsMark(STATS_PLAYERS))
    for index, row in enumerate(rows):
        block.read_player(StatsPlayer(index, row))
    return block


def test_row_is_parsed_by_column() -> None:
    block = block_with(STATS_ROW)
    assert block.rows == [
        GameCount(id64(101), 8350, 12, 3, 4, 1109.0, 41.67, 158.0, 3, 0, 355.0, 0, 1, 0, 2, 0, 3, 2, 1),
    ]
    assert block.read_mark(StatsMark(STATS_END))
    assert block.round_number == 8


def test_bots_and_invalid_rows_are_skipped() -> None:
    for row in [
        "",
        "1,2,3",
        STATS_ROW.replace("101,", "  0,"),
        STATS_ROW.replace("101,", "99999999999,"),
        STATS_ROW.replace("8350", "x").replace("12,", "1.2.3,"),
        STATS_ROW.replace("1109.00", "1e99"),
        STATS_ROW.replace("101,", "1.5,"),
    ]:
        assert block_with(row).rows == []


def test_columns_with_wrong_labels_are_ignored() -> None:
    cells = STATS_ROW.split(",")
    assert block_with(",".join([*cells[:21], "?", "?"])).rows == block_with(STATS_ROW).rows


def test_block_without_a_valid_round_number_is_not_complete() -> None:
    for number in ["x", "", "999999", "²"]:
        assert not block_with(STATS_ROW, number=number).read_mark(StatsMark(STATS_END))


def test_rows_outside_a_block_are_ignored() -> None:
    block = StatsBlock()
    block.read_player(StatsPlayer(0, STATS_ROW))
    assert block.rows == []
    assert not block.read_mark(StatsMark(STATS_END))


def test_number_of_rows_is_bounded() -> None:
    assert len(block_with(*[STATS_ROW] * 1000).rows) == MAX_ROWS


@given(st.text("0123456789,.- ", max_size=200))
def test_arbitrary_row_never_raises(row: str) -> None:
    block_with(row)


@pytest.mark.parametrize(
    ("row", "money"),
    [("39734273, 2, 800, 0", 800), ("39734273, 2, 99999999999999999999, 0", None), ("9" * 5000 + ", 2, 800, 0", None)],
)
def test_money_before_the_map_is_live_is_bounded(row: str, money: int | None) -> None:
    block = block_with()
    block.read_money(StatsPlayer(0, row))
    assert list(block.money.values()) == ([] if money is None else [money])
