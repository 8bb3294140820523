"""Test that docs/simulator.md lists all scenarios and `sim_` variables."""

from __future__ import annotations

from pathlib import Path

from cs2_simulator.scenarios import Scenario
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.variable_table import VARIABLES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")


def test_page_lists_every_scenario_with_its_description() -> None:
    rows = [f"| `{scenario}` | {scenario.description} |" for scenario in Scenario]
    assert [row for row in rows if row not in PAGE] == []


def test_page_lists_every_fault_with_its_description() -> None:
    rows = [f"| `{fault}` | {fault.description} |" for fault in SetupFault]
    assert [row for row in rows if row not in PAGE] == []


def test_page_lists_every_simulator_variable_with_its_default() -> None:
    own = {name: variable.default for name, variable in VARIABLES.items() if name.startswith("sim_")}
    missing = [name for name, default in own.items() if f"| `{name}` | {f'`{default}`' if default else ''}" not in PAGE]
    assert len(own) == 23
    assert missing == []
