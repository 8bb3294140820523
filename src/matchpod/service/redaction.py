"""Which bytes of a server's log must never be stored? Secrets are overwritten by `*`, byte for byte.

The length stays: batches are told apart by byte offsets. Overwritten are the command of every `rcon from` echo (it
carries whatever was sent: passwords, log addresses, tokens) and the values of variables that hold a secret.
Only what stands right behind a line's time counts, so chat that imitates such a line stays as it was said.
"""

from __future__ import annotations

import re

_TIME = rb"(?:L )?[0-9/]{10} - [0-9:.]{8,12}(?:: | - )"

_SECRET_NAME = rb'(?=\w++")\w{0,64}(?:password|_secret|steamaccount|header_value)\w{0,64}'
"""`sv_password`, `tv_password1`, `rcon_password`, `logaddress_token_secret`, `sv_setsteamaccount`, plugin headers.

Bounded: a made-up name of many kilobytes must not cost the square of its length."""

_PLAYER = rb"<[0-9]+><(?:\[U:|BOT|STEAM_|>|<)"
"""A player who calls himself `sv_password" = "` begins his lines like a variable; his lines stay readable."""

_SECRETS = re.compile(
    # The newline in front is searched at the speed of C, unlike `^`.
    rb'\n(?:%(time)s)?+(?=[rs"])'
    rb"(?:"
    # A command with a line break in it goes on until a line has a time again.
    rb'rcon from "[^"\n]*": command "(?P<command>[^\n]*(?:\n+(?!\n|%(time)s)[^\n]+)*)'
    rb"|"
    rb'(?:server_cvar: "%(name)s" "|"%(name)s" = ")(?P<value>[^"\n]*"(?=\r?(?:\n|\Z))|(?![^\n]*%(player)s)[^\n]*)'
    rb")" % {b"time": _TIME, b"name": _SECRET_NAME, b"player": _PLAYER}
)

_NOT_NEWLINE = re.compile(rb"[^\n]")


def redact_log(body: bytes) -> bytes:
    """The body with its secrets overwritten; as long as before, other lines untouched."""
    return _SECRETS.sub(_overwrite, b"\n" + body)[1:]


def _overwrite(found: re.Match[bytes]) -> bytes:
    whole = found[0]
    start = found.start(found.lastgroup or 0) - found.start()
    end = len(whole)
    # The closing quote stays, so that the line still reads as what it is.
    if whole.endswith(b'"', start):
        end -= 1
    elif whole.endswith(b'"\r', start):
        end -= 2
    return whole[:start] + _stars(whole[start:end]) + whole[end:]


def _stars(secret: bytes) -> bytes:
    return _NOT_NEWLINE.sub(b"*", secret) if b"\n" in secret else b"*" * len(secret)
