"""Create, encrypt and decrypt the two tokens with which a game server and its plugins identify themselves.

Tokens are stored hashed, to find the match of a post, and encrypted, because the server is configured with them again
when another process resumes the match. The hash needs no salt and no slow function, because 256 random bits cannot be
guessed; every post would have to wait for a slow function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import msgspec

from matchpod.ports import Vault
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.storage.servers import ServerRow, token_hash


class IngestTokens(msgspec.Struct, frozen=True):
    """The tokens of a match: one in the URL for its log, one for the reports of its plugins."""

    log: str
    report: str


class TokenColumns(TypedDict):
    """The columns in which the tokens of a server are stored."""

    log_token_hash: str
    report_token_hash: str
    log_token: bytes
    report_token: bytes


def new_tokens(random_bytes: Callable[[int], bytes], installation: str = "") -> IngestTokens:
    """Create the tokens of a new server.

    The log token begins with the id of the installation, so that a server's log address shows who uses the server.
    """
    log, report = (new_token(random_bytes(TOKEN_RANDOM_BYTES)) for _ in range(2))
    return IngestTokens(f"{installation}-{log}" if installation else log, report)


def token_columns(tokens: IngestTokens, vault: Vault) -> TokenColumns:
    """Hash and encrypt tokens, to store them."""
    return TokenColumns(
        log_token_hash=token_hash(tokens.log),
        report_token_hash=token_hash(tokens.report),
        log_token=vault.seal(tokens.log),
        report_token=vault.seal(tokens.report),
    )


def open_tokens(row: ServerRow, vault: Vault) -> IngestTokens:
    """Decrypt the tokens of a server; ValueError if it was released, or if they were encrypted with another key."""
    if row.log_token is None or row.report_token is None:
        raise ValueError("a released server has no tokens")
    return IngestTokens(vault.open(row.log_token), vault.open(row.report_token))
