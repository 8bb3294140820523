"""Invalid headers, names and durations are rejected without a database query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import UnauthorizedError
from matchpod.ports import Row, Statement, Value
from matchpod.service.access import organizations as rules
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.identity.principals import Principal, Role, Scope
from tests.clocks import ManualClock
from tests.vaults import VAULT

KEY = "mk_live_" + "aB3_-" * 8 + "xyz"
BOTH = frozenset(Scope)


class NoDatabase:
    is_shared = is_postgres = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        raise AssertionError(f"unexpected query: {sql}")

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise AssertionError(f"unexpected write: {statements}")

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        raise AssertionError("unexpected")

    async def close(self) -> None: ...


class EmptyDatabase(NoDatabase):
    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        return []


def access(db: NoDatabase | None = None) -> Access:
    return Access(db=db or NoDatabase(), clock=ManualClock(), vault=VAULT)


def rejection(header: str | None, db: NoDatabase | None = None) -> str:
    async def authenticate() -> None:
        await access(db).authenticate(header)

    with pytest.raises(UnauthorizedError) as caught:
        asyncio.run(authenticate())
    return str(caught.value)


@pytest.mark.parametrize("header", [None, "", "  "])
def test_missing_header_is_reported_as_missing(header: str | None) -> None:
    assert rejection(header) == rules.KEY_MISSING


@pytest.mark.parametrize(
    "header", [KEY, "Bearer", "Bearer ", f"Basic {KEY}", f"Bearer {KEY} {KEY}", f"Bearer\t{KEY}", f"Bearer{KEY}"]
)
def test_malformed_header_is_reported_with_the_expected_format(header: str) -> None:
    assert rejection(header) == rules.KEY_MALFORMED


@pytest.mark.parametrize("key", ["x", "mk_live_", KEY[:-1], KEY + "x", KEY[:-1] + "é", KEY[:-1] + "=", KEY.upper()])
def test_text_that_is_not_a_key_is_rejected_without_a_query(key: str) -> None:
    assert rejection(f"Bearer {key}") == "The API key is not valid."


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "Bearer   ", " Bearer "])
def test_scheme_is_case_insensitive(scheme: str) -> None:
    assert rejection(f"{scheme}{KEY}", EmptyDatabase()) == rules.KEY_INVALID


@given(st.text())
def test_any_header_gets_one_of_three_error_texts(header: str) -> None:
    assert rejection(header, EmptyDatabase()) in {rules.KEY_MISSING, rules.KEY_MALFORMED, rules.KEY_INVALID}


@pytest.mark.parametrize(
    ("role", "scopes", "may_create"),
    [
        (Role.OWNER, BOTH, True),
        (Role.ADMIN, {Scope.SERVERS_WRITE}, True),
        (Role.MEMBER, BOTH, False),
        (Role.OWNER, {Scope.SERVERS_READ}, False),
    ],
)
def test_only_owners_and_admins_with_write_scope_may_create_matches(
    role: Role, scopes: set[Scope], may_create: bool
) -> None:
    assert Principal(org_id="o", key_id="k", role=role, scopes=frozenset(scopes)).may_create is may_create


@pytest.mark.parametrize("name", ["", " ", " acme", "acme\n", "a\tb", "a\u202eb", "x" * 65])
def test_invalid_organization_name_is_rejected(name: str) -> None:
    with pytest.raises(AccessError, match="The name of an organization"):
        asyncio.run(access().create_organization(name))


@pytest.mark.parametrize("name", [" ci", "a\x1b[0m", "x" * 65])
def test_invalid_key_name_is_rejected(name: str) -> None:
    with pytest.raises(AccessError, match="The name of a key"):
        asyncio.run(access().create_key("acme", name=name, role=Role.OWNER, scopes=BOTH))


@pytest.mark.parametrize("expires_in_s", [0, -1, rules.MAX_EXPIRES_IN_S + 1])
def test_lifetime_of_a_key_is_one_second_to_ten_years(expires_in_s: int) -> None:
    with pytest.raises(AccessError, match="3650 days"):
        asyncio.run(access().create_key("acme", role=Role.OWNER, scopes=BOTH, expires_in_s=expires_in_s))


@pytest.mark.parametrize("overlap_s", [-1, rules.MAX_OVERLAP_S + 1])
def test_overlap_is_at_most_30_days(overlap_s: int) -> None:
    with pytest.raises(AccessError, match="30 days"):
        asyncio.run(access().rotate_key("key_1", overlap_s=overlap_s))


def test_key_needs_a_scope() -> None:
    with pytest.raises(AccessError, match="at least one"):
        asyncio.run(access().create_key("acme", role=Role.OWNER, scopes=()))
