"""Starting from a terminal: settings that are wrong, and a machine that does not give what is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from matchpod.app import Ground
from matchpod.cli import app, serving
from matchpod.cli.opening import run_on_ground
from matchpod.ports import DatabaseAwayError
from matchpod.storage.schema import MIGRATIONS
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office

office = offices.office


def test_migrate_tells_the_version(office: Office) -> None:
    for _ in range(2):
        assert office.done(app, "migrate") == f"The database has version {len(MIGRATIONS)}."


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_every_wrong_setting_is_told(office: Office, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("MATCHPOD_PORT", "many")
    monkeypatch.setenv("MATCHPOD_LOG_LEVEL", "loud")
    done = office.run(app, command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["MATCHPOD_LOG_LEVEL", "MATCHPOD_PORT"]


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_settings_file_that_cannot_be_read_is_told(office: Office, command: str) -> None:
    (office.data_dir / "matchpod.toml").mkdir()
    assert office.refused(app, command) == f"The file {office.data_dir}/matchpod.toml cannot be read: Is a directory."


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_machine_that_does_not_give_what_is_needed(tmp_path: Path, office: Office, command: str) -> None:
    (tmp_path / "file").touch()
    office.data_dir = tmp_path / "file"
    done = office.run(app, command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"matchpod: The data folder {tmp_path}/file cannot be made: File exists.\n"


def test_a_database_that_fails_in_a_command_is_one_sentence(office: Office) -> None:
    async def fail(_: Ground) -> None:
        raise DatabaseAwayError("the disk is full")

    broken = typer.Typer()
    broken.command()(lambda: run_on_ground(fail))
    done = office.run(broken)
    assert done.exit_code == 1
    assert done.stderr == "matchpod: The database did not do what it was asked: the disk is full.\n"


def test_the_command_to_paste_survives_blanks_in_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["/my tools/bin/matchpod", "serve"])
    assert serving._own_command() == "'/my tools/bin/matchpod'"
    monkeypatch.setattr("sys.argv", ["/x/__main__.py", "serve"])
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    assert serving._own_command() == "/usr/bin/python3 -m matchpod"
