"""The example match has this result, to the letter. A change of it is a change of the interface, or a bug."""

from __future__ import annotations

from pathlib import Path

import msgspec

from matchpod.core.result import build_result
from matchpod.replay import open_recording, replay

HERE = Path(__file__).resolve().parent


def test_the_result_of_the_example_match() -> None:
    match = replay([open_recording(HERE.parents[1] / "docs" / "example.log")]).match
    result = msgspec.json.format(msgspec.json.encode(build_result(match)), indent=2)
    assert result.decode() + "\n" == (HERE / "example-result.json").read_text("utf-8")
