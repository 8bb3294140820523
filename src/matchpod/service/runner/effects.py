"""Execute the effects of a match as console commands, one after the other, in a separate task.

A command is attempted up to TRIES times. An effect that is no longer needed when it is dequeued is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, assert_never

import msgspec

from cs2_protocol import console_commands
from cs2_protocol.console_answers import parse_status, parse_status_json
from matchpod.core.effects import (
    UNKNOWN_USER_ID,
    CancelMatch,
    Effect,
    EndMatch,
    Kick,
    LoadMap,
    SendAction,
    SendRoster,
    StartPlay,
)
from matchpod.core.failures import Failure
from matchpod.core.match.actions import ActionAnswer, ActionRecord, ActionState, ActionType, ServerVerdict
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.match.match_actions import ROSTER_ACTIONS
from matchpod.core.match.presence import NOT_LISTED
from matchpod.core.model import GameSettings
from matchpod.cs2 import match_commands
from matchpod.cs2.action_commands import action_commands, is_on_plugin_list, read_answers, roster_commands
from matchpod.ports import ConsoleError, ConsoleFaultError, ConsoleLostError
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.match_log.entries import EntryKind, action_body
from matchpod.service.regions.regions import Region
from matchpod.service.runner import configure
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease

MAX_QUEUED: Final = 256
"""Maximum number of queued commands. It is enough to kick all listed players and many unlisted players, and to load a
map."""

TRIES: Final = 5
"""Maximum number of attempts to execute a command."""

MAP_LOAD_S: Final = 120.0
"""Timeout in seconds of a map load at the speed of a real server. A large workshop map on a slow disk takes long."""

MIN_MAP_LOAD_S: Final = 15.0
"""Lower limit in seconds of MAP_LOAD_S divided by the region's speed."""

WRONG_MAPS: Final = 3
"""Maximum number of times that the service changes a wrong map. After that, the match fails."""

START_S: Final = 600.0
"""Timeout in seconds for play to start after the first request, at the speed of a real server. The rules request it
about ten times within this time."""

MIN_START_S: Final = 60.0
"""Lower limit in seconds of START_S divided by the region's speed."""

PLUGIN_LOADS_AFTER: Final = 3
"""Number of times that the rules must request a map before the service loads it. Until then, the plugin should."""

KICKED_BY_ADMIN: Final = "An admin has removed you from the server"

_log = logging.getLogger(__name__)


class MapLoaded(msgspec.Struct, frozen=True):
    """A command to apply the settings again after a map load, which resets them."""


class Resume(msgspec.Struct, frozen=True):
    """A command to make the server send its log to this process, because another process drove the match before."""


Command = Effect | MapLoaded | Resume


def map_load_s(speed: float) -> float:
    """Return the timeout in seconds of a map load in a region with this speed."""
    return max(MIN_MAP_LOAD_S, MAP_LOAD_S / speed)


