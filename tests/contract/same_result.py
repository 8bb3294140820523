"""Are these the callbacks of the same match? What must be equal when a match is played twice with the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differences(found: object, expected: object, path: str = "") -> dict[str, tuple[object, object]]:
    """Where two JSON values differ: what was found there, and what was expected."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {
            where: pair
            for name in sorted({*found, *expected})
            for where, pair in differences(found.get(name), expected.get(name), f"{path}.{name}").items()
        }
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return {
            where: pair
            for index, (one, other) in enumerate(zip(found, expected, strict=True))
            for where, pair in differences(one, other, f"{path}[{index}]").items()
        }
    return {} if found == expected else {path: (found, expected)}


def assert_same_match(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Everything is equal, but for the MVP of the last round of each map, which either side may have missed.

    Every other round's is in the log. The last one's is told by the plugin only, once, on a way of its own: nobody
    hears it who is dead at that moment, or who has read the end of the map before.
    """
    unlike = differences(found, expected)
    assert {path for path in unlike if not path.endswith(".mvps")} == set(), unlike
    missed = [pair for path, pair in unlike.items() if ".maps[" in path and ".extraStats" not in path]
    assert all(isinstance(one, int) and isinstance(other, int) and abs(one - other) == 1 for one, other in missed), (
        unlike
    )
    assert len(missed) <= len(expected["result"]["maps"]), unlike
