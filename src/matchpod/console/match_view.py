"""Render a match as HTML fragments. After a change, each is rendered once for all viewers with the same rights."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from cs2_protocol.game import Team
from matchpod.console.charts.round_strip import round_strip
from matchpod.console.deps import ConsoleDeps
from matchpod.console.feed import MAX_APART, FeedEntry, feed_entries, feed_line, read_items
from matchpod.console.lifecycle import LifeStage, placed, spans_of
from matchpod.console.match_actions import allowed_actions
from matchpod.console.match_board import Board, live_board
from matchpod.console.match_wording import announced
from matchpod.console.page_updates import added, swapped
from matchpod.console.rendering import fragment, macro
from matchpod.console.requested_actions import MAX_LINES as MAX_ACTION_LINES
from matchpod.console.requested_actions import OF_A_ROW, ActionForm, Choices, action_forms, action_lines, role_words
from matchpod.core.match.actions import ActionType
from matchpod.core.model import MatchType
from matchpod.core.server_status import ServerStatus
from matchpod.core.stored.stored_json import StoredReader
from matchpod.core.views.progress import PlayerState, PublicPhase, RosterPlayer, expected_roster
from matchpod.core.views.result_shapes import AntiCheatEntry, StoredPlayer
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import (
    AntiCheatItem,
    MapEndItem,
    MapLiveItem,
    RoundEndItem,
    RoundRestoredItem,
    RoundStartItem,
    SideSwapItem,
    TimelineItem,
)
from matchpod.service.actions.requests import Actions
from matchpod.service.actions.views import MatchActionsView
from matchpod.service.identity.principals import Principal
from matchpod.service.matches import Matches
from matchpod.service.reading.history import History
from matchpod.service.reading.match_details import MatchDetail, MatchDetails
from matchpod.service.reading.match_head import ServerView
from matchpod.service.reading.match_lists import MatchMap

PARTS: Final = "match_parts.html"
ACTION_PARTS: Final = "action_parts.html"
FEED, CHAT = LISTS = ("feed", "chat")
"""The lists of lines on the page."""
MAX_LINES: Final = 300
"""Maximum number of lines in each list. Older lines are shown only when their round is opened."""
UNKNOWN_SCORE: Final = "–", "–"
PAGE: Final = 1_000
TURN: Final = 20
"""Number of lines rendered before other tasks may run. Rendering them takes a few milliseconds."""

ROUNDS: Final = StoredReader[tuple[StoredRound, ...]](tuple[StoredRound, ...])
PLAYERS: Final = StoredReader[tuple[StoredPlayer, ...]](tuple[StoredPlayer, ...])
_OF_ROUNDS: Final = (MapLiveItem, RoundStartItem, RoundEndItem, SideSwapItem, RoundRestoredItem, MapEndItem)


class MatchServices(msgspec.Struct, frozen=True, kw_only=True):
    """The services from which a match is read."""

    details: MatchDetails
    matches: Matches
    actions: Actions
    history: History
    now_ms: Callable[[], int]


def match_services(deps: ConsoleDeps) -> MatchServices:
    services = deps.services
    return MatchServices(
        details=deps.details,
        matches=services.matches,
        actions=services.actions,
        history=services.history,
        now_ms=deps.now_ms,
    )


class MatchScreen:
    """The page of a match, shared by all viewers with the same rights."""

    def __init__(self, services: MatchServices, principal: Principal, server_id: str) -> None:
        self._services = services
        self._principal = principal
        self._server_id = server_id
        self._match: MatchDetail | None = None
        self._parts: dict[str, bytes] = {}
        self._map_id = ""
        self.map_number = 1
        """The number of the map whose rounds are shown."""
        self._seqs: dict[str, int] = {}
        """By map id, the number of the last item that was read."""
        self._complete: set[str] = set()
        """Ids of the maps that are over, and of which all items were read."""
        self._items: list[tuple[int, TimelineItem]] = []
        self._entries: list[FeedEntry] = []
        """The last entries, because an assist may be added to a kill that was already drawn."""
        self._lines: dict[str, deque[tuple[str, bytes]]] = {name: deque(maxlen=MAX_LINES) for name in LISTS}
        """The lines of the feed and of the chat, oldest first, with their ids."""
        self._leads: tuple[AntiCheatEntry, ...] = ()
        self._rounds: tuple[StoredRound, ...] = ()
        self._players: dict[str, StoredPlayer] = {}
        self._connect: str | None = None
        self._actions_view = MatchActionsView(possible=(), restorable=(), items=())
        self._who: dict[str, str] = {}
        """The names of the keys and sessions that requested actions."""
        self._drawn: dict[str, tuple[object, bytes]] = {}
        """By name, the values from which each fragment was rendered, and the fragment."""

    @property
    def match(self) -> MatchDetail:
        """The match as of the last read."""
        if self._match is None:
            raise RuntimeError("the match was not read yet")
        return self._match

    @property
    def has_actions(self) -> bool:
        return bool(self._actions_view.items)

    def action_forms(self) -> tuple[ActionForm, ...]:
        """Return the form of each action; empty for users who may not act, and while the match's state is unknown."""
        if not self._principal.may_act:
            return ()
        people = _choices(self.match, self._roster(self.match))
        return action_forms(self._actions_view, self.match.settings, team_names(self.match), people)

    def part(self, name: str) -> Markup:
        if name in LISTS:
            return Markup(self._list(name).decode())
        return Markup(self._parts[name].decode())

    def lines_of_round(self, number: int, map_number: int) -> list[Markup]:
        """Return the first MAX_LINES lines of a round of a map, oldest first."""
        shown = [item for item in self._items if item[0] == map_number and item[1].round_number == number]
        entries, _ = feed_entries(shown)
        names, people = team_names(self.match), self._names
        has_rounds = _has_rounds(self.match)
        lines = (feed_line(entry, names, people, has_id=False, has_rounds=has_rounds) for entry in entries[:MAX_LINES])
        return [Markup(line.decode()) for line in lines]

    async def changes(self) -> bytes:
        services = self._services
        match = await services.details.get(self._principal, self._server_id)
        if match.progress is not None and self._connect is None:
            self._connect = connect_line(await services.matches.get(self._principal, self._server_id))
        await self._read_actions(match)
        before = dict(self._seqs), set(self._complete), len(self._items)
        map_id = self._map_id
        try:
            new = await self._read_items(match)
            if self._map_id != map_id:
                self._rounds, self._players = (), {}
            if new or self._match is None or self._map_id != map_id:
                await self._read_numbers(new)
        except BaseException:  # after an error, read these items again, so that the feed does not lack them
            self._seqs, self._complete = before[:2]
            self._map_id = map_id
            del self._items[before[2] :]
            raise
        self._match = match
        self._leads += tuple(item.detection for _, item in new if isinstance(item, AntiCheatItem))
        parts = self._render(match)
        changed = [swapped(part) for name, part in parts.items() if self._parts.get(name) != part]
        self._parts = parts
        return b"".join(changed) + await self._draw_lines(new)

    def everything(self) -> bytes:
        return b"".join(swapped(part) for part in (*self._parts.values(), *map(self._list, LISTS)))

    async def _read_actions(self, match: MatchDetail) -> None:
        if match.status is ServerStatus.RUNNING and match.progress is None:
            return  # its log cannot be read
        services = self._services
        self._actions_view = await services.actions.list(self._principal, self._server_id)
        new = {one.requested_by for one in self._actions_view.items if one.requested_by} - self._who.keys()
        if new:
            self._who |= await services.details.actors(new)

    async def _read_items(self, match: MatchDetail) -> list[tuple[int, TimelineItem]]:
        """Read the items that were added since the last call, of all maps that may have items."""
        new: list[tuple[int, TimelineItem]] = []
        begun = _last_begun(match)
        shown = current_map(match) or next(iter(match.maps), None)
        if shown is not None:
            self._map_id, self.map_number = shown.id, shown.map_number
        for played in _readable(match):
            if played.id in self._complete:
                continue
            found = await self._read_map(played.id)
            new += [(played.map_number, item) for item in found]
            is_passed = begun is not None and begun.map_number > played.map_number
            if played.finished_at_ms is not None and is_passed and not found:
                self._complete.add(played.id)
        self._items += new
        return new

    async def _read_map(self, map_id: str) -> list[TimelineItem]:
        items: list[TimelineItem] = []
        while True:
            found = await self._services.details.new_items(map_id, self._seqs.get(map_id, 0), limit=PAGE)
            items += read_items(map_id, found)
            if found:
                self._seqs[map_id] = found[-1][0]
            if len(found) < PAGE:
                return items

    async def _read_numbers(self, new: list[tuple[int, TimelineItem]]) -> None:
        """Read the rounds if none are known or a new item may change them, and read the statistics of the players."""
        if not self._map_id:
            return
        history = self._services.history
        if not self._rounds or any(isinstance(item, _OF_ROUNDS) for _, item in new):
            self._rounds = ROUNDS.read((await history.rounds(self._principal, self._map_id)).rounds)
        detail = await history.map(self._principal, self._map_id)
        self._players = {player.steam_id: player for player in PLAYERS.read(detail.players)}

    def _render(self, match: MatchDetail) -> dict[str, bytes]:
        """Return all fragments except the lists. A fragment is rendered again only if its input has changed."""
        progress, is_scored = match.progress, _has_rounds(match)
        shown = match if progress is None else replace(match, progress=replace(progress, heard_ms=None))
        heard_ms = None if progress is None or progress.heard_ms is None else progress.heard_ms // 1000 * 1000
        roster = self._roster(match)
        news = f"/console/matches/{match.server_id}" if match.has_ended and self._parts else ""
        return {
            "ended": self._part("ended", news),
            "announced": self._part("announced", announced(match.attention)),
            "reasons": self._part("reasons", match.attention),
            "heading": self._part("heading", replace(shown, attention=()), team_names(match), shown_scores(match)),
            "leads": self._part("leads", () if match.has_ended else self._leads),  # MatchResult has them after the end
            "tabs": self._part("tabs", match.server_id, match.maps, self.map_number, match.has_ended, is_scored),
            "heard": self._part("heard", heard_ms),
            "strip": self._strip(match) if is_scored else b'<i id="strip"></i>',
            "roster": self._part("roster", self._board(match, roster), match.server_id, self._row_actions()),
            "actions": self._actions(match),
            "act": self._act(match),
            "requested": self._requested(match, roster),
            "answer": self._part("answer", match.server_id, self._may_say()),
            "lifecycle": self._lifecycle(spans_of(match)),
        }

    def _part(self, name: str, *values: object) -> bytes:
        """Return a fragment. If its values have not changed, return the same object as before."""
        return self._unless_same(name, values, lambda: fragment(PARTS, name, *values))

    def _strip(self, match: MatchDetail) -> bytes:
        names, title = team_names(match), "Rounds"
        if len(match.maps) > 1 and (shown := current_map(match)) is not None:
            title = f"Rounds of map {shown.map_number}, {shown.name}"
        address, values = f"?map={self.map_number}&round=", (self._rounds, names, match.has_ended, title)

        def draw() -> bytes:
            chart = round_strip(self._rounds, *names, address=address, is_over=match.has_ended)
            return fragment(PARTS, "strip", title, self.map_number, chart)

        return self._unless_same("strip", values, draw)

    def _lifecycle(self, spans: list[LifeStage]) -> bytes:
        """Render the stages of the match's life. A script in the browser updates the duration of the open stage."""
        now_ms = self._services.now_ms()
        return self._unless_same("lifecycle", spans, lambda: fragment(PARTS, "lifecycle", placed(spans, now_ms)))

    def _board(self, match: MatchDetail, roster: list[RosterPlayer]) -> Board:
        progress = match.progress
        return live_board(
            roster,
            self._players,
            match.settings.match_type,
            team_names(match),
            side=None if progress is None else progress.team1_side,
            is_known=progress is not None,
            guests=() if progress is None else progress.guests,
        )

    def _may_say(self) -> bool:
        possible = self._actions_view.possible
        return self._principal.may_act and any(one.possible for one in possible if one.type is ActionType.SAY)

    def _row_actions(self) -> tuple[ActionType, ...]:
        """The actions that are possible now on a player who is chosen in the table."""
        if not self._principal.may_act:
            return ()
        return tuple(one.type for one in self._actions_view.possible if one.possible and one.type in OF_A_ROW)

    def _actions(self, match: MatchDetail) -> bytes:
        connect = None if match.has_ended else self._connect
        may_connect = self._principal.audience.may_connect
        choices = allowed_actions(match, self._principal) if self._principal.may_act else []
        about = team_names(match), score_of(match)
        values = (match.server_id, match.has_ended, about, choices, connect)
        return self._unless_same(
            "actions", values, lambda: fragment(PARTS, "actions", match, *about, choices, connect, may_connect)
        )

    def _act(self, match: MatchDetail) -> bytes:
        forms = () if match.has_ended else self.action_forms()
        about = (match, team_names(match), score_of(match))

        def draw() -> bytes:
            address = f"/console/matches/{match.server_id}/actions"
            return fragment(ACTION_PARTS, "forms", forms, address, macro(PARTS, "about", *about))

        return self._unless_same("act", (forms, about[1:]), draw)

    def _requested(self, match: MatchDetail, roster: list[RosterPlayer]) -> bytes:
        people = self._names | {one.steam_id: one.name for one in roster if one.name}
        items = self._actions_view.items
        lines = action_lines(items[:MAX_ACTION_LINES], team_names(match), people=people, who=self._who)
        return self._unless_same(
            "requested",
            (lines, len(items)),
            lambda: fragment(ACTION_PARTS, "requested", lines, len(items)),
        )

    @property
    def _names(self) -> dict[str, str]:
        """Player names by player id."""
        return {one.steam_id: one.name for one in self._players.values()}

    def _roster(self, match: MatchDetail) -> list[RosterPlayer]:
        listed = expected_roster(match.settings) if match.progress is None else match.progress.roster
        return _with_names(listed, self._players)

    def _unless_same(self, name: str, values: object, draw: Callable[[], bytes]) -> bytes:
        before = self._drawn.get(name)
        if before is None or before[0] != values:
            before = self._drawn[name] = (values, draw())
        return before[1]

    def _list(self, name: str) -> bytes:
        lines = b"".join(line for _, line in reversed(self._lines[name]))
        return b'<ol id="%s" class="feed">%s</ol>' % (name.encode(), lines)

    async def _draw_lines(self, items: list[tuple[int, TimelineItem]]) -> bytes:
        """Add the lines of new items to the lists; return the changed fragments."""
        entries, assisted = feed_entries(items, self._entries)
        self._entries = [*self._entries, *entries][-MAX_APART:]
        changed = [swapped(line) for entry in assisted if (line := self._redraw(entry))]
        for name in LISTS:
            new = [entry for entry in entries if entry.is_chat is (name == CHAT)][-MAX_LINES:]
            lines = []
            for entry in new:
                lines.append(self._line(entry))
                if len(lines) % TURN == 0:
                    await asyncio.sleep(0)  # let other tasks (log posts, requests) run
            self._lines[name].extend((entry.id, line) for entry, line in zip(new, lines, strict=True))
            if lines:
                changed.append(added(b"".join(reversed(lines)), to=name, is_first=True))
        return b"".join(changed)

    def _line(self, entry: FeedEntry) -> bytes:
        return feed_line(entry, team_names(self.match), self._names, has_rounds=_has_rounds(self.match))

    def _redraw(self, entry: FeedEntry) -> bytes | None:
        """Render the line of an entry again, and return it; None if the feed no longer contains the line."""
        lines = self._lines[FEED]
        self._entries = [entry if one.id == entry.id else one for one in self._entries]
        for at in range(len(lines) - 1, -1, -1):
            if lines[at][0] == entry.id:
                lines[at] = entry.id, self._line(entry)
                return lines[at][1]
        return None


