"""The rate limit: units per minute and key, all of them at once after an idle minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from matchpod.core.errors import RateLimitError
from matchpod.service.access.rate_limit import MAX_KEYS, FairPacer, RateLimiter
from tests.clocks import ManualClock


def limiter_of(per_minute: int, time: ManualClock) -> RateLimiter:
    return RateLimiter(per_minute, time, owner="this key", unit="requests")


def is_allowed(limiter: RateLimiter, key: str = "k") -> bool:
    try:
        limiter.acquire(key)
    except RateLimitError:
        return False
    return True


def test_bucket_refills_gradually() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(60, time)
    assert [is_allowed(limiter) for _ in range(61)] == [True] * 60 + [False]
    time.at_ms += 2_000
    assert [is_allowed(limiter) for _ in range(3)] == [True, True, False]


def test_bucket_holds_at_most_a_minute_of_requests() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(3, time)
    time.at_ms += 3_600_000
    assert sum(is_allowed(limiter) for _ in range(10)) == 3


@pytest.mark.parametrize(("per_minute", "wait_s"), [(1, 60), (7, 9), (6000, 1)])
def test_error_says_when_the_next_request_is_allowed(per_minute: int, wait_s: int) -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(per_minute, time)
    for _ in range(per_minute):
        limiter.acquire("k")
    with pytest.raises(RateLimitError) as rejected:
        limiter.acquire("k")
    assert rejected.value.retry_after_s == wait_s
    assert str(rejected.value) == f"The limit of this key is {per_minute} requests per minute. Retry in {wait_s} s."
    time.at_ms += round(wait_s * 1000)
    assert is_allowed(limiter)


def test_least_recently_used_key_is_dropped_first() -> None:
    limiter = limiter_of(1, ManualClock(100_000))
    assert is_allowed(limiter, "first")
    for number in range(MAX_KEYS - 1):
        limiter.acquire(str(number))
    assert not is_allowed(limiter, "first")
    limiter.acquire("one too many")
    assert not is_allowed(limiter, "first")
    assert is_allowed(limiter, "0")


def test_clock_that_was_set_back_takes_no_units_away() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(60, time)
    assert is_allowed(limiter)
    time.at_ms -= 3_600_000
    assert sum(is_allowed(limiter) for _ in range(70)) == 59


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time leaps to the next timer when nothing is left to do."""

    now_s = 1_000.0

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


async def turns(pacer: FairPacer, *clients: str) -> list[tuple[str, float | None]]:
    """Ask for a turn for each client at once; return when they had it, in this order, and those that had none."""
    began_s, served = asyncio.get_running_loop().time(), list[tuple[str, float | None]]()

    async def one(client: str) -> None:
        try:
            await pacer.turn(client)
        except RateLimitError:
            served.append((client, None))
        else:
            served.append((client, round(asyncio.get_running_loop().time() - began_s, 3)))

    await asyncio.gather(*map(one, clients))
    return served


def run(scenario: Callable[[FairPacer], Awaitable[None]], *, max_wait_s: float = 0.25) -> None:
    async def main() -> None:
        await scenario(FairPacer(10, burst=3, max_wait_s=max_wait_s, what="The metrics"))

    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        runner.run(main())


def test_pacer_lets_a_burst_through_and_then_spaces_the_others_evenly() -> None:
    async def scenario(pacer: FairPacer) -> None:
        assert await turns(pacer, *"aaaaa") == [("a", 0.0)] * 3 + [("a", 0.1), ("a", 0.2)]
        assert await turns(pacer, "a") == [("a", 0.1)]
        await asyncio.sleep(3600)
        assert await turns(pacer, *"aaaa") == [("a", 0.0)] * 3 + [("a", 0.1)]

    run(scenario)


def test_client_with_many_requests_does_not_hold_up_another_one() -> None:
    async def scenario(pacer: FairPacer) -> None:
        served = await turns(pacer, *"aaaaaaaaaa", "b", "c")
        assert served[:3] == [("a", 0.0)] * 3
        assert {("b", 0.2), ("a", 0.1)} <= set(served)
        assert sorted(client for client, at_s in served if at_s is None) == ["a"] * 6 + ["c"]

    run(scenario)


def test_request_that_would_wait_too_long_is_rejected() -> None:
    async def scenario(pacer: FairPacer) -> None:
        rejected = [client for client, at_s in await turns(pacer, *"aaaaaaa") if at_s is None]
        assert len(rejected) == 2
        await turns(pacer, *"aaa")
        with pytest.raises(
            RateLimitError, match=r"The metrics are served 10 times per second\. Retry later\."
        ) as error:
            await asyncio.gather(*(pacer.turn("a") for _ in range(8)))
        assert error.value.retry_after_s == 1

    run(scenario)


def test_without_a_time_to_wait_excess_is_rejected_at_once() -> None:
    async def scenario(pacer: FairPacer) -> None:
        assert await turns(pacer, *"aaab") == [("a", 0.0)] * 3 + [("b", None)]
        await asyncio.sleep(0.1)
        assert await turns(pacer, *"ba") == [("b", 0.0), ("a", None)]

    run(scenario, max_wait_s=0.0)


@pytest.mark.parametrize("after_s", [0.0, 0.1], ids=["at once", "before its turn, in the same step of the loop"])
def test_client_that_leaves_gives_its_turn_to_the_next(after_s: float) -> None:
    async def scenario(pacer: FairPacer) -> None:
        await turns(pacer, *"aaa")
        gone = asyncio.create_task(pacer.turn("a"))
        asyncio.get_running_loop().call_later(after_s, gone.cancel)
        assert await turns(pacer, "b") == [("b", 0.1)]

    run(scenario)
