"""Read the log addresses of a game server to find the matches that use it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_LOG_ADDRESS: Final = re.compile(r".*/ingest/logs/([^/?#]+)")
_CHECK: Final = "check-"
_INSTALLATION: Final = re.compile(r"(mp-[0-9a-f]{16})-")


def log_tokens_in(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the log token of each address that belongs to Matchpod; other addresses are ignored."""
    found = map(_LOG_ADDRESS.fullmatch, addresses)
    return tuple(address[1] for address in found if address is not None)


def check_token(installation: str, secret: str) -> str:
    """Return a log token for a check of a server. The token belongs to no match."""
    return f"{installation}-{_CHECK}{secret}" if installation else f"{_CHECK}{secret}"


def may_be_check_token(log_token: str) -> bool:
    """True if this token may be from `check_token`, and so belong to no match."""
    found = _INSTALLATION.match(log_token)
    return log_token.startswith(_CHECK, 0 if found is None else found.end())


def installation_in(log_token: str) -> str | None:
    """Return the installation id at the beginning of a log token; None for tokens of early versions."""
    found = _INSTALLATION.match(log_token)
    return None if found is None else found[1]
