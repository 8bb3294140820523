"""The loaded map, exit codes, and lines of the log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from matchpod_gameserver import log, main
from matchpod_gameserver.game import exit_code
from matchpod_gameserver.rcon import LOADED_MAP

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.mark.parametrize(
    ("status", "map_name"),
    [
        ("loaded spawngroup(  1)  : SV:  [1: de_inferno | main lump | mapload]\n", "de_inferno"),
        ("noise\nloaded spawngroup( 12)  : SV:  [12: ze_winter_p | main lump | mapload]\r\nmore", "ze_winter_p"),
        ("loaded spawngroup(  2)  : SV:  [2: prefabs/misc/team_select | main lump | mapload | point_prefab]\n", None),
        ("hostname : loaded spawngroup(  1)  : SV:  [1: de_fake | main lump | mapload]\n", None),
        ("---------spawngroups----\n---------players--------\n#end\n", None),
        ("", None),
    ],
)
def test_map_is_loaded_if_its_spawn_group_is(status: str, map_name: str | None) -> None:
    found = LOADED_MAP.search(status)
    assert (found and found[1]) == map_name


@pytest.mark.parametrize(
    ("ended", "is_requested", "code"),
    [(0, False, 1), (3, False, 3), (-11, False, 139), (0, True, 0), (3, True, 0), (-15, True, 0), (-9, True, 137)],
)
def test_exit_code_is_0_only_after_a_request_that_was_followed(ended: int, is_requested: bool, code: int) -> None:
    assert exit_code(ended, is_requested=is_requested) == code


def test_log_line_has_time_level_message_and_fields(capfd: pytest.CaptureFixture[str]) -> None:
    log.log("INFO", "game server ready", map="de_nuke", reason='two "words"', waited_s=3)
    log.log("WARNING", "plain")
    first, second = capfd.readouterr().err.splitlines()
    assert re.fullmatch(TIME + r' INFO  game server ready  map=de_nuke reason="two \\"words\\"" waited_s=3', first)
    assert re.fullmatch(TIME + " WARNING plain", second)


def test_log_line_in_json_has_the_fields_of_the_service(capfd: pytest.CaptureFixture[str]) -> None:
    as_json = log.Log()
    as_json.format = "json"
    as_json("INFO", "game server ready", map='de_"nuke\n', reason=OSError("gone"), waited_s=3)
    (line,) = capfd.readouterr().err.splitlines()
    read = json.loads(line)
    assert re.fullmatch(TIME, read.pop("time"))
    assert read == {
        "level": "INFO",
        "logger": "matchpod_gameserver",
        "message": "game server ready",
        "map": 'de_"nuke\n',
        "reason": "gone",
        "waited_s": 3,
    }


def test_option_wins_over_the_variable_for_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("matchpod_gameserver.log.log.format", "human")
    (tmp_path / "secret").write_text("0123456789abcdef" * 2)
    derive = ["derive-password", "--secret-file", str(tmp_path / "secret"), "--name", "cs2-a"]
    monkeypatch.setenv("MATCHPOD_LOG_FORMAT", "json")
    assert main([*derive, "--out", str(tmp_path / "1")]) == 0
    assert main([*derive, "--out", str(tmp_path / "2"), "--log-format", "human"]) == 0
    assert main(derive) == 2
    by_variable, by_option, fault = capfd.readouterr().err.splitlines()
    assert json.loads(by_variable)["message"] == "RCON password written"
    assert re.match(TIME + " INFO  RCON password written  name=cs2-a", by_option)
    assert json.loads(fault)["message"] == "--out is missing; --help lists all options"
