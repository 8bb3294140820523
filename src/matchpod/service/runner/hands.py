"""Who does what the rules ask for? Effects become console commands, one after the other, apart from the reading.

An order that a server did not take is tried again; one that is no longer wanted when its turn comes is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, assert_never

import msgspec

from matchpod.core.effects import UNKNOWN_USER_ID, CancelMatch, Effect, EndMatch, Kick, LoadMap, StartPlay
from matchpod.core.match import Match, Phase
from matchpod.core.presence import NOT_LISTED
from matchpod.cs2 import console_commands as commands
from matchpod.cs2.console_answers import parse_status, parse_status_json
from matchpod.ports import ConsoleError, ConsoleLostError
from matchpod.service.ingest import TOKEN_HEADER
from matchpod.service.regions import Region
from matchpod.service.runner import configure
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.surroundings import Surroundings

MAX_ORDERS: Final = 256
"""Orders that wait: every listed player, a crowd of strangers, and the map."""

TRIES: Final = 5
RETRY_S: Final = 1.0
"""A console that was lost is back after a second, or the server is loading a map and takes orders afterwards."""

MAP_LOAD_S: Final = 120.0
"""At the speed of a real server: a large workshop map from a slow disk."""

MIN_MAP_LOAD_S: Final = 15.0

WRONG_MAPS: Final = 3
"""A server that loads another map than it was told, so often, never loads the right one."""

PLUGIN_LOADS_AFTER: Final = 3
"""The plugin changes the map by itself; when we had to ask this often it did not, and we do."""

_LOG = logging.getLogger(__name__)


class MapLoaded(msgspec.Struct, frozen=True):
    """A map load has overwritten our settings: set them again when it is done."""


class TakeOver(msgspec.Struct, frozen=True):
    """The match was driven by another process: let the server send its log to this one."""


Order = Effect | MapLoaded | TakeOver


def map_load_s(speed: float) -> float:
    """How long a map load may take in a region whose world runs at this speed."""
    return max(MIN_MAP_LOAD_S, MAP_LOAD_S / speed)


class Hands:
    """Performs the effects of one match."""

    def __init__(
        self,
        claim: Claim,
        around: Surroundings,
        region: Region,
        *,
        line: ConsoleLine,
        match: Match,
        on_failed: Callable[[str], None],
    ) -> None:
        self._match = match
        self._line = line
        self._settings = around.settings_of(claim.row)
        self._measures = around.measures
        self._server_id = claim.row.id
        self._log_url = around.log_url(claim.row.log_token)
        self._report_address = (around.report_url, claim.row.report_token)
        self._on_failed = on_failed
        self._region = region
        self._orders: asyncio.Queue[Order] = asyncio.Queue(MAX_ORDERS)
        self._loads_asked = 0
        self._starts_refused = 0

    def order(self, order: Order) -> None:
        """Do this when its turn comes."""
        try:
            self._orders.put_nowait(order)
        except asyncio.QueueFull:
            # The rules ask again for everything that has not happened.
            _LOG.warning("an order to a server was dropped", extra=self._about(order))

    def take_over(self) -> None:
        """After a pause in which nobody listened: what was ordered last may not have been done."""
        self.order(TakeOver())
        for player_id in self._match.presence.turned_away:
            # The number he had may be somebody else's by now.
            self.order(Kick(player_id, UNKNOWN_USER_ID, NOT_LISTED))

    async def run(self) -> None:
        """Take orders, for ever."""
        while True:
            order = await self._orders.get()
            for attempt in range(TRIES):
                try:
                    await self._perform(order)
                    break
                except (ConsoleError, configure.ConfigurationError, TimeoutError) as exc:
                    self._measures.console_failures.inc(self._region.code)
                    # Once is usual: a map load cuts consoles off.
                    level = logging.WARNING if attempt + 1 == TRIES else logging.DEBUG
                    _LOG.log(level, "server did not take an order", extra={**self._about(order), "error": str(exc)})
                await asyncio.sleep(RETRY_S)

    async def _perform(self, order: Order) -> None:
        match order:
            case Kick():
                await self._kick(order)
            case StartPlay():
                await self._start_play(order)
            case LoadMap():
                await self._load_map(order)
            case MapLoaded():
                await self._set_again()
            case TakeOver():
                await self._take_over()
            case EndMatch() | CancelMatch():
                pass  # whoever reads the match concludes it
            case _:
                assert_never(order)

    async def _take_over(self) -> None:
        await configure.register_log(self._line, self._log_url)
        await configure.forget_other_logs(self._line, self._log_url)
        if commands.uses_plugin_match(self._settings):
            url, token = self._report_address
            for command in commands.report_address_commands(url, header_name=TOKEN_HEADER, header_value=token):
                await self._line.run(command)
        await self._set_again()

    async def _kick(self, order: Kick) -> None:
        presence = self._match.presence
        is_known = order.player_id in presence.turned_away or order.player_id in presence.connected
        if order.user_id >= 0 and not is_known:
            return  # he left, and his number may be somebody else's by now
        # A stranger whose coming no line told is in neither list: the server itself says whether he is there.
        user_id = order.user_id if order.user_id >= 0 else await self._find_user_id(order)
        if user_id is None:
            return
        await self._line.run(commands.kick_command(user_id, order.reason))
        _LOG.info("player kicked", extra={**self._about(order), "player_id": order.player_id})

    async def _find_user_id(self, order: Kick) -> int | None:
        """`status` knows no player ids and `status_json` no user ids: his name joins them, where it is his alone."""
        clients = parse_status_json(await self._line.run(commands.STATUS_JSON))
        named = [client.name for client in clients.humans if client.steam_id64 == order.player_id] if clients else []
        status = parse_status(await self._line.run(commands.STATUS))
        rows = [row.user_id for row in status.players if not row.is_bot and row.name in named] if status else []
        return rows[0] if len(rows) == 1 else None

    async def _start_play(self, order: StartPlay) -> None:
        if self._match.phase is not Phase.STARTING or self._match.map_number != order.map_number:
            return
        # Right before it changes the map, the plugin would start the old one.
        if not configure.is_map(self._settings, order.map_number, await configure.current_map(self._line)):
            await self._leave_wrong_map(order)
            return
        self._starts_refused = 0
        await configure.apply_settings(self._line, self._settings)
        for command in commands.start_commands(self._settings):
            await self._line.run(command)
        _LOG.info("play started", extra={**self._about(order), "map_number": order.map_number})

    async def _leave_wrong_map(self, order: StartPlay) -> None:
        """Change a map that the plugin leaves as it is: nobody else would, and they would wait on it for ever."""
        self._starts_refused += 1
        if self._starts_refused % PLUGIN_LOADS_AFTER:
            return
        if self._starts_refused > WRONG_MAPS * PLUGIN_LOADS_AFTER:
            self._on_failed("it does not load the map it is told")
            return
        map_name = self._settings.maps[order.map_number - 1]
        _LOG.warning("server is on another map", extra={**self._about(order), "wanted": map_name})
        await self._change_map(map_name)

    async def _load_map(self, order: LoadMap) -> None:
        if self._match.phase is not Phase.BETWEEN_MAPS or self._match.map_number != order.map_number:
            return
        if not self._match.presence.is_map_over:
            return  # it is loading
        self._loads_asked += 1
        if commands.uses_plugin_match(self._settings) and self._loads_asked < PLUGIN_LOADS_AFTER:
            return
        self._loads_asked = 0
        _LOG.info("map change", extra={**self._about(order), "map": order.map_name})
        await self._change_map(order.map_name)

    async def _change_map(self, map_name: str) -> None:
        with suppress(ConsoleLostError):  # loading may begin before it is answered
            await self._line.run(commands.load_map_command(map_name))

    async def _set_again(self) -> None:
        async with asyncio.timeout(map_load_s(self._region.speed)):
            await configure.wait_for_answer(self._line)
        await configure.apply_settings(self._line, self._settings)
        if self._match.phase in (Phase.WARMUP, Phase.BETWEEN_MAPS):
            for command in commands.warmup_commands(self._settings):
                await self._line.run(command)
        wrong = await configure.wrong_settings(self._line, self._settings)
        if wrong:
            _LOG.warning("settings do not hold", extra={"server_id": self._server_id, "wrong": "; ".join(wrong)})

    def _about(self, order: Order) -> dict[str, str]:
        return {"server_id": self._server_id, "order": type(order).__name__}
