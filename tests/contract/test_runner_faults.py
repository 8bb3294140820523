"""Faults of the driving of matches, each proven by a test that fails until it is mended."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from matchpod.adapters.fleets.process_record import identify, is_running
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase
from matchpod.ports import (
    ConsoleLostError,
    Database,
    DatabaseAwayError,
    FleetError,
    GameServer,
    Row,
    ServerOrder,
    Statement,
    Value,
)
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.ingest import Ingest
from matchpod.service.runner import hands
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.storage import outbox, raw_log, servers
from tests.contract import databases
from tests.contract.driven_matches import PLAYERS, Mortal, World, world

home = databases.home


def test_a_server_is_released_although_its_password_cannot_be_opened(home: databases.Home) -> None:
    """Proves: with an exchanged key `end` fails for ever in the farewell; server and place are never given back."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            other = KeyFileVault.from_text("B" * 43 + "=")
            ending = conclude(
                row, Ending(reason="canceled_by_user"), fence=None, now_ms=around.clock.now_ms(), callback_id="cb"
            )
            await db.write([servers.change(row.id, row.fence, rcon_password=other.seal("x")), *ending])

            async def is_gone() -> bool:
                return (await around.row()).phase is ServerPhase.RELEASED

            await around.until(is_gone, "the server is released", within_s=12.0)

    home.run(scenario)


class _SlowIngest:
    """Stores the post that ends the match a moment after its server died."""

    def __init__(self, ingest: Ingest, die: Callable[[], None], noticed: asyncio.Event) -> None:
        self._ingest = ingest
        self._die = die
        self._noticed = noticed

    async def take_log(self, token: str, headers: Mapping[str, str], body: bytes) -> int:
        if b"Game Over" in body:
            self._die()
            await self._noticed.wait()
            await asyncio.sleep(0.2)
        return await self._ingest.take_log(token, headers, body)

    async def take_report(self, token: str | None, body: bytes) -> int:
        if b"series_end" in body or b"map_result" in body:
            return 200
        return await self._ingest.take_report(token, body)

    async def match_file(self, token: str | None) -> bytes | None:
        return await self._ingest.match_file(token)