class EffectExecutor:
    def __init__(
        self,
        lease: Lease,
        deps: Deps,
        region: Region,
        *,
        line: ConsoleLine,
        match: Match,
        on_failed: Callable[[Failure], None],
        append: Callable[[EntryKind, bytes], Awaitable[None]],
    ) -> None:
        self._match = match
        self._line = line
        self._deps = deps
        self._lease = lease
        self._metrics = deps.metrics
        self._server_id = lease.row.id
        tokens, urls = deps.tokens_of(lease.row), deps.urls_of(lease.row)
        self._log_url = urls.logs(tokens.log)
        self._report_address = (urls.reports, tokens.report)
        self._shots_url = urls.shots(tokens.report)
        self._on_failed = on_failed
        self._region = region
        self._commands: list[Command] = []
        self._enqueued: asyncio.Future[None] | None = None
        """Done when a command is queued; used while `run` waits for a command."""
        self._append = append
        self._timers: dict[Command, asyncio.TimerHandle] = {}
        self._loads_asked = 0
        self._starts_refused = 0
        self._clock = deps.clock
        self._intervals = deps.intervals
        self._start: tuple[int | None, ...] = ()
        """Identifies the last requested start: its map, and since when the match waits for that start."""
        self._start_asked_ms = 0

    def enqueue(self, command: Command) -> None:
        """Queue a command. If the queue is full, drop the command."""
        if len(self._commands) >= MAX_QUEUED:
            # The match requests each effect again until it has taken place.
            _log.warning("command queue full, command dropped", extra=self._about(command))
            return
        self._commands.append(command)
        if self._enqueued is not None and not self._enqueued.done():
            self._enqueued.set_result(None)

    async def _next_command(self) -> Command:
        # An asyncio.Queue would take 3 KB per match for a few commands.
        while not self._commands:
            self._enqueued = asyncio.get_running_loop().create_future()
            await self._enqueued
        return self._commands.pop(0)

    @property
    def _settings(self) -> GameSettings:
        """The settings with the server's password. They are decoded when needed, because they take 2 KB per match."""
        return self._deps.settings_of(self._lease.row)

    def resume(self, *, put_off_s: float) -> None:
        """Queue commands that the previous process may not have executed; `Resume` is queued after `put_off_s`."""
        if put_off_s > 0:
            self._enqueue_later(put_off_s, Resume())
        else:
            self.enqueue(Resume())
        if self._match.phase is MatchPhase.STARTING and match_commands.uses_plugin_match(self._settings):
            # MatchZy 0.8.15 ignores this command in a match that has already started. On a server without the plugin,
            # it would restart the game. There, the match requests the start when the missing log posts have arrived.
            self.enqueue(StartPlay(self._match.map_number))
        for action_id in self._match.open_actions:
            self.enqueue(SendAction(action_id))
        if self._match.is_plugin_list_outdated:
            self.enqueue(SendRoster())
        presence = self._match.presence
        for player_id in dict.fromkeys((*presence.turned_away, *presence.connected, *presence.guests)):
            if presence.is_unlisted(player_id):
                # The user id in the log may belong to another player by now.
                self.enqueue(Kick(player_id, UNKNOWN_USER_ID, NOT_LISTED))

    async def run(self) -> None:
        """Execute queued commands until cancelled, or until a console fault of the server."""
        try:
            await self._run()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _run(self) -> None:
        while True:
            command = await self._next_command()
            for attempt in range(TRIES):
                try:
                    await self._execute(command)
                    break
                except ConsoleFaultError as exc:
                    self._metrics.console_failures.inc(self._region.code)
                    _log.warning("console fault", extra={**self._about(command), "error": str(exc)})
                    self._on_failed(Failure.CONSOLE_FAULT)
                    return
                except (ConsoleError, configure.ConfigurationError, TimeoutError) as exc:
                    self._metrics.console_failures.inc(self._region.code)
                    # A few failures are normal, because a map load closes console connections.
                    level = logging.WARNING if attempt + 1 == TRIES else logging.DEBUG
                    _log.log(level, "console command failed", extra={**self._about(command), "error": str(exc)})
                await asyncio.sleep(self._intervals.retry_s)
            else:
                # Retry actions for longer. They are often requested between maps, and all attempts together take less
                # time than a map load.
                if isinstance(command, SendAction) and self._match.open_action(command.action_id) is not None:
                    self._enqueue_later(self._intervals.action_again_s, command)

    def _enqueue_later(self, after_s: float, command: Command) -> None:
        self._timers[command] = asyncio.get_running_loop().call_later(after_s, self._enqueue_due, command)

    def _enqueue_due(self, command: Command) -> None:
        self._timers.pop(command, None)
        self.enqueue(command)

    async def _execute(self, command: Command) -> None:
        match command:
            case Kick():
                await self._kick(command)
            case StartPlay():
                await self._start_play(command)
            case LoadMap():
                await self._load_map(command)
            case MapLoaded():
                await self._reapply_settings()
            case Resume():
                await self._redirect_log()
            case SendAction():
                await self._send_action(command)
            case SendRoster():
                await self._send_roster()
            case EndMatch() | CancelMatch():
                pass  # `run.py` ends the match
            case _:
                assert_never(command)

    async def _redirect_log(self) -> None:
        await configure.redirect_log(self._line, self._log_url)
        commands = [console_commands.set_command(match_commands.SHOTS_ADDRESS, self._shots_url)]
        if match_commands.uses_plugin_match(self._settings):
            url, token = self._report_address
            commands += console_commands.report_address_commands(url, header_name=TOKEN_HEADER, header_value=token)
            commands += configure.demo_commands(self._lease, self._deps, self._settings)
        await self._line.run_all(commands)
        await self._reapply_settings()

    async def _send_action(self, send: SendAction) -> None:
        """Send an action to the server.

        A log entry is appended first, so that no process sends the action again unless it is idempotent. If the server
        rejects the action temporarily, it is sent again later, until the action fails.
        """
        record = self._match.open_action(send.action_id)
        if record is None or (record.state is ActionState.SENT and not _may_repeat(record)):
            return
        action = record.action
        commands = action_commands(action, self._settings, self._match.roster)
        may_be_listed = record.state is ActionState.SENT
        if commands or action.type is ActionType.KICK:
            await self._line.run(
                console_commands.STATUS_JSON
            )  # raises before the entry is appended if the console is lost
        await self._append(EntryKind.ACTION_SENT, action_body(action.id))
        if action.type is ActionType.KICK and action.steam_id is not None:
            # Get the user id from the console, because the user id in the log may belong to another player by now.
            await self._kick(Kick(action.steam_id, UNKNOWN_USER_ID, KICKED_BY_ADMIN))
        if not commands:
            return
        answers = await self._line.run_all(commands)
        may_be_listed = may_be_listed or is_on_plugin_list(action, self._settings, self._match.roster)
        found = read_answers(action, answers, may_be_listed=may_be_listed)
        answer = ActionAnswer(action_id=action.id, verdict=found.verdict, detail=found.detail)
        await self._append(EntryKind.ACTION_ANSWERED, action_body(answer))
        if found.verdict is ServerVerdict.LATER:
            self._enqueue_later(self._intervals.action_again_s, send)
        about = {**self._about(send), "action_id": action.id, "action": action.type.value}
        _log.info("action sent", extra={**about, "verdict": found.verdict})

    async def _send_roster(self) -> None:
        """Add players who have joined the roster to the plugin's list. Open actions add their players themselves."""
        unlisted = [record.action.moves[1] for record in self._match.unanswered_actions()]
        commands = roster_commands(self._settings, self._match.roster, but=unlisted)
        await self._line.run_all(commands)

    async def _kick(self, kick: Kick) -> None:
        presence = self._match.presence
        if kick.reason == NOT_LISTED and not presence.is_unlisted(kick.player_id):
            return  # the player was added to the roster
        is_known = any(kick.player_id in group for group in (presence.turned_away, presence.connected, presence.guests))
        if kick.user_id >= 0 and not is_known:
            return  # the player left; their user id may belong to another player by now
        # The match does not know an unlisted player whose log line was lost. Find out from the console whether they
        # are connected.
        user_id = kick.user_id if kick.user_id >= 0 else await self._find_user_id(kick)
        if user_id is None:
            return
        await self._line.run(console_commands.kick_command(user_id, kick.reason))
        _log.info("player kicked", extra={**self._about(kick), "player_id": kick.player_id})

    async def _find_user_id(self, kick: Kick) -> int | None:
        """Find a player's user id by name, because `status_json` has no user ids, and `status` has no player ids.

        If several clients have the player's name, return the user id from the log if one of them has it, otherwise
        None.
        """
        clients = await self._line.ask(console_commands.STATUS_JSON, parse_status_json)
        named = [client.name for client in clients.humans if client.steam_id64 == kick.player_id] if clients else []
        players = await self._line.ask(console_commands.STATUS, parse_status)
        found = [row.user_id for row in players if not row.is_bot and row.name in named]
        known = self._match.presence.user_id_of(kick.player_id)
        return found[0] if len(found) == 1 else next((user_id for user_id in found if user_id == known), None)

    async def _start_play(self, start: StartPlay) -> None:
        if self._match.phase is not MatchPhase.STARTING or self._match.map_number != start.map_number:
            return
        # Check the map: play that is started right before the plugin changes the map would begin on the old map.
        if not configure.is_map(self._settings, start.map_number, await configure.current_map(self._line)):
            await self._leave_wrong_map(start)
            return
        self._starts_refused = 0
        if self._is_overdue(start):
            self._on_failed(Failure.PLAY_NOT_STARTED)
            return
        await configure.apply_settings(self._line, self._settings, map_number=start.map_number)
        for command in match_commands.start_commands(self._settings):
            await self._line.run(command)
        _log.info("play started", extra={**self._about(start), "map_number": start.map_number})

    def _is_overdue(self, start: StartPlay) -> bool:
        """True if play was first requested too long ago.

        The time restarts for another map, when the roster is complete again, and after the map was live.
        """
        now_ms = self._clock.now_ms()
        wanted = (start.map_number, self._match.presence.complete_since_ms(), self._match.live_at_ms)
        if wanted != self._start:
            self._start, self._start_asked_ms = wanted, now_ms
        return now_ms - self._start_asked_ms > 1000 * max(MIN_START_S, START_S / self._region.speed)

    async def _leave_wrong_map(self, start: StartPlay) -> None:
        """Change the map if the plugin does not change it. Otherwise, players would wait on the wrong map forever."""
        self._starts_refused += 1
        if self._starts_refused % PLUGIN_LOADS_AFTER:
            return
        if self._starts_refused > WRONG_MAPS * PLUGIN_LOADS_AFTER:
            self._on_failed(Failure.MAP_NOT_LOADED)
            return
        map_name = self._settings.maps[start.map_number - 1]
        _log.warning("server is on the wrong map", extra={**self._about(start), "wanted": map_name})
        await self._change_map(map_name)

    async def _load_map(self, load: LoadMap) -> None:
        if self._match.phase is not MatchPhase.BETWEEN_MAPS or self._match.map_number != load.map_number:
            return
        if not self._match.presence.is_map_over:
            return  # already loading
        self._loads_asked += 1
        if match_commands.uses_plugin_match(self._settings) and self._loads_asked < PLUGIN_LOADS_AFTER:
            return
        self._loads_asked = 0
        _log.info("changing map", extra={**self._about(load), "map": load.map_name})
        # Set the team names before the load, because players choose their side by the name of their team.
        await self._line.run_all(match_commands.team_name_commands(self._settings, map_number=load.map_number))
        await self._change_map(load.map_name)

    async def _change_map(self, map_name: str) -> None:
        with suppress(ConsoleLostError):  # the map load may begin before the answer is sent
            await self._line.run(match_commands.load_map_command(map_name))

    async def _reapply_settings(self) -> None:
        async with asyncio.timeout(map_load_s(self._region.speed)):
            await configure.wait_for_answer(self._line)
        await configure.apply_settings(self._line, self._settings, map_number=self._match.map_number)
        if self._match.phase in (MatchPhase.WARMUP, MatchPhase.BETWEEN_MAPS):
            for command in match_commands.warmup_commands(self._settings):
                await self._line.run(command)
        wrong = await configure.wrong_settings(self._line, self._settings)
        if wrong:
            _log.warning("settings rejected by server", extra={"server_id": self._server_id, "wrong": "; ".join(wrong)})

    def _about(self, command: Command) -> dict[str, str]:
        return {"server_id": self._server_id, "command": type(command).__name__}


def _may_repeat(record: ActionRecord) -> bool:
    """True if an action may be sent again: the server rejected it, or it only changes player lists."""
    return record.refusal is not None or record.action.type in ROSTER_ACTIONS
