"""How does the service write its own log? One line a record: for people, or as a JSON object.

Values come from game servers and callers too, so they are hostile: what could end a line or drive a terminal is
escaped, what is long is cut, and what cannot be shown is said to be so. Nothing here ever raises.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
import traceback
from collections.abc import Iterator
from typing import Final, TextIO

MAX_VALUE_CHARACTERS: Final = 2_000
"""The longest value of a field, and the longest message; a line must stay one that people and collectors can take."""
MAX_TRACEBACK_CHARACTERS: Final = 16_000
"""Enough for the deepest traceback of ours; its end, which says what happened, is what is kept."""
MAX_LIST_ITEMS: Final = 50

_STANDARD: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
_NOISE: Final = frozenset({"color_message"})
"""What uvicorn adds: its message once more, with the colours of a terminal."""
_OWN_FIELDS: Final = frozenset({"time", "level", "logger", "message", "exception"})
_OURS: Final = "matchpod"
_BARE: Final = re.compile(r"[^\s\"=\\]+")
_SAFE_NUMBER: Final = 2**63
"""Larger ones are texts: most readers of JSON cannot hold them."""

Plain = str | int | float | bool | None


class JsonLines(logging.Formatter):
    """A JSON object a record, with its fields beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Plain | list[Plain]] = {
            "time": _utc(record.created, "%Y-%m-%dT%H:%M:%S") + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in _fields(record):
            line[f"field_{name}" if name in _OWN_FIELDS else name] = _jsonable(value)
        if trace := _traceback(record):
            line["exception"] = trace
        return json.dumps(line, ensure_ascii=True, allow_nan=False)


class HumanLines(logging.Formatter):
    """A line a record; a traceback stands below it, indented, so that no text in it looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, and its traceback."""
        line = f"{_utc(record.created, '%H:%M:%S')} {record.levelname:<5} {_escaped(_message(record))}"
        fields = [(name, value) for name, value in _fields(record) if value is not None]
        if record.name.partition(".")[0] != _OURS:
            fields.append(("logger", record.name))
        if fields:
            line += "  " + " ".join(f"{_escaped(name)}={_shown(_jsonable(value))}" for name, value in fields)
        trace = _traceback(record)
        return "\n".join([line, *(f"    {_escaped(below)}" for below in trace.split("\n"))]) if trace else line


class LogOutput(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; where even that fails the service goes on without its log."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A closed terminal or a full disk is no reason to stop, and there is nowhere to say it."""


def set_up_logging(*, log_format: str, log_level: str, stream: TextIO) -> None:
    """Let every logger of this process, those of libraries too, write to the stream from `log_level` on."""
    output = LogOutput(stream)
    output.setFormatter(JsonLines() if log_format == "json" else HumanLines())
    root = logging.getLogger()
    for before in tuple(root.handlers):
        root.removeHandler(before)
    root.addHandler(output)
    level = logging.getLevelNamesMapping()[log_level.upper()]
    root.setLevel(level)
    # What it says at INFO about its own start and end we say ourselves, in our words.
    logging.getLogger("uvicorn").setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))
    # While the database is away its driver shows a traceback every few seconds; that it is away we say ourselves.
    logging.getLogger("asyncpg").setLevel(max(level, logging.ERROR) if level > logging.DEBUG else level)
    # The loop says which selector it uses, and when a callback was slow: of use to whoever looks for it.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
    logging.captureWarnings(capture=True)


def _utc(seconds: float, form: str) -> str:
    whole = math.floor(seconds)
    return f"{time.strftime(form, time.gmtime(whole))}.{int((seconds - whole) * 1000):03d}"


def _message(record: logging.LogRecord) -> str:
    try:
        return _cut(record.getMessage(), MAX_VALUE_CHARACTERS)
    except Exception:  # noqa: BLE001 - a message that does not fit its arguments is still worth a line
        return _cut(_text(record.msg), MAX_VALUE_CHARACTERS)


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name, value in vars(record).items():
        if name not in _STANDARD and name not in _NOISE:
            yield str(name), value


def _traceback(record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[1] is not None:
        try:
            parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
        except Exception:  # noqa: BLE001 - an exception that cannot be shown must not hide the record
            parts.append(f"{type(record.exc_info[1]).__name__} (its traceback cannot be shown)")
    if record.stack_info:
        parts.append(_text(record.stack_info))
    whole = "\n".join(parts)
    return whole if len(whole) <= MAX_TRACEBACK_CHARACTERS else "… " + whole[-MAX_TRACEBACK_CHARACTERS:]


def _jsonable(value: object) -> Plain | list[Plain]:
    if isinstance(value, list | tuple | set | frozenset):
        try:
            return [_plain(item) for item in tuple(value)[:MAX_LIST_ITEMS]]
        except Exception:  # noqa: BLE001 - a collection of somebody's own making
            return "<unprintable>"
    return _plain(value)


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int and -_SAFE_NUMBER <= value < _SAFE_NUMBER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    return _cut(_text(value), MAX_VALUE_CHARACTERS)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - objects of others may not even have a text
        return "<unprintable>"


def _shown(value: Plain | list[Plain]) -> str:
    """A value for people: bare where it is one word, else in quotes."""
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and value.isprintable():
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escaped(quoted)}"'


def _escaped(text: str) -> str:
    """The text without anything that ends a line or drives a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