def test_the_last_words_of_a_server_count_although_it_died_while_they_were_stored(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: a process that is gone ends the match as lost at once; its last post, being stored, is not waited for."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            noticed = asyncio.Event()
            is_alive = around.region.is_alive

            async def watched(server_id: str, slot: str) -> bool:
                alive = await is_alive(server_id, slot)
                if not alive:
                    noticed.set()
                return alive

            def die() -> None:
                around.region.running["srv_1"].is_over = True

            monkeypatch.setattr(around.region, "is_alive", watched)
            ingest = around.region.listener(process.base)
            assert ingest is not None
            around.region.listen(process.base, cast(Ingest, _SlowIngest(ingest, die, noticed)))
            await around.create()
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_over", None)

    home.run(scenario)


def test_a_process_does_not_release_a_server_that_another_process_released(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: a match that is canceled through another process is still acted upon by the one that brings it up."""

    async def scenario(db: Database) -> None:
        async with world(db, ("a",)) as around:
            first = around.start("one")
            reached, go_on = asyncio.Event(), asyncio.Event()
            allocate = around.region.allocate

            async def slowly(order: ServerOrder) -> GameServer:
                if order.server_id != "srv_1":
                    return await allocate(order)
                reached.set()
                await go_on.wait()
                raise FleetError("it ended while it was starting")

            monkeypatch.setattr(around.region, "allocate", slowly)
            await around.create()
            await reached.wait()
            first.supervisor._is_draining = True  # the other one is faster
            around.start("two")
            row = await around.row()
            await db.write(
                conclude(
                    row, Ending(reason="canceled_by_user"), fence=None, now_ms=around.clock.now_ms(), callback_id="cb"
                )
            )
            await around.outcome()
            await around.create("srv_2", played="no_show")
            await around.phase(ServerPhase.RUNNING, "srv_2")
            before = len(around.region.releases)
            go_on.set()
            await asyncio.sleep(1)
            assert around.region.releases[before:] == [], "place a is srv_2's by now"

    home.run(scenario)


def test_a_failure_with_odd_characters_counts_as_a_try(home: databases.Home) -> None:
    """Proves: output with a NUL in a failure is refused by PostgreSQL; tries are not counted, the step crashes."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("its last output: \x00") for _ in range(20)]
            around.start()
            await around.create()
            assert (await around.outcome()).reason == CancelReason.SERVER_FAILED
            assert (await around.row()).tries == 3

    home.run(scenario)


def test_a_process_runs_also_when_no_file_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves: with no file handle left every server counts as dead, so all matches are lost at once."""
    process = identify(os.getpid())
    assert process is not None

    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "read_text", refuse)
    with suppress(OSError):  # to say that one cannot tell is as good
        assert is_running(process)


class _Console:
    def __init__(self, said: list[str]) -> None:
        self._said = said

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        self._said.append(command)
        return ""

    async def close(self) -> None:
        pass


class _Consoles:
    def __init__(self) -> None:
        self.said: list[str] = []

    async def open(self, host: str, port: int, password: str) -> _Console:
        return _Console(self.said)


def _order(server_id: str) -> ServerOrder:
    return ServerOrder(
        server_id=server_id, slot="203.0.113.1:27015", map_name="de_nuke", game_type=0, game_mode=1, rcon_password=""
    )


def test_a_lent_server_is_cleaned_up_by_a_process_that_remembers_an_older_match() -> None:
    """Proves: of two processes, one that did not end its last match skips the clean-up of a later one, silently."""

    async def scenario() -> None:
        slot, consoles = "203.0.113.1:27015", _Consoles()
        one, two = (StaticFleet([StaticServer(slot, "secret")], consoles) for _ in range(2))
        await one.allocate(_order("srv_1"))
        await two.release("srv_1", slot)  # whoever claims the ended match first
        await two.allocate(_order("srv_2"))
        consoles.said.clear()
        await one.release("srv_2", slot)
        assert "logaddress_delall_http" in consoles.said

    asyncio.run(scenario())


def test_a_forgotten_lent_server_is_swept_once() -> None:
    """Proves: the sweep names no place, so the fleet never forgets and warns every minute for ever."""

    async def scenario() -> Sequence[str]:
        fleet = StaticFleet([StaticServer("203.0.113.1:27015", "secret")], _Consoles())
        await fleet.allocate(_order("srv_1"))
        await fleet.release("srv_1", "")
        return await fleet.servers()

    assert list(asyncio.run(scenario())) == []


def test_what_came_before_a_deadline_counts_although_it_was_stored_after_it(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: after a stall (database, machine) alarms fire before what waits at the door is heard."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            await asyncio.sleep(0.5)
            gate = asyncio.Event()
            read, write = process.db.read, process.db.write

            async def slow_read(sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
                if "FROM raw_log " in sql:
                    await gate.wait()
                return await read(sql, params)

            async def slow_write(statements: Sequence[Statement]) -> list[list[Row]]:
                if "INSERT INTO raw_log_heads" in statements[0].sql:
                    await gate.wait()
                return await write(statements)

            monkeypatch.setattr(process.db, "read", slow_read)
            monkeypatch.setattr(process.db, "write", slow_write)
            ingest = around.region.listener(process.base)
            assert ingest is not None
            stamp = "11/15/2026 - 09:00:00.000"
            lines = [
                f'{stamp} - "p{number}<{number}><[U:1:{int(player) - 76561197960265728}]><>" connected, address "1.2.3.4:27005"\n'
                for number, player in enumerate(PLAYERS)
            ]
            post = asyncio.ensure_future(ingest.take_log((await around.row()).log_token, {}, "".join(lines).encode()))
            await asyncio.sleep(1.5)
            around.clock.ahead_ms += 160_000
            gate.set()
            assert await post == 200
            await asyncio.sleep(2)
            outcome = await outbox.outcome_of(db, "srv_1")
            assert outcome is None, outcome.reason

    home.run(scenario)


def test_entries_from_before_the_following_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves: on a database of one process, what was stored during the bring-up waits for the next post."""
    monkeypatch.setattr(Mortal, "is_shared", False)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            still = asyncio.create_task(_still_when_running(around))
            await still
            await asyncio.sleep(1.0)
            live = process.live.get("srv_1")
            assert live is not None
            assert live.seq == await raw_log.newest_seq(db, "srv_1")

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


async def _still_when_running(around: World) -> None:
    while (await around.row()).phase is not ServerPhase.RUNNING:
        around.region.is_still = bool(await raw_log.newest_seq(around.db, "srv_1"))
        await asyncio.sleep(0.001)
    around.region.is_still = True


class _LoadingLine:
    """The console of a server that loads a map: for a while it refuses at once, as one does that is cut off."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.said: list[str] = []

    async def run(self, command: str, *, timeout_s: float = 5.0) -> str:
        if self.refusals:
            self.refusals -= 1
            raise ConsoleLostError("the connection was reset")
        self.said.append(command)
        return '{"server": {"map": "de_nuke"}}' if command == "status_json" else ""


def test_settings_are_set_again_however_often_a_loading_server_cuts_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: five refusals drop the order, long before the time that a map load may take; nobody orders it again."""
    monkeypatch.setattr(hands, "RETRY_S", 0.01)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            drive = process.supervisor._drives["srv_1"]
            region = process.supervisor._around.regions.get("eu")
            live = process.live.get("srv_1")
            assert region is not None
            assert live is not None
            line = _LoadingLine(refusals=8)
            ours = hands.Hands(
                drive.claim,
                process.supervisor._around,
                region,
                line=cast(ConsoleLine, line),
                match=live.fold.reader.match,
            )
            task = asyncio.create_task(ours.run())
            ours.order(hands.MapLoaded())
            await asyncio.sleep(3)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert any(command.startswith("mp_maxrounds") for command in line.said)

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_database_that_only_reads_is_away(request: pytest.FixtureRequest) -> None:
    """Proves: during a failover writes fail as if they were our mistake: crashes are counted, servers are told 500."""
    url = databases.fresh_postgres_schema(request)

    async def scenario() -> None:
        db = await PostgresDatabase.open(f"{url}&default_transaction_read_only=on")
        try:
            with pytest.raises(DatabaseAwayError):
                await db.write([Statement("CREATE TABLE t (id INTEGER)")])
        finally:
            await db.close()

    asyncio.run(scenario())


def test_a_server_that_was_given_up_cannot_end_the_match_by_speaking_again(home: databases.Home) -> None:
    """Proves: every try has the same log token; a lent server that was left uncleaned and comes back ends the match."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("it does not answer")]
            process = around.start()
            await around.create(played="no_show")
            token = (await around.row()).log_token
            await around.phase(ServerPhase.RUNNING)
            ingest = around.region.listener(process.base)
            assert ingest is not None
            body = b'11/15/2026 - 09:00:00.000 - rcon from "1.2.3.4:5": command "status_json"\n'
            headers = {
                "X-Server-Instance-Token": "00000000000000aa",
                "X-LogBytes-BeginOffset": "0",
                "X-LogBytes-EndOffset": str(len(body)),
            }
            await asyncio.sleep(0.5)
            await ingest.take_log(token, headers, body)
            await asyncio.sleep(2)
            outcome = await outbox.outcome_of(db, "srv_1")
            assert outcome is None, outcome.reason

    home.run(scenario)


def test_a_report_of_the_plugin_is_no_proof_of_the_log(tmp_path: Path) -> None:
    """Proves: a server whose log does not come is called running as soon as its plugin has reported anything."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            ingest = around.region.listener(process.base)
            assert ingest is not None
            around.region.listen(process.base, cast(Ingest, _Logless(ingest)))
            await around.create(played="no_show")
            await asyncio.sleep(8)
            assert (await around.row()).phase is ServerPhase.ALLOCATING

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


class _Logless:
    """Its server's log gets lost on the way, all else comes."""

    def __init__(self, ingest: Ingest) -> None:
        self.take_report = ingest.take_report
        self.match_file = ingest.match_file

    async def take_log(self, token: str, headers: Mapping[str, str], body: bytes) -> int:
        return 503
