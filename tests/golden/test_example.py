"""Test that the result of the example match is exactly as stored; a change is an API change or a bug."""

from __future__ import annotations

from pathlib import Path

import msgspec

from matchpod.core.views.result import build_result
from matchpod.replay import open_recording, replay
from tests.golden.golden_files import check_golden

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example.log"


def test_example_match_has_the_expected_result() -> None:
    match = replay([open_recording(EXAMPLE)]).match
    result = msgspec.json.format(msgspec.json.encode(build_result(match)), indent=2)
    check_golden("example-result.json", result.decode() + "\n")
