"""The command line: replay, simulate, help and exit codes."""

from __future__ import annotations

import json
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from matchpod import __main__
from matchpod.cli import COMMANDS, create_app, replaying
from tests.unit.cs2.server_log import ServerLog
from tests.unit.test_replay import won_map, write


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(create_app(), [str(arg) for arg in args])


def test_scoreboard_is_printed(tmp_path: Path) -> None:
    done = run("replay", write(tmp_path, "a.log", won_map().file()))
    assert done.exit_code == 0
    assert "Reds 1 : 0 Blues" not in done.stdout  # a log has no roster, so the teams have default names
    assert "Team 1 1 : 0 Team 2  Team 1 won" in done.stdout
    assert "Ann" in done.stdout


def test_json_is_the_result_object_and_nothing_else(tmp_path: Path) -> None:
    done = run("replay", "--json", write(tmp_path, "a.log", won_map().file()))
    assert done.exit_code == 0
    result = json.loads(done.stdout)
    assert (result["gameMode"], result["winner"], result["team1"]["totalRounds"]) == ("competitive", "team1", 2)


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


@pytest.mark.parametrize("args", [["replay"], ["replay", "x", "--format", "bo7"], ["fly"]])
def test_invalid_arguments_give_exit_code_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


def test_help_explains_the_command() -> None:
    done = run("replay", "--help")
    assert done.exit_code == 0
    assert "--json" in done.stdout


def test_write_error_gives_one_line_and_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replaying, "_print_match", full)
    done = run("replay", write(tmp_path, "a.log", won_map().file()))
    assert done.exit_code == 1
    assert "No space left" in done.stderr


def test_large_files_show_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "PROGRESS_BYTES", 10)
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = run("replay", write(tmp_path, "a.log", won_map().file()))
    assert done.exit_code == 0
    assert "reading" in done.stderr


def test_version_is_printed() -> None:
    assert run("--version").stdout == f"matchpod {version('matchpod')}\n"


def test_all_commands_are_listed_and_one_alone_is_enough_to_run_it() -> None:
    everything = CliRunner().invoke(create_app(), ["--help"]).stdout
    for name in COMMANDS:
        assert f"\n  {name} " in everything
        alone = CliRunner().invoke(create_app(name), [name, "--help"])
        assert (alone.exit_code, alone.stdout) == (0, run(name, "--help").stdout)


def test_main_runs_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["matchpod", "--help"])
    with pytest.raises(SystemExit) as exit_info:
        __main__.main()
    assert exit_info.value.code == 0
    shown = capsys.readouterr().out
    assert "replay" in shown
    assert "simulate" in shown


def test_main_runs_simulate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["matchpod", "simulate", "--list"])
    with pytest.raises(SystemExit) as exit_info:
        __main__.main()
    assert exit_info.value.code == 0
    assert "full_match" in capsys.readouterr().out


def test_simulate_is_also_a_command_of_the_app(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "--scenario", "nonsense").exit_code == 2
    assert run("simulate", "--help").exit_code == 0


@pytest.mark.parametrize("args", [("orgs", "list"), ("orgs", "list", "--json"), ("migrate",), ("--help",)])
def test_full_disk_gives_one_sentence_in_every_command(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))
    assert run("migrate").exit_code == 0
    monkeypatch.setattr("sys.argv", ["matchpod", *args])
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", TextIOWrapper(full, write_through=True))
        with pytest.raises(SystemExit) as exit_info:
            __main__.main()
    assert exit_info.value.code == 1
    assert capsys.readouterr().err == "matchpod: No space left on device.\n"
