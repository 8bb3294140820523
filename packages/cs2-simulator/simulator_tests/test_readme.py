"""The README of this package lists all options and variables, and its program prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from cs2_simulator.scenarios import Scenario
from cs2_simulator.variable_table import VARIABLES
from cs2_simulator.wire.launch import HELP

README = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_program_prints_what_the_readme_says() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == block("text"), done.stderr


def test_all_variables_are_listed_with_their_defaults() -> None:
    own = {name: variable.default for name, variable in VARIABLES.items() if name.startswith("sim_")}
    rows = [f"| `{name}` | {f'`{default}` ' if default else ''}| " for name, default in own.items()]
    assert [row for row in rows if row not in README] == []


def test_own_options_are_those_of_the_command() -> None:
    listed = set(re.findall(r"^\| `(--[a-z-]+)", README, re.MULTILINE))
    assert listed == set(re.findall(r"^  (--[a-z-]+)", HELP, re.MULTILINE)) - {"--list", "--help"}


def test_named_scenarios_exist() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", README.partition("## Scenarios")[2].partition("## Variables")[0]))
    assert len(named) > 10
    assert named - {"sim_scenario"} <= {str(scenario) for scenario in Scenario}
