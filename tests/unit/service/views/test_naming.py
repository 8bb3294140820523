"""Ids of series and maps are derived from those of their match."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from matchpod.service.views import naming


@given(st.uuids(), st.integers(min_value=1, max_value=5))
def test_ids_of_maps_and_series_are_uuids_of_version_5(game_id: uuid.UUID, number: int) -> None:
    assert naming.map_id(str(game_id), number) == str(uuid.uuid5(game_id, f"map {number}"))
    assert naming.series_uuid(str(game_id)) == str(uuid.uuid5(game_id, "series"))
