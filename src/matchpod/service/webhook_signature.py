"""How does a receiver know that a callback is ours? By a signature after Standard Webhooks, over id, time and body.

A secret is `whsec_` and base64; the signature header may hold several signatures, so that a secret can be replaced
while receivers still know the old one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
"""Of a new secret; Standard Webhooks asks for 24 to 64."""

MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64

TOLERANCE_S = 300
"""How far the time of a callback may be from the receiver's: a recorded one is of no use later."""

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

_SCHEME = "v1"
_MESSAGE_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]+")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def new_secret(random_bytes: bytes) -> str:
    """A secret of these bytes, as receivers are given it."""
    _check_size(random_bytes)
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """One signature; ValueError for a secret that is none, or an id that would blur where it ends."""
    if not _MESSAGE_ID.fullmatch(message_id):
        raise ValueError("the id of a callback is visible ASCII without a full stop")
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"{_SCHEME},{base64.b64encode(digest).decode()}"


def verify(
    secrets: Sequence[str], headers: Mapping[str, str], body: bytes, *, now_s: int, tolerance_s: int = TOLERANCE_S
) -> bool:
    """True when one of the signatures is of one of these secrets and the time is near; headers in any case."""
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = given.get(ID_HEADER, ""), given.get(TIMESTAMP_HEADER, "")
    if not _MESSAGE_ID.fullmatch(message_id) or not _TIMESTAMP.fullmatch(timestamp):
        return False
    if abs(now_s - int(timestamp)) > tolerance_s:
        return False
    signatures = [text.encode(errors="replace") for text in given.get(SIGNATURE_HEADER, "").split()]
    is_ours = False
    for secret in secrets:
        expected = sign(secret, message_id, int(timestamp), body).encode()
        for signature in signatures:
            is_ours |= hmac.compare_digest(expected, signature)  # all are compared: time tells nothing
    return is_ours


def attempt_headers(
    secrets: Sequence[str],
    message_id: str,
    body: bytes,
    *,
    timestamp_s: int,
    attempt: int,
    version: str,
    authorization: str | None = None,
) -> dict[str, str]:
    """The headers of one attempt, signed with every secret; a repeated one has the same id and its own time."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Matchpod/{version}",
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp_s),
        SIGNATURE_HEADER: " ".join(sign(secret, message_id, timestamp_s, body) for secret in secrets),
        "X-Matchpod-Attempt": str(attempt),
    }
    if authorization is not None:
        headers["Authorization"] = authorization
    return headers


def _key(secret: str) -> bytes:
    encoded = secret.removeprefix(SECRET_PREFIX)
    if encoded == secret:
        raise ValueError(f"a webhook secret begins with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ValueError("a webhook secret is base64 after its prefix") from exc
    _check_size(key)
    return key


def _check_size(key: bytes) -> None:
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise ValueError(f"a webhook secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes")
