"""Steps of the runner: effects of a match become console commands, and actions end in their rows."""

from __future__ import annotations

import logging

import msgspec
import pytest

from cs2_protocol.game import Side
from matchpod.core.effects import UNKNOWN_USER_ID, Kick, SendAction, SendRoster, StartPlay
from matchpod.core.events import PlayerConnected, PlayerJoinedSide, PlayersSeen
from matchpod.core.failures import Failure
from matchpod.core.match.actions import MAX_ACTIONS, ActionRequest, ActionState, ActionType
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.presence import NOT_LISTED
from matchpod.core.match.roster import RosterRole
from matchpod.ports import Database, Statement
from matchpod.service.match_log.entries import EntryKind, NewEntry, action_body, statements_of
from matchpod.service.runner import effects, run
from matchpod.storage import match_actions
from matchpod.storage.match_actions import ActionRow
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.single_steps import FakeLine, SingleStep, open_step
from tests.contract.world import PLAYERS, World

harness = databases.sqlite_harness

UNLISTED_PLAYER = "76561198000000099"
KICK_BY_NAME = Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, NOT_LISTED)


async def test_settings_are_restored_even_if_a_loading_server_drops_the_console_repeatedly(db: Database) -> None:
    step = await open_step(db, FakeLine(failures=2 * effects.TRIES))
    async with step.executing() as executor:
        executor.enqueue(effects.MapLoaded())
        await step.line.until(lambda: step.line.count("mp_maxrounds") > 0)


async def test_server_that_never_loads_its_map_fails(db: Database) -> None:
    step = await open_step(db, FakeLine(map_name="de_mirage"))
    step.match.phase = MatchPhase.STARTING
    async with step.executing() as executor:
        for _ in range((effects.WRONG_MAPS + 1) * effects.PLUGIN_LOADS_AFTER):
            executor.enqueue(StartPlay(1))
        await step.line.until(lambda: bool(step.failed))
    assert step.failed == [Failure.MAP_NOT_LOADED]
    assert step.line.count("changelevel de_nuke") == effects.WRONG_MAPS
    assert "css_start" not in step.line.commands


async def test_match_whose_play_does_not_start_fails(db: Database) -> None:
    step = await open_step(db)
    step.match.phase = MatchPhase.STARTING
    limit_ms = round(effects.START_S / step.region.speed) * 1000

    async with step.executing() as executor:

        async def request_start(after_ms: int) -> None:
            step.pass_time(after_ms)
            step.lease.until_ms = step.clock.at_ms + LEASE_MS
            step.line.commands.clear()
            executor.enqueue(StartPlay(1))
            await step.line.until(lambda: "css_start" in step.line.commands or bool(step.failed))

        await request_start(0)
        await request_start(limit_ms)
        step.match.live_at_ms = step.clock.at_ms  # it was live, and the server returned to warmup
        await request_start(limit_ms)
        await request_start(limit_ms)
        assert step.failed == []
        await request_start(1)
    assert step.failed == [Failure.PLAY_NOT_STARTED]
    assert "css_start" not in step.line.commands


async def test_map_change_that_drops_the_console_is_not_retried(db: Database) -> None:
    """If it were retried, a server that is loading would reach the limit of failed map changes."""
    step = await open_step(db, FakeLine(map_name="de_mirage", unanswered="changelevel"))
    step.match.phase = MatchPhase.STARTING
    async with step.executing() as executor:
        for _ in range(effects.WRONG_MAPS * effects.PLUGIN_LOADS_AFTER):
            executor.enqueue(StartPlay(1))
        executor.enqueue(KICK_BY_NAME)
        await step.line.until(lambda: "status" in step.line.commands)
    assert step.failed == []
    assert step.line.count("changelevel de_nuke") == effects.WRONG_MAPS
    assert step.deps.metrics.console_failures.value("eu") == 0


