"""Going back to a backup."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.play.flow.game import Phase

from .played_server import PlayedServer


def played(until: str, settings: dict[str, str] | None = None) -> PlayedServer:
    server = PlayedServer()
    server.go_live({"mp_backup_round_file": "b", "mp_match_can_clinch": "0", **(settings or {})})
    server.until(until)
    return server


def test_restore_says_everything_in_one_tick_in_the_order_of_a_real_log() -> None:
    server = played("round 2")
    score = next(line for line in server.world() if line.endswith("RoundsPlayed: 1"))
    server.start_listening()
    assert server.game.restore("b_round01.txt")
    heard = server.heard()
    assert [line.rpartition(" committed ")[2] for line in heard[:8:2]] == ['suicide with "world"'] * 4
    assert [line.rpartition(" to ")[2] for line in heard[1:8:2]] == ["<Spectator>"] * 4
    assert [line.partition(" switched ")[2] for line in heard[8:12]] == [
        "from team <Spectator> to <CT>",
        "from team <Spectator> to <TERRORIST>",
    ] * 2
    world = server.world()
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
    assert server.watcher.notes[-2:] == ["restored 1", "freeze 2"]


def test_match_goes_on_from_the_backup() -> None:
    server = played("freeze 2")
    score = server.game.score
    server.until("end 3")
    assert server.game.restore("b_round01.txt")
    assert (server.game.score, server.game.rounds_played, server.game.round_number) == (score, 1, 2)
    assert server.arena.book.rounds_played() == 1
    server.until("over")
    assert sum(server.game.score) == 4
    assert server.arena.book.rounds_played() == 4


def test_everybody_has_what_he_had() -> None:
    server = played("freeze 2")
    before = {
        player: (player.money, player.primary, player.armor, list(player.grenades)) for player in server.arena.players
    }
    server.until("end 2")
    server.game.restore("b_round01.txt")
    after = {
        player: (player.money, player.primary, player.armor, list(player.grenades)) for player in server.arena.players
    }
    assert after == before


def test_restore_over_the_half_puts_everybody_back_on_his_side() -> None:
    server = played("round 3")
    assert server.is_team1_on(Side.T)
    late = server.come(300, Side.T)
    assert server.game.restore("b_round01.txt")
    assert server.is_team1_on(Side.CT)
    assert {player.person.account: player.team for player in server.arena.players} == {
        101: "CT", 102: "CT", 201: "TERRORIST", 202: "TERRORIST", 300: "CT",
    }  # fmt: skip
    assert late.is_alive
    server.until("freeze 3")
    assert server.is_team1_on(Side.T)


def test_map_that_is_over_can_be_opened_again() -> None:
    server = played("over")
    kills = sum(tally.kills for tally in server.arena.book.tallies())
    assert server.game.restore("b_round03.txt")
    assert server.is_in(Phase.LIVE)
    assert server.arena.book.rounds_played() == 3
    assert 0 < sum(tally.kills for tally in server.arena.book.tallies()) < kills
    server.until("over")
    assert server.arena.book.rounds_played() == 4
    assert server.world()[-1].endswith(("after 0 min", "after 1 min", "after 2 min", "after 3 min"))


def test_match_can_be_restored_out_of_warmup() -> None:
    server = played("freeze 3", {"mp_warmup_pausetimer": "1"})
    server.game.start_warmup()
    server.wait(30)
    assert server.game.restore("b_round02.txt")
    assert (server.game.phase, server.game.rounds_played) == (Phase.LIVE, 2)
    assert server.arena.book.rounds_played() == 2
    server.until("over")


def test_who_joined_no_side_is_left_alone() -> None:
    server = played("round 2")
    watching = server.come(300, "Spectator")
    server.game.restore("b_round00.txt")
    assert watching.team == "Spectator"


def test_newcomer_stays_with_his_team_in_the_same_half() -> None:
    server = played("round 2")
    late = server.come(300, Side.T)
    server.game.restore("b_round00.txt")
    assert (late.team, late.money) == ("TERRORIST", server.variables.whole("mp_startmoney"))


def test_file_that_does_not_exist_changes_nothing() -> None:
    server = played("round 2")
    server.start_listening()
    assert not server.game.restore("c_round01.txt")
    assert server.heard() == []


def test_backup_of_another_map_is_refused() -> None:
    server = played("round 2")
    server.game.load_map("de_mirage")
    server.wait(10)
    assert not server.game.restore("b_round01.txt")
