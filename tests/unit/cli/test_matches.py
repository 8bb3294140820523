"""`matchpod match`, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli.matches import app
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, Delivery
from matchpod.service.conclusion import Ending, conclude
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import outbox, servers
from matchpod.storage.migrate import migrate
from matchpod.storage.servers import ServerRow
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office

office = offices.office

SECRETS = ("tok-log", "tok-report", "sealed")


def server(name: str, **fields: object) -> ServerRow:
    row = ServerRow(
        id=name,
        game_id="5f0c",
        org_id="org_1",
        region="eu",
        phase=ServerPhase.ALLOCATING,
        status=ServerStatus.ALLOCATING,
        settings=b'{"map":"de_dust2"}',
        rcon_password=b"sealed",
        log_token=f"tok-log {name}",
        report_token=f"tok-report {name}",
        plugin_match_id=1,
        created_at_ms=1_770_000_000_000,
        next_at_ms=0,
    )
    return msgspec.structs.replace(row, **fields)


def on_database(office: Office, work: Callable[[Database], Awaitable[None]]) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(office.data_dir / DATABASE_FILE)
        try:
            await migrate(db)
            await work(db)
        finally:
            await db.close()

    asyncio.run(main())


@pytest.fixture
def busy(office: Office) -> Office:
    """Two matches: one goes on, one ended and its caller did not answer."""

    async def fill(db: Database) -> None:
        running = {"phase": ServerPhase.RUNNING, "status": ServerStatus.RUNNING, "running_at_ms": 1_770_000_060_000}
        ended = server("srv_1", external_match_id="cup", callback_url="https://example.net/")
        await servers.create(db, ended, idempotency=None)
        await servers.create(db, server("srv_2", **running, ip="10.0.0.1", port=27015), idempotency=None)
        at_ms = 1_770_000_120_000
        await db.write(conclude(ended, Ending(reason="server_lost"), fence=None, now_ms=at_ms, callback_id="msg_1"))
        for number, made in enumerate((Delivery(status=500), Delivery(error="no answer\x1b[2J")), start=1):
            await db.write(
                outbox.attempted(
                    "msg_1",
                    number=number,
                    at_ms=at_ms,
                    status=made.status,
                    duration_ms=12,
                    error=made.error,
                    next_at_ms=at_ms if number == 1 else None,
                    delivered=False,
                )
            )

    on_database(office, fill)
    return office


def test_matches_are_listed_the_newest_first(busy: Office) -> None:
    assert [one["serverId"] for one in busy.listed(app, "list")] == ["srv_2", "srv_1"]
    head, newest, oldest = busy.done(app, "list").splitlines()
    assert head.split() == ["server", "status", "region", "created", "ended", "external", "id"]
    assert newest.split() == ["srv_2", "running", "eu", "2026-02-02", "02:40", "-", "-"]
    assert oldest.split() == ["srv_1", "failed", "eu", "2026-02-02", "02:40", "2026-02-02", "02:42", "cup"]


def test_a_listing_can_be_narrowed(busy: Office) -> None:
    assert [one["serverId"] for one in busy.listed(app, "list", "--status", "failed")] == ["srv_1"]
    assert [one["serverId"] for one in busy.listed(app, "list", "--limit", "1")] == ["srv_2"]
    assert busy.run(app, "list", "--status", "lost").exit_code == 2
    assert busy.run(app, "list", "--limit", "0").exit_code == 2


def test_a_match_is_shown_with_its_end_and_its_callback(busy: Office) -> None:
    page = busy.done(app, "show", "srv_1")
    assert "match_canceled, server_lost at 2026-02-02T02:42:00.000Z" in page
    assert "msg_1 to https://example.net/: given up" in page
    assert "status 500  12 ms" in page
    assert r"no answer\x1b[2J" in page
    shown = json.loads(busy.done(app, "show", "srv_1", "--json"))
    assert shown["settings"] == {"map": "de_dust2"}
    assert shown["outcome"]["reason"] == "server_lost"
    assert [one["status"] for one in shown["callback"]["attempts"]] == [500, None]


def test_a_match_that_goes_on_has_no_end(busy: Office) -> None:
    shown = json.loads(busy.done(app, "show", "srv_2", "--json"))
    assert (shown["server"]["ip"], shown["outcome"], shown["callback"]) == ("10.0.0.1", None, None)
    assert "outcome" not in busy.done(app, "show", "srv_2")


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["show", "srv_1"], ["show", "srv_2", "--json"]])
def test_no_secret_is_shown(busy: Office, words: list[str]) -> None:
    page = busy.done(app, *words)
    assert not [secret for secret in SECRETS if secret in page]


def test_an_operator_cancels_a_match_once(busy: Office) -> None:
    assert busy.done(app, "cancel", "srv_2") == "The match on srv_2 is canceled; its caller wanted no callback."
    shown = json.loads(busy.done(app, "show", "srv_2", "--json"))
    assert (shown["server"]["status"], shown["server"]["phase"]) == ("stopped", "ending")
    assert shown["outcome"]["reason"] == "canceled_by_operator"
    again = busy.run(app, "cancel", "srv_2")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == "matchpod: The match on srv_2 has already ended.\n"


def test_the_caller_of_a_canceled_match_is_told(office: Office) -> None:
    async def fill(db: Database) -> None:
        await servers.create(db, server("srv_1", callback_url="https://example.net/"), idempotency=None)

    on_database(office, fill)
    assert office.done(app, "cancel", "srv_1").endswith("; its caller is told.")
    assert ": next attempt at " in office.done(app, "show", "srv_1")

    async def deliver(db: Database) -> None:
        (waiting,) = await outbox.list_callbacks(db, org_id=None, state=None, limit=2)
        await db.write(
            outbox.attempted(
                waiting.id, number=1, at_ms=0, status=204, duration_ms=1, error=None, next_at_ms=None, delivered=True
            )
        )

    on_database(office, deliver)
    assert ": delivered at 1970-01-01T00:00:00.000Z" in office.done(app, "show", "srv_1")


@pytest.mark.parametrize("word", ["show", "cancel"])
def test_an_unknown_match_is_bad_input(office: Office, word: str) -> None:
    assert office.refused(app, word, "srv_9") == "There is no server srv_9."
