"""Requests to the console wait for the turn of the organization that a person is logged in to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from matchpod.console.routes import LOGIN, ROUTES
from matchpod.console.visit import Who
from matchpod.service.fair_turns import TurnKey
from matchpod.web.request_turns import NO_KEY, OPERATORS, queue_of
from tests.contract.console import console_site
from tests.contract.console.console_site import OPERATOR, OWNER, ConsoleSite
from tests.contract.console.test_routes import address

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

TIMEOUT_S = 60.0
AT_ONCE = 10
"""Pages that are asked for while all places are held: to hold them takes far longer than to ask."""
PAGE = "/console/regions"


@asynccontextmanager
async def held(site: ConsoleSite, *keys: TurnKey) -> AsyncIterator[None]:
    """Hold all places of these queues until the end of the block."""
    turns, taken = site.service.streams.fair_turns, list[TurnKey]()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            for key in keys:
                for _ in range(turns.limits.of_key * key.parallel):
                    while not turns.begin(key):
                        await asyncio.sleep(0.001)  # a second turn of the same key may have to wait, too
                    taken.append(key)
            yield
    finally:
        for key in taken:
            turns.end(key)


async def until_waiting(site: ConsoleSite, count: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while site.service.streams.fair_turns.waiting < count:
            await asyncio.sleep(0)


async def test_every_page_waits_for_a_turn(site: ConsoleSite) -> None:
    queues = [queue_of(owner, method) for owner in (site.org_ids["ours"], OPERATORS) for method in ("GET", "POST")]
    for first in range(0, len(ROUTES), AT_ONCE):
        waiting = []
        async with held(site, NO_KEY, *queues):
            for route in ROUTES[first : first + AT_ONCE]:
                who = None if route.who is Who.ANYONE else OPERATOR if route.who is Who.OPERATOR else OWNER
                form: dict[str, str] | None = {} if route.method == "POST" else None
                path = address(route).replace("/login/0", "/login/x")
                waiting += [
                    asyncio.ensure_future(site.request(route.method, f"{path}?unknown=1", who=who, form=form)),
                    asyncio.ensure_future(site.request("GET", f"{path}/", who=who)),
                ]
            await until_waiting(site, len(waiting))
        assert {(await one).status_code for one in waiting} <= {200, 303, 308, 400, 401, 403, 404, 405}


async def test_people_without_a_session_share_one_queue(site: ConsoleSite) -> None:
    async with held(site, NO_KEY):
        waiting = [asyncio.ensure_future(site.request("GET", path)) for path in (PAGE, LOGIN, "/console/nothing")]
        await until_waiting(site, len(waiting))
        assert (await site.request("GET", PAGE, who=OWNER)).status_code == 200
    assert [(await one).status_code for one in waiting] == [303, 200, 404]
