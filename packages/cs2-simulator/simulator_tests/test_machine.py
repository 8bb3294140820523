"""Tests of a complete simulated server."""

from __future__ import annotations

import pytest

from cs2_simulator.play.flow.game import GamePhase
from cs2_simulator.scenarios import Scenario
from simulator_tests.machine_harness import START_MS, PlayedMachine

SHORT = ("mp_maxrounds 12", "mp_warmuptime 45")


def over(machine: PlayedMachine) -> PlayedMachine:
    """Play a match to its end, or to the end of the server."""
    machine.run_until(lambda: machine.machine.game.phase is GamePhase.OVER)
    machine.wait(5)
    return machine


def gaps_in(machine: PlayedMachine) -> int:
    """Count the gaps between the offsets of posts."""
    headers = [dict(request.headers) for request in machine.requests]
    ends = [int(header["X-LogBytes-EndOffset"]) for header in headers]
    begins = [int(header["X-LogBytes-BeginOffset"]) for header in headers]
    return sum(end < begin for end, begin in zip(ends, begins[1:], strict=False))


def test_server_is_up_after_boot_with_the_commands_of_its_command_line() -> None:
    played = PlayedMachine(Scenario.FULL_MATCH, "mp_maxrounds 6", "sim_speed 3")
    assert not played.machine.is_busy
    assert played.machine.agenda.now_ms == START_MS
    assert played.machine.rcon_password == "secret"
    assert played.machine.variables.whole("mp_maxrounds") == 6  # overrides the config of the mode
    assert "de_inferno" in played.rcon("status")


def test_seed_set_later_repeats_a_match_whatever_the_server_was_started_with() -> None:
    first, second = (over(PlayedMachine(seed=seed, mode=2)) for seed in (7, 8))
    repeated = PlayedMachine(Scenario.FULL_MATCH, "sim_seed 7", seed=3, mode=2)
    assert over(repeated).machine.arena.book.tallies() == first.machine.arena.book.tallies()
    assert second.machine.arena.book.tallies() != first.machine.arena.book.tallies()


def test_post_headers_contain_the_game_state() -> None:
    played = over(PlayedMachine(Scenario.FULL_MATCH, *SHORT, "mp_teamname_1 Alpha", "mp_teamname_2 Beta"))
    headers = [dict(request.headers) for request in played.requests]
    assert list(dict.fromkeys(header["X-Game-State"] for header in headers)) == ["Warmup", "Live", "GameOver"]
    last = headers[-1]
    assert {last["X-Game-TeamCT"], last["X-Game-TeamT"]} == {"Alpha", "Beta"}
    assert {int(last["X-Game-ScoreCT"]), int(last["X-Game-ScoreT"])} == set(played.machine.game.score)


@pytest.mark.parametrize("mode", ["competitive", "deathmatch"])
@pytest.mark.parametrize(("scenario", "end"), [(Scenario.SERVER_CRASH, "crash"), (Scenario.SERVER_HANG, "hang")])
def test_server_crashes_or_hangs_during_play(mode: str, scenario: Scenario, end: str) -> None:
    played = PlayedMachine(scenario)
    played.rcon(f"map de_inferno gamemode={mode}")
    over(played)
    assert played.ends == [end]
    assert 'World triggered "Round_Start"' in played.lines


@pytest.mark.parametrize(
    ("scenario", "posts", "text"),
    [
        (Scenario.ROUND_RESTORE, "restore", b"Match_Reloaded"),
        (Scenario.LEAVER, "disconnect", b"disconnected (reason"),
        (Scenario.FULL_MATCH, "end", b"Game Over"),
    ],
)
def test_chosen_post_is_lost_once(scenario: Scenario, posts: str, text: bytes) -> None:
    whole, incomplete = (over(PlayedMachine(scenario, *SHORT, f'sim_lost_posts "{lost}"')) for lost in ("", posts))
    assert (gaps_in(whole), gaps_in(incomplete)) == (0, 1)
    counts = [sum(text in request.body for request in played.requests) for played in (whole, incomplete)]
    assert counts[1] == counts[0] - 1
