"""Overwrite secrets in posts and reports with `*`, byte for byte, before the posts and reports are stored.

The length of a post does not change, because posts are identified by byte offsets. This module redacts the command in
each `rcon from` echo, because it may contain passwords, log addresses and tokens. It also redacts the values of console
variables and JSON fields whose name indicates a secret, and all passwords and tokens that the service generated for the
match. In a log, patterns match only at the beginning of a line, after its timestamp and indentation, so that chat with
the same text is kept. A secret may be split between two posts. Its second part is redacted if `redact_log` gets the
`unfinished` line at the end of the first post.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cs2_protocol.log_batches import LogPost
from matchpod.core.secrets import is_secret_name

MIN_KNOWN_PART: Final = 6
"""Minimum number of bytes of a known secret that are redacted at the beginning or end of a post, where the secret may
be split. Fewer bytes do not reveal the rest."""

MAX_UNFINISHED_BYTES: Final = 1024
"""Maximum number of bytes that are kept of an unfinished line, from its start. A timestamp, a name and the beginning of
the value fit easily."""

MAX_KNOWN_NAMES: Final = 2_000
"""Maximum number of names for which `_is_secret` is cached. Each map load logs the same 200 console variables."""

_TIME: Final = rb"(?:L )?[0-9/]{10} - [0-9:.]{8,12}(?:: | - )"

_INDENT: Final = rb"[ \t]{0,64}+"

_CUT_TIME: Final = rb"(?:L ?)?+(?:[0-9/]{0,10}|[0-9/]{10} -? ?[0-9:.]{0,12}[: -]{0,3})\Z"
"""Matches an incomplete timestamp at the end of a post."""

_NAME: Final = rb"(?P<name>\w{1,128}+)"
"""Matches the name of a console variable or field. The limit is twice the length of the longest console variable's
name."""

_PLAYER: Final = rb"<[0-9]+><(?:\[U:|BOT|STEAM_|>|<)"
"""Matches the ids after a player's name. Log lines of a player named `sv_password" = "` must not be redacted."""

_COMMAND: Final = rb'rcon from "[^"\n]*": command "'

_LINES: Final = re.compile(
    # `\n` is faster than `^`: Python searches for a literal in C.
    rb"\n(?:%(time)s)?+%(indent)s(?=[rs\"'])"
    rb"(?:"
    # A command that contains line breaks continues until the next line with a timestamp.
    rb"%(command)s(?P<command>[^\n]*(?:\n+(?!\n|%(time)s|%(cut_time)s)[^\n]+)*)"
    rb"|"
    rb"(?:server_cvar: )?[\"']%(name)s[\"'][ \t]{0,8}=?[ \t]{0,8}[\"']"
    rb"(?P<value>[^\"'\n]*[\"'](?=\r?(?:\n|\Z))|(?![^\n]*%(player)s)[^\n]*)"
    rb")"
    % {
        b"indent": _INDENT,
        b"time": _TIME,
        b"cut_time": _CUT_TIME,
        b"command": _COMMAND,
        b"name": _NAME,
        b"player": _PLAYER,
    }
)
"""Matches the commands in `rcon from` echoes, and console variables of any name."""

_FIELD: Final = re.compile(rb"[\"']%s(?P<escape>\\)?[\"']\s{0,64}+:\s{0,64}+\\?(?P<opening>[\"'\[{])" % _NAME)
"""Matches the beginning of a JSON field whose value is a string, a list or an object. In JSON that is inside a JSON
string, quotes are escaped. Single quotes are not JSON, but some plugins send them."""

