"""Build the wall of an organization: its open, failed and recently ended matches, and which need attention.

A failed match is shown until it is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from matchpod.core.model import MatchType
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.attention import PENDING, SEVERAL_TRIES, TRIES, Attention, Urgency, attention_of, urgency_of
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.wall_groups import WallGroup, group_of_ended, group_of_open, place_of
from matchpod.ports import Clock, Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.remote import MAX_MATCHES, RemoteMatches
from matchpod.service.reading.callbacks import CallbackItem, callback_item
from matchpod.service.reading.endings import read_ruling
from matchpod.service.reading.match_details import read_progress, situation_of
from matchpod.service.reading.match_head import MatchHead, StoredMaps, summarize
from matchpod.service.reading.match_lists import MatchItem, read_items
from matchpod.service.reading.server_lists import stored_maps
from matchpod.service.reading.stored_progress import decoded_settings, listed_players, stored_progress
from matchpod.service.regions.alerts import RegionAlert, RegionAlerts
from matchpod.service.regions.regions import Regions, RegionView
from matchpod.storage import callback_lists, match_claims
from matchpod.storage.acknowledgements import canceled_ids, unacknowledged_ids
from matchpod.storage.match_claims import MatchClaim
from matchpod.storage.match_lists import finished_ids, open_of, summaries_of
from matchpod.storage.rulings import current_of
from matchpod.storage.server_labels import progress_of
from matchpod.storage.servers import ServerRow, ServerSummary

HOUR_MS: Final = 60 * 60 * 1000
ENDED_MS: Final = 10 * 60 * 1000
"""Time for which a match is shown after it has finished, or was canceled by the caller or an operator."""
MAX_ENDED: Final = 100
"""Maximum number of ended matches per group. Older failed matches are shown when newer failed matches are
acknowledged."""
CLAIMED_MS: Final = 12 * HOUR_MS
"""Time for which a claim on a match counts. Older claims are considered forgotten."""
GIVEN_UP_MS: Final = 24 * HOUR_MS
"""Maximum age of the given-up callbacks that are shown."""
PROGRESS_MS: Final = 48 * HOUR_MS
"""Maximum age of the matches that `label_progress` counts. It is enough for an event on a weekend."""
MAX_GIVEN_UP: Final = 20
MAX_REMOTE: Final = MAX_MATCHES // 2
"""Maximum number of matches of other replicas whose log this process reads. For further matches, the wall shows only
what is in their rows."""
REGIONAL: Final = {PENDING: 1, TRIES: SEVERAL_TRIES}
"""The kinds of attention that an alert about the region replaces, with the minimum number of affected matches."""
TURN: Final = 50
"""Number of matches that are summarized, within a few milliseconds, before other tasks run."""


class WallMatch(MatchHead, frozen=True, kw_only=True):
    """An open match: its most important settings, its progress, and the reasons why it needs attention."""

    is_fast: bool
    """True if games in the region run faster than real time, as in a sandbox."""
    match_type: MatchType
    map_count: int
    team1: str | None
    team2: str | None
    progress: MatchProgress
    is_followed: bool
    """False if the progress is only that of the row, because another replica drives the match and MAX_REMOTE is
    exceeded."""
    attention: tuple[Attention, ...]
    """The reasons why the match needs attention, most urgent first."""
    claim: MatchClaim | None
    """The person who takes care of the match; None if there is no claim."""
    group: WallGroup

    @property
    def urgency(self) -> int:
        """The highest urgency of all reasons; 0 if there are no reasons."""
        return urgency_of(self.attention)

    @property
    def needs_attention(self) -> bool:
        return self.urgency >= Urgency.SOON

    @property
    def since_ms(self) -> int:
        """When the match entered its current state, as far as this is known."""
        in_play_ms = self.progress.paused_ms or self.progress.live_ms
        return in_play_ms or self.running_at_ms or self.created_at_ms


class EndedMatch(MatchItem, frozen=True, kw_only=True):
    """A match that ended recently, or that failed and is not acknowledged yet."""

    is_fast: bool
    players: tuple[str, ...]
    """The SteamIDs of the listed players."""
    is_final: bool
    """False while the match's server is being released. Until then, the rows of its maps may still change."""
    claim: MatchClaim | None = None
    group: WallGroup

    @property
    def since_ms(self) -> int:
        """When the match ended."""
        return self.ended_at_ms or self.created_at_ms

    @property
    def needs_attention(self) -> bool:
        return self.group is WallGroup.FAILED


