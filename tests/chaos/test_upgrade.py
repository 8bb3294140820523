"""A rolling upgrade from the last release, and back, with few matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.upgrade import measure_upgrade
from tests.last_release import NoHistoryError


@pytest.mark.soak
async def test_rolling_upgrade_and_rollback_lose_no_match_and_no_request(tmp_path: Path) -> None:
    said: list[str] = []
    try:
        is_clean, _ = await measure_upgrade(tmp_path, 4, said.append, rest_s=5.0)
    except NoHistoryError as exc:
        pytest.skip(str(exc))
    assert is_clean, "\n".join(said)
