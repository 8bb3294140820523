"""Failed log-ins: how many an address may have, who goes on working meanwhile, and where they are reported."""

from __future__ import annotations

import itertools
import logging

import pytest

from matchpod.core.errors import MatchpodError, RateLimitError, UnauthorizedError
from matchpod.ports import Database, DatabaseUnavailableError
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.failed_logins import FORGET_S, MAX_ADDRESSES, REPORTS_PER_MINUTE, FailedLogIns, LogInKind
from matchpod.service.access.organizations import CACHE_MS, Access
from matchpod.service.identity.principals import NewKey, Role, Scope
from matchpod.service.telemetry.prometheus import Registry
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.databases import HookedDatabase
from tests.contract.test_access import START_MS
from tests.vaults import VAULT

harness = databases.sqlite_harness

ATTACKER, CALLER = "198.51.100.7", "192.0.2.1"
LIMIT = 5


class World:
    """One process with an organization and two keys, and a limit of five failures per minute."""

    def __init__(self, db: Database) -> None:
        self.db = HookedDatabase(db)
        self.clock = ManualClock(START_MS)
        self.now_s = 0.0
        self.audit = Audit(db=self.db, clock=self.clock)
        self.registry = Registry()
        counter = self.registry.counter("failed_total", "Failed log-ins.", ("with",))
        self.failures = FailedLogIns(audit=self.audit, per_minute=LIMIT, counter=counter, monotonic=lambda: self.now_s)
        self.access = Access(db=self.db, clock=self.clock, vault=VAULT, failures=self.failures)
        self.sessions = ConsoleSessions(db=self.db, clock=self.clock, access=self.access, audit=self.audit)
        self._guesses = itertools.count()

    async def new_key(self) -> NewKey:
        return await self.access.create_key("acme", role=Role.ADMIN, scopes=list(Scope))

    async def outcome(self, key: str, address: str | None = ATTACKER) -> type[MatchpodError] | None:
        self.clock.at_ms += 1  # entries of the audit log are ordered by time
        try:
            await self.access.authenticate(f"Bearer {key}", address=lambda: address)
        except MatchpodError as exc:
            return type(exc)
        return None

    def guess(self) -> str:
        return f"mk_live_{next(self._guesses):043}"

    async def exhaust(self) -> None:
        for _ in range(LIMIT):
            assert await self.outcome(self.guess()) is UnauthorizedError

    async def reports(self, org_id: str | None = None) -> list[tuple[str, str, str]]:
        found = [item for item in await self.audit.page(org_id) if item.action == "log_in_failed"]
        return [(item.actor, item.target, item.detail) for item in found][::-1]


@pytest.fixture
async def world(db: Database) -> World:
    world = World(db)
    await world.access.create_organization("acme")
    return world


async def test_address_with_too_many_failures_is_told_to_wait(world: World) -> None:
    await world.exhaust()
    assert await world.outcome(world.guess()) is RateLimitError
    assert await world.outcome("nonsense") is RateLimitError
    assert await world.outcome(world.guess(), CALLER) is UnauthorizedError
    world.now_s += 60 / LIMIT
    assert await world.outcome(world.guess()) is UnauthorizedError
    assert await world.outcome(world.guess()) is RateLimitError


async def test_valid_keys_work_at_an_address_with_failures_and_do_not_count(world: World) -> None:
    known, new = await world.new_key(), await world.new_key()
    for _ in range(3 * LIMIT):
        assert await world.outcome(known.text) is None
    await world.exhaust()
    assert await world.outcome(world.guess()) is RateLimitError
    world.clock.at_ms += CACHE_MS
    assert await world.outcome(known.text) is None
    assert await world.outcome(new.text) is None


async def test_request_without_a_key_is_no_log_in(world: World) -> None:
    for _ in range(3 * LIMIT):
        with pytest.raises(UnauthorizedError):
            await world.access.authenticate(None, address=lambda: ATTACKER)
    assert await world.reports() == []
    await world.exhaust()


async def test_first_tenth_and_hundredth_failure_are_reported(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(250):
            await world.outcome(world.guess())
    assert await world.reports() == [
        ("unknown", "", f"with an API key from {ATTACKER}"),
        ("unknown", "", f"with an API key from {ATTACKER}, 10 times"),
        ("unknown", "", f"with an API key from {ATTACKER}, 100 times"),
    ]
    assert [(record.message, vars(record)["count"]) for record in caplog.records] == [
        ("log-in failed", count) for count in (1, 10, 100)
    ]
    assert 'failed_total{with="API key"} 250' in world.registry.text()
    world.now_s += FORGET_S
    await world.outcome(world.guess())
    assert (await world.reports())[-1] == ("unknown", "", f"with an API key from {ATTACKER}")


async def test_failure_of_a_revoked_key_is_reported_to_its_organization(world: World) -> None:
    key = await world.new_key()
    await world.access.revoke_key(key.view.id)
    assert await world.outcome(key.text) is UnauthorizedError
    (acme,) = await world.access.organizations()
    assert await world.reports(acme.id) == [(key.view.id, key.view.id, f"with an API key from {ATTACKER}")]
    assert await world.reports() == []


async def test_flood_from_many_addresses_has_few_reports_and_little_memory(world: World) -> None:
    for number in range(MAX_ADDRESSES + 500):
        await world.failures.add(f"2001:db8:0:{number:x}::/64", LogInKind.API_KEY)
    assert len(await world.reports()) == REPORTS_PER_MINUTE
    assert len(world.failures._failures) == MAX_ADDRESSES


async def test_log_ins_to_the_console_are_limited_and_reported(world: World) -> None:
    for _ in range(3):
        with pytest.raises(UnauthorizedError):
            await world.sessions.open_by_link("A" * 43, user_agent="", address=ATTACKER)
    for _ in range(2):
        with pytest.raises(UnauthorizedError):
            await world.sessions.open_by_key(world.guess(), user_agent="", address=ATTACKER)
    for link in ("A" * 43, await world.sessions.create_link(None)):
        with pytest.raises(RateLimitError):
            await world.sessions.open_by_link(link, user_agent="", address=ATTACKER)
    with pytest.raises(RateLimitError):
        await world.sessions.open_by_key(world.guess(), user_agent="", address=ATTACKER)
    assert (await world.sessions.open_by_link(link, user_agent="", address=CALLER)).cookie
    assert (await world.reports())[0] == ("unknown", "", f"with a link to the console from {ATTACKER}")


async def test_outage_does_not_change_the_answer_to_a_failed_log_in(world: World) -> None:
    async def fail(_: object) -> None:
        raise DatabaseUnavailableError("unavailable for a test")

    world.db.before_write = fail
    assert await world.outcome(world.guess()) is UnauthorizedError
    assert await world.reports() == []


async def test_limit_can_be_turned_off(world: World) -> None:
    failures = FailedLogIns(audit=world.audit)
    world.access = Access(db=world.db, clock=world.clock, vault=VAULT, failures=failures)
    for _ in range(10 * LIMIT):
        assert await world.outcome(world.guess()) is UnauthorizedError
    assert len(await world.reports()) == 2
