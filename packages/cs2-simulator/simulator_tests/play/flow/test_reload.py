"""Test restoring a backup."""

from __future__ import annotations

from cs2_protocol.game import Side
from simulator_tests.play.flow.played_server import PlayedServer


def played_until(event: str, settings: dict[str, str] | None = None) -> PlayedServer:
    server = PlayedServer()
    server.go_live({"mp_backup_round_file": "b", "mp_match_can_clinch": "0", **(settings or {})})
    server.run_until(event)
    return server


def test_restore_logs_its_lines_in_the_order_of_a_real_log() -> None:
    server = played_until("round 2")
    score = next(line for line in server.world_texts() if line.endswith("RoundsPlayed: 1"))
    server.mark_log()
    assert server.game.restore("b_round01.txt")
    texts = server.log_texts()
    dropped = next(number for number, line in enumerate(texts) if line.endswith('triggered "Dropped_The_Bomb"'))
    assert ' with "c4" (damage "1")' in texts[dropped - 1]
    del texts[dropped]
    assert all(' attacked "' in line and line.endswith('(hitgroup "generic")') for line in texts[:12:3])
    assert [line.rpartition(" committed ")[2] for line in texts[1:12:3]] == ['suicide with "world"'] * 4
    assert [line.rpartition(" to ")[2] for line in texts[2:12:3]] == ["<Spectator>"] * 4
    assert [line.partition(" switched ")[2] for line in texts[12:16]] == [
        "from team <Spectator> to <CT>",
        "from team <Spectator> to <TERRORIST>",
    ] * 2
    world = server.world_texts()
    assert world[:3] == [
        'World triggered "Match_Reloaded" on "de_nuke"',
        'Team playing "CT": Reds',
        'Team playing "TERRORIST": Blues',
    ]
    assert world[3].startswith('World triggered "SFUI_Notice_Round_Draw" (CT "')
    assert [line.partition(" scored ")[0] for line in world[4:6]] == ['Team "CT"', 'Team "TERRORIST"']
    assert world[8:12] == [score, 'World triggered "Round_End"', "Starting Freeze period", "(block)"]
    assert world[-1] == score
    assert server.block_values("round_number") == ["2"]
    assert server.watcher.events[-2:] == ["restored 1", "freeze 2"]


def test_players_get_their_money_and_equipment_back() -> None:
    server = played_until("freeze 2")
    before = {
        player: (player.money, player.primary, player.armor, list(player.grenades)) for player in server.arena.players
    }
    server.run_until("end 2")
    server.game.restore("b_round01.txt")
    after = {
        player: (player.money, player.primary, player.armor, list(player.grenades)) for player in server.arena.players
    }
    assert after == before


def test_restore_across_halftime_puts_players_back_on_their_sides() -> None:
    server = played_until("round 3")
    assert server.is_team1_on(Side.T)
    late = server.join(300, Side.T)
    assert server.game.restore("b_round01.txt")
    assert server.is_team1_on(Side.CT)
    assert {player.person.account: player.team for player in server.arena.players} == {
        101: "CT", 102: "CT", 201: "TERRORIST", 202: "TERRORIST", 300: "CT",
    }  # fmt: skip
    assert late.is_alive
    server.run_until("freeze 3")
    assert server.is_team1_on(Side.T)


def test_unknown_backup_changes_nothing() -> None:
    server = played_until("round 2")
    server.mark_log()
    assert not server.game.restore("c_round01.txt")
    assert server.log_texts() == []


def test_backup_of_another_map_is_rejected() -> None:
    server = played_until("round 2")
    server.game.load_map("de_mirage")
    server.wait(10)
    assert not server.game.restore("b_round01.txt")
