"""A match appends its events to the stream of its organization once, in order, also across crashes and cancellations."""

from __future__ import annotations

import json
from typing import Any

from matchpod.ports import Database
from matchpod.storage import history
from matchpod.storage import organization_events as stored_events
from tests.contract import databases
from tests.contract.world import World

harness = databases.mostly_sqlite_harness

ORG = "org_1"


async def events_of(db: Database, server_id: str = "srv_1") -> list[dict[str, Any]]:
    stored = [json.loads(line) for _, line in await stored_events.read_after(db, ORG, 0, limit=10_000)]
    return [event for event in stored if event["serverId"] == server_id]


async def check_course(db: Database, server_id: str = "srv_1") -> None:
    """The events of a finished match are complete, and agree with its history."""
    running, live, *scores, ended, over = await events_of(db, server_id)
    (played,) = await history.maps_of(db, server_id)
    assert (running["type"], live["type"], ended["type"], over["type"]) == (
        "server_running",
        "map_live",
        "map_ended",
        "match_ended",
    )
    assert {event["type"] for event in scores} == {"score_changed"}
    assert running["ip"]
    assert live["mapName"] == "de_nuke"
    assert [event["roundNumber"] for event in scores] == list(range(1, len(scores) + 1))
    assert [sum(event["score"].values()) for event in scores] == list(range(1, len(scores) + 1))
    assert scores[-1]["score"] == ended["score"] == {"team1": played.team1_score, "team2": played.team2_score}
    assert ended["winner"] == played.winner
    assert {event["mapId"] for event in (live, *scores, ended)} == {played.id}
    assert (over["outcome"], over["reason"], over["status"]) == ("match_over", None, "stopped")
    for event in (running, live, *scores, ended, over):
        assert event["externalMatchId"] == "cup 1"
        assert event["at"].endswith("Z")


async def test_match_resumed_by_another_process_repeats_and_loses_no_event(db: Database, world: World) -> None:
    first = await world.live_match("one", external_match_id="cup 1")
    first.db.crashes_after = "INSERT INTO organization_events"  # committed, but it does not know
    await world.until(first.has_died, "the process died")
    await world.replace(first, "two")
    await world.outcome()
    await check_course(db)


async def test_match_whose_server_never_starts_only_ends(db: Database, world: World) -> None:
    world.start()
    await world.create(region="unknown")
    await world.outcome()
    (only,) = await events_of(db)
    assert (only["type"], only["reason"], only["status"]) == ("match_ended", "server_failed", "failed")
