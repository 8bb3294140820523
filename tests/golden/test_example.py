"""Test that the result of the example match is exactly as stored; a change is an API change or a bug."""

from __future__ import annotations

from pathlib import Path

import msgspec

from matchpod.core.result import build_result
from matchpod.replay import open_recording, replay

HERE = Path(__file__).resolve().parent


def test_example_match_has_the_expected_result() -> None:
    match = replay([open_recording(HERE.parents[1] / "docs" / "example.log")]).match
    result = msgspec.json.format(msgspec.json.encode(build_result(match)), indent=2)
    assert result.decode() + "\n" == (HERE / "example-result.json").read_text("utf-8")
