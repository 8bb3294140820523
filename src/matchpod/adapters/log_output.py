"""Format and write the service's own log, one line per record, either as text for people or as JSON objects.

Values may come from game servers and callers, so they are not trusted. Line breaks and terminal control characters are
escaped, long values are truncated, and values that cannot be formatted are replaced. Fields with the name of a secret
are hidden. In texts and tracebacks, values after such names, bearer tokens and ingest tokens are hidden too. Formatting
and writing never raise an exception.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TextIO

from matchpod.core.secrets import HIDDEN, is_secret_name

MAX_VALUE_CHARACTERS: Final = 2_000
"""Maximum number of characters of a message and of each field value, so that people and log collectors can handle the
line."""
MAX_TRACEBACK_CHARACTERS: Final = 16_000
"""Maximum number of characters of a traceback; our longest is shorter. The end is kept, because the exception is there.
"""
MAX_LIST_ITEMS: Final = 50

_STANDARD: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
_OWN_FIELDS: Final = frozenset({"time", "level", "logger", "message", "exception"})
_OWN_LOGGER: Final = "matchpod"
_BARE: Final = re.compile(r"[^\s\"=\\]+")
_SAFE_NUMBER: Final = 2**63
"""Integers beyond this bound are written as strings, because most JSON parsers cannot represent them."""

_NAMED: Final = re.compile(r"""\b(?P<name>\w{1,128}+)["']?(?:\s?[=:]\s?|\s(?=["']))""")
"""Matches what precedes a value: `name=`, `name:`, or a name before a quote. `name value` is ordinary text."""
_VALUE: Final = re.compile(r"""(?P<quote>["'])(?:(?!(?P=quote)).)*+|[^\s"',;&)}\]]*+""", re.DOTALL)
_TOKEN: Final = re.compile(r"(?P<before>(?i:bearer) |/ingest/\w{1,32}/)[\w.~+/=-]+")

_PLAIN_TEXT: Final = re.compile(r"[\w .,-]*+")
"""Matches texts without any character that separates a name from its value, or the parts of a path. Such a text can
have a secret only after `bearer`."""
_MAX_NAMES: Final = 512
"""Maximum number of field names for which the result of `is_secret_name` is cached. The code uses fewer names."""

Plain = str | int | float | bool | None


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: the message, the record's extra fields, and the fields from `context`."""

    def __init__(self, context: Callable[[], Mapping[str, str]] = dict) -> None:
        """Add the fields that `context` returns to each record; they describe what the process is doing at the time."""
        super().__init__()
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Plain | list[Plain]] = {
            "time": _iso_time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in _fields(record):
            line[f"field_{name}" if name in _OWN_FIELDS else name] = _jsonable(value)
        for name, value in self._context().items():
            line.setdefault(name, value)
        if trace := _traceback(record):
            line["exception"] = trace
        return json.dumps(line, ensure_ascii=True, allow_nan=False)


class HumanFormatter(logging.Formatter):
    """Formats a record as a line of text. Its traceback is indented, so that no line of it looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, followed by the lines of its traceback, if it has one."""
        line = f"{_iso_time(record.created)} {record.levelname:<5} {escape_unprintable(_message(record))}"
        fields = [(name, value) for name, value in _fields(record) if value is not None]
        if record.name.partition(".")[0] != _OWN_LOGGER:
            fields.append(("logger", record.name))
        if fields:
            values = [f"{escape_unprintable(name)}={_format_value(_jsonable(value))}" for name, value in fields]
            line += "  " + " ".join(values)
        trace = _traceback(record)
        return "\n".join([line, *(f"    {escape_unprintable(row)}" for row in trace.split("\n"))]) if trace else line


class LogOutput(logging.StreamHandler[TextIO]):
    """Writes log lines to a stream. If that fails, the service continues without a log."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging defines the name
        """Ignore the error, because a closed terminal or a full disk must not stop the service."""


def set_up_logging(
    *, log_format: str, log_level: str, stream: TextIO, context: Callable[[], Mapping[str, str]] = dict
) -> None:
    """Write all records of `log_level` and above, including those of libraries, to the stream.

    JSON records also have the fields that `context` returns when the record is logged.
    """
    output = LogOutput(stream)
    output.setFormatter(JsonFormatter(context) if log_format == "json" else HumanFormatter())
    root = logging.getLogger()
    for handler in tuple(root.handlers):
        root.removeHandler(handler)
    root.addHandler(output)
    level = logging.getLevelNamesMapping()[log_level.upper()]
    root.setLevel(level)
    # While the database is unavailable, asyncpg logs a traceback every few seconds. We log the outage ourselves.
    logging.getLogger("asyncpg").setLevel(max(level, logging.ERROR) if level > logging.DEBUG else level)
    # DEBUG records of the event loop, such as which selector it uses, are noise.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
    # httpx's records of each request to a cluster are noise.
    logging.getLogger("httpx").setLevel(max(level, logging.WARNING) if level > logging.DEBUG else level)
    logging.getLogger("httpcore").setLevel(max(level, logging.INFO))
    logging.captureWarnings(capture=True)


def escape_unprintable(text: str) -> str:
    """Escape line ends and terminal control characters in texts that may come from callers and game servers."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _iso_time(seconds: float) -> str:
    """Return a time as date and time in UTC, in the format of ISO 8601."""
    whole = math.floor(seconds)
    return f"{_whole_seconds(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(1)
def _whole_seconds(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _message(record: logging.LogRecord) -> str:
    try:
        return _shown(record.getMessage())
    except Exception:  # noqa: BLE001 - a message that does not match its arguments is still logged
        return _shown(_text(record.msg))


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name, value in vars(record).items():
        if name not in _STANDARD:
            yield str(name), HIDDEN if value is not None and _is_secret_field(str(name)) else value


_is_secret_field: Final = lru_cache(_MAX_NAMES)(is_secret_name)


def _traceback(record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[1] is not None:
        try:
            parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
        except Exception:  # noqa: BLE001 - an exception that cannot be formatted must not suppress the record
            parts.append(f"{type(record.exc_info[1]).__name__} (traceback unavailable)")
    if record.stack_info:
        parts.append(_text(record.stack_info))
    whole = _without_secrets("\n".join(parts))
    return whole if len(whole) <= MAX_TRACEBACK_CHARACTERS else "… " + whole[-MAX_TRACEBACK_CHARACTERS:]


def _jsonable(value: object) -> Plain | list[Plain]:
    if isinstance(value, list | tuple | set | frozenset):
        try:
            return [_plain(item) for item in tuple(value)[:MAX_LIST_ITEMS]]
        except Exception:  # noqa: BLE001 - a subclass may raise when iterated
            return "<unprintable>"
    return _plain(value)


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int and -_SAFE_NUMBER <= value < _SAFE_NUMBER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    return _shown(_text(value))


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - any object may be logged, and its __str__ may raise
        return "<unprintable>"


def _format_value(value: Plain | list[Plain]) -> str:
    """Format a value for people: in quotes, unless it is a single word."""
    if isinstance(value, list):
        return f"[{','.join(map(_format_value, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and value.isprintable():
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escape_unprintable(quoted)}"'


def _shown(text: str) -> str:
    """Return the text truncated and without secrets."""
    return _without_secrets(text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…")


def _without_secrets(text: str) -> str:
    if _PLAIN_TEXT.fullmatch(text) and "bearer" not in text.lower():  # most values
        return text
    text = _TOKEN.sub(rf"\g<before>{HIDDEN}", text)
    parts, end = [], 0
    for named in _NAMED.finditer(text):
        if named.start() >= end and is_secret_name(named["name"]) and (value := _VALUE.match(text, named.end())):
            parts += [text[end : named.end()], value["quote"] or "", HIDDEN]
            end = value.end()
    return "".join([*parts, text[end:]])
