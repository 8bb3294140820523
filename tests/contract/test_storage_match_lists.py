"""The list of servers equals a filtered and sorted list of all rows, on every page and in either direction."""

from __future__ import annotations

import itertools
import random

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.labels import Label
from matchpod.core.outcome import Outcome
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.server_status import ServerPhase, ServerStatus, status_of
from matchpod.core.views.marks import encode_marks, read_marks
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database
from matchpod.service.end_match import end_match
from matchpod.storage import server_labels, servers
from matchpod.storage.history_counts import DAY_MS
from matchpod.storage.match_lists import list_matches
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.effort import some_of
from tests.server_rows import server_row
from tests.vaults import stored_tokens

harness = databases.harness

ORG = "org_1"
FIRST_MS = 20_000 * DAY_MS
DAYS = 4
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"event": "finals"},
    {"event": "finals", "table": "1"},
    {"event": "semi", "table": "1"},
)
RUNNING = (PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.LIVE, PublicPhase.PAUSED)


def server(rng: random.Random, number: int, org_id: str = ORG) -> ServerRow:
    phase = rng.choice([ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING])
    status = status_of(phase)
    assert status is not None
    return server_row(
        f"srv_{rng.randrange(10_000)}_{number}",
        org_id=org_id,
        region=rng.choice(["eu", "us"]),
        phase=phase,
        status=status,
        match_phase=rng.choice(RUNNING) if phase is ServerPhase.RUNNING else PublicPhase.ALLOCATING,
        external_match_id=rng.choice([None, "cup", "league"]),
        **stored_tokens(f"log {org_id} {number}", f"report {org_id} {number}"),
        marks=encode_marks(LABELS[number % len(LABELS)], is_simulated=False),
        created_at_ms=FIRST_MS + rng.randrange(6) * DAYS * DAY_MS // 6,  # many at the same time
    )


async def store(db: Database, *, seed: int, count: int) -> list[ServerRow]:
    """Store servers, half of which have ended, and some of another organization; return ours as stored."""
    rng = random.Random(seed)
    rows = [server(rng, number) for number in range(count)]
    others = [server(rng, number, "org_2") for number in range(3)]
    for number, row in enumerate([*rows, *others]):
        labels = server_labels.insert(row.org_id, row.id, row.created_at_ms, labels_of(row))
        await servers.create(db, row, idempotency=None, also=labels)
        if rng.random() < 0.5:
            reason = rng.choice([CancelReason.CANCELED_BY_USER, CancelReason.SERVER_LOST])
            outcome = Outcome(at_ms=FIRST_MS + 1, reason=reason)
            await db.write(end_match(row, outcome, fence=None, callback_id=f"cb_{number}"))
    stored = [await servers.get(db, row.id) for row in rows]
    return [row for row in stored if row is not None]


def labels_of(row: ServerRow) -> dict[str, str]:
    return read_marks(row.marks).labels or {}


async def test_dates_before_1970_count_like_no_date(db: Database) -> None:
    rows = await store(db, seed=5, count=9)
    for query in (
        MatchListQuery(from_ms=-62_135_596_800_000, before_ms=FIRST_MS + 100 * DAY_MS),
        MatchListQuery(from_ms=-1, before_ms=0),
    ):
        total, listed = await list_matches(db, ORG, query)
        assert [row.id for row in listed] == expected(rows, query)
        assert total == len(expected(rows, query))


def expected(rows: list[ServerRow], query: MatchListQuery) -> list[str]:
    selected = [
        row
        for row in rows
        if query.status in (None, row.status)
        and query.phase in (None, row.match_phase)
        and query.region in (None, row.region)
        and query.external_match_id in (None, row.external_match_id)
        and all(labels_of(row).get(label.name) == label.value for label in query.labels)
        and (query.from_ms is None or row.created_at_ms >= query.from_ms)
        and (query.before_ms is None or row.created_at_ms < query.before_ms)
    ]
    return [row.id for row in sorted(selected, key=lambda row: (-row.created_at_ms, row.id))]


async def all_ids(db: Database, query: MatchListQuery, deep_offset: int) -> list[str]:
    """Read all pages; the total on each of them must be the number of all rows."""
    ids: list[str] = []
    totals = set()
    for page in itertools.count(1):
        total, rows = await list_matches(db, ORG, msgspec.structs.replace(query, page=page), deep_offset=deep_offset)
        totals.add(total)
        ids += [row.id for row in rows]
        if len(rows) < query.page_size:
            break
    assert totals == {len(ids)}
    return ids


async def test_pages_of_every_filter_add_up_to_all_matching_servers(db: Database) -> None:
    rows = await store(db, seed=7, count=40)
    statuses: list[tuple[ServerStatus | None, PublicPhase | None]] = [
        (None, None),
        *((status, None) for status in ServerStatus),
        *((None, phase) for phase in (*RUNNING, PublicPhase.ALLOCATING, PublicPhase.ENDED)),
        (ServerStatus.RUNNING, PublicPhase.LIVE),
        (ServerStatus.FAILED, PublicPhase.ENDED),
        (ServerStatus.STOPPED, PublicPhase.LIVE),
    ]
    times = [(None, None), (FIRST_MS + DAY_MS // 2, FIRST_MS + 3 * DAY_MS)]
    finals, first = Label("event", "finals"), Label("table", "1")
    kinds: list[tuple[str | None, str | None, tuple[Label, ...]]] = [
        (None, None, ()),
        ("eu", None, ()),
        ("us", "cup", ()),
        (None, "league", ()),
        (None, None, (finals,)),
        ("eu", None, (finals,)),
        (None, None, (finals, first)),
        (None, "cup", (first,)),
    ]
    filters = itertools.product(statuses, times, kinds)
    for (status, phase), (from_ms, before_ms), (region, external_id, labels) in some_of(filters, 60):
        query = MatchListQuery(
            page_size=7,
            status=status,
            phase=phase,
            region=region,
            external_match_id=external_id,
            labels=labels,
            from_ms=from_ms,
            before_ms=before_ms,
        )
        assert await all_ids(db, query, 5) == expected(rows, query), query
