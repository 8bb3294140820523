"""Tests of the bans after wrong RCON passwords."""

from __future__ import annotations

from cs2_simulator.wire.rcon_bans import BAN_S, MAX_ADDRESSES, MAX_FAILURES, MIN_FAILURES, BanList

ADDRESS = "127.0.0.1"


def test_address_is_banned_after_five_failures_within_30_seconds() -> None:
    bans = BanList()
    for second in range(MIN_FAILURES):
        assert not bans.is_banned(ADDRESS, second)
        bans.note_failure(ADDRESS, second)
    assert bans.is_banned(ADDRESS, 5)
    assert not bans.is_banned("127.0.0.2", 5)


def test_address_is_banned_after_ten_slow_failures() -> None:
    bans = BanList()
    for number in range(MAX_FAILURES):
        assert not bans.is_banned(ADDRESS, number * 100)
        bans.note_failure(ADDRESS, number * 100)
    assert bans.is_banned(ADDRESS, 901)


def test_ban_expires_and_failures_start_at_zero() -> None:
    bans = BanList()
    for _ in range(MIN_FAILURES):
        bans.note_failure(ADDRESS, 0)
    assert bans.is_banned(ADDRESS, BAN_S - 1)
    assert not bans.is_banned(ADDRESS, BAN_S)
    bans.note_failure(ADDRESS, BAN_S)
    assert not bans.is_banned(ADDRESS, BAN_S)


def test_number_of_tracked_addresses_is_bounded() -> None:
    bans = BanList()
    for number in range(3 * MAX_ADDRESSES):
        for _ in range(MIN_FAILURES if number % 2 else 1):
            bans.note_failure(f"host {number}", 0)
    assert len(bans._failures) <= MAX_ADDRESSES
    assert len(bans._banned_until_s) <= MAX_ADDRESSES
