"""Who is ready, and when that is enough."""

from __future__ import annotations

from matchpod.simulator.plugin.status import Stage

from .stand import Stand, id64, match


def with_everybody(team_size: int = 2, **changes: object) -> Stand:
    stand = Stand()
    stand.load(match(team_size, **changes))  # type: ignore[arg-type]
    stand.enter_all(team_size)
    return stand


def test_match_starts_when_the_last_of_two_full_teams_is_ready() -> None:
    stand = with_everybody()
    for player in stand.arena.players[:-1]:
        stand.door.say(player, ".ready")
    assert stand.stage() is Stage.WARMUP
    stand.door.say(stand.arena.players[-1], "!R")
    assert stand.stage() is Stage.LIVE


def test_incomplete_team_cannot_start_by_being_ready() -> None:
    stand = with_everybody(players_per_team=3)
    for player in stand.arena.players:
        stand.door.say(player, ".ready")
    assert stand.stage() is Stage.WARMUP


def test_unready_player_takes_his_word_back() -> None:
    stand = with_everybody()
    first, *others = stand.arena.players
    stand.door.say(first, ".ready")
    stand.door.say(first, ".unready")
    for player in others:
        stand.door.say(player, ".ready")
    assert stand.stage() is Stage.WARMUP


def test_word_of_one_who_left_counts_no_more() -> None:
    stand = with_everybody(1)
    first, second = stand.arena.players
    stand.door.say(first, ".ready")
    stand.door.leave(first, "NETWORK_DISCONNECT_EXITING")
    stand.enter(1)
    stand.door.say(second, ".ready")
    assert stand.stage() is Stage.WARMUP


def test_somebody_may_speak_for_an_incomplete_team() -> None:
    stand = with_everybody(2, players_per_team=3, min_players_to_ready=2)
    stand.door.say(stand.arena.players[0], ".forceready")
    assert stand.stage() is Stage.WARMUP
    stand.door.say(stand.arena.players[-1], ".forceready")
    assert stand.stage() is Stage.LIVE


def test_nobody_can_speak_for_too_small_a_team() -> None:
    stand = with_everybody(2, players_per_team=3, min_players_to_ready=3)
    for player in stand.arena.players:
        stand.door.say(player, ".forceready")
    assert stand.stage() is Stage.WARMUP


def test_speaking_for_others_can_be_forbidden() -> None:
    stand = with_everybody(1, players_per_team=2, min_players_to_ready=1)
    stand.rcon("matchzy_allow_force_ready 0")
    for player in stand.arena.players:
        stand.door.say(player, ".forceready")
    assert stand.stage() is Stage.WARMUP


def test_spectators_must_be_ready_where_the_match_says_so() -> None:
    stand = Stand()
    stand.load(match(spectators={"players": {id64(900): ""}}, min_spectators_to_ready=1))
    stand.enter_all()
    for player in stand.arena.players:
        stand.door.say(player, ".ready")
    assert stand.stage() is Stage.WARMUP
    caster = stand.enter(900)
    assert caster is not None
    stand.course.ready.say(caster, is_ready=True)
    stand.course.check_ready()
    assert stand.stage() is Stage.LIVE


def test_nobody_needs_to_be_ready_for_a_start_by_command() -> None:
    stand = with_everybody()
    stand.rcon("css_force")
    assert stand.stage() is Stage.LIVE


def test_ready_commands_do_nothing_over_rcon() -> None:
    stand = with_everybody(1)
    assert [stand.rcon(command) for command in ("css_ready", "css_forceready")] == ["", ""]
    assert stand.stage() is Stage.WARMUP


def test_who_comes_into_a_live_match_is_ready() -> None:
    stand = Stand()
    stand.load(match())
    stand.rcon("css_start")
    stand.enter_all()
    assert '"ready":true' in stand.rcon("get5_status")
