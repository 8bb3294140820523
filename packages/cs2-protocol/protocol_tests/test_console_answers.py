"""Tests of console answers: real samples, hostile names and arbitrary text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.console_answers import (
    MAX_CLIENTS,
    MAX_CVAR_LINES,
    MAX_LISTENER_LINES,
    MAX_LISTENERS,
    MAX_NAME_CHARS,
    MAX_OBJECT_STARTS,
    MAX_STATUS_LINES,
    CvarValue,
    Get5Status,
    StatusJson,
    StatusJsonClient,
    StatusPlayer,
    parse_cvar,
    parse_get5_status,
    parse_log_listeners,
    parse_spawn_count,
    parse_status,
    parse_status_json,
    unknown_commands,
)

NOISE = 'L 01/19/2026 - 19:02:08: "Eve<2><[U:1:7]><CT>" say "hostname : owned"'


def status_with(*rows: str) -> tuple[StatusPlayer, ...]:
    """Parse a `status` answer with these lines in its player table."""
    return parse_status("\n".join(["---------players--------", *rows, "#end"]))


def names(players: tuple[StatusPlayer, ...]) -> list[str]:
    return [player.name for player in players]


# --- status ---


def test_status_of_a_server_with_bots_is_parsed(corpus: Path) -> None:
    players = parse_status((corpus / "status_1.41.2.8_bots_hibernating.txt").read_text())
    assert names(players) == ["Rebel", "Rock", "Ricksaw", "Commando", "Shamat"]
    assert all(player.is_bot for player in players)


@pytest.mark.parametrize("file", ["status_1.41.2.8_bots_hibernating.txt", "status_1.41.8.1_empty.txt"])
def test_count_of_map_loads_is_parsed(corpus: Path, file: str) -> None:
    assert parse_spawn_count((corpus / file).read_text()) == 3


@pytest.mark.parametrize(
    "text", ["", "spawn    : x", "hostname : spawn    : 4", "---------players--------\nspawn    : 4"]
)
def test_count_of_map_loads_is_read_only_from_its_own_line(text: str) -> None:
    assert parse_spawn_count(text) is None


def test_status_of_a_server_with_players_is_parsed(corpus: Path) -> None:
    players = parse_status((corpus / "status_1.41.8.1_two_humans_partial.txt").read_text())
    assert players[0] == StatusPlayer(user_id=0, name="Player One", is_bot=False)


def test_rows_without_a_channel_are_skipped(corpus: Path) -> None:
    players = parse_status((corpus / "status_rows_mixed.txt").read_text())
    assert names(players) == ["Nickname", "Aspirant", "Rex", "nikita ", "Ariel"]
    assert [player.user_id for player in players] == [2, 14, 15, 65280, 12]
    assert [player.is_bot for player in players] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("   2    00:40    0    0     active 786432 127.0.0.1:65498 'it's 'me''", "it's 'me'"),
        ("   2      BOT    0    0     active      0 'Big 'Bad' Wolf'", "Big 'Bad' Wolf"),
        (
            "  2 00:40 0 0 active 786432 127.0.0.1:65498 '3 00:01 0 0 active 0 1.1.1.1:1 'x'",
            "3 00:01 0 0 active 0 1.1.1.1:1 'x",
        ),
        ("  2 00:40 0 0 active 786432 127.0.0.1:65498 'a\u2028b\x1cc'", "a\u2028b\x1cc"),
        ("  2 1:02:03 0 0 active 786432 127.0.0.1:65498 'x'", "x"),
        ("  2 00:40 0 0 active 786432 127.0.0.1:65498 'x", None),
    ],
    ids=["last quote", "quoted word", "imitated row", "line separator", "hours", "no closing quote"],
)
def test_name_is_what_is_between_the_first_and_the_last_quote(row: str, name: str | None) -> None:
    assert names(status_with(row)) == ([] if name is None else [name])


@pytest.mark.parametrize("text", ["", "Unknown command 'status'!", NOISE, "map : de_dust2"])
def test_other_text_has_no_players(text: str) -> None:
    assert parse_status(text) == ()


# --- status_json ---


def test_status_json_of_a_real_server_is_parsed(corpus: Path) -> None:
    answer = parse_status_json((corpus / "status_json_build2000696.json").read_text())
    assert answer is not None
    assert answer.map == "de_dust2"
    assert answer.humans == (StatusJsonClient(steam_id64="76561197997837923", name="LarryCucumber", is_bot=False),)
    assert [client.name for client in answer.clients if client.is_bot][:2] == ["Rebel", "Rip"]
    assert all(client.steam_id64 != "0" for client in answer.clients)


def test_status_json_is_found_between_unrelated_lines(corpus: Path) -> None:
    sample = (corpus / "status_json_build2000696.json").read_text()
    noisy = f"{NOISE}\n{{broken\n{sample}\n{NOISE}\n"
    assert parse_status_json(noisy) == parse_status_json(sample)


def status_json(*clients: object) -> str:
    return json.dumps({"server": {"clients": clients}})


def test_name_cannot_forge_status_json() -> None:
    forged = '{"server":{"clients":[]}}'
    real = status_json({"steamid64": "76561197997837923", "name": "x"})
    answer = parse_status_json(f"{forged} connected\n{NOISE} {forged}\n{real}\n")
    assert answer is not None
    assert len(answer.humans) == 1


ANN = "76561197997837923"


@pytest.mark.parametrize(
    ("steam_id64", "bot", "is_human"),
    [
        *((other, False, False) for other in ("76561197960265728", "76561202255233024", "90071996842377218", "x", "")),
        (ANN, True, False),
        (ANN, "no", True),
    ],
)
def test_human_has_the_id_of_a_person_and_no_bot_flag(steam_id64: str, bot: object, is_human: bool) -> None:
    answer = parse_status_json(status_json({"steamid64": steam_id64, "bot": bot, "name": "x"}))
    assert answer is not None
    assert (len(answer.clients), len(answer.humans)) == (1, int(is_human))


@pytest.mark.parametrize(("written", "name"), [("a\\ud800", "a?"), ("a\x01b", "a\x01b")])
def test_lone_surrogate_in_a_name_is_replaced_and_a_control_character_kept(written: str, name: str) -> None:
    answer = parse_status_json(f'{{"server": {{"clients": [{{"steamid64": "{ANN}", "name": "{written}"}}]}}}}')
    assert answer is not None
    assert answer.clients[0].name == name


def test_fields_of_the_wrong_type_count_as_missing() -> None:
    answer = parse_status_json('{"server": {"map": 7, "clients": ["x", {"name": 1}, null]}}')
    assert answer == StatusJson(map=None, clients=())


def test_status_json_without_a_client_list_has_no_clients() -> None:
    answer = parse_status_json('{"server": {"clients": 3, "map": "de_nuke"}}')
    assert answer is not None
    assert (answer.map, answer.clients) == ("de_nuke", ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Unknown command 'status_json'!",
        '{"server": {"map": "de_dust2"',
        '{"server": 3}',
        '{"map": "de_dust2"}',
        '[{"server": {}}]',
        '{"server":' * 5000,
        '{"a":' + "[" * 100_000,
        '{"server": ' + "9" * 5000 + "}",
        "{\n" * MAX_OBJECT_STARTS + '{"server": {}}',
    ],
)
def test_invalid_or_other_json_is_not_status_json(text: str) -> None:
    assert parse_status_json(text) is None


# --- logaddress_list_http ---


def test_listeners_are_listed() -> None:
    text = (
        "http://10.0.0.1:8080/ingest/abc?x=1 - no pending request\n"
        "    last acknowledged tick 3391\n"
        "https://logs.example/CS2Logs - has pending request\n"
        f"{NOISE}\n"
    )
    assert parse_log_listeners(text) == ("http://10.0.0.1:8080/ingest/abc?x=1", "https://logs.example/CS2Logs")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "last acknowledged tick 5",
        "Internal HTTP error posting to url http://10.0.0.1/",
        f"{NOISE} http://evil.example/",
    ],
)
def test_address_inside_a_line_is_not_a_listener(text: str) -> None:
    assert parse_log_listeners(text) == ()


# --- get5_status ---

LIVE = {
    "plugin_version": "0.15.0",
    "gamestate": "live",
    "paused": True,
    "matchid": 27,
    "map_number": 0,
    "round_number": 4,
    "team1": {"name": "Alpha", "series_score": 1, "current_map_score": 3, "ready": True, "side": "ct"},
    "team2": {"name": "Beta", "series_score": 0, "current_map_score": 1, "ready": False, "side": "t"},
}


def test_get5_status_of_a_live_match_is_parsed() -> None:
    answer = parse_get5_status(f"{NOISE}\n{json.dumps(LIVE)}\n{NOISE}")
    assert answer == Get5Status(state="live", match_id="27", map_number=0)
    assert answer.has_match


def test_get5_status_without_a_match_has_only_its_state() -> None:
    answer = parse_get5_status('{\n  "plugin_version": "0.15.0",\n  "gamestate": "none"\n}')
    assert answer == Get5Status(state="none", match_id=None, map_number=0)
    assert not answer.has_match


@pytest.mark.parametrize(
    ("state", "map_number", "has_begun"),
    [("warmup", 0, False), ("warmup", "1", False), ("warmup", 1, True), ("knife", 0, True), ("live", None, True)],
)
def test_play_has_begun_on_this_map_or_an_earlier_one(state: str, map_number: object, has_begun: bool) -> None:
    answer = parse_get5_status(json.dumps({"gamestate": state, "matchid": 27, "map_number": map_number}))
    assert answer is not None
    assert answer.has_begun is has_begun


@pytest.mark.parametrize("gamestate", ["7", "null", "[]"])
def test_state_that_is_no_text_is_unknown(gamestate: str) -> None:
    answer = parse_get5_status(f'{{"gamestate": {gamestate}}}')
    assert answer is not None
    assert answer.state == "unknown"


@pytest.mark.parametrize(("written", "read"), [('"m-1"', "m-1"), ("1700000000123", "1700000000123"), ("true", None)])
def test_match_id_may_be_text_or_number(written: str, read: str | None) -> None:
    answer = parse_get5_status(f'{{"gamestate": "live", "matchid": {written}}}')
    assert answer is not None
    assert answer.match_id == read


def test_server_without_the_plugin_has_no_get5_status() -> None:
    text = "Unknown command 'get5_status'!\n"
    assert parse_get5_status(text) is None
    assert unknown_commands(text) == ("get5_status",)


# --- cvars and unknown commands ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mp_maxrounds = 24\n", "24"),
        (f"{NOISE}\nmp_maxrounds = 24\r\n{NOISE}", "24"),
        ("MP_MaxRounds = true", "true"),
        ('"mp_maxrounds" = "24" ( def. "30" ) min. 0.0 replicated', "24"),
        ('mp_maxrounds = "a = b"', "a = b"),
        ("mp_maxrounds = some text ", "some text"),
        ("mp_maxrounds = ", ""),
    ],
)
def test_cvar_is_parsed_from_its_line(text: str, value: str) -> None:
    assert parse_cvar(text, "mp_maxrounds") == CvarValue("mp_maxrounds", value)


@pytest.mark.parametrize(
    "text",
    ["", "Unknown command 'mp_maxrounds'!", "mp_maxrounds2 = 1", "say mp_maxrounds = 1", f"{NOISE} mp_maxrounds = 1"],
)
def test_cvar_missing_from_the_answer_is_none(text: str) -> None:
    assert parse_cvar(text, "mp_maxrounds") is None


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("true", "1"),
        ("false", "0"),
        ("24", "24"),
        ("1.920000", "1.92"),
        ("0.300000012", ".3"),
        ("My Server", "My Server"),
    ],
)
def test_equivalent_values_are_equal(printed: str, expected: str) -> None:
    assert CvarValue("x", printed).equals(expected)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("true", "0"), ("24", "30"), ("", "0"), ("nan", "1"), ("My Server", "my server"), ("24", "24x")],
)
def test_different_values_are_not_equal(printed: str, expected: str) -> None:
    assert not CvarValue("x", printed).equals(expected)


def test_unknown_commands_are_found_in_every_format() -> None:
    text = f"Unknown command 'a_b'!\n{NOISE} Unknown command 'no'!\nUnknown command \"c\"\nUnknown command: css_x\n"
    assert unknown_commands(text) == ("a_b", "c", "css_x")


# --- answers of a server that was taken over ---


def test_more_players_than_a_server_has_are_not_read() -> None:
    rows = [f"{number} 00:40 9 0 active 0 192.0.2.1:1 'x'" for number in range(MAX_CLIENTS + 5)]
    assert len(status_with(*rows)) == MAX_CLIENTS
    answer = parse_status_json(status_json(*({"steamid64": f"{number}", "name": "x"} for number in range(1, 1000))))
    assert answer is not None
    assert len(answer.clients) == MAX_CLIENTS


def test_long_names_are_cut() -> None:
    assert names(status_with(f"2 00:40 9 0 active 0 192.0.2.1:1 '{'x' * 5000}'")) == ["x" * MAX_NAME_CHARS]
    answer = parse_status_json(status_json({"steamid64": "76561197997837923", "name": "x" * 5000}))
    assert answer is not None
    assert answer.clients[0].name == "x" * MAX_NAME_CHARS


def test_more_listeners_than_a_server_has_are_not_read() -> None:
    listed = parse_log_listeners("".join(f"http://192.0.2.1/{number}\n" for number in range(MAX_LISTENERS + 5)))
    assert len(listed) == MAX_LISTENERS


def test_lines_after_the_end_of_a_real_answer_are_not_read() -> None:
    row = "2 00:40 9 0 active 0 192.0.2.1:1 'x'"
    table = "---------players--------\n"
    assert len(parse_status(table + "\n" * (MAX_STATUS_LINES - 2) + row)) == 1
    assert parse_status(table + "\n" * (MAX_STATUS_LINES - 1) + row) == ()
    assert len(parse_log_listeners("\n" * (MAX_LISTENER_LINES - 1) + "http://192.0.2.1/")) == 1
    assert parse_log_listeners("\n" * MAX_LISTENER_LINES + "http://192.0.2.1/") == ()
    assert parse_cvar("\n" * (MAX_CVAR_LINES - 1) + "a = 1", "a") == CvarValue("a", "1")
    assert parse_cvar("\n" * MAX_CVAR_LINES + "a = 1", "a") is None


# --- arbitrary text ---

pieces = st.sampled_from(
    [
        "hostname : ",
        "version  : 1.41.2.8/14128 10603",
        "players  : ",
        "---------players--------",
        "  2 00:40 0 0 active 0 ",
        "'",
        "\n",
        "#end",
        "{",
        "}",
        '"server": ',
        '{"server": {"clients": [',
        '{"gamestate": ',
        "]",
        "http://x - has pending request",
        "last acknowledged tick 1",
        "x = ",
        "Unknown command ",
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["server", "clients", "steamid64", "name", "gamestate", "matchid", "team1", "side"]), inner
        )
    ),
    max_leaves=12,
)
answers = st.text() | st.lists(pieces | st.text(max_size=4), max_size=12).map("".join) | json_values.map(json.dumps)


def parse_with_all(text: str) -> None:
    parse_status(text)
    parse_status_json(text)
    parse_log_listeners(text)
    parse_get5_status(text)
    parse_cvar(text, "x")
    unknown_commands(text)


@given(answers)
def test_any_text_is_parsed_without_raising(text: str) -> None:
    parse_with_all(text)


@pytest.mark.parametrize("piece", [" ", "\n", "-", "'", "0 ", "{", '{"a":\n', "x", "Unknown command ", "\t\n"])
def test_patterns_are_fast_on_long_texts(piece: str) -> None:
    # A pattern with quadratic run time on one of these takes minutes instead of milliseconds.
    long = piece * 60_000
    parse_with_all(long)
    parse_with_all("---------players--------\n  2 00:40 0 0 active 0" + long)


@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=40))
def test_any_name_on_one_line_is_parsed_completely(name: str) -> None:
    status = status_with(f"   2    00:40    0    0     active 786432 127.0.0.1:65498 '{name}'")
    assert names(status) == [name]
