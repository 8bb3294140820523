"""Compare the callbacks of two matches that were played with the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differences(found: object, expected: object, path: str = "") -> dict[str, tuple[object, object]]:
    """The paths at which two JSON values differ, with the found and the expected value."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {
            at: pair
            for name in sorted({*found, *expected})
            for at, pair in differences(found.get(name), expected.get(name), f"{path}.{name}").items()
        }
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return {
            at: pair
            for index, (one, other) in enumerate(zip(found, expected, strict=True))
            for at, pair in differences(one, other, f"{path}[{index}]").items()
        }
    return {} if found == expected else {path: (found, expected)}


REPORTED = (".mvps", ".shotsFired", ".shotsHit", ".accuracyPercent")


def assert_same_match(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Everything is equal, except what only plugin reports contain: they are sent once and lost if no process runs.

    The MVP of the last round of each map and shots may be missing in either match, but must not differ.
    """
    unequal = differences(found, expected)
    assert all(None in pair and path.endswith(REPORTED) for path, pair in unequal.items()), unequal
