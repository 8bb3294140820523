"""`matchpod match`: list, show and cancel matches."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli import actions
from matchpod.cli.matches import app
from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.marks import encode_marks
from matchpod.ports import Database, Delivery, Statement
from matchpod.service.end_match import end_match
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import outbox, raw_log, server_labels, servers
from matchpod.storage.migrate import migrate
from matchpod.storage.servers import ServerRow
from tests.server_rows import server_row
from tests.stored_demos import upload_demo
from tests.unit.cli.command_runner import CommandRunner
from tests.vaults import VAULT, stored_tokens

SECRETS = ("tok-log", "tok-report", "tok-query", "sealed")
RESULT = b'{"format":  "bo1"}'


def server(name: str, **fields: object) -> ServerRow:
    row = server_row(
        name,
        phase=ServerPhase.ALLOCATING,
        status=ServerStatus.ALLOCATING,
        settings=b'{"map":"de_dust2"}',
        rcon_password=b"sealed",
        **stored_tokens(f"tok-log {name}", f"tok-report {name}"),
        created_at_ms=1_770_000_000_000,
        next_at_ms=0,
    )
    return msgspec.structs.replace(row, **fields)


def on_database(runner: CommandRunner, work: Callable[[Database], Awaitable[None]]) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(runner.data_dir / DATABASE_FILE)
        try:
            await migrate(db, VAULT.seal)
            await work(db)
        finally:
            await db.close()

    asyncio.run(main())


@pytest.fixture
def busy(runner: CommandRunner) -> CommandRunner:
    """A command runner with two matches: one is running, one has ended and its callback failed."""

    async def fill(db: Database) -> None:
        running = {"phase": ServerPhase.RUNNING, "status": ServerStatus.RUNNING, "running_at_ms": 1_770_000_060_000}
        ended = server("srv_1", external_match_id="cup", callback_url="https://example.net/?key=tok-query")
        await servers.create(db, ended, idempotency=None)
        await servers.create(db, server("srv_2", **running, ip="10.0.0.1", port=27015), idempotency=None)
        at_ms = 1_770_000_120_000
        outcome = Outcome(at_ms=at_ms, reason=CancelReason.SERVER_LOST)
        await db.write(end_match(ended, outcome, fence=None, callback_id="msg_1"))
        failed = (Delivery(status=500, duration_ms=12), Delivery(duration_ms=12, error="timeout\x1b[2J"))
        for number, delivery in enumerate(failed, start=1):
            next_at_ms = at_ms if number == 1 else None
            await db.write(outbox.record_attempt("msg_1", delivery, number=number, at_ms=at_ms, next_at_ms=next_at_ms))

    on_database(runner, fill)
    return runner


def test_matches_are_listed_newest_first(busy: CommandRunner) -> None:
    assert [one["serverId"] for one in busy.json_output(app, "list")] == ["srv_2", "srv_1"]
    head, newest, oldest = busy.output(app, "list").splitlines()
    assert head.split() == ["server", "status", "region", "created", "ended", "external", "id"]
    assert newest.split() == ["srv_2", "running", "eu", "2026-02-02", "02:40", "-", "-"]
    assert oldest.split() == ["srv_1", "failed", "eu", "2026-02-02", "02:40", "2026-02-02", "02:42", "cup"]


def test_listing_can_be_filtered_and_limited(busy: CommandRunner) -> None:
    assert [one["serverId"] for one in busy.json_output(app, "list", "--status", "failed")] == ["srv_1"]
    assert [one["serverId"] for one in busy.json_output(app, "list", "--limit", "1")] == ["srv_2"]
    assert busy.invoke(app, "list", "--status", "lost").exit_code == 2
    assert busy.invoke(app, "list", "--limit", "0").exit_code == 2


def test_listing_can_be_filtered_by_labels(runner: CommandRunner) -> None:
    labels = {"srv_1": {"event": "finals", "table": "1"}, "srv_2": {"event": "finals"}, "srv_3": {}}

    async def fill(db: Database) -> None:
        for name, given in labels.items():
            row = server(name, marks=encode_marks(given, is_simulated=name == "srv_2"))
            also = server_labels.insert(row.org_id, row.id, row.created_at_ms, given)
            await servers.create(db, row, idempotency=None, also=also)

    def listed(*options: str) -> list[object]:
        given = [part for option in options for part in ("--label", option)]
        return [one["serverId"] for one in runner.json_output(app, "list", *given)]

    on_database(runner, fill)
    assert listed("event:finals") == ["srv_2", "srv_1"]
    assert listed("event:finals", "table:1") == ["srv_1"]
    assert listed("event:semi") == []
    shown = json.loads(runner.output(app, "show", "srv_1", "--json"))["server"]
    assert (shown["labels"], shown.get("simulated")) == (labels["srv_1"], None)
    assert "label        event: finals\n" in runner.output(app, "show", "srv_1")
    assert "simulated    True\n" in runner.output(app, "show", "srv_2")
    message = "--label must be the name of a label (1 to 32 of A-Z a-z 0-9 _ . -), a colon and its value, as in "
    assert runner.error(app, "list", "--label", "finals") == f"{message}event:finals, not 'finals'."


def test_ended_match_is_shown_with_its_outcome_and_callback(busy: CommandRunner) -> None:
    page = busy.output(app, "show", "srv_1")
    assert "match_canceled, server_lost at 2026-02-02T02:42:00.000Z" in page
    assert "msg_1 to https://example.net/?key=***: given up" in page
    assert "status 500  12 ms" in page
    assert r"timeout\x1b[2J" in page
    assert not re.search(r"^(maps|marks) ", page, re.MULTILINE), "each map has a line of its own"
    shown = json.loads(busy.output(app, "show", "srv_1", "--json"))
    assert shown["settings"] == {"map": "de_dust2"}
    assert (shown["server"]["phase"], shown["server"]["reason"]) == ("ended", "server_lost")
    assert shown["server"]["endedAt"] == "2026-02-02T02:42:00.000Z"
    assert [one["status"] for one in shown["callback"]["attempts"]] == [500, None]


def test_running_match_has_no_outcome(busy: CommandRunner) -> None:
    shown = json.loads(busy.output(app, "show", "srv_2", "--json"))
    assert (shown["server"]["ip"], shown["server"]["endedAt"], shown["callback"]) == ("10.0.0.1", None, None)
    assert "outcome" not in busy.output(app, "show", "srv_2")


@pytest.mark.parametrize("args", [["list"], ["list", "--json"], ["show", "srv_1"], ["show", "srv_2", "--json"]])
def test_no_secret_is_shown(busy: CommandRunner, args: list[str]) -> None:
    page = busy.output(app, *args)
    assert not [secret for secret in SECRETS if secret in page]


def test_match_can_be_canceled_only_once(busy: CommandRunner) -> None:
    assert busy.output(app, "cancel", "srv_2") == "The match on srv_2 is canceled; no callback was requested."
    shown = json.loads(busy.output(app, "show", "srv_2", "--json"))
    assert (shown["server"]["status"], shown["server"]["serverPhase"]) == ("stopped", "ending")
    assert shown["server"]["phase"] == "ended"
    assert shown["server"]["reason"] == "canceled_by_operator"
    again = busy.invoke(app, "cancel", "srv_2")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == "matchpod: The match on srv_2 has already ended.\n"


def test_canceling_a_match_sends_a_callback(runner: CommandRunner) -> None:
    async def fill(db: Database) -> None:
        await servers.create(db, server("srv_1", callback_url="https://example.net/"), idempotency=None)

    on_database(runner, fill)
    assert runner.output(app, "cancel", "srv_1").endswith("; a callback will be sent.")
    assert ": next attempt at " in runner.output(app, "show", "srv_1")

    async def deliver(db: Database) -> None:
        (waiting,) = await outbox.list_callbacks(db, org_id=None, state=None, limit=2)
        await db.write(
            outbox.record_attempt(waiting.id, Delivery(status=204, duration_ms=1), number=1, at_ms=0, next_at_ms=None)
        )

    on_database(runner, deliver)
    assert ": delivered at 1970-01-01T00:00:00.000Z" in runner.output(app, "show", "srv_1")


def test_result_is_printed_byte_for_byte(runner: CommandRunner) -> None:
    async def fill(db: Database) -> None:
        for name in ("srv_1", "srv_2", "srv_3"):
            await servers.create(db, server(name), idempotency=None)
        await db.write(end_match(server("srv_1"), Outcome(at_ms=1), result=RESULT, fence=None, callback_id="msg_1"))
        canceled = Outcome(at_ms=1, reason=CancelReason.SERVER_LOST)
        await db.write(end_match(server("srv_2"), canceled, fence=None, callback_id="msg_2"))

    on_database(runner, fill)
    assert runner.output(app, "result", "srv_1").encode() == RESULT
    reasons = {"srv_2": "it was canceled (server_lost)", "srv_3": "it has not ended"}
    for name, why in reasons.items():
        done = runner.invoke(app, "result", name)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"matchpod: The match on {name} has no result: {why}.\n"


def test_log_is_printed_as_it_was_received(runner: CommandRunner) -> None:
    posts = [b"L \xff\x00\n", *(b"L %d\n" % number for number in range(20))]

    async def fill(db: Database) -> None:
        await servers.create(db, server("srv_1"), idempotency=None)
        for post in posts:
            await db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=post))

    on_database(runner, fill)
    assert runner.invoke(app, "log", "srv_1").stdout_bytes == b"".join(posts)


@pytest.mark.parametrize("command", ["show", "cancel", "result", "log"])
def test_unknown_server_is_rejected_also_if_its_id_is_not_utf8(runner: CommandRunner, command: str) -> None:
    assert runner.error(app, command, "srv_9") == "There is no server srv_9."
    assert runner.error(app, command, "srv_\udcff") == "There is no server srv_\ufffd."


def test_ended_match_is_ruled_and_the_ruling_withdrawn(busy: CommandRunner) -> None:
    args = ("rule", "srv_1", "--winner", "team2", "--reason", "no-show", "--by", "Eva")
    on_database(busy, end_now)
    assert busy.output(app, *args).endswith(": team2 wins; no-show; decided by Eva.")
    assert busy.output(app, "rule", "srv_1", "--winner", "none").endswith(": void.")
    assert busy.output(app, "rule", "srv_1", "--withdraw") == "The ruling on srv_1 is withdrawn."
    assert busy.invoke(app, "rule", "srv_1", "--withdraw").stderr == "matchpod: There is no ruling on this match.\n"
    page = json.loads(busy.output(app, "show", "srv_1", "--json"))
    assert page["server"]["ruling"] is None
    assert [(one["winner"], one["withdrawnBy"]) for one in page["rulings"]] == [
        ("none", "command line"),
        ("team2", None),
    ]
    shown = busy.output(app, "show", "srv_1").splitlines()
    assert sum(line.startswith("ruling ") for line in shown) == 2
    assert [act[1:] for act in busy.acts()] == [
        ("command line", "match_ruled", "srv_1", "team2 wins; no-show; decided by Eva"),
        ("command line", "match_ruled", "srv_1", "void"),
        ("command line", "ruling_withdrawn", "srv_1", "void"),
    ]


async def end_now(db: Database) -> None:
    """Move the end of the match to now: rulings are allowed for 30 days."""
    now_ms = time.time_ns() // 1_000_000
    await db.write([Statement("UPDATE servers SET ended_at_ms = :now_ms WHERE id = 'srv_1'", {"now_ms": now_ms})])


def test_ruling_that_is_not_possible_is_rejected(busy: CommandRunner) -> None:
    for args in ([], ["--winner", "team1", "--withdraw"], ["--withdraw", "--by", "Eva"]):
        assert busy.error(app, "rule", "srv_1", *args) == "Give --winner, or --withdraw alone."
    assert busy.error(app, "rule", "srv_9", "--winner", "none") == "There is no server srv_9."
    assert busy.error(app, "rule", "srv_1", "--winner", "none", "--by", " ") == (
        "by must not start or end with whitespace."
    )
    late = busy.invoke(app, "rule", "srv_1", "--winner", "none")
    assert (late.exit_code, late.stdout) == (1, "")
    assert "more than 30 days ago" in late.stderr
    early = busy.invoke(app, "rule", "srv_2", "--winner", "none")
    assert (early.exit_code, "has not ended" in early.stderr) == (1, True)


def test_action_that_no_service_sends_asks_whether_the_service_runs(
    busy: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("UNSENT_S", "POLL_S"):
        monkeypatch.setattr(actions, name, 0.0)
    monkeypatch.setattr(actions, "MAX_WAIT_S", 0.3)
    found = busy.invoke(app, "act", "srv_2", "pause")
    assert (found.exit_code, found.stdout) == (1, "pause requested.\n")
    assert found.stderr.splitlines() == [
        f"matchpod: {actions.NOT_SENT}",
        "matchpod: pause requested",
        f"matchpod: The action is neither done nor failed yet. {actions.NOT_SENT} See: matchpod match actions srv_2",
    ]


@pytest.fixture
def recorded(busy: CommandRunner) -> CommandRunner:
    """`busy` with two demos of a match: that of map 1 is complete, that of map 2 was cut off."""

    async def add(db: Database) -> None:
        storage = FolderStorage(busy.data_dir / "demos")
        for number, body in enumerate((b"0123456789", b"")):
            await upload_demo(db, storage, "srv_1", body, map_number=number, file_name=f"{number}.dem")

    on_database(busy, add)
    return busy


def test_demos_of_a_match_are_listed(recorded: CommandRunner) -> None:
    lines = recorded.invoke(app, "demo", "srv_1").stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["map", "file", "state"], ["1", "1", "available"], ["2", "1", "missing"]
    ]  # fmt: skip
    assert "(cut)" in lines[2]
    first, _ = json.loads(recorded.invoke(app, "demo", "srv_1", "--json").stdout)
    assert (first["state"], first["size"], first["fileName"]) == ("available", 10, "0.dem")


def test_demo_is_downloaded_and_checked(recorded: CommandRunner, tmp_path: Path) -> None:
    done = recorded.invoke(app, "demo", "srv_1", "--save", str(tmp_path / "mine.dem"))
    assert (done.exit_code, (tmp_path / "mine.dem").read_bytes()) == (0, b"0123456789")
    missing = recorded.invoke(app, "demo", "srv_1", "--map", "2", "--save", str(tmp_path / "other.dem"))
    assert missing.exit_code == 1
    assert not (tmp_path / "other.dem").exists()


def test_damaged_demo_is_not_saved_under_its_name(recorded: CommandRunner, tmp_path: Path) -> None:
    (stored,) = (recorded.data_dir / "demos").rglob("*.dem")
    stored.write_bytes(b"9876543210")
    done = recorded.invoke(app, "demo", "srv_1", "--save", str(tmp_path / "mine.dem"))
    assert done.exit_code == 1
    assert "is not the demo that was uploaded" in done.stderr
    assert not (tmp_path / "mine.dem").exists()
