"""Encrypt secrets at rest with AES-256-GCM and a key that is read from a file or given as text.

A sealed secret is a version byte, the nonce, and the ciphertext with its tag. The key file is created on first use and
never changed; without it, no sealed secret can be opened. During a key rotation there are several keys: the first key
seals secrets, and all keys open them.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from matchpod.adapters.private_files import sync_folder

KEY_BYTES = 32
"""Key size of AES-256 in bytes."""

_VERSION = b"\x01"
_NONCE_BYTES = 12
"""Nonce size in bytes for which GCM is designed. Random nonces are safe for 2**32 secrets per key."""

_KEY_MODE = 0o600


class VaultKeyError(Exception):
    """A key is invalid, or cannot be read or created. The message says what is wrong."""


class KeyFileVault:
    """Seals secrets with a key, and opens secrets that were sealed with this key or with a key in `others`."""

    def __init__(self, key: bytes, *others: bytes) -> None:
        for given in (key, *others):
            if len(given) != KEY_BYTES:
                raise VaultKeyError(f"a key must have {KEY_BYTES} bytes, this one has {len(given)}")
        self._cipher = AESGCM(key)
        self._others = tuple(AESGCM(other) for other in others)

    @classmethod
    def from_file(cls, path: Path) -> KeyFileVault:
        """Use the key in this file; if the file is missing, create it. Raise VaultKeyError if it cannot be used."""
        try:
            key = _read_key(path)
            if key is None:
                _create_key_file(path)
                key = _read_key(path)
        except OSError as exc:
            raise VaultKeyError(f"the key file {path} cannot be used: {exc.strerror or exc}") from exc
        if key is None or len(key) != KEY_BYTES:
            raise VaultKeyError(f"the key file {path} must contain exactly {KEY_BYTES} bytes")
        return cls(key)

    @classmethod
    def from_text(cls, text: str) -> KeyFileVault:
        """Use the comma-separated keys in base64 (standard or URL-safe); raise VaultKeyError if one is invalid."""
        return cls(*(_decode_key(part) for part in text.split(",")))

    def seal(self, secret: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, secret.encode(), _VERSION)

    def open(self, sealed: bytes) -> str:
        try:
            return _open(self._cipher, sealed)
        except ValueError:
            for other in self._others:
                with suppress(ValueError):
                    return _open(other, sealed)
            raise

    def reseal(self, sealed: bytes) -> bytes | None:
        with suppress(ValueError):
            _open(self._cipher, sealed)
            return None
        return self.seal(self.open(sealed))


def _open(cipher: AESGCM, sealed: bytes) -> str:
    if sealed[:1] != _VERSION:
        raise ValueError("the data is not a sealed secret, or it was sealed by an unknown version")
    body = sealed[1:]
    try:
        return cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], _VERSION).decode()
    except (InvalidTag, ValueError) as exc:  # ValueError if `sealed` is too short to have a nonce
        raise ValueError("the secret was sealed with another key, or was changed afterwards") from exc


def _decode_key(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise VaultKeyError(f"a key must be {KEY_BYTES} bytes in base64; this text is not base64") from exc


def _read_key(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(KEY_BYTES + 1)  # one more byte, to detect a file that is too long
    except FileNotFoundError:
        return None


def _create_key_file(path: Path) -> None:
    """Create the key file atomically. If another process has just created it, keep that key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _KEY_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, it never replaces a file
    finally:
        draft.unlink()
    sync_folder(path.parent)
