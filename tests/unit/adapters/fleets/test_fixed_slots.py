"""Fleets with fixed slots report nothing on their own."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.adapters.fleets.fixed_slots import FixedSlots


async def test_there_is_nothing_to_know_but_the_slots() -> None:
    fleet = FixedSlots()
    assert (fleet.fault, await fleet.check(), await fleet.capacity()) == (None, (), None)


async def test_following_and_waiting_for_a_loss_last_until_cancelled() -> None:
    changes: list[None] = []
    for waiting in (FixedSlots().follow(lambda: changes.append(None)), FixedSlots().wait_gone("srv_1", "a")):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await waiting
    assert changes == []
