"""Test that the run time of every parser is linear in the length of what a server, plugin or console sends.

Parts of a valid text are repeated thousands of times, with and without the rest of the text after them, as in an
attack on a pattern whose run time is quadratic. CPU time is measured, so that a busy machine does not matter.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product

import msgspec
import pytest

from cs2_protocol import console_answers as answers
from cs2_protocol.console_limits import CVAR_BYTES, MAX_CALL_BYTES, answer_limit
from cs2_protocol.log_lines import reader
from cs2_protocol.matchzy import read_report
from cs2_protocol.rcon import MAX_ANSWER_BYTES, ClientConnection
from cs2_protocol.rcon_frames import AUTH_RESPONSE, RESPONSE_VALUE, Frame, encode_frame
from matchpod.cs2.anticheat_reports import read_detections
from matchpod.cs2.shots_report import ShotsReportError, read_shots_report
from matchpod.service.ingest.posts import MAX_BODY_BYTES
from matchpod.service.ingest.redaction import redact_log, redact_report
from protocol_tests.log_lines.samples import ANN, BEN, PLAYER_LINES, WORLD_LINES
from tests.unit.service.ingest.test_redaction import TIME, WITH_SECRET, WITHOUT_SECRET

SMALL, LARGE = 1_000, 8_000
CHEAP_S = 0.01
"""CPU time for LARGE characters that needs no comparison: a linear parser takes a tenth of it, a quadratic one more."""

MAX_RATIO = 24
"""Cost of LARGE over SMALL characters: 8 if linear, 64 if quadratic."""

Parse = Callable[[str], object]


def pumped(text: str, size: int) -> Iterator[str]:
    """Repeat each part of a text without the rest after it, and each two adjacent parts with it, to this size."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", text)
    for first in range(len(parts)):
        for last in (first + 1, first + 2):
            part = "".join(parts[first:last])
            repeated = "".join(parts[:first]) + part * (size // len(part))
            yield repeated if last == first + 1 else repeated + "".join(parts[last:])


def cost_s(parse: Parse, text: str) -> float:
    began_s = time.thread_time()
    parse(text)
    return time.thread_time() - began_s


def check_linear(parse: Parse, sample: str) -> None:
    for small, large in zip(pumped(sample, SMALL), pumped(sample, LARGE), strict=True):
        if cost_s(parse, large) > CHEAP_S:
            costs_s = [min(cost_s(parse, text) for _ in range(3)) for text in (small, large)]
            assert costs_s[1] < MAX_RATIO * costs_s[0], f"{costs_s[1]:.3f} s for {large[:80]}…{large[-20:]}"


@pytest.fixture
def parse_line(monkeypatch: pytest.MonkeyPatch) -> Parse:
    """Parse a line of any length: the patterns must be linear without the limit too."""
    monkeypatch.setattr(reader, "MAX_LINE_CHARS", sys.maxsize)

    def parse(text: str) -> object:
        lines = reader.LineReader()
        lines.known.learn(ANN)
        lines.known.learn(BEN)
        return lines.read(f"01/19/2026 - 19:02:08.000 - {text}".encode())

    return parse


@pytest.mark.parametrize("line", [*PLAYER_LINES, *WORLD_LINES])
def test_cost_of_a_log_line_is_linear(line: str, parse_line: Parse) -> None:
    check_linear(parse_line, line)


STATUS = (
    "hostname : My Server\nversion  : 1.41.2.8/14128 10603 secure  public\nplayers  : 2 humans, 5 bots (0 max)\n"
    "  loaded spawngroup(  1)  : SV:  [1: de_inferno | main lump]\n---------players--------\n"
    "  id     time ping loss      state   rate adr name\n"
    "   2    00:40    0    0     active 786432 127.0.0.1:65498 'Ann'\n#end\n"
)
STATUS_JSON = '{\n"server": {"map": "de_nuke", "clients": [{"steamid64": "76561197997837923", "name": "Ann"}]}}\n'
CONSOLE_ANSWERS: list[tuple[Parse, str]] = [
    (answers.parse_status, STATUS),
    (answers.parse_status_json, STATUS_JSON),
    (answers.parse_get5_status, '{\n"plugin_version": "0.15.0",\n"gamestate": "live", "team1": {"name": "A"}}'),
    (answers.parse_log_listeners, '"https://x.example/ingest/logs/t"\n  last acknowledged tick: 1234\n'),
    (lambda text: answers.parse_cvar(text, "mp_maxrounds"), '"mp_maxrounds" = "24" ( def. "30" ) game\n'),
    (answers.unknown_commands, "Unknown command 'sim_speed'!\n"),
]


COMMANDS = ("status", "status_json", "get5_status", "logaddress_list_http", "mp_maxrounds", "matchzy_loadmatch_url x")


def test_cost_of_a_console_answer_is_linear() -> None:
    for parse, answer in CONSOLE_ANSWERS:
        check_linear(parse, answer)


AT_THE_LIMIT_S = 0.05
"""CPU time for the longest answer, which no server but one that was taken over sends: a few milliseconds each."""

FILLINGS = [
    "\n",
    " ",
    "x",
    "9",
    "[",
    "{\n",
    '{"server":',
    '{"a":1}\n',
    "1.1e308,",
    "{},",
    '"\\u1234",',
    "' '",
    "\u00e9",
]


@pytest.mark.parametrize(
    ("command", "parse", "answer"), [(command, *each) for command, each in zip(COMMANDS, CONSOLE_ANSWERS, strict=True)]
)
def test_console_answer_at_its_limit_is_cheap(command: str, parse: Parse, answer: str) -> None:
    limit = answer_limit(command)
    starts = ("", answer, "---------players--------\n", '{"server": {"clients": [', '{"gamestate": [')
    for start, filling in product(starts, (*FILLINGS, answer)):
        text = start + filling * (limit // len(filling.encode()))
        # The garbage collector may run meanwhile, over all objects of the tests.
        assert any(cost_s(parse, text) < AT_THE_LIMIT_S for _ in range(3)), f"{start}{filling}…"


def test_all_variables_of_a_call_at_its_limit_are_cheap() -> None:
    texts = [filling * CVAR_BYTES for filling in ("\n", "x", "= ") for _ in range(MAX_CALL_BYTES // CVAR_BYTES)]
    assert cost_s(lambda _: [answers.parse_cvar(text, "mp_maxrounds") for text in texts], "") < 3 * AT_THE_LIMIT_S


@pytest.mark.parametrize("filling", [b"\xff", b"\xc3", b"\xf0\x9f\x98\x80", b"\x00"])
@pytest.mark.parametrize("part_bytes", [MAX_ANSWER_BYTES, 4000])
def test_longest_answer_is_received_and_decoded_cheaply(filling: bytes, part_bytes: int) -> None:
    client = ClientConnection(answer_limit)
    client.authenticate("x")
    list(client.receive(encode_frame(Frame(1, AUTH_RESPONSE))))
    client.command("status")
    body = filling * (MAX_ANSWER_BYTES // len(filling))
    parts = [body[start : start + part_bytes] for start in range(0, len(body), part_bytes)]
    packets = b"".join(encode_frame(Frame(2, RESPONSE_VALUE, part)) for part in (*parts, b""))
    mirror = encode_frame(Frame(3, RESPONSE_VALUE))
    assert cost_s(lambda _: len(list(client.receive(packets + mirror))), "") < 2 * AT_THE_LIMIT_S


WEBHOOKS = [
    "**----- CHEATER DETECTED -----**\n```Detection: Aimbot\nWeapon: weapon_ak47\nInfo: Aimbot -> 41.2\n\n"
    "Name: Ic3\nSteamID: STEAM_1:1:18786097\nTime: 01/19/2026 19:03:11```",
    "```\nServer IP: 203.0.113.1\nPlayer: Ic3\nSteamID: 76561197997837923\nCheat Type: Spinbot\nDetails: (720)\n```",
]


@pytest.mark.parametrize("content", WEBHOOKS)
def test_cost_of_an_anti_cheat_message_is_linear(content: str) -> None:
    check_linear(lambda text: read_detections(msgspec.json.encode({"content": text})), content)


def read_shots(body: str) -> None:
    with pytest.raises(ShotsReportError):
        read_shots_report(body.encode())


REPORTS: list[tuple[Parse, str]] = [
    (
        lambda text: read_report(text.encode()),
        '{"event": "round_end", "matchid": 7, "map_number": 0, "round_number": 4, "reason": 8, "winner": {"side": "3"},'
        ' "team1": {"score": 3, "players": [{"steamid": "76561197997837923", "stats": {"kills": 1.1e308}}]}}',
    ),
    (lambda text: read_detections(text.encode()), '{"Observations": [{"SteamID": "76561197997837923", "Kind": "x"}]}'),
    (
        lambda text: redact_report(text.encode()),
        '{"log_token": "a\\"b", "config": "{\\"Password\\": \\"x\\"}", "n": 1}',
    ),
    (read_shots, '{"mapNumber": 1, "rounds": [{"roundNumber": 1, "players": [{"steamId": "7", "shotsFired": 1.1e308}]'),
]


def test_cost_of_a_report_is_linear() -> None:
    for parse, report in REPORTS:
        check_linear(parse, report)


@pytest.mark.parametrize("parse", [parse for parse, _ in REPORTS])
@pytest.mark.parametrize("item", ["1.1e308,", "{},", '"\\u1234",', "[[[[]]]],", '{"SteamID": "7", "Kind": "x"},'])
@pytest.mark.parametrize("start", ["[", '{"Observations": ['])
def test_largest_report_is_cheap(parse: Parse, item: str, start: str) -> None:
    items = item * (MAX_BODY_BYTES // len(item) - 10)
    text = start + items[:-1] + ("]" if start == "[" else "]}")
    assert cost_s(parse, text) < 0.5, "decoded completely, it took two seconds"


@pytest.mark.parametrize("line", [*WITH_SECRET, *WITHOUT_SECRET])
def test_cost_of_redaction_is_linear(line: bytes) -> None:
    check_linear(lambda text: redact_log(text.encode()), (TIME + line + b"\n").decode(errors="replace"))
