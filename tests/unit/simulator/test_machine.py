"""Tests of a complete simulated server."""

from __future__ import annotations

import pytest

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.scenarios import Scenario
from matchpod.core.model import MatchType
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings, rostered


def test_server_is_up_after_boot() -> None:
    played = PlayedMatch(mode_settings(MatchType.COMPETITIVE))
    played.machine.boot()
    assert not played.machine.is_busy
    assert played.machine.agenda.now_ms == START_MS
    assert played.machine.rcon_password == "secret"
    assert "de_inferno" in played.machine.execute("status", "")


def test_commands_of_the_command_line_override_the_mode_config() -> None:
    played = PlayedMatch(mode_settings(MatchType.COMPETITIVE))
    options = ServerOptions(commands=("mp_maxrounds 6", "sim_speed 3"), max_players=12)
    machine = Machine(options, played, start_ms=START_MS, instance_token="7be6ded70c65df71")
    machine.boot()
    assert machine.variables.whole("mp_maxrounds") == 6
    assert machine.door.max_players == 12


def test_seed_set_later_repeats_a_match_whatever_the_server_was_started_with() -> None:
    settings = mode_settings(MatchType.WINGMAN, max_rounds=4)
    repeated = [PlayedMatch(settings, seed=seed, extra=("sim_seed 7",)) for seed in (1, 2)]
    other = PlayedMatch(settings, seed=2)
    assert all(played.play() for played in (*repeated, other))
    first, second = (played.bookkeeper for played in repeated)
    assert (first.books, first.scores) == (second.books, second.scores)
    assert other.bookkeeper.books != first.books


def test_post_headers_contain_the_game_state() -> None:
    played = PlayedMatch(rostered(MatchType.WINGMAN, 1, max_rounds=4))
    assert played.play()
    states = [headers["X-Game-State"] for _, headers, _ in played.posts]
    assert list(dict.fromkeys(states)) == ["Warmup", "Live", "GameOver"]
    _, last, _ = played.posts[-1]
    assert {last["X-Game-TeamCT"], last["X-Game-TeamT"]} == {"Alpha", "Beta"}
    assert {int(last["X-Game-ScoreCT"]), int(last["X-Game-ScoreT"])} == set(played.bookkeeper.scores[0])


@pytest.mark.parametrize("match_type", [MatchType.COMPETITIVE, MatchType.DEATHMATCH])
@pytest.mark.parametrize("scenario", [Scenario.SERVER_CRASH, Scenario.SERVER_HANG])
def test_server_crashes_or_hangs_during_play(match_type: MatchType, scenario: Scenario) -> None:
    played = PlayedMatch(mode_settings(match_type), scenario=scenario)
    assert not played.play()
    assert (played.is_gone, played.is_hung) == (scenario is Scenario.SERVER_CRASH, scenario is Scenario.SERVER_HANG)
    assert played.reader.match.first_live_at_ms is not None


@pytest.mark.parametrize(
    ("scenario", "posts", "text"),
    [
        (Scenario.ROUND_RESTORE, "restore", b"Match_Reloaded"),
        (Scenario.LEAVER, "disconnect", b"disconnected (reason"),
        (Scenario.FULL_MATCH, "end", b"Game Over"),
    ],
)
def test_chosen_post_is_lost_once(scenario: Scenario, posts: str, text: bytes) -> None:
    settings = mode_settings(MatchType.COMPETITIVE, max_rounds=12)
    logs = []
    for lost in ("", posts):
        played = PlayedMatch(settings, scenario=scenario, extra=(f'sim_lost_posts "{lost}"',))
        played.play()
        logs.append([body for _, _, body in played.posts])
        begins = [int(headers["X-LogBytes-BeginOffset"]) for _, headers, _ in played.posts]
        ends = [int(headers["X-LogBytes-EndOffset"]) for _, headers, _ in played.posts]
        gaps = sum(end < begin for end, begin in zip(ends, begins[1:], strict=False))
        assert gaps == bool(lost)
    whole, incomplete = (sum(text in body for body in log) for log in logs)
    assert incomplete == whole - 1


def test_lost_lines_leave_an_offset_gap_but_the_winner_is_known() -> None:
    played = PlayedMatch(mode_settings(MatchType.COMPETITIVE, max_rounds=12), scenario=Scenario.LOG_LOSS, seed=3)
    assert played.play()
    ends = [int(headers["X-LogBytes-EndOffset"]) for _, headers, _ in played.posts]
    begins = [int(headers["X-LogBytes-BeginOffset"]) for _, headers, _ in played.posts]
    assert any(end < begin for end, begin in zip(ends, begins[1:], strict=False))
    assert not played.reader.match.maps[0].ledger.is_complete
    assert played.reader.match.maps[0].winner is not None
