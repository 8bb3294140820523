"""The loaded map, exit codes, and lines of the log."""

from __future__ import annotations

import re

import pytest

from matchpod_gameserver import log
from matchpod_gameserver.game import exit_code
from matchpod_gameserver.rcon import LOADED_MAP


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
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d\.\d{3} INFO  game server ready  map=de_nuke reason="two \\"words\\"" waited_s=3', first
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} WARNING plain", second)
