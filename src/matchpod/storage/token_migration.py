"""Replace the tokens of open servers, which early versions stored as plain text, with hashes and sealed tokens."""

from __future__ import annotations

from collections.abc import Callable

from matchpod.ports import Database, Statement
from matchpod.storage.servers import token_hash

Seal = Callable[[str], bytes]
"""A function that encrypts a secret."""


async def hash_tokens(db: Database, seal: Seal) -> list[Statement]:
    """Return the statements that replace the tokens. They must run after the columns were renamed.

    The last statement fails (NothingChangedError) if another process has created or changed a server since the tokens
    were read.
    """
    plain = await db.read("SELECT id, log_token, report_token FROM servers WHERE phase <> 'released'")
    # If the tokens are bytes, another process has just applied the migration. Our migration will fail as a duplicate.
    converted = [
        _convert(str(server_id), log_token, report_token, seal)
        for server_id, log_token, report_token in plain
        if isinstance(log_token, str) and isinstance(report_token, str)
    ]
    check = (
        "UPDATE schema_versions SET version = version WHERE NOT EXISTS ("
        "SELECT 1 FROM servers WHERE phase <> 'released' AND log_token IS NULL)"
    )
    return [*converted, Statement(check, must_change=True)]


def _convert(server_id: str, log_token: str, report_token: str, seal: Seal) -> Statement:
    return Statement(
        "UPDATE servers SET log_token_hash = :log_hash, log_token = :log_sealed,"
        " report_token_hash = :report_hash, report_token = :report_sealed"
        " WHERE id = :id AND log_token_hash = :log_token AND report_token_hash = :report_token",
        {
            "id": server_id,
            "log_token": log_token,
            "log_hash": token_hash(log_token),
            "log_sealed": seal(log_token),
            "report_token": report_token,
            "report_hash": token_hash(report_token),
            "report_sealed": seal(report_token),
        },
    )
