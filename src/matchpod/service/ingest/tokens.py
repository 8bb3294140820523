"""Create, encrypt and decrypt the two tokens by which the service identifies a game server and its plugins.

Tokens are stored as hashes, to find the match of a post, and encrypted, because a process that resumes a match
configures the server with its tokens again. The hash is fast and has no salt, because 256 random bits cannot be
guessed; a slow hash would delay every post.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import msgspec

from matchpod.ports import Vault
from matchpod.service.identity.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.storage.servers import ServerRow, token_hash


class IngestTokens(msgspec.Struct, frozen=True):
    """The tokens of a server: one is part of its log URL, the other is for the reports of its plugins."""

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

    The log token begins with the id of the installation, so that a server's log address shows which installation uses
    it.
    """
    log, report = (new_token(random_bytes(TOKEN_RANDOM_BYTES)) for _ in range(2))
    return IngestTokens(f"{installation}-{log}" if installation else log, report)


def token_columns(tokens: IngestTokens, vault: Vault) -> TokenColumns:
    """Return the hashed and encrypted tokens, to be stored."""
    return TokenColumns(
        log_token_hash=token_hash(tokens.log),
        report_token_hash=token_hash(tokens.report),
        log_token=vault.seal(tokens.log),
        report_token=vault.seal(tokens.report),
    )


def open_tokens(row: ServerRow, vault: Vault) -> IngestTokens:
    """Decrypt the tokens of a server. ValueError if the server was released, or if the vault key is wrong."""
    if row.log_token is None or row.report_token is None:
        raise ValueError("a released server has no tokens")
    return IngestTokens(vault.open(row.log_token), vault.open(row.report_token))
