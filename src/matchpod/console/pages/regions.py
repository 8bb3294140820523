"""Regions: which there are, whether they accept matches, and how many servers are free."""

from __future__ import annotations

from matchpod.console.visit import Visit
from matchpod.service.identity.principals import Scope
from matchpod.web.http.responses import Response

PATH = "/console/regions"


async def table(visit: Visit) -> Response:
    """Show all regions, with the last 24 hours of the organization; for operators of all organizations.

    A key that may not read matches sees the regions only.
    """
    user = visit.user
    may_read = user.principal is None or Scope.SERVERS_READ in user.principal.scopes
    days = await visit.deps.region_statistics.last_day(user.org_id) if may_read else ()
    regions = await visit.deps.services.regions.states()
    return visit.page("regions.html", regions=regions, days={day.code: day for day in days})


async def switch_on(visit: Visit) -> Response:
    """Accept new matches in a region."""
    return await _switch(visit, is_active=True)


async def switch_off(visit: Visit) -> Response:
    """Accept no new matches in a region."""
    return await _switch(visit, is_active=False)


async def _switch(visit: Visit, *, is_active: bool) -> Response:
    code = visit.call.params[0]
    await visit.deps.installation.switch_region(code, is_active=is_active, actor=visit.user.session_id)
    return visit.done(PATH, "region-on" if is_active else "region-off")