WallCard = WallMatch | EndedMatch


class WallCards(msgspec.Struct, frozen=True, kw_only=True):
    """The matches of a wall, in the order in which they are shown."""

    cards: tuple[WallCard, ...]
    alerts: tuple[RegionAlert, ...]
    older_ms: int | None
    """Matches that failed before this time are not shown; None if all failed matches are shown."""


class WallTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks and regions that are shown beside the matches."""

    given_up: tuple[CallbackItem, ...]
    """The callbacks that were given up recently, newest first."""
    regions: tuple[RegionView, ...]


class Overview:
    """Reads the walls of organizations."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        regions: Regions,
        live: LocalMatches,
        remote: RemoteMatches,
        alerts: RegionAlerts | None = None,
        max_ended: int = MAX_ENDED,
        max_remote: int = MAX_REMOTE,
    ) -> None:
        self._db = db
        self._clock = clock
        self._regions = regions
        self._live = live
        self._remote = remote
        self._alerts = alerts or RegionAlerts(db=db, clock=clock, regions=regions)
        self._max_ended = max_ended
        self._max_remote = max_remote

    @unavailable_on_outage
    async def cards(self, org_id: str, known: Mapping[str, WallCard] = MappingProxyType({})) -> WallCards:
        """Return all cards. Final matches in `known` (cards by server id) are read again only after a ruling."""
        now_ms = self._clock.now_ms()
        found = await match_claims.of_organization(self._db, org_id, now_ms - CLAIMED_MS)
        claims = {claim.server_id: claim for claim in found}
        opened = await self._open(org_id, claims)  # before the ended matches: a match that ends now must not be missed
        failed = await unacknowledged_ids(self._db, org_id, limit=self._max_ended + 1)
        since_ms = now_ms - ENDED_MS
        canceled = await canceled_ids(self._db, org_id, since_ms, limit=self._max_ended)
        finished = await finished_ids(self._db, org_id, since_ms, limit=self._max_ended)
        ended = await self._ended([*failed[: self._max_ended], *canceled, *finished], known)
        calm = merge_causes([match for match in opened if match.server_id not in ended])
        every: list[WallCard] = [*calm, *(_claimed(match, claims.get(match.server_id)) for match in ended.values())]
        oldest = ended.get(failed[self._max_ended - 1]) if len(failed) > self._max_ended else None
        older_ms = None if oldest is None else oldest.since_ms  # also None if its row was not found
        alerts = await self._alerts.read(org_id)
        return WallCards(cards=tuple(sorted(every, key=_place)), alerts=alerts, older_ms=older_ms)

    async def _open(self, org_id: str, claims: Mapping[str, MatchClaim]) -> list[WallMatch]:
        rows = await open_of(self._db, org_id)
        now_ms = self._clock.now_ms()
        others = [row.id for row in rows if row.status is ServerStatus.RUNNING and self._live.get(row.id) is None]
        followed, maps = set(others[: self._max_remote]), await stored_maps(self._db, others[self._max_remote :])
        found = []
        for row in rows:
            progress = await self._progress(row, is_remote=row.id in followed)
            match = self._match(row, progress, maps.get(row.id), now_ms)
            claim = claims.get(row.id)
            found.append(match if claim is None else replace(match, claim=claim))
            if len(found) % TURN == 0:
                await asyncio.sleep(0)  # let waiting log posts and requests be handled
        return found

    async def _ended(self, server_ids: Sequence[str], known: Mapping[str, WallCard]) -> dict[str, EndedMatch]:
        before = {server_id: known.get(server_id) for server_id in server_ids}
        final = {key: match for key, match in before.items() if isinstance(match, EndedMatch) and match.is_final}
        rulings = await current_of(self._db, list(final))  # all that still changes
        found = {key: match for key, match in final.items() if read_ruling(rulings.get(key)) == match.ruling}
        new = [server_id for server_id in server_ids if server_id not in found]
        rows = await summaries_of(self._db, new) if new else []
        for row, item in zip(rows, await read_items(self._db, rows), strict=True):
            found[row.id] = self._ended_match(row, item)
        return found

    @unavailable_on_outage
    async def totals(self, org_id: str) -> WallTotals:
        """Return the callbacks and regions that are shown beside the matches."""
        now_ms = self._clock.now_ms()
        query = CallbacksQuery(page_size=MAX_GIVEN_UP, state=CallbackState.GIVEN_UP, from_ms=now_ms - GIVEN_UP_MS)
        _, given_up = await callback_lists.list_page(self._db, org_id, query)
        return WallTotals(
            given_up=tuple(callback_item(row) for row in given_up),
            regions=tuple(await self._regions.views()),
        )

    @unavailable_on_outage
    async def label_progress(self, org_id: str, name: str, values: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return, for each value of the label `name`, how many recent matches are over, and how many there are.

        Matches that were canceled by the caller or an operator do not count.
        """
        since_ms = self._clock.now_ms() - PROGRESS_MS
        found = await progress_of(self._db, org_id, name, values, since_ms=since_ms)
        return dict.fromkeys(values, (0, 0)) | {group.value: (group.over, group.matches) for group in found}

    async def _progress(self, row: ServerRow, *, is_remote: bool) -> MatchProgress | None:
        is_known = is_remote or self._live.get(row.id) is not None
        return await read_progress(row, live=self._live, remote=self._remote) if is_known else None

    def _ended_match(self, row: ServerSummary, item: MatchItem) -> EndedMatch:
        return EndedMatch(
            **asdict(item),
            is_fast=self._is_fast(row.region),
            players=tuple(player.steam_id for player in listed_players(row.settings)),
            is_final=row.phase is ServerPhase.RELEASED,
            group=group_of_ended(item.reason),
        )

    def _is_fast(self, code: str) -> bool:
        region = self._regions.get(code)
        return region is not None and region.speed != 1.0

    def _match(self, row: ServerRow, live: MatchProgress | None, maps: StoredMaps | None, now_ms: int) -> WallMatch:
        settings = decoded_settings(row.settings)
        shown = _with_maps(stored_progress(row), maps) if live is None else live
        attention = attention_of(situation_of(row, live, now_ms, silent_ms=self._regions.silent.since_ms(row.id)))
        return WallMatch(
            **asdict(summarize(row, progress=shown)),
            is_fast=self._is_fast(row.region),
            match_type=settings.match_type,
            map_count=settings.map_count,
            team1=None if settings.team1 is None else settings.team1.name,
            team2=None if settings.team2 is None else settings.team2.name,
            # With the time of the last log line, the card would change with every line.
            progress=replace(shown, heard_ms=None),
            is_followed=live is not None or row.status is not ServerStatus.RUNNING,
            attention=attention,
            claim=None,
            group=group_of_open(shown.phase, shown.waiting_for),
        )


def merge_causes(matches: Sequence[WallMatch]) -> list[WallMatch]:
    """Return the matches without those reasons for attention that an alert about their region replaces."""
    affected: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for match in matches:
        for reason in match.attention:
            if reason.kind in REGIONAL:
                affected[match.region, reason.kind].add(match.server_id)
    found = {key for key, ids in affected.items() if len(ids) >= REGIONAL[key[1]]}
    return [_without(match, found) for match in matches] if found else list(matches)


def _without(match: WallMatch, found: Collection[tuple[str, str]]) -> WallMatch:
    kept = tuple(reason for reason in match.attention if (match.region, reason.kind) not in found)
    return match if kept == match.attention else replace(match, attention=kept)


def _claimed(match: EndedMatch, claim: MatchClaim | None) -> EndedMatch:
    return match if match.claim == claim else replace(match, claim=claim)


def _place(card: WallCard) -> tuple[int, int, str]:
    """Return the sort key of a card: open matches in the order of their creation, ended matches newest first."""
    number = card.created_at_ms if isinstance(card, WallMatch) else -card.since_ms
    return place_of(card.group), number, card.server_id


def _with_maps(progress: MatchProgress, maps: StoredMaps | None) -> MatchProgress:
    """Return the progress with the stored state of the maps. `maps` is None if the match is not running."""
    if maps is None:
        return progress
    loaded = next((state for state in maps.maps if state.number == maps.map_number), None)
    if maps.series_score is not None:
        progress = replace(progress, maps_won=(maps.series_score.team1, maps.series_score.team2))
    if loaded is None:
        return progress
    score = None if loaded.score is None else (loaded.score.team1, loaded.score.team2)
    return replace(progress, map_name=loaded.name, map_number=loaded.number, score=score)
