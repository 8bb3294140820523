"""Between two maps, every view of a match shows the next map: live view, list, wall, page, overlay and stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import pytest

from matchpod.console.match_view import MatchScreen, MatchServices
from matchpod.console.overlay_view import OverlayView
from matchpod.console.rendering import fragment
from matchpod.console.wall import PARTS
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.core.views.wall_groups import WallGroup, group_of_open
from matchpod.ports import Database, Statement
from matchpod.service.history.recorder import Recorder
from matchpod.service.history.rows import initial_history
from matchpod.service.match_log.fold import Fold
from matchpod.service.reading.match_details import MatchDetails
from matchpod.service.reading.wall import Overview, WallMatch
from matchpod.storage import organization_events as stored_events
from matchpod.storage import servers
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.ended_matches import store
from tests.contract.match_histories import insert_counted
from tests.contract.parts import Parts
from tests.contract.test_access import START_MS
from tests.contract.test_matches import OWNER, Callers
from tests.unit.service.match_log.test_fold import recorded, row_of

harness = databases.mostly_sqlite_harness

GAME = "00000000-0000-0000-0000-000000000001"
MAPS = ("de_vertigo", "de_nuke", "de_inferno")


@cache
def entries_until(phase: PublicPhase) -> int:
    """The number of entries of the recorded series after which its second map is in this phase."""
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for number, entry in enumerate(recorded().entries, start=1):
        fold.apply(entry)
        if fold.match.map_number == 2 and fold.progress().phase is phase:
            return number
    raise AssertionError(f"the second map is never {phase}")


class Series:
    """A series that another process drives: its row, its log, and the history that is recorded of it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.row = row_of(recorded().settings, game_id=GAME, phase=ServerPhase.RUNNING, status=ServerStatus.RUNNING)
        self.fold = Fold.begin(self.row, 1.0)

    async def play(self, count: int) -> None:
        entries = recorded().entries[:count]
        await servers.create(
            self.db,
            self.row,
            idempotency=None,
            also=insert_counted(initial_history(self.row, self.fold.match.settings, "EU")),
        )
        await store(self.db, entries)
        streams = Parts(self.db).deps.streams
        recorder = Recorder(self.row, self.fold, db=self.db, write=self._write, streams=streams, server_name="EU")
        await recorder.begin()
        for entry in entries:
            self.fold.apply(entry)
        await recorder.write(entries[-1].received_ms)

    async def _write(self, statements: Sequence[Statement]) -> None:
        await self.db.write(statements)

    @property
    def won(self) -> dict[str, int]:
        return {"team1": self.fold.match.series_score[0], "team2": self.fold.match.series_score[1]}

    @property
    def maps(self) -> list[dict[str, Any]]:
        first = self.fold.match.maps[0]
        score = {"team1": first.team1_score, "team2": first.team2_score}
        zero = {"team1": 0, "team2": 0}
        return [
            {"name": MAPS[0], "number": 1, "status": "finished", "score": score, "winner": first.winner},
            *(
                {"name": MAPS[number - 1], "number": number, "status": "upcoming", "score": zero, "winner": None}
                for number in (2, 3)
            ),
        ]

    async def wall(self, *, max_remote: int = 1) -> WallMatch:
        parts = Parts(self.db, clock=ManualClock(recorded().entries[-1].received_ms))
        overview = Overview(
            db=self.db,
            clock=parts.clock,
            regions=parts.regions,
            live=parts.live,
            remote=parts.remote,
            max_remote=max_remote,
        )
        (found,) = (await overview.cards(self.row.org_id)).cards
        assert isinstance(found, WallMatch)
        return found


@databases.on_both
@pytest.mark.parametrize("phase", [PublicPhase.BETWEEN_MAPS, PublicPhase.STARTING])
async def test_server_and_list_show_the_next_map(db: Database, phase: PublicPhase) -> None:
    series, world = Series(db), Callers(db)
    await series.play(entries_until(phase))
    view = await world.matches.get(OWNER, series.row.id)
    match = json.loads(msgspec.json.encode(view.match))
    assert (view.phase, match["map"], match["mapNumber"]) == (phase, "de_nuke", 2)
    assert (match["score"], match["seriesScore"], match["maps"]) == ({"team1": 0, "team2": 0}, series.won, series.maps)
    assert all(player["kills"] == player["deaths"] == 0 for player in match["players"])
    page = await world.matches.server_list(OWNER, MatchListQuery())
    (item,) = json.loads(msgspec.json.encode(page))["items"]
    assert (item["mapNumber"], item["seriesScore"], item["maps"]) == (2, series.won, series.maps)


