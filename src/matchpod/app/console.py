"""Build the console from the services that the API uses too."""

from __future__ import annotations

from matchpod.app.resources import Resources
from matchpod.console.broadcasts import Broadcasts
from matchpod.console.deps import ConsoleDeps
from matchpod.console.doors import Doors
from matchpod.service.audit import Audit
from matchpod.service.console_sessions import ConsoleSessions
from matchpod.service.match_details import MatchDetails
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.overlays import Overlays
from matchpod.service.overview import Overview
from matchpod.service.runner.deps import Deps
from matchpod.web import Services


def compose_console(
    resources: Resources, deps: Deps, services: Services, *, remote: RemoteMatches, public_url: str
) -> ConsoleDeps:
    """Build what the pages of the console depend on."""
    db, clock = resources.db, resources.clock
    audit = Audit(db=db, clock=clock)
    return ConsoleDeps(
        services=services,
        sessions=ConsoleSessions(db=db, clock=clock, access=services.access, audit=audit),
        audit=audit,
        overview=Overview(db=db, clock=clock, regions=deps.regions, live=deps.live, remote=remote),
        details=MatchDetails(db=db, clock=clock, regions=deps.regions, live=deps.live, remote=remote),
        overlays=Overlays(db=db, clock=clock, audit=audit),
        doors=Doors(public_url),
        broadcasts=Broadcasts(),
        now_ms=clock.now_ms,
    )
