"""Query a game server over UDP (A2S_INFO), as server browsers do, to find out whether it runs.

Source: the page "Server queries" of Valve's developer wiki. A game server answers with its description, or with a
challenge number that the client must send back first.
"""

from __future__ import annotations

REPLY_HEAD = b"\xff\xff\xff\xff"
"""The first bytes of every query or answer that is sent in a single datagram."""

INFO_REQUEST = REPLY_HEAD + b"TSource Engine Query\0"

_CHALLENGE, _INFO = b"A", b"I"


def is_answer(datagram: bytes) -> bool:
    """True if a datagram is a game server's answer to the query."""
    return datagram[: len(REPLY_HEAD)] == REPLY_HEAD and datagram[len(REPLY_HEAD) :][:1] in (_CHALLENGE, _INFO)
