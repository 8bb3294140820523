"""Tests of peculiarities of real servers that break a naive parser."""

from __future__ import annotations

import json
from pathlib import Path

from cs2_protocol.console_answers import parse_status, parse_status_json
from cs2_protocol.console_limits import answer_limit
from cs2_protocol.game import Team
from cs2_protocol.log_lines import player_lines, world_lines
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.matchzy import MapResult, RoundEndReport, read_report
from cs2_protocol.rcon import Answer, AuthAccepted, ClientConnection, ServerConnection
from cs2_protocol.rcon_frames import Frame, encode_frame
from matchpod.core import events as ev
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.stats.ledger import Ledger
from matchpod.core.stats.player_line import PlayerLine
from matchpod.cs2.match_commands import start_commands
from tests.unit.cs2.server_log import ServerLog, competitive, id64
from tests.unit.cs2.test_interpreter import restore


def counted(log: ServerLog) -> dict[str, PlayerLine]:
    ledger = Ledger()
    for event in log.events:
        ledger.apply(event)
    return {line.player_id: line for line in ledger.lines()}


def test_defuse_is_counted_without_a_defuse_line() -> None:
    log = ServerLog().go_live()
    log.write(f'{log.token(2)} triggered "Begin_Bomb_Defuse_Without_Kit"').wait(10).round_end("CT", "Bomb_Defused")
    assert counted(log)[id64(2)].bomb_defuses == 1


def test_statistics_block_is_not_parsed_as_json() -> None:
    log = ServerLog().go_live().round_end("CT").write(
        "Starting Freeze period", "JSON_BEGIN{", '"name": "round_stats",', '"round_number" : "2",',
        '"server" : "Server "#1"",', '"fields" : " accountid, team"', '"players" : {',
        '"player_1" : "1,3,800,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"', "}}JSON_END",
    )  # fmt: skip
    assert log.last(ev.GameCounted).players[0].mvps == 1


def test_columns_after_the_first_21_are_ignored() -> None:
    row = '"player_1" : "1,3,800,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,{},{},{},{},{}"'
    seen = []
    for filler in ("0", "9999"):
        log = ServerLog().go_live().round_end("CT")
        log.write("JSON_BEGIN{", '"round_number" : "2",', row.format(*[filler] * 5), "}}JSON_END")
        seen.append(log.last(ev.GameCounted))
    assert seen[0] == seen[1]


def test_last_round_is_counted_without_a_statistics_block() -> None:
    log = ServerLog().go_live().play("CT").kill(1, 3).round_end("CT").game_over()
    assert not log.all(ev.GameCounted)
    assert counted(log)[id64(1)].kills == 1


def test_garbage_id_in_second_place_means_the_same_player() -> None:
    log = ServerLog().go_live()
    log.write(
        f'{log.token(1)} [1 2 3] attacked "Ann<1><`As\u05ac\x02><CT>" [1 2 3] with "hegrenade" (damage "20")'
        ' (damage_armor "0") (health "80") (armor "0") (hitgroup "generic")'
    )
    assert log.last(ev.Damage).victim == id64(1)
    assert not log.last(ev.Damage).is_enemy


def test_user_id_does_not_identify_a_player() -> None:
    reader = LineReader()
    line = reader.parse('"Ann<1><[U:1:1]><CT>" picked up "knife"')
    money = reader.parse('"Ann<2><[U:1:1]><CT>" money change 100+300 = $400 (tracked)')
    assert isinstance(line, player_lines.ItemTransfer)
    assert isinstance(money, player_lines.MoneyChange)
    assert line.player.player_id == money.player.player_id


def test_bomb_death_is_printed_twice_but_counts_once() -> None:
    log = ServerLog().go_live()
    log.write(
        f"{log.token(1)} [1 2 3] was killed by the bomb.", f'{log.token(1)} [1 2 3] committed suicide with "world"'
    )
    assert counted(log.round_end("TERRORIST", "Target_Bombed"))[id64(1)].deaths == 1


