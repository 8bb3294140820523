"""Format of the service's own log."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.adapters import log_output
from matchpod.adapters.log_output import HumanFormatter, JsonFormatter, LogOutput, set_up_logging

CREATED = 1_770_000_000.4567  # 2026-02-02T02:40:00.456Z


def record(message: object = "match created", *args: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("matchpod.service.matches", logging.INFO, "matches.py", 7, message, args, None)
    made.created = CREATED
    vars(made).update(fields)
    return made


def failing() -> logging.LogRecord:
    made = record("it failed")
    try:
        raise ValueError("first\nWARNING second\x1b[2J")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


class BrokenStr:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class BrokenList(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("no items")


def parse(line: str) -> dict[str, object]:
    read = json.loads(line)
    assert isinstance(read, dict)
    return read


# --- human format ---------------------------------------------------------------------------------------------------


def test_human_line_has_time_level_message_fields_and_the_loggers_of_libraries() -> None:
    line = HumanFormatter().format(record(server_id="srv_1", region="sandbox"))
    assert line == "2026-02-02T02:40:00.456Z INFO  match created  server_id=srv_1 region=sandbox"
    assert HumanFormatter().format(record()) == "2026-02-02T02:40:00.456Z INFO  match created"
    made = record("connection lost")
    made.name = "asyncpg.pool"
    assert HumanFormatter().format(made) == "2026-02-02T02:40:00.456Z INFO  connection lost  logger=asyncpg.pool"


def test_values_that_are_not_one_word_are_quoted() -> None:
    line = HumanFormatter().format(
        record(a="two words", b='say "hi"', c="", d="x=y", e=None, f=True, g=1.5, h=[1, "a b"])
    )
    assert line.endswith('a="two words" b="say \\"hi\\"" c="" d="x=y" f=true g=1.5 h=[1,"a b"]')


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formatter", [HumanFormatter(), JsonFormatter()])
@pytest.mark.parametrize("name", ["rcon_password", "RCON_PASSWORD", "log_token", "webhookSecret", "api_key", "Token"])
def test_fields_named_like_secrets_are_hidden(formatter: logging.Formatter, name: str) -> None:
    line = formatter.format(record(**{name: "hunter2", "webhook_id": "hook_1"}))
    assert "hunter2" not in line
    assert "***" in line
    assert "hook_1" in line


@pytest.mark.parametrize("formatter", [HumanFormatter(), JsonFormatter()])
@pytest.mark.parametrize(
    "text",
    [
        "sv_password=hunter2",
        "{'rconPassword': 'hunter2', 'port': 1}",
        'command failed: sv_password "hunter2"',
        '"TV_PASSWORD" = "hunter2"',
        "GET /x?auth_token=hunter2&y=1",
        "Authorization: Bearer hunter2",
        "authorization is bearer hunter2",
        "POST http://127.0.0.1:8080/ingest/logs/hunter2 failed",
        "MATCHPOD_SECRET_KEY=hunter2",
    ],
)
def test_secrets_in_texts_and_tracebacks_are_hidden(formatter: logging.Formatter, text: str) -> None:
    failed = record(text, note=text, notes=[text])
    try:
        raise ValueError(text)
    except ValueError:
        failed.exc_info = sys.exc_info()
    assert "hunter2" not in formatter.format(failed)


@pytest.mark.parametrize(
    "text",
    [
        "the RCON password is wrong",
        "10.0.0.9:27015 rejected the password",
        "settings rejected by the server: mp_freezetime is 15",
        "port=27015 map: de_mirage",
        "key_id=key_1",
    ],
)
def test_ordinary_texts_about_secrets_are_unchanged(text: str) -> None:
    assert parse(JsonFormatter().format(record(text)))["message"] == text


# --- JSON format ----------------------------------------------------------------------------------------------------


def test_json_line_has_the_fields_next_to_the_message() -> None:
    line = JsonFormatter().format(record(server_id="srv_1", tries=2, is_live=False))
    assert parse(line) == {
        "time": "2026-02-02T02:40:00.456Z",
        "level": "INFO",
        "logger": "matchpod.service.matches",
        "message": "match created",
        "server_id": "srv_1",
        "tries": 2,
        "is_live": False,
    }


def test_extra_field_never_replaces_a_standard_field() -> None:
    read = parse(JsonFormatter().format(record(time="noon", level="high", logger="me")))
    assert (read["level"], read["field_level"]) == ("INFO", "high")
    assert (read["field_time"], read["field_logger"]) == ("noon", "me")


def test_json_traceback_is_a_field() -> None:
    line = JsonFormatter().format(failing())
    assert "\n" not in line
    assert "ValueError: first" in str(parse(line)["exception"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((float("nan"), "nan"), (float("inf"), "inf"), (2**70, str(2**70)), ({"k": 1}, "{'k': 1}")),
        *((b"\xff", "b'\\xff'"), (10**5000, "<unprintable>")),
    ],
    ids=["not a number", "infinity", "large", "dict", "bytes", "too long to format"],
)
def test_value_without_a_json_type_is_a_string_and_a_missing_secret_is_missing(value: object, shown: str) -> None:
    read = parse(JsonFormatter().format(record(a=value, log_token=None)))
    assert (read["a"], read["log_token"]) == (shown, None)


# --- both formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [HumanFormatter(), JsonFormatter()])
def test_formatting_never_raises(lines: logging.Formatter) -> None:
    for made in (
        record("%d of %s", "x"),
        record(BrokenStr()),
        record("x", value=BrokenStr(), items=[BrokenStr()], lone="\ud800"),
        record("x", items=BrokenList([1])),
    ):
        assert lines.format(made)
    made = record("broken")
    made.exc_info = (ValueError, ValueError(BrokenStr()), None)
    assert lines.format(made)
    made = record("with a stack")
    made.stack_info = "Stack (most recent call last):\n  here"
    assert "here" in lines.format(made)


def test_long_traceback_keeps_its_end() -> None:
    made = record("deep")
    made.exc_info = (ValueError, ValueError("x" * 100_000 + " the end"), None)
    exception = str(parse(JsonFormatter().format(made))["exception"])
    assert exception.endswith("the end")
    assert len(exception) <= log_output.MAX_TRACEBACK_CHARACTERS + 2


@given(st.text(), st.text())
def test_any_text_is_one_line_without_control_characters(message: str, value: str) -> None:
    human = HumanFormatter().format(record(message, value=value))
    assert human.isprintable()
    line = JsonFormatter().format(record(message, value=value))
    assert line.isascii()
    assert line.isprintable()
    if len(value) <= log_output.MAX_VALUE_CHARACTERS:
        assert parse(line)["value"] == value


# --- setup ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def loggers() -> Iterator[None]:
    root = logging.getLogger()
    kept = (list(root.handlers), root.level)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = kept
    for name in ("asyncio", "asyncpg", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("loggers")
def test_loggers_write_from_the_log_level_up_except_noise_of_libraries() -> None:
    stream = io.StringIO()
    set_up_logging(log_format="json", log_level="info", stream=stream)
    logging.getLogger("matchpod.x").debug("hidden")
    logging.getLogger("matchpod.x").info("shown")
    logging.getLogger("library").info("shown too")
    logging.getLogger("asyncpg.pool").warning("Failed to restore the pool connection floor; retrying")
    logging.getLogger("asyncio").debug("Using selector: EpollSelector")
    logging.getLogger("httpx").info("HTTP Request: GET https://10.96.0.1/ 200 OK")
    assert [parse(line)["message"] for line in stream.getvalue().splitlines()] == ["shown", "shown too"]


@pytest.mark.usefixtures("loggers")
def test_json_lines_have_the_fields_of_their_context() -> None:
    stream, ids = io.StringIO(), {"request_id": "req_1", "trace_id": "abc"}
    set_up_logging(log_format="json", log_level="info", stream=stream, context=lambda: ids)
    logging.getLogger("matchpod").info("first")
    logging.getLogger("matchpod").info("second", extra={"request_id": "req_2"})
    first, second = map(parse, stream.getvalue().splitlines())
    assert (first["request_id"], first["trace_id"]) == ("req_1", "abc")
    assert (second["request_id"], second["trace_id"]) == ("req_2", "abc")


@pytest.mark.usefixtures("loggers")
def test_setting_up_twice_writes_each_record_once() -> None:
    set_up_logging(log_format="human", log_level="error", stream=io.StringIO())
    stream = io.StringIO()
    set_up_logging(log_format="human", log_level="error", stream=stream)
    logging.getLogger("matchpod").error("once")
    assert stream.getvalue().count("once") == 1


@pytest.mark.usefixtures("loggers")
def test_records_of_the_python_warnings_logger_are_written() -> None:
    stream = io.StringIO()
    set_up_logging(log_format="human", log_level="info", stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.getLogger("py.warnings").warning("something is deprecated")
    assert "logger=py.warnings" in stream.getvalue()


def test_broken_stream_does_not_raise() -> None:
    class BrokenStream(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    output = LogOutput(BrokenStream())
    output.setFormatter(HumanFormatter())
    output.handle(record())
