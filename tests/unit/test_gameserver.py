"""The entry point of game server images agrees with the service."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cs2_protocol import rcon
from matchpod.adapters.fleets.process import expand_command as expand_process_command
from matchpod.adapters.fleets.secret_cfg import cfg_name, cfg_text, write_cfg
from matchpod_gameserver import password
from matchpod_gameserver.options import PASSWORD_VARIABLE, expand_command
from matchpod_gameserver.rcon import LOADED_MAP


def test_game_finds_its_password_where_the_simulator_reads_it() -> None:
    assert PASSWORD_VARIABLE == rcon.PASSWORD_VARIABLE


def test_cfg_file_is_the_one_a_process_fleet_writes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_cfg(tmp_path / "a", "cs2-eu-abcde", cfg_text({"rcon_password": "x-Y_z"}), None)
    ours = Path(password.write_cfg(str(tmp_path / "b"), "cs2-eu-abcde", "x-Y_z"))
    theirs = tmp_path / "a" / cfg_name("cs2-eu-abcde")
    assert (ours.name, ours.read_text()) == (theirs.name, theirs.read_text())
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(theirs.stat().st_mode) == 0o600


def test_placeholders_are_replaced_as_in_a_process_fleet() -> None:
    template = ["./cs2", "-ip", "{ip}", "-port", "{port}", "+exec", "{cfg}", "+hostname", "{name}, {port}"]
    values = {"ip": "0.0.0.0", "port": "7001", "cfg": "a.cfg"}
    assert expand_command(template[:-2], values) == expand_process_command(template[:-2], values)
    assert expand_command(template, {**values, "name": "n"})[-1] == "n, 7001"


@pytest.mark.parametrize(
    ("file", "map_name"),
    [("status_1.41.2.8_bots_hibernating.txt", "de_inferno"), ("status_1.41.8.1_empty.txt", "ze_winter_warehouse_p")],
)
def test_map_is_found_in_recorded_answers(corpus: Path, file: str, map_name: str) -> None:
    found = LOADED_MAP.search((corpus / file).read_text())
    assert found is not None
    assert found[1] == map_name
