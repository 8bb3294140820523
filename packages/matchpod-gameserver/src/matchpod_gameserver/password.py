"""Derive the first RCON password of a server from the secret of its fleet, and store it in files."""

from __future__ import annotations

import base64
import hmac
import os
import re
from contextlib import suppress

from .log import FatalError

MIN_SECRET_BYTES = 16  # a shorter secret could be found by brute force from one intercepted password
MAX_BYTES = 1024 * 1024  # maximum number of bytes read from a file with a secret; real secrets have fewer than 100

_PASSWORD = re.compile(rb"[A-Za-z0-9_-]{43}")


def read_secret(path: str) -> bytes:
    """Read the secret of the fleet. A line break at the end, which editors add, is removed."""
    secret = _read(path, "the secret of the fleet")
    if len(secret) < MIN_SECRET_BYTES:
        raise FatalError(f"the secret in {path} has {len(secret)} bytes; it needs {MIN_SECRET_BYTES} or more")
    return secret


def bootstrap_password(secret: bytes, name: str) -> str:
    """Derive the first RCON password of a server. The service derives the same password."""
    return base64.urlsafe_b64encode(hmac.digest(secret, name.encode(), "sha256")).rstrip(b"=").decode()


def read_password(path: str) -> str:
    """Read a password from a file written by `derive-password`."""
    password = _read(path, "the RCON password")
    if not _PASSWORD.fullmatch(password):
        raise FatalError(f"{path} has no RCON password that `derive-password` has written")
    return password.decode()


def write_password(path: str, password: str) -> None:
    """Write a password to a file that only the current user can read."""
    _write(path, f"{password}\n")


def write_cfg(folder: str, name: str, password: str) -> str:
    """Write a .cfg file that sets the password and that only the current user can read; return its path."""
    path = os.path.join(folder, f"matchpod_{name}.cfg")
    _write(path, f'rcon_password "{password}"\n')
    return path


def _read(path: str, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES).strip()
    except OSError as exc:
        raise FatalError(f"{what} cannot be read from {path}: {exc.strerror}") from exc


def _write(path: str, content: str) -> None:
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        with open(path, "x", opener=lambda new, flags: os.open(new, flags, 0o600)) as file:
            file.write(content)
    except OSError as exc:
        folder = os.path.dirname(path) or "."
        raise FatalError(f"the file with the RCON password cannot be written into {folder}: {exc.strerror}") from exc
