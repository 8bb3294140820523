"""A player who leaves before play has the time to join again; then the match is canceled, and callers see who was gone."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.match import ROSTER_INCOMPLETE
from matchpod.core.model import SeriesFormat
from matchpod.core.phases import MatchPhase
from matchpod.core.progress import PublicPhase
from matchpod.core.server_query import ServersQuery
from matchpod.core.timers import Timers
from matchpod.ports import Database
from matchpod.service.match_log.live import LocalMatch
from matchpod.simulator.play.door import BY_USER
from tests.contract import databases, test_matches
from tests.contract.driven_matches import PLAYERS, SETTINGS, World, open_world
from tests.contract.test_matches import OWNER
from tests.unit.service.history.sample_log import STEAM_ID_BASE

harness = databases.harness

FAST = 40.0
JOIN_MS = round(Timers().at_speed(FAST).join_s * 1000)
SERIES = msgspec.structs.replace(SETTINGS, maps=("de_nuke", "de_vertigo", "de_inferno"), series_format=SeriesFormat.BO3)


async def leave(world: World, player_id: str, live: LocalMatch) -> None:
    """Let a player leave, who does not come back."""
    machine = world.region.running["srv_1"].machine
    account = int(player_id) - STEAM_ID_BASE
    machine.door.leave(next(one for one in machine.arena.players if one.person.account == account), BY_USER)

    async def is_gone() -> bool:
        return player_id not in live.fold.match.presence.connected

    await world.until(is_gone, "the player has left")


async def check_outcome(world: World, gone: str) -> None:
    """Callback and look-ups say who was absent at the end, although all players had joined."""
    server = world.region.running["srv_1"]
    body: dict[str, Any] = json.loads((await world.outcome()).callback_body)
    assert body["reason"] == CancelReason.INCOMPLETE_ROSTER
    lists = {"missingPlayers": [], "connectedPlayers": list(PLAYERS), "absentPlayers": [gone]}
    assert {name: body[name] for name in lists} == lists
    assert any(command.startswith("kickid") and ROSTER_INCOMPLETE in command for command in server.commands)
    caller = test_matches.World(world.db)
    (item,) = (await caller.matches.server_list(OWNER, ServersQuery())).items
    for view in (await caller.matches.get(OWNER, "srv_1"), item):
        assert (view.missing_players, view.connected_players, view.absent_players) == ((), PLAYERS, (gone,))


async def test_roster_that_breaks_before_play_has_the_time_to_join_again(db: Database) -> None:
    async with open_world(db, speed=FAST) as world:
        world.start()
        await world.create(scenario="late_join")
        live = await world.until_driven()
        match = live.fold.match

        async def are_early_ones_here() -> bool:
            return len(match.presence.connected) == len(PLAYERS) - 1

        await world.until(are_early_ones_here, "all but the last player are connected")
        gone = next(iter(match.presence.connected))
        await leave(world, gone, live)

        async def is_broken() -> bool:
            return match.roster_broken_ms is not None

        await world.until(is_broken, "the last player joined")
        state, broken_ms = live.state(), match.roster_broken_ms
        assert broken_ms is not None
        assert state.phase is PublicPhase.WAITING_FOR_PLAYERS
        assert json.loads(state.deadline)["waitingFor"] == "players_to_join"
        await check_outcome(world, gone)
        assert match.outcome is not None
        assert match.outcome.at_ms - broken_ms >= JOIN_MS


async def test_player_who_does_not_come_back_for_the_next_map_ends_the_series(db: Database) -> None:
    async with open_world(db, speed=FAST) as world:
        world.start()
        await world.create(game=SERIES)
        live = await world.until_driven()
        match = live.fold.match

        async def is_played() -> bool:
            return match.phase is MatchPhase.LIVE and match.current_map.team1_score + match.current_map.team2_score > 0

        await world.until(is_played, "the first map is played")
        await leave(world, PLAYERS[0], live)
        await check_outcome(world, PLAYERS[0])
        assert [played.status for played in match.maps] == ["finished"]
