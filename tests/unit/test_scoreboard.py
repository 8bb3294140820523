"""The scoreboard tables."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from matchpod.core import events as ev
from matchpod.core.model import DmSubMode, GameSettings, MatchType
from matchpod.cs2.match_reader import MatchReader
from matchpod.replay import open_recording, replay
from matchpod.scoreboard import printable_name, scoreboard
from tests.unit.cs2.server_log import MAP, ServerLog, competitive, id64
from tests.unit.test_replay import won_map, write


def rendered(reader: MatchReader, width: int = 80) -> str:
    file = StringIO()
    Console(width=width, file=file).print(scoreboard(reader))
    return file.getvalue()


def read(log: ServerLog, settings: GameSettings | None = None) -> MatchReader:
    reader = MatchReader.create(settings or competitive(), 0)
    reader.read_file(log.file().encode().split(b"\n"))
    return reader


def test_map_table_has_both_teams_with_their_players() -> None:
    text = rendered(read(won_map()))
    assert "competitive bo1: Reds 1 : 0 Blues  Reds won" in text
    assert text.index("Reds", 60) < text.index("Ann") < text.index("Blues", 60) < text.index("Cid")
    assert "2 : 0" in text


def test_scoreboard_fits_into_80_columns() -> None:
    text = rendered(read(won_map()))
    assert "…" not in text
    assert max(map(len, text.split("\n"))) <= 80


def test_series_has_a_table_for_all_maps_together(tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", won_map().file() * 2)
    text = rendered(replay([open_recording(path)]))
    assert "Map 2" in text
    assert "All maps" in text


def test_winner_tie_and_unfinished_match_are_shown() -> None:
    assert "Blues won" in rendered(read(ServerLog().go_live().play("TERRORIST").game_over()))
    assert "tie" in rendered(read(ServerLog().go_live().play("CT").round_end("TERRORIST").game_over()))
    text = rendered(read(ServerLog().go_live().play("CT")))
    assert "(not finished)" in text
    assert "the log ends before the map does" in text


def test_deathmatch_has_one_table_without_teams() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,), dm_sub_mode=DmSubMode.FFA)
    log = ServerLog(ffa).load().join(1, 2).match_start(0).kill(1, 2).game_over("deathmatch", (0, 0))
    text = rendered(read(log, ffa))
    assert "deathmatch" in text
    assert "Damage" in text
    assert "KAST" not in text


def test_bots_are_marked() -> None:
    log = (
        ServerLog().go_live().write('"Rex<9><BOT><CT>" [1 2 3] killed "Cid<3><[U:1:3]><TERRORIST>" [1 2 3] with "ak47"')
    )
    assert "BOT Rex" in rendered(read(log.round_end("CT").game_over()))


def test_detections_are_shown_as_leads_to_review() -> None:
    reader = read(ServerLog().go_live().play("CT"))
    reader.match.apply(ev.CheatSuspected(1, id64(1), "Aimbot", "18 of 19 [bold]heads"), 1)
    text = rendered(reader)
    assert "Anti-cheat leads, for people to review" in text
    assert "18 of 19 [bold]heads" in text


def after_a_round(player: str) -> MatchReader:
    """Read a log whose first round is followed by the game's own statistics of a player."""
    fields = ('"round_number" : "2",', f'"player_1" : "{player}"')
    log = ServerLog().go_live().round_end("CT").write("Starting Freeze period", "JSON_BEGIN{", *fields, "}}JSON_END")
    return read(log)


def test_discrepancies_and_missing_log_parts_are_shown() -> None:
    counts = "1,3,8350,12,3,4,1109.00,41.67,4.00,158,3,0,355,0,1,0,2,0,3,2,1,167.0,264.0,3,8,0"
    reader = after_a_round(counts)
    text = rendered(reader, 200)
    assert "after round 1: kills of Ann is 0 according to the log, 12 according to the game." in text
    reader.match.apply(ev.LogGap(1, 10), 1)
    assert "parts of the log are missing" in rendered(reader)


def test_agreement_with_the_game_is_shown() -> None:
    reader = after_a_round(",".join(["1", "3", "800", *["0.00"] * 23]))
    assert "matches the game's own statistics after each of 1 rounds" in rendered(reader)


def test_names_cannot_move_the_cursor_or_reorder_text() -> None:
    for name, safe in [
        ("Ann", "Ann"),
        ("a\x1b[31mb", "a·[31mb"),
        ("a\u202eb\u2028", "a·b·"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("x" * 30, "x" * 23 + "…"),
        ("", ""),
    ]:
        assert printable_name(name) == safe
