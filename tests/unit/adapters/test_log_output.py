"""The service's own log, line by line."""

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
from matchpod.adapters.log_output import HumanLines, JsonLines, LogOutput, set_up_logging

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


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


class Unwilling(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("no items for you")


def parse(line: str) -> dict[str, object]:
    read = json.loads(line)
    assert isinstance(read, dict)
    return read


# --- for people -----------------------------------------------------------------------------------------------------


def test_a_line_for_people_has_time_level_message_and_fields() -> None:
    line = HumanLines().format(record(server_id="srv_1", region="sandbox"))
    assert line == "02:40:00.456 INFO  match created  server_id=srv_1 region=sandbox"


def test_a_line_without_fields_ends_with_its_message() -> None:
    assert HumanLines().format(record()) == "02:40:00.456 INFO  match created"


def test_values_that_are_no_word_stand_in_quotes() -> None:
    line = HumanLines().format(record(a="two words", b='say "hi"', c="", d="x=y", e=None, f=True, g=1.5, h=[1, "a b"]))
    assert line.endswith('a="two words" b="say \\"hi\\"" c="" d="x=y" f=true g=1.5 h=[1,"a b"]')


def test_hostile_text_stays_on_its_line() -> None:
    line = HumanLines().format(record(player_name="x\n09:00:00.000 ERROR faked\x1b[2J\u2028\u202e", note="a\\nb"))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert r'player_name="x\n09:00:00.000 ERROR faked\x1b[2J\u2028\u202e"' in line
    assert r'note="a\\nb"' in line


def test_a_traceback_stands_below_and_cannot_pose_as_a_record() -> None:
    head, *below = HumanLines().format(failing()).split("\n")
    assert head == "02:40:00.456 INFO  it failed"
    assert "ValueError: first" in "\n".join(below)
    assert all(line.startswith("    ") for line in below)
    assert "\x1b" not in "".join(below)


def test_loggers_of_libraries_are_named() -> None:
    made = record("Shutting down", color_message="\x1b[1mShutting down")
    made.name = "uvicorn.error"
    assert HumanLines().format(made) == "02:40:00.456 INFO  Shutting down  logger=uvicorn.error"


# --- for programs ---------------------------------------------------------------------------------------------------


def test_a_json_line_has_the_fields_beside_the_message() -> None:
    line = JsonLines().format(record(server_id="srv_1", tries=2, is_live=False))
    assert parse(line) == {
        "time": "2026-02-02T02:40:00.456Z",
        "level": "INFO",
        "logger": "matchpod.service.matches",
        "message": "match created",
        "server_id": "srv_1",
        "tries": 2,
        "is_live": False,
    }


def test_a_field_never_replaces_one_of_the_line_s_own() -> None:
    read = parse(JsonLines().format(record(time="noon", level="high", logger="me")))
    assert (read["level"], read["field_level"]) == ("INFO", "high")
    assert (read["field_time"], read["field_logger"]) == ("noon", "me")


def test_a_traceback_is_a_field() -> None:
    line = JsonLines().format(failing())
    assert "\n" not in line
    assert "ValueError: first" in str(parse(line)["exception"])


def test_numbers_that_json_does_not_know_are_texts() -> None:
    read = parse(JsonLines().format(record(a=float("nan"), b=float("inf"), c=2**70, d={"k": 1}, e=b"\xff")))
    assert read["a"] == "nan"
    assert read["b"] == "inf"
    assert read["c"] == str(2**70)
    assert read["d"] == "{'k': 1}"
    assert read["e"] == "b'\\xff'"


def test_a_number_too_long_to_be_written_is_said_to_be_so() -> None:
    assert parse(JsonLines().format(record(a=10**5000)))["a"] == "<unprintable>"


# --- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [HumanLines(), JsonLines()])
def test_nothing_that_is_logged_can_raise(lines: logging.Formatter) -> None:
    for made in (
        record("%d of %s", "x"),
        record(Hostile()),
        record("x", value=Hostile(), items=[Hostile()], lone="\ud800"),
        record("x", items=Unwilling([1])),
    ):
        assert lines.format(made)
    made = record("broken")
    made.exc_info = (ValueError, ValueError(Hostile()), None)
    assert lines.format(made)
    made = record("with a stack")
    made.stack_info = "Stack (most recent call last):\n  here"
    assert "here" in lines.format(made)


@pytest.mark.parametrize("lines", [HumanLines(), JsonLines()])
def test_long_values_are_cut(lines: logging.Formatter) -> None:
    line = lines.format(record("m" * 100_000, value="v" * 100_000, items=["i"] * 100_000))
    assert len(line) < 10_000


def test_of_a_long_traceback_the_end_is_kept() -> None:
    made = record("deep")
    made.exc_info = (ValueError, ValueError("x" * 100_000 + " the end"), None)
    exception = str(parse(JsonLines().format(made))["exception"])
    assert exception.endswith("the end")
    assert len(exception) <= log_output.MAX_TRACEBACK_CHARACTERS + 2


@given(st.text(), st.text())
def test_any_text_gives_one_line_without_control_characters(message: str, value: str) -> None:
    human = HumanLines().format(record(message, value=value))
    assert human.isprintable()
    line = JsonLines().format(record(message, value=value))
    assert line.isascii()
    assert line.isprintable()
    if len(value) <= log_output.MAX_VALUE_CHARACTERS:
        assert parse(line)["value"] == value


# --- the set-up -----------------------------------------------------------------------------------------------------


@pytest.fixture
def loggers() -> Iterator[None]:
    root = logging.getLogger()
    kept = (list(root.handlers), root.level)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = kept
    for name in ("uvicorn", "asyncio", "asyncpg"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("loggers")
def test_every_logger_writes_to_the_stream_from_its_level_on() -> None:
    stream = io.StringIO()
    set_up_logging(log_format="json", log_level="info", stream=stream)
    logging.getLogger("matchpod.x").debug("quiet")
    logging.getLogger("matchpod.x").info("heard")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("asyncpg.pool").warning("Failed to restore the pool connection floor; retrying")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert [parse(line)["message"] for line in stream.getvalue().splitlines()] == [
        "heard",
        "Invalid HTTP request received.",
    ]


@pytest.mark.usefixtures("loggers")
def test_setting_up_twice_writes_once() -> None:
    set_up_logging(log_format="human", log_level="error", stream=io.StringIO())
    stream = io.StringIO()
    set_up_logging(log_format="human", log_level="error", stream=stream)
    logging.getLogger("matchpod").error("once")
    assert stream.getvalue().count("once") == 1


@pytest.mark.usefixtures("loggers")
def test_debug_shows_what_uvicorn_says_of_itself() -> None:
    stream = io.StringIO()
    set_up_logging(log_format="human", log_level="debug", stream=stream)
    logging.getLogger("uvicorn.error").info("Started server process")
    assert "Started server process" in stream.getvalue()


@pytest.mark.usefixtures("loggers")
def test_warnings_of_python_are_records_too() -> None:
    stream = io.StringIO()
    set_up_logging(log_format="human", log_level="info", stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.getLogger("py.warnings").warning("something is deprecated")
    assert "logger=py.warnings" in stream.getvalue()


def test_a_stream_that_is_gone_does_not_stop_the_service() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    output = LogOutput(Gone())
    output.setFormatter(HumanLines())
    output.handle(record())
