"""What is done to a server on the way of its match, and what is made of what it says, in good and in odd moments.

Whole matches, and who drives them, are the matter of the supervisor's tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import UNKNOWN_USER_ID, CancelReason, Kick, StartPlay
from matchpod.core.events import PlayerJoinedSide, PlayersSeen
from matchpod.core.match import Match, Phase
from matchpod.core.model import CvarSetting, Side
from matchpod.core.presence import NOT_LISTED
from matchpod.core.server_status import ServerPhase
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import ConsoleLostError, Database, FleetError, GameServer, Row, ServerOrder, Statement, Value
from matchpod.service import supervisor
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.folding import CONFIGURED, LOG, PRESENCE, RESUMED, Fold
from matchpod.service.ingest import Ingest
from matchpod.service.matches import Matches
from matchpod.service.principals import Principal, Role, Scope
from matchpod.service.regions import Region
from matchpod.service.runner import bring_up, configure, follow, hands, watch
from matchpod.service.runner.claim import Claim, ClaimLostError
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.spectators import Spectators
from matchpod.storage import outbox, raw_log, servers, snapshots
from matchpod.storage.servers import LEASE_MS, NOTICE_MS
from tests.contract import databases
from tests.contract.driven_matches import PLAYERS, SETTINGS, Mortal, Process, World, world
from tests.contract.simulated_region import OPERATORS_PASSWORD, SimulatedServer

home = databases.sqlite_home

STAMP = "11/15/2026 - 09:00:00.000"
STEAM_ID_BASE = 76561197960265728
STRANGER = "76561198000000099"

# --- getting a server -------------------------------------------------------------------------------------------------


def test_a_failure_with_odd_characters_counts_as_a_try(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("its last output: \x00\ud800") for _ in range(20)]
            around.start()
            await around.create()
            assert (await around.outcome()).reason == CancelReason.SERVER_FAILED
            row = await around.row()
            assert (row.tries, row.error) == (3, "its last output:   ")

    home.run(scenario)


def test_a_server_that_ends_while_it_is_set_up_is_replaced_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.is_still = True
            around.start()
            await around.create()

            async def is_spoken_to() -> bool:
                return any(server.said for server in around.region.running.values())

            await around.until(is_spoken_to, "it is being set up")
            around.region.running["srv_1"].exit(is_crash=True)
            around.region.is_still = False

            async def is_replaced() -> bool:
                return len(around.region.orders) == 2

            await around.until(is_replaced, "there is another server", within_s=12.0)
            # Which of them is noticed first is a matter of milliseconds.
            assert (await around.row()).error in ("it ended while it was set up", "no answer")
            await around.phase(ServerPhase.RUNNING)

    home.run(scenario)


def test_a_server_that_was_given_up_is_not_listened_to(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("it does not answer")]
            await around.create(played="no_show")
            before = await around.row()  # before anything is tried: its tokens are replaced with the server
            process = around.start()
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            assert row.log_token != before.log_token
            assert row.report_token != before.report_token
            ingest = around.region.listener(process.base)
            assert ingest is not None
            assert await ingest.take_log(before.log_token, {}, f"{STAMP} - anything\n".encode()) == 410
            assert await ingest.take_report(before.report_token, b"{}") == 401

    home.run(scenario)


class _Logless:
    """Its server's log gets lost on the way, all else comes."""

    def __init__(self, ingest: Ingest) -> None:
        self.take_report = ingest.take_report
        self.match_file = ingest.match_file

    async def take_log(self, token: str, headers: Mapping[str, str], body: bytes) -> int:
        return 503


def lose_log(around: World, base: str) -> Ingest:
    ingest = around.region.listener(base)
    assert ingest is not None
    around.region.listen(base, cast(Ingest, _Logless(ingest)))
    return ingest


def test_a_report_of_the_plugin_is_no_proof_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configure, "LOG_S", 2.0)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            lose_log(around, process.base)
            await around.create(played="no_show")

            async def is_given_up() -> bool:
                row = await around.row()
                assert row.phase is ServerPhase.ALLOCATING
                return row.tries > 0

            await around.until(is_given_up, "it is given up")
            assert "no log came" in ((await around.row()).error or "")

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


