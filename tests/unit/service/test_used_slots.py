"""Slots in use elsewhere are skipped for a while, and reported once."""

from __future__ import annotations

from matchpod.service.runner.used_slots import ASK_AGAIN_MS, UsedSlots


def test_slot_in_use_is_skipped_until_it_may_be_asked_again() -> None:
    used = UsedSlots()
    used.record("eu", "a", 0, "in use")
    assert used.skipped("eu", ASK_AGAIN_MS - 1) == {"a": "in use"}
    assert used.skipped("us", 0) == {}
    assert used.skipped("eu", ASK_AGAIN_MS) == {}


def test_slot_is_new_until_it_is_known_to_be_in_use_and_again_after_it_was_free() -> None:
    used = UsedSlots()
    assert used.record("eu", "a", 0, "in use")
    assert not used.record("eu", "a", ASK_AGAIN_MS, "in use")
    assert used.record("eu", "b", 0, "in use")
    used.clear("eu", "a")
    assert used.skipped("eu", 0) == {"b": "in use"}
    assert used.record("eu", "a", 0, "in use")
