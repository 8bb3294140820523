"""Render the overlay of a match for a video stream: team names, score and rounds; it has no controls."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from matchpod.console.charts.round_strip import round_strip
from matchpod.console.match_view import ROUNDS, MatchServices, current_map, score_of, team_names
from matchpod.console.page_updates import swapped
from matchpod.console.rendering import fragment
from matchpod.core.model import MatchType
from matchpod.core.views.progress import PublicPhase
from matchpod.service.identity.principals import Principal
from matchpod.service.reading.match_details import MatchDetail

_TEXTS: Final = {
    PublicPhase.ALLOCATING: "starting soon",
    PublicPhase.WAITING_FOR_PLAYERS: "waiting for players",
    PublicPhase.STARTING: "starting",
    PublicPhase.PAUSED: "paused",
    PublicPhase.BETWEEN_MAPS: "next map is loading",
    PublicPhase.ENDED: "final score",
}


class OverlayView:
    def __init__(self, services: MatchServices, principal: Principal, server_id: str) -> None:
        self._services = services
        self._principal = principal
        self._server_id = server_id
        self._shown: object = None
        self._board = b""

    @property
    def part(self) -> Markup:
        """The overlay as last rendered."""
        return Markup(self._board.decode())

    async def changes(self) -> bytes:
        match = await self._services.details.get(self._principal, self._server_id)
        now = match.progress
        shown = (match.phase, score_of(match), None if now is None else (now.round, now.team1_side, now.map_number))
        if shown == self._shown:
            return b""
        board = await self._read(match)
        self._shown = shown
        if board == self._board:
            return b""
        self._board = board
        return swapped(board)

    def everything(self) -> bytes:
        return swapped(self._board)

    async def _read(self, match: MatchDetail) -> bytes:
        names, strip = team_names(match), Markup("")
        playing = current_map(match)
        has_rounds = match.settings.match_type is not MatchType.DEATHMATCH
        if playing is not None and playing.started_at_ms is not None and has_rounds:
            rounds = ROUNDS.read((await self._services.history.rounds(self._principal, playing.id)).rounds)
            strip = round_strip(rounds, *names, is_over=match.has_ended)
        side = None if match.progress is None else match.progress.team1_side
        return fragment("overlay_parts.html", "board", names, score_of(match), side, _text(match), strip)


def _text(match: MatchDetail) -> str:
    if match.reason is not None:
        return "canceled"
    playing = current_map(match)
    parts = [
        playing.name if playing else "",
        f"map {playing.map_number} of {len(match.maps)}" if playing and len(match.maps) > 1 else "",
    ]
    round_number = match.progress.round if match.progress else None
    parts.append(_TEXTS.get(match.phase, f"round {round_number}" if round_number else "live"))
    return " · ".join(filter(None, parts))
