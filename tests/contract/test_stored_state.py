"""Live matches of the last release: today's code has the numbers that it published, and drives them to their end."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.effects import CancelReason
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.replay import open_match
from matchpod.storage import raw_log, servers
from matchpod.storage.migrate import migrate
from matchpod.storage.servers import LEASE_MS
from tests.contract import live_database
from tests.contract.same_numbers import current_numbers
from tests.contract.world import SPEED, open_world
from tests.vaults import VAULT

REPLAYED = "snapshot rejected, replaying the log"


def as_json(value: object) -> object:
    return json.loads(msgspec.json.encode(value))


REVISED = {"deaths", "kdRatio", "firstDeaths", "entryDeaths", "mvps"}
"""Numbers that the last release counted by other rules: a death by the bomb after the decision, unknown MVPs."""


def without_new_fields(value: object, published: object) -> object:
    """Return a value without the fields that the old version did not publish."""
    if isinstance(value, dict) and isinstance(published, dict):
        kept = {name: without_new_fields(value[name], old) for name, old in published.items() if name in value}
        return {name: published[name] if name in REVISED else one for name, one in kept.items()}
    if isinstance(value, list) and isinstance(published, list) and len(value) == len(published):
        return [without_new_fields(new, old) for new, old in zip(value, published, strict=True)]
    return value


def test_live_matches_of_the_last_release_have_the_published_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    published = live_database.published()

    async def main() -> None:
        db = await SqliteDatabase.open(live_database.unpack(tmp_path))
        await migrate(db, VAULT.seal)
        for name in live_database.MATCHES:
            row = await servers.get(db, name)
            assert row is not None
            opened, seq = await open_match(db, row, SPEED, turns=FoldTurns())
            for entry in await raw_log.read_after(db, name, seq, limit=10_000):
                opened.apply(entry)
            numbers = as_json(current_numbers(opened.match))
            assert without_new_fields(numbers, published[name]) == published[name]
        await db.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    replayed = [REPLAYED] * len(live_database.MATCHES)
    # Right after a release, the types are still those of its snapshots.
    assert [record.message for record in caplog.records] in ([], replayed)


async def test_matches_of_the_last_release_are_driven_to_their_end(tmp_path: Path) -> None:
    """Their servers no longer exist: the match that was over has its result, the others are canceled as server_lost."""
    published = live_database.published()
    db = await SqliteDatabase.open(live_database.unpack(tmp_path))
    await migrate(db, VAULT.seal)
    async with open_world(db) as world:
        world.clock.at_ms = msgspec.convert(published["now_ms"], int) + LEASE_MS
        world.start("new version")
        over = await world.outcome(live_database.PLAYED, is_same_version=False)
        assert over.result is not None
        expected = published[live_database.PLAYED]
        assert without_new_fields(json.loads(over.result), expected) == expected
        for name in live_database.MATCHES:
            assert (await world.outcome(name, is_same_version=False)).reason == CancelReason.SERVER_LOST
    await db.close()
