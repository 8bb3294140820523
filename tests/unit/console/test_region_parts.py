"""What is shown of a region: its state, and its servers that are kept for demos."""

from __future__ import annotations

import pytest
from msgspec import UNSET, UnsetType

from matchpod.console.rendering import fragment
from matchpod.service.regions.regions import RegionView


@pytest.mark.parametrize(
    ("draining", "text"), [(UNSET, "3 in use, 8 in"), (0, "3 in use, 8 in"), (2, "3 in use (2 kept for demos), 8 in")]
)
def test_servers_that_are_kept_for_demos_are_counted_if_there_are_any(draining: int | UnsetType, text: str) -> None:
    assert text in fragment("region_parts.html", "capacity_of", region(draining=draining)).decode()


@pytest.mark.parametrize(
    ("is_active", "is_failing", "chip"),
    [(True, False, 'good">on'), (True, True, 'bad">failing'), (False, True, '">switched off')],
)
def test_region_that_starts_no_servers_looks_so(*, is_active: bool, is_failing: bool, chip: str) -> None:
    view = region(is_active=is_active)
    assert chip in fragment("region_parts.html", "state_of", view, is_failing).decode().replace("chip ", "")


def region(*, draining: int | UnsetType = UNSET, is_active: bool = True) -> RegionView:
    return RegionView(
        code="eu",
        name="Europe",
        location="Bonn",
        is_active=is_active,
        ready=5,
        allocated=3,
        capacity=8,
        draining=draining,
        notice=None,
    )
