"""Sign and verify callbacks according to Standard Webhooks: an HMAC over id, timestamp and body.

A secret is `whsec_` followed by base64. The signature header may contain several signatures, so that receivers that
still use the old secret after a replacement can verify callbacks.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from matchpod.core.secrets import HIDDEN
from matchpod.ports import Vault

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
"""Size of a new secret in bytes. Standard Webhooks requires 24 to 64."""

MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64

TOLERANCE_S = 300
"""Maximum difference in seconds between the timestamp and the receiver's clock. It limits for how long a recorded
callback can be replayed."""

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
AUTHORIZATION_HEADER = "Authorization"

_SCHEME = "v1"
_MESSAGE_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]+")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def new_secret(random_bytes: bytes) -> str:
    _check_size(random_bytes)
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the signature. ValueError if the secret is invalid, or if the id would make the signed text ambiguous."""
    if not _MESSAGE_ID.fullmatch(message_id):
        raise ValueError("the id of a callback must consist of visible ASCII characters without a full stop")
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"{_SCHEME},{base64.b64encode(digest).decode()}"


def verify(
    secrets: Sequence[str], headers: Mapping[str, str], body: bytes, *, now_s: int, tolerance_s: int = TOLERANCE_S
) -> bool:
    """True if a signature matches one of the secrets and the timestamp is recent. Header names are case-insensitive."""
    lowered = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = lowered.get(ID_HEADER, ""), lowered.get(TIMESTAMP_HEADER, "")
    if not _MESSAGE_ID.fullmatch(message_id) or not _TIMESTAMP.fullmatch(timestamp):
        return False
    if abs(now_s - int(timestamp)) > tolerance_s:
        return False
    signatures = [text.encode(errors="replace") for text in lowered.get(SIGNATURE_HEADER, "").split()]
    is_valid = False
    for secret in secrets:
        expected = sign(secret, message_id, int(timestamp), body).encode()
        for signature in signatures:
            is_valid |= hmac.compare_digest(expected, signature)  # no early exit, to hide which signature matches
    return is_valid


def signing_secrets(
    vault: Vault, secret: bytes, old_secret: bytes | None, old_until_ms: int | None, *, now_ms: int
) -> list[str]:
    """Return the current secret and, while it is in use, the old secret.

    ValueError if the current secret cannot be decrypted.
    """
    secrets = [vault.open(secret)]
    if old_secret is not None and old_until_ms is not None and now_ms < old_until_ms:
        with suppress(ValueError):  # the old secret cannot be decrypted; the current secret is enough
            secrets.append(vault.open(old_secret))
    return secrets


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
    """Return the headers of an attempt, signed with every secret. A retry has the same id, but a new timestamp."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Matchpod/{version}",
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp_s),
        SIGNATURE_HEADER: " ".join(sign(secret, message_id, timestamp_s, body) for secret in secrets),
        "X-Matchpod-Attempt": str(attempt),
    }
    if authorization is not None:
        headers[AUTHORIZATION_HEADER] = authorization
    return headers


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with signature and authorization masked, because they would allow a replay of the callback.

    The version prefix of a signature, such as `v1,`, is kept.
    """
    hidden = {SIGNATURE_HEADER: f"{_SCHEME},{HIDDEN}", AUTHORIZATION_HEADER: HIDDEN}
    return {name: hidden.get(name, value) for name, value in headers.items()}


def _key(secret: str) -> bytes:
    encoded = secret.removeprefix(SECRET_PREFIX)
    if encoded == secret:
        raise ValueError(f"a webhook secret must begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ValueError("a webhook secret must be base64 after its prefix") from exc
    _check_size(key)
    return key


def _check_size(key: bytes) -> None:
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise ValueError(f"a webhook secret must have {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes")
