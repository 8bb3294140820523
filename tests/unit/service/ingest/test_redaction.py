"""Secrets are redacted from a log, and nothing else changes."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_batches import LogPost
from matchpod.core.secrets import is_secret_name
from matchpod.service.ingest.redaction import (
    MIN_KNOWN_PART,
    continues_line,
    redact_log,
    redact_report,
    unfinished,
    unfinished_before,
)

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
    b'"SV_PASSWORD" = "B3y1f7"',
    b'"Rcon_PassWord" = "B3y1f7"',
    b'"sv_setSteamAccount" = "B3y1f7"',
    b'"steam_api_KEY" = "B3y1f7"',
    b'"plugin_token" = "B3y1f7"',
    b'server_cvar: "PLUGIN_AUTHTOKEN" "B3y1f7"',
    b'server_cvar: "discord_webhook_secret" "B3y1f7"',
    b'"rcon_pass" = "B3y1f7"',
    b'"mysql_pwd" = "B3y1f7"',
    b'"ftp_pw" = "B3y1f7"',
    b'"discord_webhook" = "https://discord.example/api/webhooks/1/B3y1f7"',
    b'server_cvar: "http_auth" "B3y1f7"',
    b'    "sv_password" = "B3y1f7"',
    b'\t"sv_password" = "B3y1f7"',
    b'  server_cvar: "sv_password" "B3y1f7"',
    b'\t"rcon_password"\t\t"B3y1f7"',
    b"'sv_password' = 'B3y1f7'",
    b"  'sv_password' = 'B3y1f7'",
    b"'sv_password' = \"it's B3y1f7\"",
    b'   rcon from "203.0.113.2:61688": command "rcon_password B3y1f7"',
]

WITHOUT_SECRET = [
    b'"x<2><[U:1:5]><CT>" say "rcon from "1.1.1.1:1": command "quit""',
    b'"x<2><[U:1:5]><CT>" say ""sv_password" = "no secret""',
    b'"x<2><[U:1:5]><CT>" say "07/17/2026 - 18:14:24.251 - rcon from "1.1.1.1:1": command "quit""',
    b'"sv_password" = "<2><[U:1:5]><CT>" [1 2 3] killed "y<3><BOT><TERRORIST>" [4 5 6] with "ak47"',
    b'"sv_password" = "<2><[U:1:5]><CT>" say "hello"',
    b'server_cvar: "mp_freezetime" "9"',
    b'"mp_freezetime" = "9"',
    b'"mp_tokens_spent" = "9"',
    b'"bot_compass" = "9"',
    b'  "mp_freezetime" = "9"',
    b"'mp_freezetime' = '9'",
    b'"plugin_author" = "9"',
    b'"sv_password" "<2><[U:1:5]><CT>" say "hello"',
    b'World triggered "Round_Start"',
    b'rcon from "203.0.113.2:61688": Bad Password',
    b"\xff\xfe\x00 garbage",
]


def test_secrets_are_overwritten_in_place() -> None:
    for parts in itertools.product([TIME, FILE_TIME, b""], WITH_SECRET, [b"\n", b"\r\n", b""]):
        body = b"".join(parts)
        redacted = redact_log(body)
        assert SECRET not in redacted
        assert len(redacted) == len(body)
        assert redacted.count(b"\n") == body.count(b"\n")


def test_other_lines_are_unchanged() -> None:
    for line in WITHOUT_SECRET:
        body = TIME + WITH_SECRET[0] + b"\n" + TIME + line + b"\n" + TIME + WITH_SECRET[6] + b"\n"
        assert redact_log(body).split(b"\n")[1] == TIME + line


def test_redacted_lines_keep_their_format() -> None:
    body = TIME + b'rcon from "203.0.113.2:61688": command "status"\n' + TIME + b'"sv_password" = "abc"\r\n'
    expected = TIME + b'rcon from "203.0.113.2:61688": command "******"\n' + TIME + b'"sv_password" = "***"\r\n'
    assert redact_log(body) == expected


def test_empty_passwords_stay_empty() -> None:
    body = TIME + b'"sv_password" = ""\n'
    assert redact_log(body) == body


# --- a line in two posts --------------------------------------------------------------------------------------------

ROUND = b'World triggered "Round_Start"'
CHAT = b'"x<2><[U:1:5]><CT>" say "hi"'
LIKE_A_PLAYER = [line for line in [*WITH_SECRET, *WITHOUT_SECRET] if re.search(rb'"sv_password"[ =]+"<', line)]
"""Whether these are lines of a player is known only at their ends."""


PIECES_OF_LINES = st.sampled_from(
    [line for line in [*WITH_SECRET, *WITHOUT_SECRET] if line not in LIKE_A_PLAYER and b'say "07/' not in line]
)


def stored(posts: Sequence[bytes], *, with_offsets: bool) -> bytes:
    """Redact posts one after another, each with the stored ones before it, newest first."""
    before: list[LogPost] = []
    end = 0
    for body in posts:
        begin, end = end, end + len(body)
        open_line = unfinished_before(before, begin if with_offsets else None) if continues_line(body) else b""
        redacted = redact_log(body, before=open_line)
        offsets = {"begin": begin, "end": end} if with_offsets else {"begin": None, "end": None}
        before.insert(0, LogPost(body=redacted, received_ms=0, **offsets))
    return b"".join(post.body for post in reversed(before))


def without_quotes(body: bytes) -> bytes:
    """A quote at the end of a post may be the closing one, so it is kept."""
    return body.replace(b'"', b"*").replace(b"'", b"*")


@pytest.mark.parametrize("time_text", [TIME, FILE_TIME])
def test_line_is_redacted_alike_wherever_the_end_of_a_post_cuts_it(time_text: bytes) -> None:
    for line in [line for line in [*WITH_SECRET, *WITHOUT_SECRET] if line not in LIKE_A_PLAYER]:
        body = b"".join(time_text + text + b"\n" for text in (CHAT, line, ROUND))
        whole = without_quotes(redact_log(body))
        first, last = len(time_text + CHAT), len(body) - len(ROUND)
        for cut in range(first, last):
            if continues_line(body[cut:]) or body[cut - 1] == 10:  # else a chat text that begins like a line
                assert without_quotes(stored([body[:cut], body[cut:]], with_offsets=True)) == whole


@given(st.lists(PIECES_OF_LINES, max_size=5), st.lists(st.integers(0, 400), max_size=4), st.booleans())
def test_log_is_redacted_alike_however_it_is_cut_into_posts(
    lines: list[bytes], cuts: list[int], with_offsets: bool
) -> None:
    body = b"".join(TIME + line + b"\n" for line in lines)
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    posts = [body[begin:end] for begin, end in itertools.pairwise(edges)]
    assert without_quotes(stored(posts, with_offsets=with_offsets)) == without_quotes(redact_log(body))


def test_timestamp_cut_after_a_command_is_kept() -> None:
    command = TIME + b'rcon from "1": command "status"\n'
    for cut in range(len(TIME)):
        assert redact_log(command + TIME[:cut]).endswith(b"\n" + TIME[:cut])


def test_first_post_shows_nothing_of_a_cut_secret() -> None:
    assert redact_log(TIME + b'"sv_password" = "B3y1') == TIME + b'"sv_password" = "****'


# --- secrets that are known -------------------------------------------------------------------------------------------

KNOWN = b"q1W2e3R4t5Y6u7I8o9P0"


@given(st.integers(0, len(KNOWN)), st.binary(max_size=30), st.binary(max_size=30))
def test_known_secret_is_overwritten_also_if_posts_cut_it(cut: int, head: bytes, tail: bytes) -> None:
    first, second = head + KNOWN[:cut], KNOWN[cut:] + tail
    if KNOWN[:1] in head + tail or KNOWN[-1:] in head + tail:
        return
    parts = [redact_log(part, [KNOWN]) for part in (first, second)]
    assert [len(part) for part in parts] == [len(first), len(second)]
    left = [len(part) - part.count(b"*") for part in parts]
    plain = [len(part) - part.count(b"*") for part in (head, tail)]
    assert sum(left) - sum(plain) < MIN_KNOWN_PART, "fewer bytes than this may be left at an edge"
    assert KNOWN not in redact_log(head + KNOWN + tail, [KNOWN])


# --- reports ------------------------------------------------------------------------------------------------------------

REPORTS_WITH_SECRET = [
    {"matchzy_remote_log_header_value": "B3y1f7"},
    {"RemoteLogHeaderValue": "B3y1f7", "kills": 3},
    {"cvars": {"SV_PASSWORD": "B3y1f7"}},
    {"auth": [{"callbackAuthToken": 'with "quotes" \\ and B3y1f7"'}]},
    {"match_config": json.dumps({"RemoteLogHeaderValue": "B3y1f7", "NumMaps": 3}), "round": "07"},
    {"match_config": json.dumps({"a": 1, "steam_key": "B3y1f7"}, indent=1)},
    {"passwords": ["B3y1f7", "x]B3y1f7", ["B3y1f7"], {"name": "B3y1f7"}], "round": ["07"]},
    {"db": {"pass": "B3y1f7"}, "ftp_pwd": "B3y1f7", "sv_pw": "B3y1f7", "webhook": "B3y1f7", "auth": "B3y1f7"},
    {"auth": {"user": "B3y1f7", "hosts": ["B3y1f7"]}, "name": "Reds"},
    {"match_config": json.dumps({"webhooks": ["B3y1f7", "y"], "b": ["07"]})},
    {"match_config": json.dumps({"webhooks": ["B3y1f7", "y"], "b": ["07"]}, indent=1)},
]


@pytest.mark.parametrize("report", REPORTS_WITH_SECRET)
def test_secret_fields_of_a_report_are_overwritten_and_it_stays_valid(report: object) -> None:
    compact = [json.dumps(report, separators=separators) for separators in ((",", ":"), (", ", ": "))]
    indented = [json.dumps(report, indent=indent) for indent in (1, 4, "\t", 60)]
    for body in (text.encode() for text in (*compact, *indented)):
        redacted = redact_report(body)
        assert SECRET not in redacted
        assert len(redacted) == len(body)
        assert shape(json.loads(redacted)) == shape(report)


def test_fields_in_single_quotes_are_overwritten() -> None:
    body = b"{'password': 'B3y1f7', 'say': 'it', 'tokens': 3, 'auth': \"B3'y1f7\", 'map': 'de_nuke'}"
    redacted = redact_report(body)
    assert redacted == b"{'password': '******', 'say': 'it', 'tokens': 3, 'auth': \"*******\", 'map': 'de_nuke'}"


def test_cut_list_of_secrets_shows_none_of_them() -> None:
    for cut in range(1, 40):
        body = b'{"passwords": ["B3y1f7", "B3y1f7"], "a": 1}'
        assert not re.search(rb"B3y", redact_report(body[:cut]))


def shape(value: object) -> object:
    """A JSON value with the texts of its secret fields overwritten."""
    if isinstance(value, dict):
        return {key: "*" if is_secret_name(key) else shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, str) and value.startswith("{"):
        return shape(json.loads(value))
    return value


@pytest.mark.parametrize(
    "report",
    [
        {"event": "round_end", "team1": {"name": "Token", "players": [{"steamid": "7", "stats": {"kast": 1}}]}},
        {"content": '"password": is not a field', "keyboard": "x", "token_count": "12", "token": 12, "secret": None},
    ],
)
def test_other_fields_of_a_report_are_unchanged(report: object) -> None:
    body = json.dumps(report).encode()
    assert redact_report(body) == body


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


def test_hostile_bodies_are_redacted_in_linear_time() -> None:
    for body in [
        TIME + b'"' + b"password" * 30_000,
        TIME + b'"sv_password" = "' + b"<1" * 100_000 + b'"x',
        TIME + b'"sv_password" = "' + b'"<1>' * 60_000,
        TIME + b'rcon from "1": command "' + b"\n" * 250_000,
        (TIME + b'rcon from "1": command "\n') * 5_000,
        TIME + b'"' + b"x" * 250_000 + b'" = "',
        b'"token":' * 30_000,
        b'"' + b"token_" * 40_000 + b'":"',
        b'{"token":"' + b"\\" * 250_000,
        b'\\"token\\":\\"' * 15_000,
        b"q1W2e3R4t5" * 25_000,
        b'"token":[' * 30_000,
        b'"token":[' + b'"' * 250_000,
        b'"token":["' + b"[" * 250_000,
        b'\\"token\\":[' * 20_000,
        b'"token":[' + b"\\" * 250_000,
        (b"\n" + b" " * 64) * 4_000,
        b"\n" + b" " * 250_000,
    ]:
        started = time.process_time()
        redact_report(body, [KNOWN])
        unfinished(body)
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
