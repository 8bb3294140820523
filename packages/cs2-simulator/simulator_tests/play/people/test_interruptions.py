"""Test the scenarios with pauses and with restored rounds."""

from __future__ import annotations

import pytest

from cs2_protocol.log_lines.player_lines import Chat
from cs2_protocol.log_lines.world_lines import Vote
from cs2_simulator.scenarios import Scenario
from simulator_tests.play.people.visited_server import VisitedServer


def live(scenario: Scenario, *, mode: tuple[int, int] = (0, 1), max_rounds: int = 24) -> VisitedServer:
    server = VisitedServer(scenario, mode=mode)
    server.set(mp_maxrounds=str(max_rounds))
    server.fill()
    server.go_live()
    return server


def chat_texts(server: VisitedServer) -> list[str]:
    return [line.message for _, line in server.log.lines if isinstance(line, Chat)]


def test_both_sides_call_a_timeout_and_there_is_one_technical_pause() -> None:
    server = live(Scenario.PAUSES)
    for number in range(1, 8):
        server.play_round(number)
        if number in (2, 5):
            assert server.game.is_paused
            server.game.is_paused = False
    assert server.game.calls == [
        "pause TimeOutTs",
        "pause mp_pause_match",
        "unpause mp_unpause_match",
        "pause TimeOutCTs",
    ]
    assert ".tech" in chat_texts(server)
    assert chat_texts(server).count(".unpause") == 2


def test_technical_pause_ends_20_to_63_seconds_after_the_freeze_time_begins() -> None:
    server = live(Scenario.PAUSES)
    server.visitors.freeze_began(3)
    server.wait(20)
    assert server.game.is_paused
    server.wait(43)
    assert not server.game.is_paused


def test_pause_already_started_by_the_plugin_is_not_started_again() -> None:
    server = live(Scenario.PAUSES)
    server.visitors.freeze_began(3)
    server.game.is_paused = True
    server.wait(5)
    assert server.game.calls == []
    server.game.is_paused = False
    server.wait(90)
    assert server.game.calls == []


def test_pause_already_ended_by_the_plugin_is_not_ended_again() -> None:
    server = live(Scenario.PAUSES)
    server.visitors.freeze_began(3)
    while chat_texts(server).count(".unpause") < 2:
        server.wait(0.1)
    server.game.is_paused = False
    server.wait(5)
    assert server.game.calls == ["pause mp_pause_match"]


def restores(server: VisitedServer) -> list[str]:
    return [call for call in server.game.calls if call.startswith("restore")]


def test_match_is_restored_early_and_across_halftime() -> None:
    server = live(Scenario.ROUND_RESTORE)
    for number in (1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 12, 13, 14, 15):
        server.play_round(number)
    assert restores(server) == ["restore backup_round03.txt", "restore backup_round11.txt"]
    assert any("restore" in text for text in chat_texts(server))


@pytest.mark.parametrize("max_rounds", [0, 1, 2, 5, 6, 7, 12, 30])
def test_number_of_restores_depends_on_the_number_of_rounds(max_rounds: int) -> None:
    server = live(Scenario.ROUND_RESTORE, max_rounds=max_rounds)
    number = 1
    for _ in range(80):
        if number > (max_rounds or 30):
            break
        before = len(restores(server))
        server.play_round(number)
        done = restores(server)[before:]
        number = int(done[0][-6:-4]) + 1 if done else number + 1
    assert len(restores(server)) <= 2
    if max_rounds >= 8:
        assert len(restores(server)) == 2
    if max_rounds in (1, 2, 3):
        assert restores(server) == []


def test_match_that_is_paused_after_a_restore_is_unpaused() -> None:
    server = live(Scenario.ROUND_RESTORE)
    server.game.files = ["matchzy_27_0_round03.txt"]
    server.game.is_paused = True
    server.visitors.freeze_began(6)
    server.wait(30)
    assert server.game.calls == ["restore matchzy_27_0_round03.txt", "unpause mp_unpause_match"]


def test_timeout_without_a_plugin_match_is_called_by_a_vote() -> None:
    server = VisitedServer(Scenario.PAUSES)
    server.visitors.expect_anyone()
    server.wait(75)
    server.go_live()
    server.visitors.freeze_began(2)
    server.wait(5)
    votes = [line for _, line in server.log.lines if isinstance(line, Vote)]
    assert [vote.step for vote in votes] == ["started", "cast", "cast", "cast", "succeeded"]
    assert {vote.player.team for vote in votes} == {"TERRORIST"}
    assert votes[0].player == votes[-1].player
    assert server.game.calls == ["pause TimeOutTs"]


def test_timeout_in_a_plugin_match_has_no_vote() -> None:
    server = live(Scenario.PAUSES)
    server.visitors.freeze_began(2)
    server.wait(5)
    assert not any(isinstance(line, Vote) for _, line in server.log.lines)
