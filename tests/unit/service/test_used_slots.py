"""Slots in use elsewhere are skipped for a while, reported once, and asked again by one match at a time."""

from __future__ import annotations

import asyncio

from matchpod.service.runner.used_slots import ASK_AGAIN_MS, UsedSlots


def test_slot_in_use_is_skipped_until_it_may_be_asked_again() -> None:
    used = UsedSlots()
    used.record("eu", "a", 0, "in use")
    assert used.skipped("eu", ASK_AGAIN_MS - 1) == {"a": "in use"}
    assert used.skipped("us", 0) == {}
    assert used.skipped("eu", ASK_AGAIN_MS) == {}
    assert (used.known("eu"), used.known("us")) == ({"a"}, set())


def test_slot_is_new_until_it_is_known_to_be_in_use_and_again_after_it_was_free() -> None:
    used = UsedSlots()
    assert used.record("eu", "a", 0, "in use")
    assert not used.record("eu", "a", ASK_AGAIN_MS, "in use")
    assert used.record("eu", "b", 0, "in use")
    used.clear("eu", "a")
    assert used.known("eu") == {"b"}
    assert used.record("eu", "a", 0, "in use")


async def test_matches_ask_one_after_the_other_in_each_region() -> None:
    used = UsedSlots()
    await used.begin("eu", "srv_1")
    await used.begin("eu", "srv_1")
    await used.begin("us", "srv_2")
    cancelled, waiting = (asyncio.create_task(used.begin("eu", name)) for name in ("srv_3", "srv_4"))
    await asyncio.sleep(0)
    cancelled.cancel()
    for name in ("srv_3", "srv_4"):
        used.end("eu", name)
    await asyncio.sleep(0)
    assert not waiting.done()
    used.end("eu", "srv_1")
    await waiting
    used.end("eu", "srv_4")
    await used.begin("eu", "srv_1")
