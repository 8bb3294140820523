"""`matchpod callbacks`: list and redeliver callbacks, on a SQLite database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli import create_app
from matchpod.ports import Database, Delivery
from matchpod.storage import organizations, outbox
from matchpod.storage.migrate import migrate
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.rows import insert
from tests.vaults import VAULT

AT_MS = 1_800_000_000_000


def run(*args: str) -> Result:
    return CliRunner().invoke(create_app("callbacks"), ["callbacks", *args])


def on_database(folder: Path, work: Callable[[Database], Awaitable[None]]) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(folder / "matchpod.sqlite3")
        try:
            await migrate(db, VAULT.seal)
            await work(db)
        finally:
            await db.close()

    asyncio.run(main())


async def attempt(db: Database, name: str, number: int, status: int | None, *, is_last: bool) -> None:
    delivery = Delivery(status=status, duration_ms=31, error=None if status else "refused")
    next_at_ms = None if is_last else AT_MS + 5_000
    await db.write(outbox.record_attempt(name, delivery, number=number, at_ms=AT_MS, next_at_ms=next_at_ms))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two organizations: acme has one callback in each state, zeta a waiting one."""
    monkeypatch.setenv("MATCHPOD_DATA_DIR", str(tmp_path))

    async def fill(db: Database) -> None:
        for org_id, name in (("org_1", "acme"), ("org_2", "zeta")):
            await organizations.create(
                db, Organization(id=org_id, name=name, webhook_secret=b"sealed", created_at_ms=1)
            )
        for number, name in enumerate(("cb_waiting", "cb_delivered", "cb_given_up", "cb_zeta")):
            row = CallbackRow(
                id=name, server_id=f"srv_{number}", org_id="org_2" if name == "cb_zeta" else "org_1",
                url="https://caller.example/", body=b"{}", created_at_ms=AT_MS + number, next_at_ms=AT_MS,
            )  # fmt: skip
            await db.write([insert("callbacks", row)])
        await attempt(db, "cb_delivered", 1, 200, is_last=True)
        await attempt(db, "cb_given_up", 1, 503, is_last=False)
        await attempt(db, "cb_given_up", 2, None, is_last=True)

    on_database(tmp_path, fill)
    return tmp_path


def ids(done: Result) -> list[str]:
    assert done.exit_code == 0, done.stderr
    return [callback["callbackId"] for callback in json.loads(done.stdout)]


@pytest.mark.usefixtures("folder")
def test_callbacks_are_listed_newest_first_and_filtered_by_organization_and_state() -> None:
    assert ids(run("list", "--json")) == ["cb_zeta", "cb_given_up", "cb_delivered", "cb_waiting"]
    assert ids(run("list", "--json", "--limit", "1")) == ["cb_zeta"]
    assert ids(run("list", "--json", "--org", "acme")) == ["cb_given_up", "cb_delivered", "cb_waiting"]
    for state in ("waiting", "delivered", "given_up"):
        assert ids(run("list", "--json", "--org", "acme", "--state", state)) == [f"cb_{state}"]


@pytest.mark.usefixtures("folder")
def test_listed_callback_includes_its_attempts() -> None:
    (callback,) = json.loads(run("list", "--json", "--state", "given_up").stdout)
    assert callback == {
        "callbackId": "cb_given_up",
        "organization": "acme",
        "serverId": "srv_2",
        "url": "https://caller.example/",
        "state": "given_up",
        "createdAt": "2027-01-15T08:00:00.002Z",
        "nextAttemptAt": None,
        "attempts": [
            {"number": 1, "at": "2027-01-15T08:00:00.000Z", "status": 503, "durationMs": 31, "error": None},
            {"number": 2, "at": "2027-01-15T08:00:00.000Z", "status": None, "durationMs": 31, "error": "refused"},
        ],
    }


@pytest.mark.usefixtures("folder")
def test_table_has_a_line_per_callback() -> None:
    done = run("list")
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["id", "state", "created", "organization", "server", "url", "attempts"]
    assert [line.split()[0] for line in lines] == ["cb_zeta", "cb_given_up", "cb_delivered", "cb_waiting"]
    assert "1: 503 in 31 ms; 2: no reply in 31 ms (refused)" in lines[1]
    assert lines[3].rstrip().endswith(" -")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "args", [("list", "--org", "unknown"), ("redeliver", "cb_none"), ("list", "--state", "lost"), ("redeliver",)]
)
def test_invalid_arguments_give_exit_code_2(args: tuple[str, ...]) -> None:
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.usefixtures("folder")
def test_callback_id_that_is_not_utf8_is_unknown() -> None:
    done = run("redeliver", "msg_\udcff")
    assert (done.exit_code, done.stderr) == (2, "matchpod: There is no callback msg_\ufffd.\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["cb_delivered", "cb_given_up", "cb_waiting"])
def test_redelivering_makes_a_callback_due(name: str) -> None:
    done = run("redeliver", name)
    assert done.exit_code == 0
    assert name in ids(run("list", "--json", "--state", "waiting"))
