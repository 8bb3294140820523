"""Lines of players who are not on the server change nothing in real matches."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cs2_protocol.log_batches import split_lines
from matchpod.core.views.result import build_result
from matchpod.core.views.rounds import build_rounds
from matchpod.cs2.match_reader import MatchReader
from tests.absent_lines import count_leavers, with_absent_lines, without_absent_lines
from tests.corpus.real_logs import COMPETITIVE, CSGO_LOGS, INFERNO, LEAVER


def read(lines: list[bytes]) -> MatchReader:
    reader = MatchReader.create(COMPETITIVE, 0)
    reader.read_file(lines)
    return reader


@pytest.mark.parametrize("name", [INFERNO, LEAVER, *CSGO_LOGS])
def test_lines_of_absent_players_change_nothing_in_a_real_log(corpus: Path, name: str) -> None:
    lines = list(split_lines([(corpus / name).read_bytes()]))
    extended = with_absent_lines(lines)
    assert len(extended) >= len(lines) + 2 * count_leavers(lines) + 20
    bare, whole, full = (read(log).match for log in (without_absent_lines(lines), lines, extended))
    for match in (bare, full):
        assert build_rounds(match, match.maps[0]) == build_rounds(whole, whole.maps[0])
        assert build_result(match) == build_result(whole)
        assert match.presence == whole.presence
        assert msgspec.to_builtins(match) == msgspec.to_builtins(whole)
