"""The examples on the pages about game servers are valid for the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cs2_protocol.rcon import PASSWORD_VARIABLE
from matchpod.adapters.fleets.instance_folders import GAME_FOLDER
from matchpod.adapters.fleets.process import expand_command
from matchpod.cs2.match_commands import SHOTS_ADDRESS
from matchpod.service.runner.start import DETECTIONS_VARIABLE
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.settings import ProcessFleetSettings, load_settings
from matchpod.settings.values import SERVICE

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    *("game-servers.md", "process-fleet.md", "static-fleet.md", "check-a-region.md", "lan.md"),
    *("demos.md", "plugin-reports.md", "failed-matches.md"),
)
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in PAGES)
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_file_on_the_page_is_valid(block: str) -> None:
    settings = load_settings({"MATCHPOD_CONFIG": "matchpod.toml"}, lambda _: block.encode())
    assert settings.regions


@pytest.mark.parametrize("block", [block for block in BLOCKS if "command" in block])
def test_placeholders_of_a_command_on_the_page_are_all_replaced(block: str) -> None:
    fleet = load_settings({"MATCHPOD_CONFIG": "matchpod.toml"}, lambda _: block.encode()).regions[0].fleet
    assert isinstance(fleet, ProcessFleetSettings)
    values = {"ip": fleet.host, "port": "27015", "map": "de_nuke", "game_type": "0", "game_mode": "1"}
    arguments = expand_command(fleet.command, {**values, "cfg": "secrets.cfg", "game": GAME_FOLDER, "tv_port": "27115"})
    assert len(arguments) == len(fleet.command)
    assert not any("{" in argument.replace(GAME_FOLDER, "") for argument in arguments)


def test_every_variable_on_the_page_is_a_setting_or_passed_to_servers() -> None:
    named = set(re.findall(r"MATCHPOD_[A-Z_]+", PAGE))
    assert named
    assert named <= {setting.variable for setting in SERVICE} | {DETECTIONS_VARIABLE, PASSWORD_VARIABLE}


def test_every_metric_on_the_page_exists() -> None:
    metrics = Registry()
    Metrics(metrics)
    named = set(re.findall(r"matchpod_[a-z_]+", PAGE)) - {SHOTS_ADDRESS}
    assert named
    assert named <= set(re.findall(r"# TYPE (\S+)", metrics.text()))


def test_page_has_the_expected_settings_files() -> None:
    assert len(BLOCKS) == 5