async def test_unlisted_player_without_a_connect_line_is_kicked(db: Database) -> None:
    step = await open_step(db)
    step.line.players = {PLAYERS[0]: "listed", UNLISTED_PLAYER: "it's me"}
    presence = step.match.presence
    presence.mark_doubtful(0)
    joined = PlayerJoinedSide(0, UNLISTED_PLAYER, "it's me", Side.CT, None)
    kicks = [*presence.apply(PlayersSeen(0, names=step.line.players, load_ms=1), 1), *presence.apply(joined, 1)]
    assert kicks == [KICK_BY_NAME] * 2
    async with step.executing() as executor:
        for kick in kicks:
            executor.enqueue(kick)
        await step.line.until(lambda: step.line.count(f'kickid 3 "{NOT_LISTED}"') == len(kicks))


async def test_player_who_has_left_is_not_kicked(db: Database) -> None:
    """Neither by user id, which another player may have by now, nor if the server does not list the player."""
    step = await open_step(db)
    async with step.executing() as executor:
        step.line.players = {PLAYERS[0]: "listed"}
        executor.enqueue(Kick(UNLISTED_PLAYER, 2, NOT_LISTED))
        for _ in range(2):  # when the second is executed, the first is done
            executor.enqueue(KICK_BY_NAME)
        await step.line.until(lambda: step.line.commands.count("status") == 2)
        assert set(step.line.commands) == {"status", "status_json"}


async def test_unlisted_player_is_kicked_without_the_old_user_id_after_a_resume(db: Database) -> None:
    """Another player may have the same user id by now."""
    step = await open_step(db)
    step.match.presence.turned_away[UNLISTED_PLAYER] = 3
    executor = step.executor()
    executor.resume(put_off_s=0.0)
    assert queued(executor) == [effects.Resume(), KICK_BY_NAME]


# --- actions ------------------------------------------------------------------------------------------------------

REPLACE = ActionRequest(
    id="action_1", type=ActionType.REPLACE_PLAYER, out=PLAYERS[0], in_=UNLISTED_PLAYER, by="an admin"
)


def queued(executor: effects.EffectExecutor) -> list[effects.Command]:
    found, executor._commands = executor._commands, []
    return found


def join(step: SingleStep, *players: str, name: str = "") -> None:
    """Let players connect; their user ids are those of the fake console."""
    for user_id, player_id in enumerate(players, start=2):
        step.match.apply(PlayerConnected(0, player_id, name or f"player {user_id}", user_id), step.clock.at_ms)


async def test_player_who_was_replaced_while_no_process_drove_the_match_is_kicked(db: Database) -> None:
    step = await open_step(db)
    join(step, *PLAYERS)
    step.match.request_action(REPLACE, step.clock.at_ms)  # its effects were another process's
    executor = step.executor()
    executor.resume(put_off_s=0.0)
    kick = Kick(PLAYERS[0], UNKNOWN_USER_ID, NOT_LISTED)
    assert queued(executor) == [effects.Resume(), SendAction("action_1"), SendRoster(), kick]


async def test_plugin_lists_everyone_again_after_a_resume_except_those_whom_an_open_action_lists(db: Database) -> None:
    """The plugin refuses to list a person twice: the action would fail."""
    caster = "76561198000000098"
    step = await open_step(db)
    add = ActionRequest(id="action_2", type=ActionType.ADD_PLAYER, steam_id=caster, role=RosterRole.SPECTATOR)
    for action in (REPLACE, add):
        step.match.request_action(action, step.clock.at_ms)
    step.match.actions["action_2"].is_answered = True
    async with step.executing() as executor:
        executor.enqueue(SendRoster())
        executor.enqueue(KICK_BY_NAME)  # of someone who was added meanwhile
        executor.enqueue(Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, effects.KICKED_BY_ADMIN))
        await step.line.until(lambda: "status" in step.line.commands)
    assert step.line.commands.count("status") == 1
    assert [sent for sent in step.line.commands if sent.startswith("matchzy_")] == [
        f'matchzy_addplayer {caster} spec ""'
    ]


