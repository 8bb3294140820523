"""Secrets of a server are written as console commands into a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.fleets.secret_cfg import cfg_name, cfg_text, remove_cfg, write_cfg


def test_file_has_a_command_per_line_and_replaces_an_older_one(tmp_path: Path) -> None:
    (tmp_path / cfg_name("srv_1")).write_text("old")
    write_cfg(tmp_path, "srv_1", cfg_text({"rcon_password": "a b;$(x)`", "sv_setsteamaccount": "T"}), None)
    written = tmp_path / "matchpod_srv_1.cfg"
    assert written.read_text() == 'rcon_password "a b;$(x)`"\nsv_setsteamaccount "T"\n'
    assert written.stat().st_mode & 0o777 == 0o600
    remove_cfg(tmp_path, "srv_1")
    remove_cfg(tmp_path, "srv_1")
    assert list(tmp_path.iterdir()) == []


def test_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / cfg_name("srv_1")).symlink_to(tmp_path / "precious")
    write_cfg(tmp_path, "srv_1", cfg_text({"rcon_password": "x"}), None)
    assert (tmp_path / "precious").read_text() == "kept"
    assert (tmp_path / cfg_name("srv_1")).read_text() == 'rcon_password "x"\n'


@pytest.mark.parametrize("value", ['a"; quit', "a\nquit", "a\x00"])
def test_value_that_would_end_its_command_is_rejected(tmp_path: Path, value: str) -> None:
    with pytest.raises(ValueError, match="may not contain quotes"):
        write_cfg(tmp_path, "srv_1", cfg_text({"rcon_password": value}), None)
    assert list(tmp_path.iterdir()) == []
