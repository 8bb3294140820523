"""Implement idempotency keys: repeating a request with the same key and body has no further effect."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from matchpod.core.errors import IdempotencyConflictError, InvalidFieldsError, InvalidParamsError
from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.requests.json_limits import NOT_JSON
from matchpod.ports import Database
from matchpod.storage import servers
from matchpod.storage.servers import IDEMPOTENCY_MS, Idempotency

MAX_IDEMPOTENCY_KEY: Final = 255
"""Maximum length of a key in characters. It is enough for a UUID or a compound key, and fits any database index."""

_IDEMPOTENCY_KEY: Final = re.compile(rf"[!-~]{{1,{MAX_IDEMPOTENCY_KEY}}}")


def check_key(key: str | None) -> None:
    """Raise InvalidFieldsError if the request has a key and the key is not valid."""
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        fault = Fault(FaultCode.NOT_VISIBLE_ASCII, {"maximum": MAX_IDEMPOTENCY_KEY})
        raise InvalidFieldsError((fault.at(FieldPath(("Idempotency-Key",))),))


def used_key(org_id: str, key: str | None, decoded: object, now_ms: int, *, place: str = "") -> Idempotency | None:
    """Return the record of a key's use; None without a key. Each `place`, such as a server, has separate keys."""
    if key is None:
        return None
    # Keys contain no spaces, so keys with a place differ from the keys of creations, which have no place.
    name = f"{place} {key}" if place else key
    return Idempotency(org_id=org_id, key=name, body_hash=_hash_of(decoded), created_at_ms=now_ms)


async def earlier_use(db: Database, used: Idempotency) -> tuple[str, str] | None:
    """Return the body hash of a key's earlier use, and the id that it created; None if not used in the last day."""
    return await servers.find_idempotent(db, used.org_id, used.key, used.created_at_ms - IDEMPOTENCY_MS)


async def made_before(db: Database, used: Idempotency | None) -> str | None:
    """Return the id that an earlier request created with the same key and body; None if there was no such request.

    Raise IdempotencyConflictError if the earlier request had another body.
    """
    earlier = None if used is None else await earlier_use(db, used)
    if earlier is None or used is None:
        return None
    if earlier[0] != used.body_hash:
        raise key_conflict()
    return earlier[1]


def key_conflict() -> IdempotencyConflictError:
    """Return the error for a key that was already used with another body."""
    return IdempotencyConflictError("This Idempotency-Key was used with a different request body. Use a new key.")


def _hash_of(decoded: object) -> str:
    """Return a hash of a body that does not depend on whitespace and key order."""
    try:
        canonical = msgspec.json.encode(decoded, order="deterministic")
    except (ValueError, RecursionError) as exc:
        raise InvalidParamsError(NOT_JSON) from exc
    return hashlib.sha256(canonical).hexdigest()
