"""Tables for a person."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from matchpod.core import events as ev
from matchpod.core.model import DmSubMode, GameSettings, MatchType
from matchpod.cs2.match_reader import MatchReader
from matchpod.replay import open_recording, replay
from matchpod.scoreboard import scoreboard, visible
from tests.unit.cs2.server_log import MAP, ServerLog, competitive, id64
from tests.unit.test_replay import won_map, write


def shown(reader: MatchReader, width: int = 80) -> str:
    file = StringIO()
    Console(width=width, file=file).print(scoreboard(reader))
    return file.getvalue()


def read(log: ServerLog, settings: GameSettings | None = None) -> MatchReader:
    reader = MatchReader.create(settings or competitive(), 0)
    reader.read_file(log.file().encode().split(b"\n"))
    return reader


def test_a_map_has_both_teams_with_their_players() -> None:
    text = shown(read(won_map()))
    assert "competitive bo1: Reds 1 : 0 Blues  Reds won" in text
    assert text.index("Reds", 60) < text.index("Ann") < text.index("Blues", 60) < text.index("Cid")
    assert "2 : 0" in text


def test_everything_fits_eighty_columns() -> None:
    text = shown(read(won_map()))
    assert "…" not in text
    assert max(map(len, text.split("\n"))) <= 80


def test_a_series_has_a_table_of_all_maps(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", won_map().file() * 2)
    text = shown(replay([open_recording(path)]))
    assert "Map 2" in text
    assert "All maps" in text


def test_a_tie_and_an_unfinished_match_are_said() -> None:
    assert "tie" in shown(read(ServerLog().goes_live().plays("CT").round_end("TERRORIST").game_over()))
    text = shown(read(ServerLog().goes_live().plays("CT")))
    assert "(not finished)" in text
    assert "the log ends before the map does" in text


def test_the_losing_side_of_the_headline_is_not_named_winner() -> None:
    assert "Blues won" in shown(read(ServerLog().goes_live().plays("TERRORIST").game_over()))


def test_a_deathmatch_is_one_list() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,), dm_sub_mode=DmSubMode.FFA)
    log = ServerLog(ffa).load().joins(1, 2).match_start(0).kill(1, 2).game_over("deathmatch", (0, 0))
    text = shown(read(log, ffa))
    assert "deathmatch" in text
    assert "Damage" in text
    assert "KAST" not in text


def test_bots_are_shown_as_such() -> None:
    log = (
        ServerLog().goes_live().say('"Rex<9><BOT><CT>" [1 2 3] killed "Cid<3><[U:1:3]><TERRORIST>" [1 2 3] with "ak47"')
    )
    assert "BOT Rex" in shown(read(log.round_end("CT").game_over()))


def test_leads_are_shown_as_leads() -> None:
    reader = read(ServerLog().goes_live().plays("CT"))
    reader.match.apply(ev.CheatSuspected(1, id64(1), "Aimbot", "18 of 19 [bold]heads"), 1)
    text = shown(reader)
    assert "Anti-cheat leads, for people to review" in text
    assert "18 of 19 [bold]heads" in text


def test_differences_and_losses_are_told() -> None:
    log = (
        ServerLog()
        .goes_live()
        .round_end("CT")
        .say(
            "Starting Freeze period",
            "JSON_BEGIN{",
            '"round_number" : "2",',
            '"player_1" : "1,3,8350,12,3,4,1109.00,41.67,4.00,158,3,0,355,0,1,0,2,0,3,2,1,167.0,264.0,3,8,0"',
            "}}JSON_END",
        )
    )
    reader = read(log)
    text = shown(reader, 200)
    assert "after round 1: Ann kills is 0 by the log, 12 by the game." in text
    reader.match.apply(ev.LogGap(1, 10), 1)
    assert "parts of the log are missing" in shown(reader)


def test_agreement_with_the_game_is_told() -> None:
    zero = ",".join(["0.00"] * 23)
    log = (
        ServerLog()
        .goes_live()
        .round_end("CT")
        .say(
            "Starting Freeze period",
            "JSON_BEGIN{",
            '"round_number" : "2",',
            f'"player_1" : "1,3,800,{zero}"',
            "}}JSON_END",
        )
    )
    assert "equal to the game's own statistics after each of 1 rounds" in shown(read(log))


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Ann", "Ann"),
        ("a\x1b[31mb", "a·[31mb"),
        ("a\u202eb\u2028", "a·b·"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("x" * 30, "x" * 23 + "…"),
        ("", ""),
    ],
)
def test_names_cannot_move_the_cursor_or_reorder_text(name: str, safe: str) -> None:
    assert visible(name) == safe
