"""A caller cancels a match while it ends by itself: outcome, callback, series and maps agree in every order of steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, NothingChangedError, Statement
from matchpod.service.end_match import MATCH_CANCELED, MATCH_OVER, end_match
from matchpod.service.history.rows import history_of, initial_history
from matchpod.service.match_log.fold import Fold
from matchpod.storage import history, map_events, outbox, servers
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.ended_matches import SERVER_NAME, SPEED, finalize_match, game_id, server_row, store
from tests.contract.history_checks import assert_final_history
from tests.contract.match_histories import insert_counted
from tests.contract.world import World
from tests.unit.service.match_log.test_fold import PLAYERS, RecordedMatch, row_of
from tests.unit.simulator.played_match import mode_settings

harness = databases.sqlite_harness

DEATHMATCH = mode_settings(MatchType.DEATHMATCH, dm_round_minutes=1.0)
WINGMAN = mode_settings(
    MatchType.WINGMAN, max_rounds=4, team1=TeamRoster("Alpha", PLAYERS[:2]), team2=TeamRoster("Beta", PLAYERS[2:])
)
MODES = pytest.mark.parametrize("settings", [DEATHMATCH, WINGMAN], ids=["deathmatch", "wingman"])


@cache
def recorded(settings: GameSettings) -> RecordedMatch:
    played = RecordedMatch(settings)
    assert played.play()
    return played


def folded(row: ServerRow, settings: GameSettings) -> Fold:
    fold = Fold.begin(row, SPEED)
    for entry in recorded(settings).entries:
        fold.apply(entry)
    return fold


class Race:
    """A running match whose log ends it, and the two transactions that can end it."""

    def __init__(self, db: Database, settings: GameSettings) -> None:
        self.db = db
        self.settings = settings
        self.entries = recorded(settings).entries
        self.row = row_of(settings, game_id=game_id("srv_1"), callback_url="https://caller.example/")
        self.now_ms = self.entries[-1].received_ms + 1

    async def create(self) -> None:
        statements = insert_counted(initial_history(self.row, self.settings, SERVER_NAME))
        await servers.create(self.db, self.row, idempotency=None, also=statements)

    async def store(self, start: int, end: int) -> None:
        await store(self.db, self.entries[start:end])

    async def cancel(self) -> None:
        """The transaction of the caller, who has read the row some time before."""
        outcome = Outcome(at_ms=self.now_ms, reason=CancelReason.CANCELED_BY_USER)
        await self.db.write(end_match(self.row, outcome, fence=None, callback_id="cb_caller"))

    async def finish(self) -> None:
        """The transaction of the runner, which has applied the whole log."""
        fold = folded(self.row, self.settings)
        final = history_of(self.row, fold.match, server_name=SERVER_NAME, is_final=True)
        outcome = Outcome(at_ms=self.now_ms)
        await self.db.write(
            end_match(
                self.row, outcome, result=fold.result(), fence=self.row.fence, callback_id="cb_runner", final=final
            )
        )

    async def release(self) -> None:
        await finalize_match(self.db, await server_row(self.db, self.row.id), self.now_ms)

    async def check(self, status: MapStatus) -> None:
        kind = MATCH_OVER if status is MapStatus.FINISHED else MATCH_CANCELED
        outcome, callback = (
            await outbox.outcome_of(self.db, self.row.id),
            await outbox.callback_of(self.db, self.row.id),
        )
        assert outcome is not None
        assert callback is not None
        assert (outcome.kind, outcome.result is not None) == (kind, kind == MATCH_OVER)
        assert json.loads(callback.body)["eventType"] == kind
        (only,) = await history.maps_of(self.db, self.row.id)
        assert (only.status, only.winner is not None) == (status, self.has_winner(status))
        series = await history.series_of(self.db, self.row.id)
        assert (series is not None) is self.settings.match_type.has_series
        if series is not None:
            is_finished = status is MapStatus.FINISHED
            assert (series.status, series.winner_team is not None) == (status, is_finished)
            assert series.team1_maps_won + series.team2_maps_won == is_finished

    def has_winner(self, status: MapStatus) -> bool:
        return status is MapStatus.FINISHED and self.settings.match_type.has_series


def last_entry(settings: GameSettings) -> int:
    """The index of the entry that ends the match."""
    fold = Fold.begin(row_of(settings), SPEED)
    for index, entry in enumerate(recorded(settings).entries):
        fold.apply(entry)
        if fold.is_over:
            return index
    raise AssertionError("the log does not end the match")


@MODES
@pytest.mark.parametrize("stored", [-20, 0, 1])
async def test_cancellation_that_is_recorded_first_wins(db: Database, settings: GameSettings, stored: int) -> None:
    """With the end of the match stored or not, and if it is stored after the cancellation."""
    race, last = Race(db, settings), last_entry(settings)
    await race.create()
    await race.store(0, last + stored)
    await race.cancel()
    await race.check(MapStatus.CANCELLED)
    with pytest.raises(NothingChangedError):
        await race.finish()
    await race.check(MapStatus.CANCELLED)
    await race.store(last + stored, len(race.entries))
    await race.release()
    await race.check(MapStatus.CANCELLED)
    await assert_final_history(db, await server_row(db, race.row.id), SPEED)
    (only,) = await history.maps_of(db, race.row.id)
    items = await map_events.read_after(db, only.id, 0, limit=100_000)
    assert [json.loads(line)["status"] for _, line in items if b'"map_end"' in line] == ["cancelled"]


@MODES
async def test_natural_end_that_is_recorded_first_wins(db: Database, settings: GameSettings) -> None:
    race = Race(db, settings)
    await race.create()
    await race.store(0, len(race.entries))
    await race.finish()
    with pytest.raises(NothingChangedError):
        await race.cancel()
    await race.check(MapStatus.FINISHED)
    await race.release()
    await race.check(MapStatus.FINISHED)


async def test_cancellation_between_the_end_of_a_match_and_its_record_wins(db: Database, world: World) -> None:
    ends: list[Sequence[Statement]] = []

    async def write_after_the_caller(statements: Sequence[Statement]) -> None:
        if not ends and any("INTO outcomes" in one.sql for one in statements):
            ends.append(statements)
            await world.cancel()

    world.start().db.before_write = write_after_the_caller
    await world.create()
    outcome = await world.outcome()
    assert ends, "the match has ended by itself"
    assert outcome.reason == CancelReason.CANCELED_BY_USER
    (only,) = await history.maps_of(db, "srv_1")
    assert (only.status, only.winner) == (MapStatus.CANCELLED, None)
    assert only.started_at_ms is not None
    assert (await world.row()).phase is ServerPhase.RELEASED
