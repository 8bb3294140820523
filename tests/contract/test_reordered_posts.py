"""A proxy forwards the log posts of a server out of order, or loses some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import cast

import msgspec

from matchpod.core.model import SeriesFormat
from matchpod.ports import Database
from matchpod.service.ingest.posts import Ingest, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.storage import raw_log
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, callback_fields, open_world
from tests.contract.same_result import assert_same_match

harness = databases.sqlite_harness

SEED = 5
BO3 = msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_inferno", "de_overpass"))


class _Proxy:
    """Answers posts at once, and forwards some only after the next one."""

    def __init__(self, ingest: Ingest, *, swaps: bool = True) -> None:
        self._ingest = ingest
        self._random = Random(SEED)
        self._swaps = swaps
        self._delayed: tuple[str, Mapping[str, str], bytes] | None = None
        self.match_file = ingest.match_file
        self.store_report = ingest.store_report
        self.store_shots = ingest.store_shots
        self.swapped = 0
        self.loses_next = False
        self.on_gap: Callable[[], None] | None = None

    async def store_log(self, token: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        if self.loses_next:
            self.loses_next = False
            return Receipt.STORED
        if self.on_gap is not None:
            self.on_gap()
            self.on_gap = None
        if self._swaps and self._delayed is None and self._random.random() < 0.5:
            self._delayed = (token, headers, body)
            return Receipt.STORED
        status = await self._ingest.store_log(token, headers, body)
        if self._delayed is not None:
            delayed, self._delayed = self._delayed, None
            await self._ingest.store_log(*delayed)
            self.swapped += 1
        return status


async def test_match_has_the_same_result_if_posts_are_swapped(db: Database) -> None:
    async with open_world(db) as undisturbed:
        undisturbed.start("undisturbed")
        await undisturbed.create("srv_undisturbed", seed=SEED, game=BO3)
        expected = callback_fields(await undisturbed.outcome("srv_undisturbed"))
    async with open_world(db) as world:
        process = world.start()
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        proxy = _Proxy(ingest)
        world.region.add_ingest(process.base, cast(Ingest, proxy))
        await world.create(seed=SEED, game=BO3)
        found = callback_fields(await world.outcome())
        assert proxy.swapped > 10
        assert_same_match(found, expected)


async def test_lost_post_delays_a_match_only_shortly(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        process.db.is_shared = False
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        proxy = _Proxy(ingest, swaps=False)
        world.region.add_ingest(process.base, cast(Ingest, proxy))
        await world.create(seed=SEED)
        await world.until_live()

        def pause() -> None:
            world.region.is_paused = True  # so that no other post ends the wait

        proxy.loses_next, proxy.on_gap = True, pause
        live = await world.until_driven()

        async def has_gap() -> bool:
            return world.region.is_paused and not live.fold.match.current_map.ledger.is_complete

        await world.until(has_gap, "the post after the lost one is read")
        assert await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)
        world.region.is_paused = False
        assert (await world.outcome()).kind == "match_over"