@pytest.mark.parametrize("does_load", [True, False])
def test_a_workshop_map_is_believed_once_the_map_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does_load: bool
) -> None:
    monkeypatch.setattr(bring_up, "MIN_TRY_S", 6.0)
    monkeypatch.setattr(bring_up, "TRY_S", 6.0)
    game = msgspec.structs.replace(SETTINGS, maps=("workshop/3070244462",), team1=None, team2=None)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.lend()
            around.region.ignored = set() if does_load else {"host_workshop_map"}
            around.start()
            await around.create(played="no_show", game=game, tries=bring_up.TRIES - 1)
            if does_load:
                await around.phase(ServerPhase.RUNNING)
            else:
                assert (await around.outcome()).reason == CancelReason.SERVER_FAILED

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_process_that_lost_its_match_during_the_set_up_does_not_mark_it_as_done(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            stale = Claim(msgspec.structs.replace(row, fence=row.fence - 1), db, around.clock)
            line = ConsoleLine(stale, process.around)
            entries = await raw_log.newest_seq(db, row.id)
            around.region.is_still = True
            with pytest.raises(ClaimLostError):
                await configure.configure(stale, process.around, line, is_fresh=True)
            later = await raw_log.read_after(db, row.id, entries, limit=100)
            assert CONFIGURED not in [entry.kind for entry in later]

    home.run(scenario)


# --- servers that are used again --------------------------------------------------------------------------------------

GRAVITY = CvarSetting("sv_gravity", "200")
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))


def position(server: SimulatedServer, command: str) -> int:
    return next(number for number, said in enumerate(server.said) if said.startswith(command))


def test_a_lent_server_is_cleared_before_and_gets_its_values_back_after_a_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            server = around.region.lend()
            before = server.machine.execute("sv_gravity", "")
            process = around.start()
            await around.create(played="no_show", cvars=[GRAVITY])
            await around.phase(ServerPhase.RUNNING)
            assert "200" in server.machine.execute("sv_gravity", "")
            for command in ("css_endmatch", "logaddress_delall_http"):
                assert position(server, command) < position(server, "logaddress_add_http")
            await around.cancel()
            process.supervisor.notify("srv_1")
            await around.outcome()
            assert server.machine.execute("sv_gravity", "") == before

    home.run(scenario)


def test_a_lent_server_gets_its_values_back_after_a_try_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configure, "LOG_S", 2.0)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            server = around.region.lend()
            before = server.machine.execute("sv_gravity", "")
            process = around.start()
            lose_log(around, process.base)
            await around.create(played="no_show", cvars=[GRAVITY])

            async def is_given_up() -> bool:
                return (await around.row()).slot is None and bool(around.region.releases)

            await around.until(is_given_up, "it is given up")
            assert "sv_gravity 200" in server.said
            assert server.machine.execute("sv_gravity", "") == before
            assert (await around.row()).changed_cvars is None

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def matches_of(process: Process) -> Matches:
    around = process.around
    return Matches(
        db=around.db,
        clock=around.clock,
        vault=around.vault,
        regions=around.regions,
        live=around.live,
        spectators=Spectators(db=around.db, regions=around.regions),
        read_cvars=read_custom_cvars,
        notify=process.supervisor.notify,
    )


