"""Tests of the limits per token: a real match never reaches them, and a flood waits."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.core.errors import RateLimitError
from matchpod.service.ingest.budget import (
    BURST_BYTES,
    BYTES_PER_S,
    MAX_AT_ONCE,
    NORMAL_SPEED,
    POST_BYTES,
    Budget,
    IngestBudgets,
    IngestLimits,
)


def test_burst_is_free_and_then_the_rate_applies() -> None:
    budget = Budget(now_s=0.0)
    budget.spend(BURST_BYTES - POST_BYTES)
    assert budget.wait_s(0.0, 1.0) == 0.0
    budget.spend(2 * BYTES_PER_S - POST_BYTES)
    assert budget.wait_s(0.0, 1.0) == pytest.approx(2.0)
    assert budget.wait_s(1.5, 1.0) == pytest.approx(0.5)
    assert budget.wait_s(2.0, 1.0) == 0.0


def test_post_costs_more_than_its_bytes() -> None:
    budget = Budget(now_s=0.0)
    for _ in range(BURST_BYTES // POST_BYTES + 1):
        budget.spend(0)
    assert budget.wait_s(0.0, 1.0) > 0


def test_faster_region_gets_more_in_proportion() -> None:
    budget = Budget(now_s=0.0)
    budget.spend(BURST_BYTES + 10 * BYTES_PER_S - POST_BYTES)
    assert budget.wait_s(0.0, NORMAL_SPEED) == pytest.approx(10.0)
    assert budget.wait_s(0.0, 10 * NORMAL_SPEED) == pytest.approx(1.0)


def test_budget_does_not_grow_beyond_the_burst() -> None:
    budget = Budget(now_s=0.0)
    assert budget.wait_s(1e9, 1.0) == 0.0
    budget.spend(BURST_BYTES + BYTES_PER_S - POST_BYTES)
    assert budget.wait_s(1e9, 1.0) == pytest.approx(1.0)


async def test_posts_of_one_token_beyond_the_limit_wait_for_earlier_ones() -> None:
    budgets, release, running = IngestBudgets(limits=IngestLimits(max_wait_s=60.0)), asyncio.Event(), 0

    async def post(token: str) -> None:
        nonlocal running
        async with budgets.turn(token, 1.0):
            running += 1
            await release.wait()

    posts = [asyncio.create_task(post("flood")) for _ in range(3 * MAX_AT_ONCE)]
    posts.append(asyncio.create_task(post("other")))
    while running <= MAX_AT_ONCE:
        await asyncio.sleep(0)
    assert running == MAX_AT_ONCE + 1, "another token is not affected"
    release.set()
    await asyncio.gather(*posts)
    assert running == len(posts)


async def test_post_that_waited_too_long_is_rejected_with_a_sentence() -> None:
    budgets = IngestBudgets(limits=IngestLimits(max_wait_s=0.05))
    async with budgets.turn("flood", 1.0) as budget:
        budget.spend(100 * BURST_BYTES)
    with pytest.raises(RateLimitError) as rejected:
        async with budgets.turn("flood", 1.0):
            pass
    assert str(rejected.value) == "This token sends more than 256 KiB per second. Send the post again."
    assert rejected.value.retry_after_s == 1
    async with budgets.turn("other", 1.0):
        pass


async def test_least_recently_used_budget_is_dropped() -> None:
    budgets = IngestBudgets(limits=IngestLimits(max_tokens=2, max_wait_s=0.05))
    for token in ("a", "b"):
        async with budgets.turn(token, 1.0) as budget:
            budget.spend(100 * BURST_BYTES)
    async with budgets.turn("c", 1.0):
        pass
    async with budgets.turn("a", 1.0):
        pass
