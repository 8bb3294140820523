"""Which player does this id name? One account, three spellings, one 64-bit decimal string.

Only individual accounts of the public universe are players: `[U:1:N]`, `STEAM_X:Y:Z` and 64-bit ids name the same
account number N, from 1 to 2**32 - 1. Bots, game servers, pending and garbage ids are None, never an error.
Leading zeros are read in `STEAM_X:Y:Z` only, where anonymised logs have them.
"""

from __future__ import annotations

import re

FIRST_ID64 = 76561197960265728
"""The 64-bit id of account 0, which is nobody: universe public, type individual, instance desktop."""

MAX_ACCOUNT = 2**32 - 1
"""An account number has 32 bits."""

LAST_ID64 = FIRST_ID64 + MAX_ACCOUNT

_SEVENTEEN_DIGITS = re.compile(r"[1-9][0-9]{16}")

_BRACKETED = re.compile(r"\[U:1:([1-9][0-9]{0,9})\]")
# The engines print 0 or 1 for the public universe; Z is 31 bits, at most 2147483647.
_CLASSIC = re.compile(r"STEAM_[01]:([01]):([0-9]{1,10})")


def to_id64(text: str) -> str | None:
    """The 64-bit id of a player in any spelling a log or console prints, None for everything else."""
    match = _BRACKETED.fullmatch(text)
    if match:
        return _id64_of_account(int(match[1]))
    match = _CLASSIC.fullmatch(text)
    if match:
        return _id64_of_account(2 * int(match[2]) + int(match[1]))
    return text if account_of(text) is not None else None


def from_account(account: int) -> str:
    """The 64-bit id of an account number; ValueError outside 1 to 2**32 - 1."""
    id64 = _id64_of_account(account)
    if id64 is None:
        raise ValueError("an account number is between 1 and 4294967295")
    return id64


def account_of(id64: str) -> int | None:
    """The account number of a 64-bit id, None when it names no individual player."""
    if not _SEVENTEEN_DIGITS.fullmatch(id64):
        return None
    account = int(id64) - FIRST_ID64
    return account if 1 <= account <= MAX_ACCOUNT else None


def format_u(id64: str) -> str:
    """The spelling of CS2 logs, `[U:1:N]`; ValueError when the id names no player."""
    account = account_of(id64)
    if account is None:
        raise ValueError("not the 64-bit id of a player")
    return f"[U:1:{account}]"


def _id64_of_account(account: int) -> str | None:
    return str(FIRST_ID64 + account) if 1 <= account <= MAX_ACCOUNT else None
