"""Show all regions, whether they accept matches, and how many servers are free. Switch and check regions."""

from __future__ import annotations

from typing import Final

from matchpod.console.visit import Visit
from matchpod.console.wall import failing_regions
from matchpod.service.identity.principals import Scope
from matchpod.service.region_checks.requests import CheckProgress
from matchpod.web.http.responses import Header, Response

PATH = "/console/regions"

REFRESH: Final[Header] = (b"refresh", b"2")
"""Header that makes browsers reload the page every 2 s while a region is being checked."""


async def table(visit: Visit) -> Response:
    """Show all regions, with statistics of the last 24 hours: those of the user's organization; for operators, of all.

    Users who may not read matches see the regions without the statistics.
    """
    user = visit.user
    may_read = user.principal is None or Scope.SERVERS_READ in user.principal.scopes
    days = await visit.deps.region_statistics.last_day(user.org_id) if may_read else ()
    regions = await visit.deps.services.regions.states()
    checks = await visit.deps.services.region_checks.read_all() if user.is_operator else {}
    is_checking = any(check.state in (CheckProgress.REQUESTED, CheckProgress.RUNNING) for check in checks.values())
    return visit.page(
        "regions.html",
        headers=(REFRESH,) if is_checking else (),
        regions=regions,
        failing=failing_regions(visit.region_alerts),
        days={day.code: day for day in days},
        checks=checks,
    )


async def switch_on(visit: Visit) -> Response:
    """Switch a region on, so that it accepts new matches."""
    return await _switch(visit, is_active=True)


async def switch_off(visit: Visit) -> Response:
    """Switch a region off, so that it accepts no new matches."""
    return await _switch(visit, is_active=False)


async def check(visit: Visit) -> Response:
    """Request that the service checks the servers of a region. In a cluster, the check allocates a waiting pod."""
    code, services = visit.call.params[0], visit.deps.services
    region = services.regions.get(code)
    may_allocate = region is not None and region.fleet.slots is None
    await services.region_checks.request(code, actor=visit.user.session_id, may_allocate=may_allocate)
    return visit.done(PATH, "region-checking")


async def _switch(visit: Visit, *, is_active: bool) -> Response:
    code = visit.call.params[0]
    await visit.deps.installation.switch_region(code, is_active=is_active, actor=visit.user.session_id)
    return visit.done(PATH, "region-on" if is_active else "region-off")