def test_damage_is_capped_at_the_remaining_health() -> None:
    log = ServerLog().go_live()
    log.write(
        f'{log.token(1)} [1 2 3] attacked {log.token(3)} [1 2 3] with "m4a1" (damage "108") (damage_armor "0")'
        ' (health "0") (armor "0") (hitgroup "head")'
    ).kill(1, 3, "m4a1_silencer")
    line = counted(log)[id64(1)]
    assert (line.damage, line.weapon_kills) == (100, {"m4a1_silencer": 1})


def test_repeated_match_start_does_not_make_the_map_live() -> None:
    log = ServerLog().load().join(1, 2, 3, 4)
    for rounds in (-1, -1, 0, 0, -1, 0):
        log.match_start(rounds)
    assert not log.all(ev.MapLive)
    assert len(log.round_start().all(ev.MapLive)) == 1


def test_restore_reverts_statistics() -> None:
    log = ServerLog().go_live().kill(1, 3).play("CT").kill(1, 3).play("CT").kill(1, 3)
    restore(log.wait(3), 1, 1, 0)
    line = counted(log)[id64(1)]
    assert (line.kills, line.deaths) == (1, 0)


def test_play_is_started_by_a_command_that_works_over_rcon() -> None:
    assert start_commands(competitive()) == ("css_start",)
    assert not any("forceready" in command for command in start_commands(competitive()))
    stock = start_commands(GameSettings(match_type=MatchType.DEATHMATCH, maps=("x",), players=(id64(1),)))
    assert stock[-1].replace(chr(34), "") == "mp_restartgame 1"


def test_winner_team_of_a_round_end_report_is_ignored() -> None:
    report = read_report(
        json.dumps(
            {
                "event": "round_end", "matchid": 1, "map_number": 0, "round_number": 3, "reason": 9, "round_time": 0,
                "winner": {"side": "2", "team": "team1"},
                "team1": {"score": 2, "players": [{"steamid": id64(1), "name": "Ann", "stats": {"mvp": 1, "kast": 0}}]},
                "team2": {"score": 1, "players": []},
            }
        ).encode()
    )  # fmt: skip
    assert isinstance(report, RoundEndReport)
    assert report.winner_side is not None
    assert report.winner_side.value == "TERRORIST"  # from `side`; `team` names the leading team
    assert not hasattr(report, "winner")


def test_map_result_is_parsed_without_players(corpus: Path) -> None:
    report = read_report((corpus / "matchzy-map-result.json").read_bytes())
    assert report == MapResult("18", 1, 13, 9, Team.TEAM1)


def test_status_has_no_steam_ids_and_status_json_no_user_ids(corpus: Path) -> None:
    status = (corpus / "status_1.41.8.1_two_humans_partial.txt").read_text("utf-8")
    assert [player.name for player in parse_status(status)] == ["Player One", "Player Two"]
    assert "7656119" not in status
    assert "[U:1:" not in status
    body = (corpus / "status_json_build2000696.json").read_text("utf-8")
    listed = parse_status_json(body)
    assert listed is not None
    assert len(body) > 4096
    assert not hasattr(listed.clients[0], "user_id")


def test_large_answer_in_one_packet_is_read() -> None:
    client, server = ClientConnection(answer_limit), ServerConnection()
    (attempt,) = server.receive(client.authenticate("secret"))
    assert [type(event) for event in client.receive(server.accept(attempt.id))] == [AuthAccepted]
    request = client.command("status")
    list(server.receive(request.data))
    packet = encode_frame(Frame(request.command_id, 0, b"x" * 100_000))
    answers = list(client.receive(packet + server.mirror(request.command_id + 1)))
    assert answers == [Answer(request.command_id, "x" * 100_000)]


def test_line_is_not_split_at_other_separators() -> None:
    line = LineReader().parse('"Ann<1><[U:1:1]><CT>" say "a\u2028b\x0bc\x1cd\x85e"')
    assert isinstance(line, player_lines.Chat)
    assert line.message == "a\u2028b\x0bc\x1cd\x85e"


def test_chat_that_imitates_game_over_is_chat() -> None:
    log = ServerLog().go_live()
    log.write(f'{log.token(1)} say "Game Over: competitive  de_nuke score 13:0 after 1 min"')
    assert not log.all(ev.MapEnded)
    assert log.interpreter.flow.end_report is None
    assert isinstance(LineReader().parse('World triggered "Round_Start"'), world_lines.WorldTriggered)
