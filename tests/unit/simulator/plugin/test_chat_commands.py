"""Pauses and other words in the chat."""

from __future__ import annotations

from .stand import Stand, id64, match


def playing() -> Stand:
    stand = Stand()
    stand.load(match(spectators={"players": {id64(900): ""}}))
    stand.enter_all()
    stand.rcon("css_start")
    stand.console.executed.clear()
    return stand


def test_pause_ends_when_both_sides_ask_for_it() -> None:
    stand = playing()
    blue, red = stand.arena.players
    stand.door.say(blue, ".pause")
    stand.door.say(red, ".tech")
    stand.door.say(blue, ".unpause")
    stand.door.say(blue, ".unpause")
    assert stand.console.executed == ["mp_pause_match"]
    stand.door.say(red, ".up")
    assert stand.console.executed == ["mp_pause_match", "mp_unpause_match"]


def test_pause_of_an_admin_is_his_alone_to_end() -> None:
    stand = playing()
    stand.rcon("css_forcepause")
    for player in stand.arena.players:
        stand.door.say(player, ".unpause")
    assert "mp_unpause_match" not in stand.console.executed


def test_timeout_is_taken_for_the_players_side() -> None:
    stand = playing()
    blue, red = stand.arena.players
    stand.door.say(blue, ".tac")
    stand.door.say(red, ".tac")
    assert stand.console.executed == ["timeout_ct_start", "timeout_terrorist_start"]


def test_words_of_spectators_and_plain_chat_do_nothing() -> None:
    stand = playing()
    caster = stand.enter(900)
    assert caster is not None
    stand.door.say(caster, ".pause")
    stand.door.say(stand.arena.players[0], "pause")
    stand.door.say(stand.arena.players[0], ".nothing")
    assert stand.console.executed == []


def test_words_of_a_match_do_nothing_outside_of_play() -> None:
    stand = Stand()
    stand.load(match(2))
    stand.enter_all()
    stand.console.executed.clear()
    for word in (".pause", ".unpause", ".tac", ".stay"):
        stand.door.say(stand.arena.players[0], word)
    assert stand.console.executed == []


def test_ready_in_a_running_match_changes_nothing() -> None:
    stand = playing()
    before = stand.rcon("get5_status")
    for player in stand.arena.players:
        for word in (".unready", ".forceready", ".ready"):
            stand.door.say(player, word)
    assert stand.rcon("get5_status") == before


def test_people_go_on_by_themselves_after_a_restored_round() -> None:
    stand = playing()
    stand.rcon("css_restore 1")
    assert stand.console.executed[-1] == "mp_pause_match"
    stand.wait(11)
    assert stand.console.executed[-1] == "mp_unpause_match"


def test_admin_may_go_on_before_the_people_do() -> None:
    stand = playing()
    stand.rcon("css_restore 1")
    stand.rcon("css_forceunpause")
    stand.wait(11)
    assert stand.console.executed.count("mp_unpause_match") == 1
