"""The entry point of game server images, with a game that never stops sending."""

from __future__ import annotations

import asyncio

import pytest

from matchpod_gameserver.rcon import MAX_BYTES, ask
from tests.lying_server import Lie, LyingServer


@pytest.mark.parametrize("lie", [Lie.EMPTY_PACKETS, Lie.ENDLESS_PARTS, Lie.DRIP])
async def test_game_that_never_stops_sending_is_asked_for_a_limited_time(lie: Lie) -> None:
    async with LyingServer(lie, about="status") as port, asyncio.timeout(20):
        answer = await asyncio.to_thread(ask, ("127.0.0.1", port), "x", "status", 1.0)
        assert len(answer) <= MAX_BYTES
