"""Secrets are redacted from a log, and nothing else changes."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.service.redaction import redact_log

TIME = b"07/17/2026 - 18:14:24.251 - "
FILE_TIME = b"L 01/19/2026 - 18:55:38: "
SECRET = b"B3y1f7"

WITH_SECRET = [
    b'rcon from "203.0.113.2:61688": command "logaddress_add_http "https://x.example/ingest/logs/B3y1f7""',
    b'rcon from "203.0.113.2:61688": command "matchzy_loadmatch_url "https://x.example/m" "X-Token" "B3y1f7""',
    b'rcon from "203.0.113.2:61688": command "sv_password "B3y1f7"; mp_freezetime 9"',
    b'rcon from "203.0.113.2:61688": command "rcon_password B3y1f7"',
    b'rcon from "203.0.113.2:61688": command "cut off B3y1f7',
    b'rcon from "203.0.113.2:61688": command "say "a\nB3y1f7"\n\nB3y1f7""',
    b'"sv_password" = "B3y1f7"',
    b'"sv_password" = "B3 "B3y1f7" y"',
    b'"sv_password" = "<1><BOT>B3y1f7"',
    b'"tv_password" = "B3y1f7"',
    b'"tv_password1" = "B3y1f7"',
    b'"tv_relaypassword" = "B3y1f7"',
    b'"rcon_password" = "B3y1f7"',
    b'"rcon_password" = "B3y1f7',
    b'server_cvar: "sv_password" "B3y1f7"',
    b'server_cvar: "matchzy_remote_log_header_value" "B3y1f7"',
]

WITHOUT_SECRET = [
    b'"x<2><[U:1:5]><CT>" say "rcon from "1.1.1.1:1": command "quit""',
    b'"x<2><[U:1:5]><CT>" say ""sv_password" = "no secret""',
    b'"x<2><[U:1:5]><CT>" say "07/17/2026 - 18:14:24.251 - rcon from "1.1.1.1:1": command "quit""',
    b'"sv_password" = "<2><[U:1:5]><CT>" [1 2 3] killed "y<3><BOT><TERRORIST>" [4 5 6] with "ak47"',
    b'"sv_password" = "<2><[U:1:5]><CT>" say "hello"',
    b'server_cvar: "mp_freezetime" "9"',
    b'"mp_freezetime" = "9"',
    b'World triggered "Round_Start"',
    b'rcon from "203.0.113.2:61688": Bad Password',
    b"\xff\xfe\x00 garbage",
]


@pytest.mark.parametrize("time_text", [TIME, FILE_TIME, b""])
@pytest.mark.parametrize("line", WITH_SECRET)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_secrets_are_overwritten_in_place(time_text: bytes, line: bytes, end: bytes) -> None:
    body = time_text + line + end
    redacted = redact_log(body)
    assert SECRET not in redacted
    assert len(redacted) == len(body)
    assert redacted.count(b"\n") == body.count(b"\n")


@pytest.mark.parametrize("line", WITHOUT_SECRET)
def test_other_lines_are_unchanged(line: bytes) -> None:
    body = TIME + WITH_SECRET[0] + b"\n" + TIME + line + b"\n" + TIME + WITH_SECRET[6] + b"\n"
    assert redact_log(body).split(b"\n")[1] == TIME + line


def test_redacted_lines_keep_their_format() -> None:
    body = TIME + b'rcon from "203.0.113.2:61688": command "status"\n' + TIME + b'"sv_password" = "abc"\r\n'
    expected = TIME + b'rcon from "203.0.113.2:61688": command "******"\n' + TIME + b'"sv_password" = "***"\r\n'
    assert redact_log(body) == expected


def test_empty_passwords_stay_empty() -> None:
    body = TIME + b'"sv_password" = ""\n'
    assert redact_log(body) == body


PIECES = st.sampled_from([*WITHOUT_SECRET, *(line for line in WITH_SECRET if b"\n" not in line)])


@given(st.lists(PIECES))
def test_body_is_redacted_line_by_line(lines: list[bytes]) -> None:
    body = b"".join(TIME + line + b"\n" for line in lines)
    redacted = redact_log(body)
    assert redacted == b"".join(redact_log(TIME + line + b"\n") for line in lines)
    assert SECRET not in redacted


@given(st.lists(st.one_of(st.binary(max_size=40), PIECES, st.sampled_from([TIME, b"\n", b'"', b"\r"]))))
def test_length_and_line_breaks_are_kept_for_any_bytes(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    redacted = redact_log(body)
    assert len(redacted) == len(body)
    assert [at for at, byte in enumerate(redacted) if byte == 10] == [at for at, byte in enumerate(body) if byte == 10]
    assert redact_log(redacted) == redacted


@pytest.mark.parametrize(
    "body",
    [
        TIME + b'"' + b"password" * 30_000,
        TIME + b'"sv_password" = "' + b"<1" * 100_000 + b'"x',
        TIME + b'"sv_password" = "' + b'"<1>' * 60_000,
        TIME + b'rcon from "1": command "' + b"\n" * 250_000,
        (TIME + b'rcon from "1": command "\n') * 5_000,
    ],
)
def test_hostile_bodies_are_redacted_in_linear_time(body: bytes) -> None:
    started = time.process_time()
    redact_log(body)
    assert time.process_time() - started < 2.0


def test_real_log_contains_no_secrets_after_redaction(corpus: Path) -> None:
    body = (corpus / "cs2-5v5-inferno.log").read_bytes()
    redacted = redact_log(body)
    assert len(redacted) == len(body)
    changed = [line for line, before in zip(redacted.split(b"\n"), body.split(b"\n"), strict=True) if line != before]
    content = rb'(?:rcon from "[0-9.:]+": command|"\w*password\w*" =|server_cvar: "\w*password\w*") "\**"'
    assert changed
    assert [line for line in changed if not re.fullmatch(rb"L [0-9/]{10} - [0-9:]{8}: " + content, line)] == []
    assert not re.search(rb'\n.{25}rcon from "[^"]*": command "[^*"]', redacted)
