"""`matchpod serve` and other commands: invalid settings and unavailable resources."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from matchpod.app import Resources
from matchpod.cli import create_app, serving
from matchpod.cli.resources import run_with_resources
from matchpod.ports import DatabaseUnavailableError
from tests.unit.cli.command_runner import CommandRunner


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_every_invalid_setting_is_reported(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("MATCHPOD_PORT", "many")
    monkeypatch.setenv("MATCHPOD_LOG_LEVEL", "loud")
    done = runner.invoke(create_app(command), command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["MATCHPOD_LOG_LEVEL", "MATCHPOD_PORT"]


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_unreadable_settings_file_is_reported(runner: CommandRunner, command: str) -> None:
    (runner.data_dir / "matchpod.toml").mkdir()
    assert (
        runner.error(create_app(command), command)
        == f"The file {runner.data_dir}/matchpod.toml cannot be read: Is a directory."
    )


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_data_folder_that_cannot_be_created_is_reported(tmp_path: Path, runner: CommandRunner, command: str) -> None:
    (tmp_path / "file").touch()
    runner.data_dir = tmp_path / "file"
    done = runner.invoke(create_app(command), command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"matchpod: The data folder {tmp_path}/file cannot be created: File exists.\n"


def test_database_error_in_a_command_is_reported_in_one_sentence(runner: CommandRunner) -> None:
    async def fail(_: Resources) -> None:
        raise DatabaseUnavailableError("the disk is full")

    broken = typer.Typer()
    broken.command()(lambda: run_with_resources(fail))
    done = runner.invoke(broken)
    assert done.exit_code == 1
    assert done.stderr == "matchpod: Database error: the disk is full.\n"


def test_printed_command_is_quoted_if_its_path_has_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["/my tools/bin/matchpod", "serve"])
    assert serving._own_command() == "'/my tools/bin/matchpod'"
    monkeypatch.setattr("sys.argv", ["/x/__main__.py", "serve"])
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    assert serving._own_command() == "/usr/bin/python3 -m matchpod"


def test_process_that_must_not_drive_matches_cannot_take_them_over(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHPOD_DRIVE", "off")
    assert "MATCHPOD_DRIVE is off" in runner.error(create_app("serve"), "serve", "--restored")
