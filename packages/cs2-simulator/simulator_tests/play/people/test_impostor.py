"""Test names and chat messages that imitate log lines."""

from __future__ import annotations

import pytest

from cs2_protocol.log_lines.player_lines import ChangedName, Chat
from cs2_protocol.log_lines.reader import LineReader
from cs2_simulator.play.people.persons import MAX_NAME_BYTES
from cs2_simulator.play.people.spoof_texts import SPOOF_CHAT, SPOOF_NAMES, SPOOF_RENAMES
from cs2_simulator.scenarios import Scenario
from protocol_tests.log_lines.line_format import format_http_line
from simulator_tests.play.people.visited_server import VisitedServer

MAX_CHAT_BYTES = 256


def play_match(*, mode: tuple[int, int] = (0, 1), seed: int = 7) -> VisitedServer:
    server = VisitedServer(Scenario.SPOOFER, mode=mode, seed=seed)
    server.fill()
    server.go_live()
    for number in range(1, 14):
        server.play_round(number)
    return server


def test_texts_are_within_the_limits_of_the_game() -> None:
    for text in (*SPOOF_NAMES, *SPOOF_RENAMES):
        assert len(text.encode()) <= MAX_NAME_BYTES
    for text in SPOOF_CHAT:
        assert len(text.encode()) <= MAX_CHAT_BYTES
    assert max(len(text.encode()) for text in SPOOF_CHAT) == MAX_CHAT_BYTES
    assert not any("\n" in text for text in (*SPOOF_NAMES, *SPOOF_RENAMES, *SPOOF_CHAT))
    assert len(set(SPOOF_NAMES)) == len(SPOOF_NAMES)


def test_three_players_have_spoofed_names_and_keep_them_on_the_next_map() -> None:
    server = play_match()
    names = [player.person.name for player in server.arena.players]
    assert sum(name in (*SPOOF_NAMES, *SPOOF_RENAMES) for name in names) == 3
    server.change_map()
    server.wait(60)
    assert sum(player.person.name in SPOOF_NAMES for player in server.arena.players) == 3


def test_all_spoofed_chat_messages_are_written_and_one_player_is_renamed() -> None:
    lines = [line for _, line in play_match().log.lines]
    messages = [line.message for line in lines if isinstance(line, Chat)]
    assert set(SPOOF_CHAT) <= set(messages)
    assert sum(isinstance(line, ChangedName) for line in lines) == 1


@pytest.mark.parametrize("seed", range(8))
def test_spoofed_lines_are_parsed_back_unchanged(seed: int) -> None:
    reader = LineReader()
    for at_ms, line in play_match(seed=seed).log.lines:
        parsed = reader.read(format_http_line(at_ms, line).encode())[1]
        assert parsed == line
