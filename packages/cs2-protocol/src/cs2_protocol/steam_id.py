"""Convert Steam ids between `[U:1:N]`, `STEAM_X:Y:Z` and 64-bit ids.

A player is an individual account of the public universe. All three formats contain its account number N, from 1 to
2**32 - 1. The ids of bots and game servers, pending ids and invalid ids are converted to None; they are not an error.
Leading zeros are accepted in `STEAM_X:Y:Z` only, because they occur in anonymized logs.
"""

from __future__ import annotations

import functools
import re

FIRST_ID64 = 76561197960265728
"""The 64-bit id of account 0 (universe public, type individual, instance desktop). It is not the id of a player."""

MAX_ACCOUNT = 2**32 - 1
"""Highest account number. Account numbers have 32 bits."""

_SEVENTEEN_DIGITS = re.compile(r"[1-9][0-9]{16}")

_BRACKETED = re.compile(r"\[U:1:([1-9][0-9]{0,9})\]")
# X is the universe: the public universe is printed as 0 or 1. Z has 31 bits, so it is at most 2147483647.
_CLASSIC = re.compile(r"STEAM_[01]:([01]):([0-9]{1,10})")


def to_id64(text: str) -> str | None:
    """Return the 64-bit id of a player, from any format that logs or consoles print; None for any other text."""
    match = _BRACKETED.fullmatch(text)
    if match:
        return _id64_of_account(int(match[1]))
    match = _CLASSIC.fullmatch(text)
    if match:
        return _id64_of_account(2 * int(match[2]) + int(match[1]))
    return text if account_of(text) is not None else None


def from_account(account: int) -> str:
    """Return the 64-bit id of an account number; raise ValueError outside 1 to 2**32 - 1."""
    id64 = _id64_of_account(account)
    if id64 is None:
        raise ValueError("an account number must be between 1 and 4294967295")
    return id64


def account_of(id64: str) -> int | None:
    """Return the account number of a 64-bit id; None if it is not the id of a player."""
    if not _SEVENTEEN_DIGITS.fullmatch(id64):
        return None
    account = int(id64) - FIRST_ID64
    return account if 1 <= account <= MAX_ACCOUNT else None


def format_steam3(id64: str) -> str:
    """Format a 64-bit id as in CS2 logs, `[U:1:N]`; raise ValueError if it is not the id of a player."""
    account = account_of(id64)
    if account is None:
        raise ValueError("not the 64-bit id of a player")
    return f"[U:1:{account}]"


@functools.lru_cache(maxsize=16_384)
def _id64_of_account(account: int) -> str | None:
    return str(FIRST_ID64 + account) if 1 <= account <= MAX_ACCOUNT else None
