"""How are secrets kept at rest? Sealed with AES-256-GCM under one key, which lies in a file or is given as text.

A sealed secret is one version byte, the nonce, and the ciphertext with its tag. The key file is made on first use
and never written again: without it nothing that was sealed can be opened.
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

KEY_BYTES = 32
"""AES-256."""

_VERSION = b"\x01"
_NONCE_BYTES = 12
"""What GCM is made for; random ones are safe for 2**32 secrets under one key."""

_KEY_MODE = 0o600


class VaultKeyError(Exception):
    """The key cannot be read or made, or is none; the message says which."""


class KeyFileVault:
    """Seals and opens secrets with one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise VaultKeyError(f"a key has {KEY_BYTES} bytes, this one has {len(key)}")
        self._cipher = AESGCM(key)

    @classmethod
    def from_file(cls, path: Path) -> KeyFileVault:
        """The vault of the key in this file, which is made when there is none; VaultKeyError when it is no key."""
        try:
            key = _read_key(path)
            if key is None:
                _make_key(path)
                key = _read_key(path)
        except OSError as exc:
            raise VaultKeyError(f"the key file {path} cannot be used: {exc.strerror or exc}") from exc
        if key is None or len(key) != KEY_BYTES:
            raise VaultKeyError(f"the key file {path} must hold exactly {KEY_BYTES} bytes")
        return cls(key)

    @classmethod
    def from_text(cls, text: str) -> KeyFileVault:
        """The vault of a key given in base64, of either alphabet; VaultKeyError when it is no key."""
        try:
            key = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError) as exc:
            raise VaultKeyError(f"a key is {KEY_BYTES} bytes in base64; this text is no base64") from exc
        return cls(key)

    def seal(self, secret: str) -> bytes:
        """The secret as bytes that only this key opens; twice the same secret gives different bytes."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, secret.encode(), _VERSION)

    def open(self, sealed: bytes) -> str:
        """The secret. ValueError when the key is another one or the bytes were changed."""
        if sealed[:1] != _VERSION:
            raise ValueError("this is no sealed secret of a known version")
        body = sealed[1:]
        try:
            return self._cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], _VERSION).decode()
        except (InvalidTag, ValueError) as exc:  # ValueError: too short to have a nonce
            raise ValueError("the secret was sealed with another key, or changed since") from exc


def _read_key(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(KEY_BYTES + 1)  # one more shows that it is too long
    except FileNotFoundError:
        return None


def _make_key(path: Path) -> None:
    """Put a new key in place whole or not at all; a key that another process put there meanwhile stays."""
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
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """A name is on the disk only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
