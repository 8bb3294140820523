"""The command line: replay, simulate, help and exit codes."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from matchpod import __main__
from matchpod.cli import COMMANDS, create_app
from matchpod.cli.replaying import PROGRESS_BYTES
from tests.unit.cs2.server_log import ServerLog
from tests.unit.test_replay import won_map, write


def run(*args: str | Path) -> Result:
    """Run a command as the process does, which imports only this one."""
    return CliRunner().invoke(create_app(str(args[0])), [str(arg) for arg in args])


def test_json_of_an_unfinished_match_comes_with_a_note(tmp_path: Path) -> None:
    done = run("replay", "--json", write(tmp_path, "a.log", ServerLog().go_live().play("CT").file()))
    assert done.exit_code == 0
    assert json.loads(done.stdout)["winner"] is None
    assert "ends before the match does" in done.stderr


def test_invalid_file_gives_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for path in (tmp_path / "none.log", write(tmp_path, "a.bin", bytes(range(256)))):
        done = run("replay", path)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr.startswith("matchpod: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args", [["replay"], ["replay", "x", "--format", "bo7"], ["fly"], ["simulate", "--scenario", "x"]]
)
def test_invalid_arguments_give_exit_code_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


@pytest.mark.parametrize(("size", "is_shown"), [(PROGRESS_BYTES, True), (PROGRESS_BYTES - 1, False)])
def test_large_files_show_progress(size: int, is_shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = write(tmp_path, "a.log", won_map().file())
    os.truncate(path, size)
    done = run("replay", path)
    assert done.exit_code == 0
    assert ("reading" in done.stderr) is is_shown


def test_version_is_printed() -> None:
    assert run("--version").stdout == f"matchpod {version('matchpod')}\n"


def test_all_commands_are_listed_and_one_alone_is_enough_to_run_it() -> None:
    everything = create_app()
    shown = CliRunner().invoke(everything, ["--help"]).stdout
    for name in COMMANDS:
        assert (f"\n  {name} " in shown) is (name != "receive-demos")
        together = CliRunner().invoke(everything, [name, "--help"])
        assert (together.exit_code, together.stdout) == (0, run(name, "--help").stdout)


@pytest.mark.parametrize("group", ["callbacks", "keys", "match", "orgs", "regions", "webhooks"])
def test_every_command_of_a_group_is_listed_and_has_help(group: str) -> None:
    app = create_app(group)
    command: Any = typer.main.get_command(app)
    listed = CliRunner().invoke(app, [group, "--help"]).stdout
    for name in command.commands[group].commands:
        assert f"\n  {name} " in listed
        assert "Show this message" in CliRunner().invoke(app, [group, name, "--help"]).stdout


@pytest.mark.parametrize(
    ("args", "words"), [(["--help"], ["replay", "simulate"]), (["simulate", "--list"], ["full_match"])]
)
def test_main_runs_a_command(args: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        __main__.main(args)
    assert exit_info.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)


@pytest.mark.parametrize(
    "args", [["orgs", "list"], ["orgs", "list", "--json"], ["migrate"], ["--help"], ["replay", "FILE"]]
)
def test_full_disk_gives_one_sentence_in_every_command(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))
    assert run("migrate").exit_code == 0
    args = [str(write(tmp_path, "a.log", won_map().file())) if arg == "FILE" else arg for arg in args]
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", TextIOWrapper(full, write_through=True))
        with pytest.raises(SystemExit) as exit_info:
            __main__.main(args)
    assert exit_info.value.code == 1
    assert re.fullmatch(r"matchpod: (\[Errno 28\] )?No space left on device\.?\n", capsys.readouterr().err)
