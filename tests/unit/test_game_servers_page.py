"""What the page for operators tells them to write is what the service reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from matchpod.adapters.fleets.process import fill_words
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.runner.bring_up import DETECTIONS_VARIABLE
from matchpod.settings import ProcessFleetSettings, load_settings
from matchpod.settings.table import SERVICE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "game-servers.md").read_text("utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_settings_file_on_the_page_is_read_without_a_fault(block: str) -> None:
    settings = load_settings({"MATCHPOD_CONFIG": "matchpod.toml"}, lambda _: block.encode())
    assert settings.regions


@pytest.mark.parametrize("block", [block for block in BLOCKS if "command" in block])
def test_a_command_on_the_page_becomes_words_without_braces(block: str) -> None:
    fleet = load_settings({"MATCHPOD_CONFIG": "matchpod.toml"}, lambda _: block.encode()).regions[0].fleet
    assert isinstance(fleet, ProcessFleetSettings)
    values = {"ip": fleet.host, "port": "27015", "map": "de_nuke", "game_type": "0", "game_mode": "1"}
    words = fill_words(fleet.command, {**values, "rcon_password": "secret"})
    assert len(words) == len(fleet.command)
    assert not any("{" in word for word in words)


def test_every_variable_on_the_page_is_a_setting_or_given_to_servers() -> None:
    named = set(re.findall(r"MATCHPOD_[A-Z_]+", PAGE))
    assert named
    assert named <= {setting.variable for setting in SERVICE} | {DETECTIONS_VARIABLE}


def test_every_metric_on_the_page_is_counted() -> None:
    metrics = Metrics()
    Measures(metrics)
    named = set(re.findall(r"matchpod_[a-z_]+", PAGE))
    assert named
    assert named <= set(re.findall(r"# TYPE (\S+)", metrics.text()))


def test_there_are_settings_files_on_the_page() -> None:
    assert len(BLOCKS) == 3
