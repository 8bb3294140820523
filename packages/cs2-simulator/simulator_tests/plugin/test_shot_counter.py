"""Tests of the simulated plugin that counts shots, on a complete machine."""

from __future__ import annotations

from typing import Any

from cs2_simulator.scenarios import Scenario
from simulator_tests.machine_harness import PlayedMachine

COMMAND = 'matchpod_shots_url "http://service.example/ingest/shots/token"'


def play(*commands: str, scenario: Scenario = Scenario.FULL_MATCH) -> PlayedMachine:
    short = ("mp_maxrounds 4", "mp_freezetime 2", "mp_warmuptime 10")
    played = PlayedMachine(scenario, seed=3)
    played.rcon(*short, *commands)
    played.wait(900)
    return played


def test_open_round_is_reported_without_counts_and_final_counts_do_not_change() -> None:
    reports: list[Any] = play(COMMAND).events
    final: dict[int, object] = {}
    for report in reports:
        for one in report["rounds"]:
            if one["players"]:
                assert final.setdefault(one["roundNumber"], one) == one
    assert any(not report["rounds"][-1]["players"] for report in reports)
    assert list(final) == [one["roundNumber"] for one in reports[-1]["rounds"]]


def test_nothing_is_reported_without_a_url() -> None:
    assert play().events == []


def test_server_without_the_plugin_does_not_know_the_variable() -> None:
    played = play(COMMAND, scenario=Scenario.PLUGIN_MISSING)
    assert played.events == []
    assert "Unknown command" in played.rcon(COMMAND)