def connect_line(server: ServerView) -> str | None:
    """Return the console command to connect, or None without an address; `server` was read with the viewer's rights.

    Viewers who may not create matches get the address without the password of the match.
    """
    if isinstance(server.connect, str):
        return server.connect
    if server.ip is None or server.port is None:
        return None
    return f"connect {f'[{server.ip}]' if ':' in server.ip else server.ip}:{server.port}"


def team_names(match: MatchDetail) -> tuple[str, str]:
    team1, team2 = match.settings.team1, match.settings.team2
    return (team1.name if team1 else None) or "Team 1", (team2.name if team2 else None) or "Team 2"


def _choices(match: MatchDetail, roster: list[RosterPlayer]) -> Choices:
    """Return choices of listed people: players (with their team, and whether they are away), then guests."""
    names = dict(zip(Team, team_names(match), strict=True))
    found = []
    for player in roster:
        words = [player.name or player.steam_id, *([names[player.team]] if player.team else [])]
        if player.state is not PlayerState.CONNECTED:
            words.append("not on the server")
        found.append((player.steam_id, ", ".join(words)))
    for guest in () if match.progress is None else match.progress.guests:
        found.append((guest.steam_id, f"{guest.name or guest.steam_id}, {role_words(guest.role, team_names(match))}"))
    return tuple(found)


