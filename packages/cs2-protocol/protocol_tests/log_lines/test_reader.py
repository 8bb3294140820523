"""Tests of prefixes, ambiguous lines, and players who imitate the server."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest

from cs2_protocol.log_lines import player_lines, world_lines
from cs2_protocol.log_lines.player_token import player_token
from cs2_protocol.log_lines.reader import MAX_LINE_CHARS, LineReader
from cs2_protocol.log_lines.world_lines import Unknown
from protocol_tests.log_lines.line_format import format_file_line, format_http_line

from .hostile import hostile_texts
from .samples import ANN, BEN, PLAYER_LINES, A

EVIL_ID = "[U:1:666]"


def reader_with(*names: str) -> LineReader:
    """Return a reader that knows Ann, Ben and, from one line each, players with these names."""
    reader = LineReader()
    for player in (ANN, BEN):
        reader.known.learn(player)
    for number, name in enumerate(names):
        reader.parse(f'"{name}<{10 + number}><{EVIL_ID}><>" STEAM USERID validated')
    return reader


@pytest.mark.parametrize(
    ("raw", "ms"),
    [
        (b'L 01/19/2026 - 19:02:08: World triggered "Round_Start"', 1768849328000),
        (b'01/19/2026 - 19:02:08.278 - World triggered "Round_Start"', 1768849328278),
        (b'L 01/19/2026 - 19:02:08.170: World triggered "Round_Start"', 1768849328170),
        (b'01/19/2026 - 19:02:08: World triggered "Round_Start"', 1768849328000),
    ],
)
def test_all_prefix_formats_are_parsed(raw: bytes, ms: int) -> None:
    assert LineReader().read(raw) == (ms, world_lines.WorldTriggered("Round_Start"))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no prefix at all",
        b'L 13/45/2026 - 19:02:08: World triggered "Round_Start"',
        b'L 01/19/2026 - 25:61:61: World triggered "Round_Start"',
        b"\xff\xfe\x00garbage\x80",
        b"L 01/19/2026",
    ],
)
def test_line_without_a_time_stamp_is_unknown(raw: bytes) -> None:
    ms, line = LineReader().read(raw)
    assert ms is None
    assert isinstance(line, Unknown)


def test_invalid_utf8_is_replaced() -> None:
    _, line = LineReader().read(b'L 01/19/2026 - 19:02:08: "An\xffn<1><[U:1:101]><CT>" say "\x80\x01hi"')
    assert isinstance(line, player_lines.Chat)
    assert line.player.name == "An\ufffdn"


def test_line_is_formatted_with_either_prefix() -> None:
    line = world_lines.WorldTriggered("Round_Start")
    assert format_file_line(1768849328278, line) == 'L 01/19/2026 - 19:02:08: World triggered "Round_Start"'
    assert format_http_line(1768849328278, line) == '01/19/2026 - 19:02:08.278 - World triggered "Round_Start"'


@pytest.mark.parametrize("text", PLAYER_LINES)
def test_chat_of_a_known_player_is_always_chat(text: str) -> None:
    assert reader_with().parse(f'{A} say "{text}"') == player_lines.Chat(ANN, False, text)


@pytest.mark.parametrize("text", PLAYER_LINES)
def test_chat_of_an_unknown_player_is_chat_or_unknown(text: str) -> None:
    line = LineReader().parse(f'"Zoe<7><[U:1:107]><CT>" say "x{text}"')
    assert isinstance(line, player_lines.Chat | Unknown)


@pytest.mark.parametrize(
    "name",
    [
        'Ann<1><[U:1:101]><CT>" [0 0 0] killed "Ben<2><[U:1:102]><TERRORIST>" [1 1 1] with "ak47',
        'Ann<1><[U:1:101]><CT>" triggered "Planted_The_Bomb',
        'Ann<1><[U:1:101]><CT>" [0 0 0] committed suicide with "world',
        'sv_cheats" = "1',
        'player_1" : "1',
        "<3",
        "<3>",
        '"',
        ">",
        "\u2028",
        "a\x01\x02b",
        "",
    ],
)
def test_lines_of_a_player_with_a_hostile_name_are_parsed(name: str) -> None:
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    assert reader.parse(f'{evil.text()} say "hi"') == player_lines.Chat(evil, False, "hi")
    kill = f'{evil.text()} [1 2 3] killed {BEN.text()} [4 5 6] with "ak47"'
    assert reader.parse(kill) == player_lines.Killed(evil, "1 2 3", BEN, "4 5 6", "ak47")
    death = f'{BEN.text()} [1 2 3] killed {evil.text()} [4 5 6] with "ak47"'
    assert reader.parse(death) == player_lines.Killed(BEN, "1 2 3", evil, "4 5 6", "ak47")


def test_self_inflicted_hit_by_a_player_named_like_a_log_line_is_parsed() -> None:
    name = 'w<1><[U:1:1]><CT>" disconnected (reason "KICKED")'
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    tail = ' (damage "8") (damage_armor "0") (health "58") (armor "100") (hitgroup "generic")'
    line = reader.parse(f'{evil.text()} [1 2 3] attacked "{name}<10><><CT>" [1 2 3] with "inferno"{tail}')
    assert isinstance(line, player_lines.Attacked)
    assert line.victim.player_id == evil.player_id


def test_name_that_imitates_chat_of_a_known_player_makes_the_line_unknown() -> None:
    name = 'Ann<1><[U:1:101]><CT>" say "x'
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    text = f'{evil.text()} [1 2 3] killed {BEN.text()} [4 5 6] with "ak47"'
    assert reader.parse(text) == Unknown(text)


def test_name_that_imitates_chat_of_an_unknown_player_is_parsed() -> None:
    name = 'Zoe<9><[U:1:109]><CT>" say "x'
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    text = f'{evil.text()} [1 2 3] killed {BEN.text()} [4 5 6] with "ak47"'
    assert reader.parse(text) == player_lines.Killed(evil, "1 2 3", BEN, "4 5 6", "ak47")


def test_chat_does_not_make_a_player_known() -> None:
    reader = LineReader()
    reader.parse(f'{A} say "x<5><[U:1:105]><>" STEAM USERID validated"')
    reader.parse(f'{A} say "x<5><[U:1:105]><>" entered the game"')
    reader.parse(f'{A} say "x<5><[U:1:105]><>" connected, address "1.2.3.4:5"')
    assert {token.name for token in reader.known.players.values()} <= {"Ann"}


def test_name_of_a_victim_does_not_make_a_player_connect() -> None:
    reader = reader_with()
    victim = player_token('Zoe<9><[U:1:109]><>" connected, address "1', 7, EVIL_ID, "CT")  # this name is not known yet
    text = f"{A} assisted killing {victim.text()}"
    assert reader.parse(text) == Unknown(text)
    assert not reader.known.knows(player_token("Zoe", 9, "[U:1:109]", ""))


@pytest.mark.parametrize(
    "value",
    [
        'x<9><[U:1:109]><CT>" say "hi',
        'x<9><[U:1:109]><CT>" changed name to "Ann',
        'x<9><[U:1:109]><CT>" say "y<8><[U:1:108]><CT>" say "hi',
    ],
)
def test_console_variable_is_never_a_players_act(value: str) -> None:
    reader = reader_with()
    assert reader.parse(f'"mp_teamname_1" = "{value}"') == world_lines.CvarListed("mp_teamname_1", value)
    assert len(reader.known.players) == 2


def test_player_named_like_a_console_variable_is_parsed_as_a_player() -> None:
    name = 'mp_teamname_1" = "x'
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    assert reader.parse(f'{evil.text()} say "hi"') == player_lines.Chat(evil, False, "hi")


def test_earlier_name_of_a_player_does_not_speak() -> None:
    reader = reader_with("Eve")
    eve = player_token("Eve", 10, EVIL_ID, "CT")
    new_name = f'{eve.text()[1:]} say "x'
    reader.parse(f'{eve.text()} changed name to "{new_name}"')
    renamed = player_token(new_name, 10, EVIL_ID, "CT")
    assert reader.parse(f'{renamed.text()} say "hi"') == player_lines.Chat(renamed, False, "hi")


def test_renamed_player_is_known_by_the_new_name() -> None:
    reader = reader_with()
    new_name = 'Zoe<9><[U:1:109]><CT>" say "x'
    reader.parse(f'{A} changed name to "{new_name}"')
    renamed = player_token(new_name, 1, "[U:1:101]", "TERRORIST")
    text = f'{renamed.text()} triggered "Got_The_Bomb"'
    assert reader.parse(text) == player_lines.Triggered(renamed, "Got_The_Bomb")


@pytest.mark.parametrize("verb", ["say", "say_team", "changed name to"])
def test_newcomer_whose_name_has_the_token_of_another_player_does_not_act_for_them(verb: str) -> None:
    reader = reader_with()
    newcomer = player_token(f'{A[1:]} {verb} "x', 10, EVIL_ID, "")
    text = f'{newcomer.text()} connected, address "203.0.113.9:62716"'
    assert reader.parse(text) == Unknown(text)
    assert reader.known.players[ANN.identity].name == "Ann"
    assert reader.parse(f"{newcomer.text()} entered the game") == player_lines.Entered(newcomer)


def test_vote_is_of_the_player_whose_token_the_server_wrote() -> None:
    name = f'{A[1:-1]}<Area 1>" option0'
    line = reader_with().parse(f'Vote cast "StartTimeOut " from #9 "{name}<10><{EVIL_ID}><CT><Area 2>" option1')
    assert isinstance(line, world_lines.Vote)
    assert (line.player, line.option) == (player_token(name, 10, EVIL_ID, "CT"), "option1")


def test_console_chat_is_not_parsed_as_a_players_line() -> None:
    text = '"Console<0>" say "x<5><[U:1:105]><>" connected, address "1.2.3.4:5"'
    assert isinstance(reader_with().parse(text), world_lines.ConsoleChat)


def test_player_named_like_the_console_is_parsed_as_a_player() -> None:
    name = 'Console<0>" say "x'
    reader = reader_with(name)
    evil = player_token(name, 10, EVIL_ID, "CT")
    assert reader.parse(f'{evil.text()} say "hi"') == player_lines.Chat(evil, False, "hi")


def test_overlong_line_of_tokens_is_unknown() -> None:
    text = '"' + '<1><[U:1:1]><CT>" ' * 10_000
    assert isinstance(LineReader().parse(text), Unknown)
    assert len(text) > MAX_LINE_CHARS


def test_hostile_names_and_chat_do_not_forge_other_lines() -> None:
    texts = hostile_texts(7)
    for name, message in islice(zip(texts, texts, strict=True), 3_000):
        reader = reader_with(name)
        evil = player_token(name, 10, EVIL_ID, "CT")
        line = reader.parse(f'{evil.text()} say "{message}"')
        if isinstance(line, player_lines.PlayerLogLine):
            assert isinstance(line, player_lines.Chat), (name, message)
            assert line.player == evil, (name, message)
        else:
            assert isinstance(line, Unknown | world_lines.ConsoleChat | world_lines.CvarListed), (name, message)


def test_stored_reader_equals_the_original() -> None:
    reader = reader_with("<3")
    reader.read(b'L 01/19/2026 - 19:02:08: World triggered "Round_Start"')
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=LineReader)
    assert restored == reader
