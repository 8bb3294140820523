"""A copy of a database beside its original, on one host, while matches run: only the original drives them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Row, Statement
from tests.contract.databases import create_postgres_database, run_postgres_program
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import (
    PATIENT_SPEED,
    Json,
    RunningService,
    cvars,
    free_port_range,
    region,
    short_match,
)

LIVE_SPEED = 40
"""Speed of matches that are still live when the copy has been started."""
SLOW = 3
"""Speed of a match that does not end during the test unless it is canceled."""
READS_ONLY = "this database is a copy: serving reads only, no match is driven"

ROWS = "SELECT id, phase, status, fence, lease_owner, ended_at_ms FROM servers ORDER BY id"


class Installation:
    """An original, its copy with the same settings, and what tells them apart."""

    def __init__(self, folder: Path, how: str, request: pytest.FixtureRequest) -> None:
        self.how = how
        ports = free_port_range(4)
        self.regions = "".join(
            region(code, own, speed=PATIENT_SPEED) for code, own in (("sandbox", ports[1:]), ("tiny", ports[:1]))
        )
        url = create_postgres_database(request) if how == "dump" else None
        self.copy_url = create_postgres_database(request) if how == "dump" else None
        self.original = RunningService(folder / "original", regions=self.regions, database_url=url)
        self._url = url
        self._folder = folder
        self._request = request

    def copy(self) -> RunningService:
        """Copy the database of the running original; return a service that uses the copy, not started yet."""
        copied = RunningService(
            self._folder / "copy", regions=self.regions, database_url=self.copy_url, key=self.original.key
        )
        file = self._folder / "backup"
        if self._url is not None and self.copy_url is not None:
            run_postgres_program(self._request, "pg_dump", "--format=custom", f"--file={file}", self._url)
            run_postgres_program(self._request, "pg_restore", f"--dbname={self.copy_url}", str(file))
        elif self.how == "folder":
            shutil.copytree(self.original.data_dir, copied.data_dir, dirs_exist_ok=True)
        else:
            for service, command in ((self.original, "backup"), (copied, "restore")):
                done = service.run(command, str(file))
                assert done.returncode == 0, done.stderr
        return copied

    async def write(self, service: RunningService, *statements: str, read: str = ROWS) -> list[Row]:
        """Change the database of a service that does not run, and return its rows."""
        path, url = service.data_dir / "matchpod.sqlite3", self.copy_url
        db = await (SqliteDatabase.open(path) if url is None else PostgresDatabase.open(url))
        try:
            if statements:
                await db.write([Statement(sql) for sql in statements])
            return await db.read(read)
        finally:
            await db.close()


def _begin(service: RunningService, receiver: CallbackReceiver) -> dict[str, str]:
    """Bring matches to the states in which they are copied; return their servers."""

    def create(name: str, *, code: str = "sandbox", speed: int = LIVE_SPEED) -> str:
        settings = short_match(customCvars=cvars(speed=speed))
        return str(service.create(settings, region=code, callbackUrl=receiver.url(f"/{name}"))["serverId"])

    receiver.configure("/sending", "hang", "accept")
    servers = {"sending": create("sending", speed=300), "canceled": create("canceled", code="tiny", speed=SLOW)}
    service.wait_for_status(servers["canceled"], "running")
    servers["waiting"] = create("waiting", code="tiny", speed=300)
    service.wait_for_status(servers["waiting"], "pending")
    receiver.wait_for("/sending")
    servers["live"] = create("live")
    service.wait_for(servers["live"], lambda one: one["phase"] == "live")
    return servers


def _check_reads_only(copied: RunningService, servers: dict[str, str]) -> None:
    ready = copied.call("GET", "/readyz")
    assert (ready.status, "reads only" in str(ready.json["warnings"])) == (200, True)
    assert READS_ONLY in [entry["message"] for entry in copied.log()]
    live: Json = copied.get(servers["live"])
    assert (live["status"], live["phase"]) == ("running", "live")
    assert copied.call("GET", "/api/v1/cs2/series").json["total"] == len(servers)
    body = {"region": "sandbox", "gameType": "cs2", "gameSettings": short_match()}
    for path in ("/api/v1/matches", f"/api/v1/servers/{servers['live']}/cancel", "/ingest/logs/some-token"):
        answer = copied.call("POST", path, body)
        assert (answer.status, answer.json["error"]) == (503, "SERVICE_UNAVAILABLE"), path
        assert "reads only" in answer.json["message"]


@pytest.mark.parametrize(
    "how",
    ["backup", pytest.param("folder", marks=pytest.mark.soak), pytest.param("dump", marks=pytest.mark.soak)],
)
def test_copy_beside_its_original_touches_no_match(how: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    installation = Installation(tmp_path, how, request)
    with CallbackReceiver() as receiver, installation.original as original:
        servers = _begin(original, receiver)
        copied = installation.copy()
        # As if the copy were started later, when the leases of the original have expired in it.
        before = asyncio.run(
            installation.write(
                copied,
                "UPDATE servers SET lease_until_ms = 0 WHERE lease_owner IS NOT NULL",
                "UPDATE callbacks SET lease_until_ms = 0, next_at_ms = 0 WHERE lease_until_ms IS NOT NULL",
            )
        )
        with copied:
            _check_reads_only(copied, servers)
            assert original.cancel(servers["canceled"]).status == 200
            for name in ("live", "canceled", "waiting"):
                receiver.wait_for(f"/{name}")
            receiver.wait_for("/sending", 2)
            original.wait_until_released(*servers.values())
            assert copied.server_processes() == []
            assert copied.terminate()[0] == 0  # so that it sends nothing later
            ended = {name: [(one.json["eventType"], one.id) for one in receiver.at(f"/{name}")] for name in servers}
            assert {name: [event for event, _ in got] for name, got in ended.items()} == {
                "sending": ["match_over"] * 2,  # the first attempt got no answer
                "live": ["match_over"],
                "canceled": ["match_canceled"],
                "waiting": ["match_over"],
            }
            assert ended["sending"][0] == ended["sending"][1]
        assert asyncio.run(installation.write(copied)) == before
