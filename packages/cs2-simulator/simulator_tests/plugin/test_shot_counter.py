"""Tests of the simulated plugin that counts shots, on a complete machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.scenarios import Scenario
from simulator_tests.null_outside import NullOutside

START_MS = 1_700_000_000_000
URL = "http://service.example/ingest/shots/token"
MATCH_MS = 900_000


class RecordingOutside(NullOutside):
    """Records the reports of a machine."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        assert url == URL
        self.reports.append(json.loads(body))


def play(*commands: str, scenario: Scenario = Scenario.FULL_MATCH, **options: int) -> tuple[Machine, list[Any]]:
    outside = RecordingOutside()
    settings = ServerOptions(seed="3", scenario=scenario, **options)  # type: ignore[arg-type]
    machine = Machine(settings, outside, start_ms=START_MS, instance_token="0" * 16)
    machine.boot()
    # Players come only after a log listener was added.
    log = ("log on", 'logaddress_add_http "http://service.example/log"')
    for command in ("mp_maxrounds 4", "mp_freezetime 2", "mp_warmuptime 10", *commands, *log):
        machine.execute(command, "")
    machine.agenda.run_until(START_MS + MATCH_MS)
    return machine, outside.reports


def test_last_report_has_every_round_and_the_simulators_own_totals() -> None:
    machine, reports = play(f'matchpod_shots_url "{URL}"')
    last = reports[-1]
    assert last["mapNumber"] == 1
    assert [one["roundNumber"] for one in last["rounds"]] == list(range(1, len(last["rounds"]) + 1))
    totals: dict[str, int] = {}
    for one in last["rounds"]:
        assert one["players"]
        for player in one["players"]:
            totals[player["steamId"]] = totals.get(player["steamId"], 0) + player["shotsFired"]
    assert totals == {tally.player_id: tally.shots_fired for tally in machine.arena.book.tallies()}


def test_open_round_is_reported_without_counts_and_final_counts_do_not_change() -> None:
    _, reports = play(f'matchpod_shots_url "{URL}"')
    final: dict[int, object] = {}
    for report in reports:
        for one in report["rounds"]:
            if one["players"]:
                assert final.setdefault(one["roundNumber"], one) == one
    assert any(not report["rounds"][-1]["players"] for report in reports)
    assert len(final) == len(reports[-1]["rounds"])


def test_nothing_is_reported_without_a_url() -> None:
    assert play()[1] == []


def test_server_without_the_plugin_does_not_know_the_variable() -> None:
    machine, reports = play(f'matchpod_shots_url "{URL}"', scenario=Scenario.PLUGIN_MISSING)
    assert reports == []
    assert "Unknown command" in machine.execute(f'matchpod_shots_url "{URL}"', "")
