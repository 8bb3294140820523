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


REPORTED = (".shotsFired", ".shotsHit", ".accuracyPercent")


def incomplete_mvps(value: object, path: str = "") -> set[str]:
    """The paths of MVPs that say that they are incomplete."""
    if isinstance(value, list):
        return {at for index, one in enumerate(value) for at in incomplete_mvps(one, f"{path}[{index}]")}
    if not isinstance(value, dict):
        return set()
    if value.get("mvpsComplete") is False:
        return {f"{path}.{name}" for name in ("mvps", "mvpsComplete", "extraStats.mvps")}
    return {at for name, one in value.items() for at in incomplete_mvps(one, f"{path}.{name}")}


def assert_same_match(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Everything is equal, except what only plugin reports contain: they are sent once and lost if no process runs.

    The MVP of the last round of each map and shots may be missing in either match, but must not differ.
    """
    unequal = differences(found, expected)
    incomplete = incomplete_mvps(found) | incomplete_mvps(expected)
    is_missing = {path: None in pair and path.endswith(REPORTED) for path, pair in unequal.items()}
    assert all(is_missing[path] or path in incomplete for path in unequal), unequal
