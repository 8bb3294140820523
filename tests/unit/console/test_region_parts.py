"""What is shown of a region: its servers that are kept for demos."""

from __future__ import annotations

import pytest
from msgspec import UNSET, UnsetType

from matchpod.console.rendering import fragment
from matchpod.service.regions.regions import RegionView


@pytest.mark.parametrize(
    ("draining", "text"), [(UNSET, "3 in use, 8 in"), (0, "3 in use, 8 in"), (2, "3 in use (2 kept for demos), 8 in")]
)
def test_servers_that_are_kept_for_demos_are_counted_if_there_are_any(draining: int | UnsetType, text: str) -> None:
    view = RegionView(
        code="eu",
        name="Europe",
        location="Bonn",
        is_active=True,
        ready=5,
        allocated=3,
        capacity=8,
        draining=draining,
        notice=None,
    )
    assert text in fragment("region_parts.html", "capacity_of", view).decode()