def test_the_console_password_of_a_lent_server_is_not_shown(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.lend()
            process = around.start()
            name = "srv_" + "0" * 26
            await around.create(name, played="no_show")
            await around.phase(ServerPhase.RUNNING, name)
            row = await around.row(name)
            assert row.rcon_password is not None
            assert process.around.vault.open(row.rcon_password) == OPERATORS_PASSWORD
            view = await matches_of(process).get(OWNER, name)
            assert (view.status, view.ip, view.rcon_password) == ("running", "203.0.113.7", None)

    home.run(scenario)


# --- orders -----------------------------------------------------------------------------------------------------------


class FakeLine:
    """A console that answers with a map; for a while it refuses at once, as one does that is cut off by a load.

    `cut_off_by` begins the commands that are heard and never answered.
    """

    def __init__(self, *, refusals: int = 0, map_name: str = "de_nuke", cut_off_by: str | None = None) -> None:
        self.refusals = refusals
        self.map_name = map_name
        self.cut_off_by = cut_off_by
        self.people: dict[str, str] = {}
        """The names of who is on the server; their user ids begin at 2."""
        self.said: list[str] = []

    async def run(self, command: str, *, timeout_s: float = 5.0) -> str:
        await asyncio.sleep(0)
        if self.refusals:
            self.refusals -= 1
            raise ConsoleLostError("the connection was reset")
        self.said.append(command)
        if self.cut_off_by is not None and command.startswith(self.cut_off_by):
            raise ConsoleLostError("the connection was reset")
        if command == "status_json":
            clients = [{"steamid64": player_id, "name": name} for player_id, name in self.people.items()]
            return json.dumps({"server": {"map": self.map_name, "clients": clients}})
        if command == "status":
            rows = [f"{number} 00:40 9 0 active 0 192.0.2.1:1 '{name}'\n" for number, name in self._numbered()]
            return f"---------players--------\n{''.join(rows)}#end\n"
        return ""

    def _numbered(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.people.values(), start=2)


class ManualClock:
    def __init__(self, now_ms: int) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms


class Ground(msgspec.Struct):
    """A match that no supervisor drives, and what its hands and its watch need."""

    claim: Claim
    around: Surroundings
    region: Region
    match: Match
    clock: ManualClock


class _Alive:
    """A fleet that says of its servers what it is told to."""

    def __init__(self, answers: Sequence[bool] = ()) -> None:
        self.answers = list(answers)
        self.on_asked: Callable[[], object] = bool

    async def is_alive(self, server_id: str, slot: str) -> bool:
        self.on_asked()
        return self.answers.pop(0) if self.answers else True


@asynccontextmanager
async def ground(db: Database, fleet: _Alive | None = None) -> AsyncIterator[Ground]:
    async with world(db) as around:
        process = around.start()
        await around.create(phase=ServerPhase.RELEASED)
        row, clock = await around.row(), ManualClock(around.clock.now_ms())
        region = process.around.regions.get("eu")
        assert region is not None
        claim = Claim(msgspec.structs.replace(row, lease_until_ms=clock.at_ms + LEASE_MS), db, clock)
        match = Fold.begin(row, 1.0).reader.match
        yield Ground(
            claim,
            msgspec.structs.replace(process.around, clock=clock),
            msgspec.structs.replace(region, fleet=fleet or _Alive()),
            match,
            clock,
        )


def hands_on(on: Ground, line: FakeLine, on_failed: Callable[[str], None] = print) -> hands.Hands:
    console = cast(ConsoleLine, line)
    return hands.Hands(on.claim, on.around, on.region, line=console, match=on.match, on_failed=on_failed)


@asynccontextmanager
async def at_work(ours: hands.Hands) -> AsyncIterator[None]:
    task = asyncio.create_task(ours.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.01)


def test_settings_are_set_again_however_often_a_loading_server_cuts_the_console(tmp_path: Path) -> None:
    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            line = FakeLine(refusals=2 * hands.TRIES)
            ours = hands_on(on, line)
            async with at_work(ours):
                ours.order(hands.MapLoaded())
                await until(lambda: any(command.startswith("mp_maxrounds") for command in line.said))

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_server_that_never_loads_its_map_has_failed(tmp_path: Path) -> None:
    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            line, why = FakeLine(map_name="de_mirage"), list[str]()
            ours = hands_on(on, line, why.append)
            on.match.phase = Phase.STARTING
            async with at_work(ours):
                for _ in range((hands.WRONG_MAPS + 1) * hands.PLUGIN_LOADS_AFTER):
                    ours.order(StartPlay(1))
                await until(lambda: bool(why))
            assert why == ["it does not load the map it is told"]
            assert line.said.count("changelevel de_nuke") == hands.WRONG_MAPS
            assert "css_start" not in line.said

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_map_change_that_cuts_the_console_off_is_one_change(tmp_path: Path) -> None:
    """Tried again it would count as further refusals, and a server that is loading be given up."""

    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            line, why = FakeLine(map_name="de_mirage", cut_off_by="changelevel"), list[str]()
            ours = hands_on(on, line, why.append)
            on.match.phase = Phase.STARTING
            async with at_work(ours):
                for _ in range(hands.WRONG_MAPS * hands.PLUGIN_LOADS_AFTER):
                    ours.order(StartPlay(1))
                ours.order(Kick(STRANGER, UNKNOWN_USER_ID, NOT_LISTED))
                await until(lambda: "status" in line.said)
            assert why == []
            assert line.said.count("changelevel de_nuke") == hands.WRONG_MAPS
            assert on.around.measures.console_failures.value("eu") == 0

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_stranger_whose_coming_no_line_told_is_kicked(tmp_path: Path) -> None:
    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            line = FakeLine()
            line.people = {PLAYERS[0]: "listed", STRANGER: "it's me"}
            ours = hands_on(on, line)
            seen = PlayersSeen(0, names=line.people, load_ms=1)
            on.match.presence.doubt(0)
            joined = PlayerJoinedSide(0, STRANGER, "it's me", Side.CT, None)
            orders = [*on.match.presence.apply(seen, 1), *on.match.presence.apply(joined, 1)]
            assert orders == 2 * [Kick(STRANGER, UNKNOWN_USER_ID, NOT_LISTED)]
            async with at_work(ours):
                for order in orders:
                    ours.order(order)
                await until(lambda: line.said.count(f'kickid 3 "{NOT_LISTED}"') == len(orders))

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_nobody_is_kicked_who_has_left(tmp_path: Path) -> None:
    """Neither by a number, which may be another player's by now, nor when the server does not list him."""

    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            line = FakeLine()
            line.people = {PLAYERS[0]: "listed"}
            ours = hands_on(on, line)
            async with at_work(ours):
                ours.order(Kick(STRANGER, 2, NOT_LISTED))
                for _ in range(2):  # when the second asks, the first is done
                    ours.order(Kick(STRANGER, UNKNOWN_USER_ID, NOT_LISTED))
                await until(lambda: line.said.count("status") == 2)
            assert set(line.said) == {"status", "status_json"}

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_stranger_from_before_a_pause_is_looked_up_by_name(tmp_path: Path) -> None:
    """The number he had may be another player's by now."""

    async def scenario(db: Database) -> None:
        async with ground(db) as on:
            on.match.presence.turned_away[STRANGER] = 3
            ours = hands_on(on, FakeLine())
            ours.take_over()
            orders = [ours._orders.get_nowait() for _ in range(ours._orders.qsize())]
            assert orders == [hands.TakeOver(), Kick(STRANGER, UNKNOWN_USER_ID, NOT_LISTED)]

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


# --- signs of life ----------------------------------------------------------------------------------------------------


async def watched(on: Ground, line: FakeLine) -> str:
    """Why the server was lost."""
    why: list[str] = []
    ours = watch.Watch(on.claim, on.around, on.region, line=cast(ConsoleLine, line), match=on.match, on_lost=why.append)
    async with asyncio.timeout(20):
        await ours.run()
    return why[0]


def test_a_server_that_answers_but_sends_no_log_is_told_again_and_then_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.001)

    async def scenario(db: Database) -> None:
        fleet = _Alive()
        async with ground(db, fleet) as on:

            def pass_time() -> None:
                on.clock.at_ms += 5_000

            began_ms, fleet.on_asked, line = on.clock.at_ms, pass_time, FakeLine()
            assert await watched(on, line) == "its log does not reach us"
            assert sum(command.startswith("logaddress_del_http") for command in line.said) == 1
            took_ms = on.clock.at_ms - began_ms
            assert 0 <= took_ms - watch.NO_LOG_MS - watch.DEAF_MS <= 10_000

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_process_that_is_gone_is_believed_to_be_at_the_second_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.001)

    async def scenario(db: Database) -> None:
        fleet = _Alive([True, False, True, False, False])
        async with ground(db, fleet) as on:
            assert await watched(on, FakeLine()) == "its process is gone"
            assert fleet.answers == []

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_who_is_there_is_asked_after_a_pause(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            dead = around.start("dead")
            await around.create()
            await around.live()
            around.region.is_still = True
            await dead.die()
            around.clock.ahead_ms += LEASE_MS
            server = around.region.running["srv_1"]
            around.start("heir")

            async def is_told() -> bool:
                return await raw_log.has_kind(db, "srv_1", PRESENCE, after_seq=0)

            await around.until(is_told, "who is there is told")
            entries = await raw_log.read_after(db, "srv_1", 0, limit=10_000)
            (names, *_) = [json.loads(entry.body) for entry in entries if entry.kind == PRESENCE]
            assert set(names) == set(PLAYERS)
            reports = [said for said in server.said if said.startswith("matchzy_remote_log_url")]
            assert reports, "its plugin is told where to report from now on"
            assert "http://heir.example/" in reports[-1]

    home.run(scenario)


# --- what is heard when -----------------------------------------------------------------------------------------------


class _SlowIngest:
    """Stores what ends the match a moment later."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self.match_file = ingest.match_file
        self.is_over = asyncio.Event()

    async def take_log(self, token: str, headers: Mapping[str, str], body: bytes) -> int:
        if b"Game Over" in body:
            await self.before_the_end()
            self.is_over.set()
        return await self._ingest.take_log(token, headers, body)

    async def take_report(self, token: str | None, body: bytes) -> int:
        return await self._ingest.take_report(token, body)

    async def before_the_end(self) -> None:
        pass


class _DyingIngest(_SlowIngest):
    """The server dies meanwhile, and its plugin says nothing more."""

    def __init__(self, ingest: Ingest, die: Callable[[], None], noticed: asyncio.Event) -> None:
        super().__init__(ingest)
        self._die = die
        self._noticed = noticed

    async def before_the_end(self) -> None:
        self._die()
        await self._noticed.wait()
        await asyncio.sleep(0.2)

    async def take_report(self, token: str | None, body: bytes) -> int:
        if b"series_end" in body or b"map_result" in body:
            return 200
        return await super().take_report(token, body)


def test_the_last_words_of_a_server_count_although_it_died_while_they_were_stored(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            noticed = asyncio.Event()
            is_alive = around.region.is_alive

            async def noting(server_id: str, slot: str) -> bool:
                alive = await is_alive(server_id, slot)
                if not alive:
                    noticed.set()
                return alive

            def die() -> None:
                around.region.running["srv_1"].is_over = True

            monkeypatch.setattr(around.region, "is_alive", noting)
            ingest = around.region.listener(process.base)
            assert ingest is not None
            around.region.listen(process.base, cast(Ingest, _DyingIngest(ingest, die, noticed)))
            await around.create()
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_over", None)

    home.run(scenario)


class _LateReports(_SlowIngest):
    """Reports of the plugin come a moment after the log."""

    async def take_report(self, token: str | None, body: bytes) -> int:
        await asyncio.sleep(0.3)
        return await super().take_report(token, body)


def test_the_plugins_word_on_the_last_round_counts_although_it_comes_after_the_log(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            ingest = around.region.listener(process.base)
            assert ingest is not None
            around.region.listen(process.base, cast(Ingest, _LateReports(ingest)))
            await around.create()
            result = json.loads((await around.outcome()).callback_body)["result"]
            (played,) = result["maps"]
            rounds = played["team1Score"] + played["team2Score"]
            assert sum(player["mvps"] for player in result["overall"]) == rounds

    home.run(scenario)


def connected(players: Sequence[str]) -> bytes:
    lines = [
        f'{STAMP} - "p{number}<{number}><[U:1:{int(player) - STEAM_ID_BASE}]><>" connected, address "1.2.3.4:27005"\n'
        for number, player in enumerate(players)
    ]
    return "".join(lines).encode()


def test_what_came_before_a_deadline_counts_although_it_was_stored_after_it(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            post = asyncio.ensure_future(ingest.take_log((await around.row()).log_token, {}, connected(PLAYERS)))
            await asyncio.sleep(1.5)
            around.clock.ahead_ms += 160_000
            gate.set()
            assert await post == 200
            await asyncio.sleep(2)
            assert await outbox.outcome_of(db, "srv_1") is None

    home.run(scenario)


def test_what_comes_right_after_a_stall_does_not_fire_the_alarms_that_were_slept_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mortal, "is_shared", False)

    async def scenario(db: Database) -> None:
        async with world(db, speed=20) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            around.region.is_still = True
            await asyncio.sleep(0.5)
            ingest = around.region.listener(process.base)
            assert ingest is not None
            token = (await around.row()).log_token
            around.clock.ahead_ms += 20_000  # they had fifteen seconds to come
            assert await ingest.take_log(token, {}, connected(PLAYERS)) == 200

            async def is_kept() -> bool:
                return await snapshots.load(db, "srv_1") is not None

            await around.until(is_kept, "whoever reads the match again knows of the stall", within_s=5.0)
            assert await outbox.outcome_of(db, "srv_1") is None
            live = process.live.get("srv_1")
            assert live is not None
            assert set(live.fold.reader.match.presence.connected) == set(PLAYERS)

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_alarms_of_a_process_that_is_always_late_fire_at_last(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LATE_MS", 200)
    monkeypatch.setattr(supervisor, "RENEW_S", 1.0)

    async def scenario(db: Database) -> None:
        async with world(db, speed=600) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            around.region.is_still = True
            read = process.db.read

            async def slow_read(sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
                if "FROM raw_log " in sql:
                    await asyncio.sleep(0.3)
                return await read(sql, params)

            monkeypatch.setattr(process.db, "read", slow_read)
            for _ in range(60):
                around.clock.ahead_ms += 1_000
                await asyncio.sleep(0.2)
            assert await raw_log.has_kind(db, "srv_1", RESUMED, after_seq=0), "it has waited"
            assert (await around.outcome()).reason == CancelReason.NO_PLAYERS_JOINED

    home.run(scenario)


def test_entries_from_before_the_following_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mortal, "is_shared", False)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await _still_when_running(around)

            async def is_read() -> bool:
                live = process.live.get("srv_1")
                return live is not None and live.seq == await raw_log.newest_seq(db, "srv_1") > 0

            await around.until(is_read, "all is read", within_s=5.0)

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


async def _still_when_running(around: World) -> None:
    while (await around.row()).phase is not ServerPhase.RUNNING:
        around.region.is_still = await raw_log.has_kind(around.db, "srv_1", LOG, after_seq=0)
        await asyncio.sleep(0.001)
    around.region.is_still = True


# --- letting go -------------------------------------------------------------------------------------------------------


def test_a_server_is_released_although_its_password_cannot_be_opened(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            other = KeyFileVault.from_text("B" * 43 + "=")
            ending = Ending(reason=CancelReason.CANCELED_BY_USER)
            now_ms = around.clock.now_ms()
            exchange = servers.change(row.id, row.fence, rcon_password=other.seal("x"))
            await db.write([exchange, *conclude(row, ending, fence=None, now_ms=now_ms, callback_id="cb")])
            process.supervisor.notify("srv_1")
            await around.outcome()

    home.run(scenario)


def test_a_process_does_not_release_a_server_that_another_process_released(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            await around.cancel()
            around.clock.ahead_ms += NOTICE_MS
            await around.outcome()
            await around.create("srv_2", played="no_show")
            await around.phase(ServerPhase.RUNNING, "srv_2")
            before = len(around.region.releases)
            go_on.set()
            await asyncio.sleep(1)
            assert around.region.releases[before:] == [], "place a is srv_2's by now"

    home.run(scenario)
