"""Addresses that guess passwords are banned for a while."""

from __future__ import annotations

from matchpod.simulator.wire.rcon_bans import BAN_S, MAX_ADDRESSES, MAX_FAILURES, MIN_FAILURES, BanList

HERE = "127.0.0.1"


def test_five_failures_in_half_a_minute_ban() -> None:
    bans = BanList()
    for second in range(MIN_FAILURES):
        assert not bans.is_banned(HERE, second)
        bans.note_failure(HERE, second)
    assert bans.is_banned(HERE, 5)
    assert not bans.is_banned("127.0.0.2", 5)


def test_ten_slow_failures_ban_too() -> None:
    bans = BanList()
    for number in range(MAX_FAILURES):
        assert not bans.is_banned(HERE, number * 100)
        bans.note_failure(HERE, number * 100)
    assert bans.is_banned(HERE, 901)


def test_ban_ends_and_failures_are_forgotten() -> None:
    bans = BanList()
    for _ in range(MIN_FAILURES):
        bans.note_failure(HERE, 0)
    assert bans.is_banned(HERE, BAN_S - 1)
    assert not bans.is_banned(HERE, BAN_S)
    bans.note_failure(HERE, BAN_S)
    assert not bans.is_banned(HERE, BAN_S)


def test_memory_for_addresses_is_bounded() -> None:
    bans = BanList()
    for number in range(3 * MAX_ADDRESSES):
        for _ in range(MIN_FAILURES if number % 2 else 1):
            bans.note_failure(f"host {number}", 0)
    assert len(bans._failures) <= MAX_ADDRESSES
    assert len(bans._banned_until_s) <= MAX_ADDRESSES
