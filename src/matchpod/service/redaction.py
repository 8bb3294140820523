"""Overwrite secrets in a server's log with `*`, byte for byte, before it is stored.

The length does not change, because batches are identified by byte offsets. Two things are redacted: the command in
every `rcon from` echo (it may contain passwords, log addresses and tokens), and the values of cvars that hold a secret.
Only text directly after the timestamp of a line is matched, so chat that imitates such a line is not changed.
"""

from __future__ import annotations

import re

_TIME = rb"(?:L )?[0-9/]{10} - [0-9:.]{8,12}(?:: | - )"

_SECRET_NAME = rb'(?=\w++")\w{0,64}(?:password|_secret|steamaccount|header_value)\w{0,64}'
"""`sv_password`, `tv_password1`, `rcon_password`, `logaddress_token_secret`, `sv_setsteamaccount`, plugin headers.

The length is bounded, so that an invented name of many kilobytes does not take quadratic time."""

_PLAYER = rb"<[0-9]+><(?:\[U:|BOT|STEAM_|>|<)"
"""The lines of a player named `sv_password" = "` look like a cvar; they are not redacted."""

_SECRETS = re.compile(
    # Python searches for a literal newline in C, but not for `^`.
    rb'\n(?:%(time)s)?+(?=[rs"])'
    rb"(?:"
    # A command with line breaks continues until the next line with a timestamp.
    rb'rcon from "[^"\n]*": command "(?P<command>[^\n]*(?:\n+(?!\n|%(time)s)[^\n]+)*)'
    rb"|"
    rb'(?:server_cvar: "%(name)s" "|"%(name)s" = ")(?P<value>[^"\n]*"(?=\r?(?:\n|\Z))|(?![^\n]*%(player)s)[^\n]*)'
    rb")" % {b"time": _TIME, b"name": _SECRET_NAME, b"player": _PLAYER}
)

_NOT_NEWLINE = re.compile(rb"[^\n]")


def redact_log(body: bytes) -> bytes:
    """The body with its secrets overwritten, of the same length."""
    return _SECRETS.sub(_overwrite, b"\n" + body)[1:]


def _overwrite(found: re.Match[bytes]) -> bytes:
    whole = found[0]
    start = found.start(found.lastgroup or 0) - found.start()
    end = len(whole)
    # Keep the closing quote, so that the line still parses.
    if whole.endswith(b'"', start):
        end -= 1
    elif whole.endswith(b'"\r', start):
        end -= 2
    return whole[:start] + _stars(whole[start:end]) + whole[end:]


def _stars(secret: bytes) -> bytes:
    return _NOT_NEWLINE.sub(b"*", secret) if b"\n" in secret else b"*" * len(secret)
