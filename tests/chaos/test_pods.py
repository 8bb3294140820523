"""A few matches on the pods of a cluster that fails; `python -m tests.chaos pods` plays hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.pods import Size, play_on_pods


@pytest.mark.soak
async def test_every_match_ends_once_and_no_pod_is_left(tmp_path: Path) -> None:
    seen: list[str] = []
    is_clean, figures = await play_on_pods(tmp_path, Size(matches=6, pods=3), 4, seen.append)
    assert is_clean, "\n".join([*seen[-30:], *figures])
