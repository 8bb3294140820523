"""Steps of the runner: actions on a match, from their entries to their rows."""

from __future__ import annotations

import logging

import msgspec
import pytest

from matchpod.core.match.actions import MAX_ACTIONS, ActionRequest, ActionState, ActionType
from matchpod.ports import Database, Statement
from matchpod.service.match_log.entries import EntryKind, NewEntry, action_body, statements_of
from matchpod.service.runner import run
from matchpod.storage import match_actions
from matchpod.storage.match_actions import ActionRow
from tests.contract import databases
from tests.contract.driven_matches import World, open_world

harness = databases.sqlite_harness


def stored(world: World, action: ActionRequest) -> list[Statement]:
    """The statements that store a request, as the service does."""
    now_ms = world.clock.now_ms()
    row = ActionRow(
        id=action.id,
        server_id="srv_1",
        requested_at_ms=now_ms,
        changed_at_ms=now_ms,
        created_by="key_1",
        request=msgspec.json.encode(action),
    )
    entry = NewEntry(kind=EntryKind.ACTION, received_ms=now_ms, body=action_body(action))
    return [*statements_of("srv_1", entry), match_actions.insert(row)]


async def test_request_beyond_the_limit_of_actions_fails_in_its_row(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=run.__name__)
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_driven()
        asked = [
            ActionRequest(id=f"action_{number:03}", type=ActionType.EXTEND_JOIN, seconds=10)
            for number in range(MAX_ACTIONS + 1)
        ]
        await db.write([statement for action in asked for statement in stored(world, action)])
        process.supervisor.notify("srv_1")
        last = asked[-1].id

        async def has_ended() -> bool:
            found = await match_actions.get(db, "srv_1", last)
            return found is not None and found.state.is_final

        await world.until(has_ended, "the last action has ended", within_s=20.0)
        found = await match_actions.get(db, "srv_1", last)
        assert found is not None
        assert (found.state, found.detail) == (ActionState.FAILED, f"A match can have at most {MAX_ACTIONS} actions.")
        ended = [record for record in caplog.records if record.getMessage() in ("action done", "action failed")]
        assert [record.getMessage() for record in ended] == ["action done"] * MAX_ACTIONS + ["action failed"]
        assert [record.__dict__["action_id"] for record in ended] == [action.id for action in asked]
        await world.cancel(notified=process)
