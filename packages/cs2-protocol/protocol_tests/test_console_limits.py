"""Answers of real servers fit many times into the limits, and the largest ones into a call."""

from __future__ import annotations

from pathlib import Path

from cs2_protocol.console_limits import MAX_CALL_BYTES, answer_limit
from cs2_protocol.rcon import BURST_BYTES, MAX_ANSWER_BYTES

KIB = 1024


def test_limits_of_questions() -> None:
    limits = {name: answer_limit(name) // KIB for name in ("status", "status_json", "get5_status", "mp_maxrounds")}
    assert limits == {"status": 256, "status_json": 64, "get5_status": 32, "mp_maxrounds": 4}
    assert answer_limit("logaddress_list_http") == 32 * KIB


def test_answers_of_real_servers_fit_ten_times(corpus: Path) -> None:
    for file in corpus.glob("status_*"):
        command = "status_json" if file.suffix == ".json" else "status"
        assert 10 * file.stat().st_size < answer_limit(command)


def test_largest_answers_fit_into_a_call_and_a_burst() -> None:
    assert answer_limit("status") <= MAX_ANSWER_BYTES <= MAX_CALL_BYTES <= BURST_BYTES / 2
