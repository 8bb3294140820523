"""Show operators the state of the installation, its processes and its organizations."""

from __future__ import annotations

from matchpod.console.visit import Visit
from matchpod.console.wall import failing_regions
from matchpod.core.errors import InvalidParamsError
from matchpod.service.access.organizations import MAX_NAME
from matchpod.web.http.responses import Response

PATH = "/console/operator"


async def overview(visit: Visit, *, name: str = "", fault: str = "", status: int = 200) -> Response:
    """Show the page with the state of the installation."""
    return visit.page(
        "operator.html",
        status=status,
        installation=await visit.deps.installation.read(),
        regions=await visit.deps.services.regions.states(),
        failing=failing_regions(visit.region_alerts),
        name=name,
        fault=fault,
        max_name=MAX_NAME,
    )


async def create_organization(visit: Visit) -> Response:
    """Create an organization that has no API keys yet."""
    name = (await visit.form()).get("name", "")
    try:
        await visit.deps.keys.create_organization(name, actor=visit.user.session_id)
    except InvalidParamsError as exc:
        return await overview(visit, name=name, fault=str(exc), status=exc.status)
    return visit.done(PATH, "organization-created")
