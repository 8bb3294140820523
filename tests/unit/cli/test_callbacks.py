"""`matchpod callbacks`: list and redeliver callbacks, on a SQLite database."""

from __future__ import annotations

import json

import pytest
from typer.testing import Result

from matchpod.cli import create_app
from matchpod.ports import Database, Delivery
from matchpod.storage import organizations, outbox
from matchpod.storage.organizations import Organization
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.rows import insert
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database

AT_MS = 1_800_000_000_000


def run(runner: CommandRunner, *args: str) -> Result:
    return runner.invoke(create_app("callbacks"), "callbacks", *args)


async def attempt(db: Database, name: str, number: int, status: int | None, *, is_last: bool) -> None:
    delivery = Delivery(status=status, duration_ms=31, error=None if status else "refused")
    next_at_ms = None if is_last else AT_MS + 5_000
    await db.write(outbox.record_attempt(name, delivery, number=number, at_ms=AT_MS, next_at_ms=next_at_ms))


@pytest.fixture
def filled(runner: CommandRunner) -> CommandRunner:
    """Two organizations: acme has one callback in each state, zeta a waiting one."""

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

    on_database(runner, fill)
    return runner


def ids(done: Result) -> list[str]:
    assert done.exit_code == 0, done.stderr
    return [callback["callbackId"] for callback in json.loads(done.stdout)]


def test_callbacks_are_listed_newest_first_and_filtered_by_organization_and_state(filled: CommandRunner) -> None:
    assert ids(run(filled, "list", "--json")) == ["cb_zeta", "cb_given_up", "cb_delivered", "cb_waiting"]
    assert ids(run(filled, "list", "--json", "--limit", "1")) == ["cb_zeta"]
    assert ids(run(filled, "list", "--json", "--org", "acme")) == ["cb_given_up", "cb_delivered", "cb_waiting"]
    for state in ("waiting", "delivered", "given_up"):
        assert ids(run(filled, "list", "--json", "--org", "acme", "--state", state)) == [f"cb_{state}"]


def test_listed_callback_includes_its_attempts(filled: CommandRunner) -> None:
    (callback,) = json.loads(run(filled, "list", "--json", "--state", "given_up").stdout)
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


def test_table_has_a_line_per_callback(filled: CommandRunner) -> None:
    done = run(filled, "list")
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["id", "state", "created", "organization", "server", "url", "attempts"]
    assert [line.split()[0] for line in lines] == ["cb_zeta", "cb_given_up", "cb_delivered", "cb_waiting"]
    assert "1: 503 in 31 ms; 2: no reply in 31 ms (refused)" in lines[1]
    assert lines[3].rstrip().endswith(" -")


@pytest.mark.parametrize(
    "args", [("list", "--org", "unknown"), ("redeliver", "cb_none"), ("list", "--state", "lost"), ("redeliver",)]
)
def test_invalid_arguments_give_exit_code_2(filled: CommandRunner, args: tuple[str, ...]) -> None:
    done = run(filled, *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


def test_callback_id_that_is_not_utf8_is_unknown(filled: CommandRunner) -> None:
    done = run(filled, "redeliver", "msg_\udcff")
    assert (done.exit_code, done.stderr) == (2, "matchpod: There is no callback msg_\ufffd.\n")


@pytest.mark.parametrize("name", ["cb_delivered", "cb_given_up", "cb_waiting"])
def test_redelivering_makes_a_callback_due(filled: CommandRunner, name: str) -> None:
    done = run(filled, "redeliver", name)
    assert done.exit_code == 0
    assert name in ids(run(filled, "list", "--json", "--state", "waiting"))
