"""A backup that is restored beside its original, on one host, while matches run: only the original drives them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Row, Statement
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
"""Speed of the match that is still live when the database is copied."""
READS_ONLY = "this database is a copy: serving reads only, no match is driven"

ROWS = "SELECT id, phase, status, fence, lease_owner, ended_at_ms FROM servers ORDER BY id"
LATER = (
    "UPDATE servers SET lease_until_ms = 0 WHERE lease_owner IS NOT NULL",
    "UPDATE callbacks SET lease_until_ms = 0, next_at_ms = 0 WHERE lease_until_ms IS NOT NULL",
)
"""As if the copy were started later, when the leases of the original have expired in it."""


async def change(service: RunningService, *statements: str) -> list[Row]:
    """Change the database of a service that does not run, and return its rows."""
    db = await SqliteDatabase.open(service.data_dir / "matchpod.sqlite3")
    try:
        if statements:
            await db.write([Statement(sql) for sql in statements])
        return await db.read(ROWS)
    finally:
        await db.close()


def begin(service: RunningService, receiver: CallbackReceiver) -> dict[str, str]:
    """Bring matches to the states in which they are copied; return their servers."""

    def create(name: str, *, code: str = "sandbox", speed: int = 300) -> str:
        settings = short_match(customCvars=cvars(speed=speed))
        return str(service.create(settings, region=code, callbackUrl=receiver.url(f"/{name}"))["serverId"])

    receiver.configure("/sending", "hang", "accept")
    servers = {"sending": create("sending")}
    receiver.wait_for("/sending")
    servers["live"] = create("live", code="tiny", speed=LIVE_SPEED)
    servers["waiting"] = create("waiting", code="tiny")
    service.wait_for(servers["live"], lambda one: one["phase"] == "live")
    assert service.get(servers["waiting"])["status"] == "pending"
    return servers


def check_reads_only(copied: RunningService, servers: dict[str, str]) -> None:
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


def test_copy_beside_its_original_touches_no_match(tmp_path: Path) -> None:
    ports = free_port_range(2)
    regions = "".join(
        region(code, [port], speed=PATIENT_SPEED) for code, port in zip(("sandbox", "tiny"), ports, strict=True)
    )
    with CallbackReceiver() as receiver, RunningService(tmp_path / "original", regions=regions) as original:
        servers = begin(original, receiver)
        copied = RunningService(tmp_path / "copy", regions=regions, key=original.key)
        for service, command in ((original, "backup"), (copied, "restore")):
            done = service.run(command, str(tmp_path / "backup"))
            assert done.returncode == 0, done.stderr
        before = asyncio.run(change(copied, *LATER))
        with copied:
            check_reads_only(copied, servers)
            for name in ("live", "waiting"):
                receiver.wait_for(f"/{name}")
            receiver.wait_for("/sending", 2)
            original.wait_until_released(*servers.values())
            assert copied.server_processes() == []
            assert copied.terminate()[0] == 0  # so that it sends nothing later
        ended = {name: [(one.json["eventType"], one.id) for one in receiver.at(f"/{name}")] for name in servers}
        assert {name: [event for event, _ in got] for name, got in ended.items()} == {
            "sending": ["match_over"] * 2,  # the first attempt got no answer
            "live": ["match_over"],
            "waiting": ["match_over"],
        }
        assert ended["sending"][0] == ended["sending"][1]
        assert asyncio.run(change(copied)) == before
