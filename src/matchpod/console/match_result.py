"""The result of an ended match: a scoreboard and charts per map, and the leads of the anti-cheat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.economy import economy
from matchpod.console.charts.matrices import damage_pairs, kill_matrix
from matchpod.console.charts.opening_duels import opening_duels
from matchpod.console.charts.player_bars import player_bars
from matchpod.console.charts.presence_lanes import presence_lanes
from matchpod.console.charts.round_strip import round_strip
from matchpod.console.charts.score_race import score_race
from matchpod.console.feed import read_items
from matchpod.console.match_view import PAGE, PLAYERS, ROUNDS, team_names
from matchpod.console.match_wording import DEMO_REASONS
from matchpod.console.rendering import iso
from matchpod.console.visit import Visit
from matchpod.core.stored.stored_json import StoredReader
from matchpod.core.views.progress import expected_roster
from matchpod.core.views.result_shapes import StoredDetection, StoredPlayer
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import TimelineItem
from matchpod.service.reading.demos import DemoFile
from matchpod.service.reading.history_views import MapDetail
from matchpod.service.reading.match_details import MatchDetail
from matchpod.service.reading.match_lists import MatchMap


class Column(msgspec.Struct, frozen=True):
    title: str
    label: str
    value: Callable[[StoredPlayer], float | None]
    digits: int = 0
    mark: Callable[[StoredPlayer], str] = lambda _: ""

    def text(self, player: StoredPlayer) -> str:
        value = self.value(player)
        return "–" if value is None else f"{value:.{self.digits}f}{self.mark(player)}"


BOARD: Final = (
    Column("K", "Kills", lambda player: player.kills),
    Column("D", "Deaths", lambda player: player.deaths),
    Column("A", "Assists", lambda player: player.assists),
    Column("ADR", "Average damage per round", lambda player: player.adr, 1),
    Column("KAST", "Rounds with a kill, assist, survival or trade, in percent", lambda player: player.kast_percent, 0),
    Column("HS", "Share of kills by headshot, in percent", lambda player: player.hs_percent, 0),
    Column("FK", "First kills of a round", lambda player: player.first_kills),
    Column("FD", "First deaths of a round", lambda player: player.first_deaths),
    Column("TRD", "Trade kills, which avenged a team mate within seconds", lambda player: player.trade_kills),
    Column("CL", "Rounds won as the last of the team", lambda player: player.clutch_wins),
    Column("UD", "Damage by grenades and fire", lambda player: player.utility_damage),
    Column(
        "MVP",
        "Rounds as most valuable player; with +, perhaps more",
        lambda player: player.mvps,
        mark=lambda player: "" if player.mvps_complete else "+",
    ),
    Column("IMP", "Impact rating", lambda player: player.impact_rating, 2),
)


class ShownMap(msgspec.Struct, frozen=True, kw_only=True):
    detail: MapDetail
    teams: list[tuple[Team | None, str, list[StoredPlayer]]]
    charts: list[tuple[str, Markup]]


class ShownDemo(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a demo; `title` is its map, `what` its state for people."""

    title: str
    file: DemoFile
    what: str
    address: str | None
    """Where it can be downloaded; None if it cannot."""


class MatchResult(msgspec.Struct, frozen=True, kw_only=True):
    maps: list[ShownMap]
    demos: list[ShownDemo]
    detections: list[StoredDetection]
    presence: Markup


_DETECTIONS: Final = StoredReader[tuple[StoredDetection, ...]](tuple[StoredDetection, ...])


async def result_of(visit: Visit, match: MatchDetail) -> MatchResult:
    """Return the maps of an ended match that were played, its leads, and who was on the server when."""
    items = {played.id: await _items(visit, played.id) for played in match.maps if played.is_needed}
    maps = [
        await _map_result(visit, match, played, items[played.id])
        for played in match.maps
        if played.started_at_ms is not None
    ]
    team1, team2 = team_names(match)
    presence = presence_lanes(
        [item for of_map in items.values() for item in of_map],
        expected_roster(match.settings),
        started_at=None if match.running_at_ms is None else iso(match.running_at_ms),
        ended_at=match.ended_at,
        team1_name=team1,
        team2_name=team2,
    )
    detections = [found for shown in maps for found in _DETECTIONS.read(shown.detail.anti_cheat)]
    demos = [demo for shown in maps for demo in await _demos(visit, shown.detail)]
    return MatchResult(maps=maps, demos=demos, detections=detections, presence=presence)


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


async def _map_result(visit: Visit, match: MatchDetail, played: MatchMap, items: list[TimelineItem]) -> ShownMap:
    history, principal, names = visit.deps.services.history, visit.principal, team_names(match)
    detail = await history.map(principal, played.id)
    rounds = ROUNDS.read((await history.rounds(principal, played.id)).rounds)
    charts = []
    for title, draw in _charts(rounds, detail, items, names):
        charts.append((title, draw()))
        await asyncio.sleep(0)  # each takes some milliseconds: log posts and callers go first
    return ShownMap(detail=detail, teams=_by_team(PLAYERS.read(detail.players), names), charts=charts)


async def _items(visit: Visit, map_id: str) -> list[TimelineItem]:
    items: list[TimelineItem] = []
    after = 0
    while True:
        found = await visit.deps.details.new_items(map_id, after, limit=PAGE)
        items += read_items(map_id, found)
        if len(found) < PAGE:
            return items
        after = found[-1][0]


def _by_team(
    players: Sequence[StoredPlayer], names: tuple[str, str]
) -> list[tuple[Team | None, str, list[StoredPlayer]]]:
    if not any(player.team for player in players):
        return [(None, "All players", list(players))]
    titles = {Team.TEAM1: names[0], Team.TEAM2: names[1], None: "No team"}
    teams = [(team, title, [player for player in players if player.team is team]) for team, title in titles.items()]
    return [shown for shown in teams if shown[2]]


def _charts(
    rounds: Sequence[StoredRound], detail: MapDetail, items: Sequence[TimelineItem], names: tuple[str, str]
) -> list[tuple[str, Callable[[], Markup]]]:
    kills = ("Who killed whom", partial(kill_matrix, items, *names))
    if not rounds:
        return [kills]
    players = PLAYERS.read(detail.players)
    return [
        ("Rounds", partial(round_strip, rounds, *names, is_linked=False, is_over=True)),
        ("Damage per round and KAST", partial(player_bars, players, *names)),
        kills,
        ("Opening duels", partial(opening_duels, rounds, *names)),
        ("Economy", partial(economy, rounds, *names)),
        ("Lead by round", partial(score_race, rounds, *names)),
        ("Who damaged whom", partial(damage_pairs, rounds, *names)),
    ]
