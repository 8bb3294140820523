"""Build the console from the same services that the API uses."""

from __future__ import annotations

from cs2_simulator.scenarios import Scenario
from matchpod.app.first_run import LISTENER
from matchpod.app.resources import Resources
from matchpod.console.deps import ConsoleDeps
from matchpod.console.origins import OriginRules
from matchpod.console.page_updates import Broadcasts
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.access.key_management import KeyManagement
from matchpod.service.acknowledgements import Acknowledgements
from matchpod.service.match_claims import MatchClaims
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.operations.installation import Installation
from matchpod.service.overlays import Overlays
from matchpod.service.reading.match_details import MatchDetails
from matchpod.service.reading.wall import Overview
from matchpod.service.regions.alerts import RegionAlerts
from matchpod.service.regions.statistics import RegionStatistics
from matchpod.service.regions.switch import RegionSwitch
from matchpod.service.runner.deps import Deps
from matchpod.web import Services


def compose_console(
    resources: Resources, deps: Deps, services: Services, *, remote: RemoteMatches, owner: str
) -> ConsoleDeps:
    """Return what the pages of the console need."""
    db, clock = resources.db, resources.clock
    audit = services.audit
    region_alerts = RegionAlerts(db=db, clock=clock, regions=deps.regions)
    codes = [region.code for region in deps.regions.all()]
    return ConsoleDeps(
        services=services,
        sessions=ConsoleSessions(db=db, clock=clock, access=services.access, audit=audit),
        audit=audit,
        overview=Overview(
            db=db, clock=clock, regions=deps.regions, live=deps.live, remote=remote, alerts=region_alerts
        ),
        acknowledgements=Acknowledgements(db=db, clock=clock, audit=audit),
        claims=MatchClaims(db=db, clock=clock, audit=audit),
        details=MatchDetails(db=db, clock=clock, regions=deps.regions, live=deps.live, remote=remote),
        overlays=Overlays(db=db, clock=clock, audit=audit),
        keys=KeyManagement(services.access),
        installation=Installation(
            db=db,
            clock=clock,
            readiness=services.readiness,
            retention=resources.retention,
            regions=RegionSwitch(db=db, audit=audit, codes=codes),
            owner=owner,
        ),
        region_alerts=region_alerts,
        region_statistics=RegionStatistics(db=db, clock=clock, regions=deps.regions),
        scenarios={scenario.value: scenario.description for scenario in Scenario},
        sandbox_callback=LISTENER,
        origins=OriginRules(deps.ingest.base),
        broadcasts=Broadcasts(clock.now_ms),
        now_ms=clock.now_ms,
    )
