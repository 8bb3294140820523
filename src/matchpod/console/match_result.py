"""Build the result of a match for its page: scoreboard and charts of a map, anti-cheat leads, and demos."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
from markupsafe import Markup

from matchpod.console.charts.economy import economy
from matchpod.console.charts.matrices import damage_pairs, kill_matrix
from matchpod.console.charts.opening_duels import opening_duels
from matchpod.console.charts.player_bars import player_bars
from matchpod.console.charts.presence_lanes import presence_lanes
from matchpod.console.charts.round_strip import round_strip
from matchpod.console.charts.score_race import score_race
from matchpod.console.feed import read_items
from matchpod.console.match_board import Board, final_board
from matchpod.console.match_view import PAGE, PLAYERS, ROUNDS, team_names
from matchpod.console.match_wording import DEMO_REASONS
from matchpod.console.rendering import iso
from matchpod.console.visit import Visit
from matchpod.core.stored.stored_json import StoredReader
from matchpod.core.views.progress import RosterPlayer, expected_roster
from matchpod.core.views.result_shapes import StoredDetection
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import TimelineItem
from matchpod.service.reading.demos import DemoFile
from matchpod.service.reading.history_views import MapDetail
from matchpod.service.reading.match_details import MatchDetail
from matchpod.service.reading.match_lists import MatchMap


class ShownMap(msgspec.Struct, frozen=True, kw_only=True):
    detail: MapDetail
    board: Board
    charts: list[tuple[str, Markup]]


class ShownDemo(msgspec.Struct, frozen=True, kw_only=True):
    """A demo file; `title` contains its map, `what` its state."""

    title: str
    file: DemoFile
    what: str
    address: str | None
    """URL path of the download; None if the file cannot be downloaded."""


class MatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a match. For a match in progress, it contains only a map that has ended and that the user chose."""

    shown: ShownMap | None
    """The map whose result is shown; None if there is none."""
    demos: Sequence[ShownDemo] = ()
    detections: Sequence[StoredDetection] = ()
    presence: Markup = Markup()


_DETECTIONS: Final = StoredReader[tuple[StoredDetection, ...]](tuple[StoredDetection, ...])


async def result_of(visit: Visit, match: MatchDetail, number: int) -> MatchResult:
    """Return the result of an ended match: that of the map `number`, and leads, demos and presence of all maps."""
    items = {played.id: await _items(visit, played.id) for played in match.maps if played.is_needed}
    started = [played for played in match.maps if played.started_at_ms is not None]
    details = [await visit.deps.services.history.map(visit.principal, played.id) for played in started]
    shown = next((played for played in started if played.map_number == number), None)
    team1, team2 = team_names(match)
    presence = presence_lanes(
        [item for of_map in items.values() for item in of_map],
        _with_substitutes(expected_roster(match.settings), details),
        started_at=None if match.running_at_ms is None else iso(match.running_at_ms),
        ended_at=match.ended_at,
        team1_name=team1,
        team2_name=team2,
    )
    return MatchResult(
        shown=None if shown is None else await map_result(visit, match, shown, items.get(shown.id)),
        demos=[demo for detail in details for demo in await _demos(visit, detail)],
        detections=[found for detail in details for found in _DETECTIONS.read(detail.anti_cheat)],
        presence=presence,
    )


def _with_substitutes(listed: Sequence[RosterPlayer], details: Sequence[MapDetail]) -> list[RosterPlayer]:
    """Return the players listed at creation, and the team members who played without being listed."""
    found = {player.steam_id: player for player in listed}
    for player in (player for detail in details for player in PLAYERS.read(detail.players)):
        if listed and player.team and player.steam_id not in found:
            found[player.steam_id] = RosterPlayer(steam_id=player.steam_id, name=player.name, team=player.team)
    return list(found.values())


async def map_result(
    visit: Visit, match: MatchDetail, played: MatchMap, items: list[TimelineItem] | None = None
) -> ShownMap:
    """Return the scoreboard and the charts of a map. Its timeline items are read unless they are passed in."""
    history, principal, names = visit.deps.services.history, visit.principal, team_names(match)
    items = await _items(visit, played.id) if items is None else items
    detail = await history.map(principal, played.id)
    rounds = ROUNDS.read((await history.rounds(principal, played.id)).rounds)
    players = PLAYERS.read(detail.players)
    winner, of_deathmatch = played.winner, match.deathmatch_winner
    if of_deathmatch is not None:
        winner = winner or of_deathmatch.team or of_deathmatch.steam_id
    charts = []
    for title, draw in _charts(rounds, detail, items, names):
        charts.append((title, draw()))
        # a chart takes some milliseconds: let other tasks (log posts, requests) run in between
        await asyncio.sleep(0)
    return ShownMap(
        detail=detail,
        board=final_board(players, match.settings.match_type, names, winner=winner),
        charts=charts,
    )


async def _demos(visit: Visit, detail: MapDetail) -> list[ShownDemo]:
    if detail.demo is msgspec.UNSET:
        return []
    title = f"Demo of map {detail.map_number}, {detail.played_map_name or detail.map}"
    found = await visit.deps.services.demos.demo(visit.principal, detail.id)
    return [
        ShownDemo(
            title=title,
            file=file,
            what=file.state if file.reason is None else f"missing: {DEMO_REASONS[file.reason]}",
            address=f"/console/maps/{detail.id}/demo?number={file.number}" if file.state == "available" else None,
        )
        for file in found.files
    ]


async def _items(visit: Visit, map_id: str) -> list[TimelineItem]:
    items: list[TimelineItem] = []
    after = 0
    while True:
        found = await visit.deps.details.new_items(map_id, after, limit=PAGE)
        items += read_items(map_id, found)
        if len(found) < PAGE:
            return items
        after = found[-1][0]


def _charts(
    rounds: Sequence[StoredRound], detail: MapDetail, items: Sequence[TimelineItem], names: tuple[str, str]
) -> list[tuple[str, Callable[[], Markup]]]:
    kills = ("Who killed whom", partial(kill_matrix, items, *names))
    if not rounds:
        return [kills]
    players = PLAYERS.read(detail.players)
    return [
        ("Rounds", partial(round_strip, rounds, *names, is_over=True)),
        ("Damage per round and KAST", partial(player_bars, players, *names)),
        kills,
        ("Opening duels", partial(opening_duels, rounds, *names)),
        ("Economy", partial(economy, rounds, *names)),
        ("Lead by round", partial(score_race, rounds, *names)),
        ("Who damaged whom", partial(damage_pairs, rounds, *names)),
    ]
