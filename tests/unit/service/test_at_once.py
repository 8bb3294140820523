"""Coroutines that do not wait are run without a task."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.service.at_once import WouldWaitError, result_at_once


async def number() -> int:
    return 7


def test_result_of_a_coroutine_that_does_not_wait() -> None:
    assert result_at_once(number()) == 7


async def test_coroutine_that_waits_is_ended() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("ended")

    with pytest.raises(WouldWaitError):
        result_at_once(waits())
    assert ended == ["ended"]


async def failing() -> None:
    raise KeyError("x")


def test_error_of_a_coroutine_is_raised() -> None:
    with pytest.raises(KeyError):
        result_at_once(failing())
