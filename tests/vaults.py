"""A vault for tests, with the key of the stored databases, and the tokens of servers sealed with it."""

from __future__ import annotations

from matchpod.adapters.vault import KeyFileVault
from matchpod.service.ingest.tokens import IngestTokens, TokenColumns, open_tokens, token_columns
from matchpod.storage.servers import ServerRow

VAULT = KeyFileVault.from_text("A" * 43 + "=")


def stored_tokens(log: str, report: str) -> TokenColumns:
    """Return the columns of a server with these tokens."""
    return token_columns(IngestTokens(log, report), VAULT)


def tokens_of(row: ServerRow) -> IngestTokens:
    """Return the tokens of a server."""
    return open_tokens(row, VAULT)
