"""Show the audit log: `matchpod audit`."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.organizations import find_organization
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, print_listing, print_note
from matchpod.service.access.organizations import Access
from matchpod.service.row_views import view_of
from matchpod.storage import audit_log

MAX_LISTED: Final = 10_000
"""Maximum value of `--limit`. More entries would not be useful in a terminal."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    at: str
    organization: str | None
    actor: str
    action: str
    target: str
    detail: str


_COLUMNS: Final[Columns[AuditRecord]] = {
    "at": lambda line: line.at[:19].replace("T", " "),
    "organization": lambda line: line.organization,
    "actor": lambda line: line.actor,
    "action": lambda line: line.action,
    "target": lambda line: line.target,
    "detail": lambda line: line.detail,
}


def audit(
    *,
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Only entries of this organization.")] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="Only entries about the installation, which belong to no organization.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MAX_LISTED, help="Maximum number of entries.")] = 20,
    json: AsJson = False,
) -> None:
    """Show the audit log, newest entries first. Times are UTC. Entries are kept for a year.

    The actor is `command line`, the id of a key (key_…) or the id of a session in the console (ses_…).
    """
    if org is not None and operator:
        fail("Use either --org or --operator, not both.", code=2)
    lines = run_with_resources(lambda resources: _lines(resources, org, is_operator=operator, limit=limit))
    print_listing(lines, _COLUMNS, as_json=json)
    if not lines:
        print_note("the audit log has no such entries")


async def _lines(resources: Resources, org: str | None, *, is_operator: bool, limit: int) -> list[AuditRecord]:
    db = resources.db
    access = Access(db=db, clock=resources.clock, vault=resources.vault)
    if org is not None:
        rows = await audit_log.list(db, (await find_organization(access, org)).id, limit=limit)
    elif is_operator:
        rows = await audit_log.list(db, None, limit=limit)
    else:
        rows = await audit_log.newest(db, limit=limit)
    names = {organization.id: organization.name for organization in await access.organizations()}
    return [view_of(AuditRecord, row, organization=row.org_id and names.get(row.org_id, row.org_id)) for row in rows]