_FIELD_VALUES: Final = {
    b'"': re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_INNER_VALUE: Final = re.compile(rb'[^"\\]*+')
"""Matches a value between escaped quotes: it ends at the first escape."""
_TEXT_OR_BRACKET: Final = re.compile(rb'"(?P<text>(?:[^"\\]++|\\.)*+)"?(?P<is_name>\s*+:)?|[\[\]{}]', re.DOTALL)
_INNER_LIST: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""Matches a list or object in JSON that is inside a JSON string. It may match more text, up to the end of that
string."""

_BRACKET: Final = re.compile(rb"[\[\]{}]")
_INNER_CONTENT: Final = re.compile(rb'\\["nrt]|(?P<content>(?:[^"\\\[\]{},: ]|\\[^"nrt])++)')
"""Matches JSON inside a JSON string. `content` is what is overwritten: everything except brackets, commas, colons,
spaces, escaped quotes and escaped whitespace."""
_LINE_START: Final = re.compile(_TIME)
_BEFORE_LAST_TIME: Final = re.compile(rb"(?:.*\n)?(?=%s)" % _TIME, re.DOTALL)
_OPEN_COMMAND: Final = re.compile(rb"(?:%s)?+%s%s" % (_TIME, _INDENT, _COMMAND))
_STARS: Final = b"".join(b"\n" if byte == ord("\n") else b"*" for byte in range(256))
"""The translation table that replaces every byte except a line break with `*`."""


def redact_log(body: bytes, known: Iterable[bytes] = (), *, before: bytes = b"") -> bytes:
    """Return the log with its secrets overwritten. `before` is the `unfinished` line of the previous post."""
    redacted = _LINES.sub(_overwrite, b"\n" + before + body)[len(before) + 1 :]
    return _overwrite_known(redacted, known)


def redact_report(body: bytes, known: Iterable[bytes] = ()) -> bytes:
    """Return a plugin's report with its secrets overwritten. Valid JSON stays valid."""
    redacted = redact_log(body, known)
    parts, end = [], 0
    for field in _FIELD.finditer(redacted):
        if field.start() >= end and _is_secret(field["name"]):
            value = _redact_value(redacted, field)
            parts += [redacted[end : field.end()], value]
            end = field.end() + len(value)
    return b"".join([*parts, redacted[end:]])


def _redact_value(body: bytes, field: re.Match[bytes]) -> bytes:
    """Return a secret field's value after its opening quote or bracket, with all strings in it overwritten."""
    is_inner, opening = field["escape"] is not None, field["opening"]
    if opening in _FIELD_VALUES:
        value = (_INNER_VALUE if is_inner else _FIELD_VALUES[opening]).match(body, field.end())
        return b"*" * len(value[0] if value else b"")
    if is_inner:
        value = _INNER_LIST.match(body, field.end())
        inner = _up_to_its_bracket(value[0] if value else b"")
        return _INNER_CONTENT.sub(lambda found: b"*" * len(found[0]) if found["content"] else found[0], inner)
    parts, end, depth = [], field.end(), 1
    for token in _TEXT_OR_BRACKET.finditer(body, end):
        start, stop = token.span("text") if token["is_name"] is None else (-1, -1)
        if start >= 0:
            parts += [body[end:start], b"*" * (stop - start)]
            end = stop
        elif token["text"] is None:
            depth += 1 if token[0] in b"[{" else -1
        parts.append(body[end : token.end()])
        end = token.end()
        if not depth:
            break
    return b"".join(parts)


def _up_to_its_bracket(value: bytes) -> bytes:
    depth = 1
    for bracket in _BRACKET.finditer(value):
        depth += 1 if bracket[0] in b"[{" else -1
        if not depth:
            return value[: bracket.start()]
    return value


def continues_line(body: bytes) -> bool:
    """True if a log post may continue a line or a multi-line command, because it does not begin with a timestamp."""
    return _LINE_START.match(body) is None


def unfinished(stored: bytes) -> bytes:
    """Return the start of the unfinished line or command at the end of a redacted post."""
    end = stored.rfind(b"\n") + 1
    last = stored[end : end + MAX_UNFINISHED_BYTES]
    before = _BEFORE_LAST_TIME.match(stored)
    start = before.end() if before else 0
    command = _OPEN_COMMAND.match(stored, start) if start < end else None
    return last if command is None else command[0][-MAX_UNFINISHED_BYTES:] + b"\n" + last


def unfinished_before(posts: Iterable[LogPost], begin: int | None) -> bytes:
    """Return the unfinished line or command before a post that begins at this offset; `posts` are newest first."""
    joined = b""
    for post in posts:
        if begin is None or post.begin is None or post.begin + len(post.body) == begin:
            joined = post.body + joined
            begin = post.begin
    return unfinished(joined)


def _overwrite(found: re.Match[bytes]) -> bytes:
    whole, name = found[0], found["name"]
    if name is not None and not _is_secret(name):
        return whole
    start = found.start(found.lastgroup or 0) - found.start()
    end = len(whole)
    # Keep the closing quote, so that the line still parses.
    if whole.endswith((b'"', b"'"), start):
        end -= 1
    elif whole.endswith((b'"\r', b"'\r"), start):
        end -= 2
    return whole[:start] + whole[start:end].translate(_STARS) + whole[end:]


@lru_cache(MAX_KNOWN_NAMES)
def _is_secret(name: bytes) -> bool:
    return is_secret_name(name.decode("latin-1"))


def _overwrite_known(body: bytes, known: Iterable[bytes]) -> bytes:
    for secret in known:
        size = len(secret)
        if secret in body:
            body = body.replace(secret, b"*" * size)
        head = body.find(secret[-MIN_KNOWN_PART:], 0, size)
        if head >= 0 and secret.endswith(body[: head + MIN_KNOWN_PART]):
            body = b"*" * (head + MIN_KNOWN_PART) + body[head + MIN_KNOWN_PART :]
        tail = body.rfind(secret[:MIN_KNOWN_PART], -size)
        if tail >= 0 and secret.startswith(body[tail:]):
            body = body[:tail] + b"*" * (len(body) - tail)
    return body