async def test_events_of_the_organization_have_the_score_of_the_series(db: Database) -> None:
    series = Series(db)
    await series.play(len(recorded().entries))
    stored = [json.loads(line) for _, line in await stored_events.read_after(db, series.row.org_id, 0, limit=1_000)]
    ended = [event for event in stored if event["type"] == "map_ended"]
    assert len(ended) == len(series.fold.match.maps) > 1
    assert ended[0]["maps"] == series.maps
    assert ended[-1]["seriesScore"] == series.won
    assert {one["status"] for one in ended[-1]["maps"]} == {"finished"}
    # The whole match was stored at once: earlier events still show what was known then.
    before = {"team1": 0, "team2": 0}
    for event in stored:
        if event["type"] == "map_live":
            statuses = [one["status"] for one in event["maps"]]
            assert statuses[event["mapNumber"] - 1] == "live"
            assert set(statuses[event["mapNumber"] :]) <= {"upcoming"}
        if event["type"] == "map_ended" and event["winner"] in before:
            before[event["winner"]] += 1
        assert event["seriesScore"] == before
        assert ("maps" in event) == (event["type"] != "score_changed")


async def test_ended_match_keeps_its_maps_in_the_list(db: Database) -> None:
    series, world = Series(db), Callers(db)
    await series.play(len(recorded().entries))
    (item,) = (await world.matches.server_list(OWNER, MatchListQuery())).items
    assert [one.number for one in item.maps] == [played.number for played in series.fold.match.maps]
    assert item.map_number == len(series.fold.match.maps)


@pytest.mark.parametrize("is_followed", [True, False])
async def test_wall_shows_the_next_map(db: Database, is_followed: bool) -> None:
    series = Series(db)
    await series.play(entries_until(PublicPhase.BETWEEN_MAPS))
    found = await series.wall(max_remote=int(is_followed))
    assert found.is_followed is is_followed
    text = fragment(PARTS, "card", found).decode()
    assert f"de_nuke · map 2 of 3 ({series.won['team1']}:{series.won['team2']})" in text
    assert text.count("<dd>0</dd>") == 2


async def test_wall_does_not_wait_for_players_who_are_all_here(db: Database) -> None:
    series = Series(db)
    await series.play(entries_until(PublicPhase.STARTING))
    found = await series.wall()
    text = fragment(PARTS, "card", found).decode()
    assert "</span>starting" in text
    assert "waiting" not in text
    assert group_of_open(found.progress.phase, found.progress.waiting_for) is WallGroup.IN_PLAY


async def test_page_and_overlay_show_the_next_map(db: Database) -> None:
    series, parts = Series(db), Parts(db, clock=ManualClock(START_MS))
    await series.play(entries_until(PublicPhase.BETWEEN_MAPS))
    services = MatchServices(
        details=MatchDetails(db=db, clock=parts.clock, regions=parts.regions, live=parts.live, remote=parts.remote),
        matches=parts.matches,
        actions=parts.actions,
        history=parts.history,
        now_ms=parts.clock.now_ms,
    )
    page, overlay = MatchScreen(services, OWNER, series.row.id), OverlayView(services, OWNER, series.row.id)
    await page.changes()
    heading = page.part("heading")
    assert '<b>0</b><span class="muted">:</span><b>0</b>' in heading
    assert f'<b>{series.won["team1"]}</b><span class="muted">:</span><b>{series.won["team2"]}</b>' in heading
    assert "de_nuke, map 2 of 3" in heading
    assert page.map_number == 2
    await overlay.changes()
    assert "de_nuke · map 2 of 3 · next map is loading" in overlay.part
    assert "<b>0</b><span>:</span><b>0</b>" in overlay.part