async def test_action_is_sent_once_the_console_is_back(db: Database) -> None:
    """A map load lasts longer than all attempts: between two maps is when players are replaced."""
    step = await open_step(db, FakeLine(failures=effects.TRIES + 1))
    step.match.request_action(REPLACE, step.clock.at_ms)
    async with step.executing() as executor:
        executor.enqueue(SendAction("action_1"))
        await step.line.until(lambda: step.match.actions["action_1"].state is ActionState.DONE)
    assert step.line.count(f"matchzy_addplayer {UNLISTED_PLAYER} team1") == 1


async def test_action_that_has_failed_meanwhile_is_not_sent(db: Database) -> None:
    step = await open_step(db)
    step.match.request_action(REPLACE, step.clock.at_ms)
    async with step.executing() as executor:
        executor.enqueue(SendAction("action_1"))
        step.pass_time(60_000)
        step.match.tick(step.clock.at_ms)
        executor.enqueue(KICK_BY_NAME)
        await step.line.until(lambda: "status" in step.line.commands)
    assert step.line.count("matchzy_") == 0


async def test_one_of_two_players_with_the_same_name_is_kicked(db: Database) -> None:
    step = await open_step(db)
    join(step, *PLAYERS[:2], name="same")
    step.line.players = dict.fromkeys(PLAYERS[:2], "same")
    kick = ActionRequest(id="action_1", type=ActionType.KICK, steam_id=PLAYERS[1])
    step.match.request_action(kick, step.clock.at_ms)
    async with step.executing() as executor:
        executor.enqueue(SendAction("action_1"))
        await step.line.until(lambda: step.line.count("kickid") == 1)
        assert f'kickid 3 "{effects.KICKED_BY_ADMIN}"' in step.line.commands
        # After lost lines the user id may be another player's: the console says whose it is.
        step.match.presence.mark_doubtful(step.clock.at_ms)
        executor.enqueue(Kick(PLAYERS[0], UNKNOWN_USER_ID, effects.KICKED_BY_ADMIN))
        step.line.commands.clear()
        await step.line.until(lambda: step.line.count("kickid") == 1)
        assert f'kickid 2 "{effects.KICKED_BY_ADMIN}"' in step.line.commands


def stored(world: World, action: ActionRequest) -> list[Statement]:
    now_ms = world.clock.now_ms()
    row = ActionRow(
        id=action.id,
        server_id="srv_1",
        requested_at_ms=now_ms,
        changed_at_ms=now_ms,
        created_by="key_1",
        request=msgspec.json.encode(action),
    )
    entry = NewEntry(kind=EntryKind.ACTION, received_ms=now_ms, body=action_body(action))
    return [*statements_of("srv_1", entry), match_actions.insert(row)]


async def test_request_beyond_the_limit_of_actions_fails_in_its_row(
    db: Database, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=run.__name__)
    process = await world.driven_match(scenario="no_show")
    asked = [
        ActionRequest(id=f"action_{number:03}", type=ActionType.EXTEND_JOIN, seconds=10)
        for number in range(MAX_ACTIONS + 1)
    ]
    await db.write([statement for action in asked for statement in stored(world, action)])
    process.supervisor.notify("srv_1")
    last = asked[-1].id

    async def has_ended() -> bool:
        found = await match_actions.get(db, "srv_1", last)
        return found is not None and found.state.is_final

    await world.until(has_ended, "the last action has ended", within_s=20.0)
    found = await match_actions.get(db, "srv_1", last)
    assert found is not None
    assert (found.state, found.detail) == (ActionState.FAILED, f"A match can have at most {MAX_ACTIONS} actions.")
    ended = [record for record in caplog.records if record.getMessage() in ("action done", "action failed")]
    assert [record.getMessage() for record in ended] == ["action done"] * MAX_ACTIONS + ["action failed"]
    assert [record.__dict__["action_id"] for record in ended] == [action.id for action in asked]
    await world.cancel(notified=process)
