"""A process fleet expands its command template and handles unreadable process states."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions, expand_command

VALUES = {"port": "27015", "map": "de_nuke", "players": "", "rcon_password": "{port} ;x"}


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        (["cs2", "-port", "{port}", "+map", "{map}"], ["cs2", "-port", "27015", "+map", "de_nuke"]),
        (["cs2", "--players", "{players}", "-dedicated"], ["cs2", "-dedicated"]),
        (["cs2", "plain", "{players}"], ["cs2", "plain"]),
        (["cs2", "--players={players}"], ["cs2", "--players="]),
        (["{port}:{map}"], ["27015:de_nuke"]),
        (["{players}", "cs2"], ["cs2"]),
    ],
)
def test_placeholders_are_replaced_and_empty_options_dropped(template: list[str], arguments: list[str]) -> None:
    assert expand_command(template, VALUES) == arguments


def test_value_stays_one_argument_and_is_not_expanded_again() -> None:
    assert expand_command(["+rcon_password", "{rcon_password}"], VALUES) == ["+rcon_password", "{port} ;x"]


@pytest.mark.parametrize("command", [(), ("cs2", "{nonsense}")])
def test_empty_command_and_unknown_placeholder_are_rejected(command: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        ProcessFleet(Path("nowhere"), ProcessOptions(command=command, ports=(27015,)))