def _has_rounds(match: MatchDetail) -> bool:
    """True if the match has rounds and scores. A deathmatch has neither: it is one long round."""
    return match.settings.match_type is not MatchType.DEATHMATCH


def score_of(match: MatchDetail) -> tuple[int | str, int | str]:
    """Return the score to show: that of the map being played, or else that of the series or of its only map."""
    played = [played_map for played_map in match.maps if played_map.started_at_ms is not None]
    if not played or match.settings.match_type is MatchType.DEATHMATCH:
        return UNKNOWN_SCORE
    is_over = match.phase is PublicPhase.ENDED
    if match.progress is not None and match.progress.score is not None and not (is_over and len(match.maps) > 1):
        return match.progress.score
    if len(match.maps) > 1:
        return match.maps_won
    return played[-1].team1_score, played[-1].team2_score


def shown_scores(match: MatchDetail) -> tuple[tuple[str, tuple[int | str, int | str]], ...]:
    """Return the scores in the heading, each with its label: that of the series, and that of the map being played."""
    if match.settings.series_format.length == 1 or match.settings.match_type is MatchType.DEATHMATCH:
        return (("", score_of(match)),)
    series = "maps", match.maps_won
    if match.progress is None or match.progress.score is None or match.phase is PublicPhase.ENDED:
        return (series,)
    return series, (f"map {match.progress.map_number}", match.progress.shown_score or UNKNOWN_SCORE)


def current_map(match: MatchDetail) -> MatchMap | None:
    """Return the map that is loaded or being loaded. Without a server, return the last map that began, or None."""
    if match.progress is not None:
        return next((played for played in match.maps if played.map_number == match.progress.map_number), None)
    return _last_begun(match)


def _last_begun(match: MatchDetail) -> MatchMap | None:
    begun = [played for played in match.maps if played.started_at_ms is not None]
    return begun[-1] if begun else None


def _readable(match: MatchDetail) -> list[MatchMap]:
    """Return the maps that may have items: those that began, and the current map: players join before it begins."""
    number = 1 if match.progress is None else match.progress.map_number
    return [played for played in match.maps if played.started_at_ms is not None or played.map_number <= number]


def _with_names(roster: tuple[RosterPlayer, ...], known: dict[str, StoredPlayer]) -> list[RosterPlayer]:
    """Return the roster, with names from the statistics for players without a name."""
    return [
        player if player.name or player.steam_id not in known else replace(player, name=known[player.steam_id].name)
        for player in roster
    ]
