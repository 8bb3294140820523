"""A process fleet expands its command template and handles unreadable process states."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions, expand_command
from matchpod.adapters.fleets.process_record import ProcessRecord, RecordFolder, identify
from matchpod.core.servers.server_loss import FleetReport

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


def test_slot_names_are_the_ports() -> None:
    fleet = ProcessFleet(Path("nowhere"), ProcessOptions(command=("cs2",), ports=(27015, 27016)))
    assert list(fleet.slots) == ["27015", "27016"]


@pytest.mark.parametrize("command", [(), ("cs2", "{nonsense}")])
def test_empty_command_and_unknown_placeholder_are_rejected(command: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        ProcessFleet(Path("nowhere"), ProcessOptions(command=command, ports=(27015,)))


def test_server_is_not_gone_if_its_state_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = ProcessFleet(tmp_path, ProcessOptions(command=("cs2",), ports=(27015,)))
    RecordFolder(tmp_path).write(ProcessRecord(server_id="srv_1", slot="27015", process=identify(os.getpid())))

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "read_text", fail)
    assert asyncio.run(fleet.observe("srv_1", "27015")) is FleetReport.UNKNOWN
