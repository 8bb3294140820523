"""Print a link that opens the console: `matchpod console`.

Only the link goes to standard output, so that it can be passed to a browser: `xdg-open "$(matchpod console)"`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from matchpod.app import Resources
from matchpod.cli.organizations import NO_ORGANIZATIONS, find_organization, names_text
from matchpod.cli.resources import fail, load_process_settings, run_with_resources
from matchpod.cli.terminal import print_note
from matchpod.core.requests.text_rules import printable
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import ConsoleSessions, login_url
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.identity.principals import LINK_ROLES, ConsoleRole, OrganizationView, Role
from matchpod.settings import Settings

_OWNER = Role.OWNER.value
IS_OFF = "The console is off. Set MATCHPOD_CONSOLE=on, or remove the setting `console`, and restart the service."


def console(
    *,
    org: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Log in as owner of this organization.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="Log in as operator of the installation, without an organization.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", metavar="PERSON", help="Who the link is for; shown in sessions and the audit log.")
    ] = "",
    role: Annotated[str, typer.Option("--role", metavar="|".join(LINK_ROLES), help="The role of the person.")] = _OWNER,
) -> None:
    """Print a link that opens the console in a browser. The link works once, within 5 minutes.

    Without options, the link is for an owner of the only organization. Anyone who has the link can use it, so create a
    separate link for each person.
    """
    settings = load_process_settings()
    if fault := _fault(settings, org, role, is_operator=operator):
        fail(fault, code=2)
    given = next(known for known in LINK_ROLES if known == role)
    token, shown = run_with_resources(
        lambda resources: _create_link(resources, org, name.strip(), given, is_operator=operator)
    )
    typer.echo(login_url(settings.ingest_base(), token))
    person = f" ({name.strip()})" if name.strip() else ""
    print_note(f"open this link in a browser to log in as {shown}{person}; it works once, for 5 minutes")


def _fault(settings: Settings, org: str | None, role: str, *, is_operator: bool) -> str | None:
    if org is not None and is_operator:
        return "Use either --org or --operator, not both."
    if role not in LINK_ROLES:
        return f"Unknown role {printable(role)!r}. Known roles: {', '.join(LINK_ROLES)}."
    if role != _OWNER and is_operator:
        return "Use either --role or --operator, not both."
    if not settings.console:
        return IS_OFF
    if settings.public_url is None and settings.port == 0:
        return (
            "The port of the service is not known: the setting `port` is 0. Set another port, or MATCHPOD_PUBLIC_URL."
        )
    return None


async def _create_link(
    resources: Resources, org: str | None, name: str, role: Role | ConsoleRole, *, is_operator: bool
) -> tuple[str, str]:
    """Create a link. Return its token, and a description of the role that it gives."""
    access = Access(db=resources.db, clock=resources.clock, vault=resources.vault)
    audit = Audit(db=resources.db, clock=resources.clock)
    sessions = ConsoleSessions(db=resources.db, clock=resources.clock, access=access, audit=audit)
    if is_operator:
        return await sessions.create_link(None, name=name), "operator"
    chosen = await (_only_organization(access) if org is None else find_organization(access, org))
    return await sessions.create_link(chosen.id, name=name, role=role), f"{role} of {chosen.name}"


async def _only_organization(access: Access) -> OrganizationView:
    found = await access.organizations()
    if not found:
        raise AccessError(NO_ORGANIZATIONS)
    if len(found) > 1:
        raise AccessError(f"Choose an organization with --org, or --operator. Organizations: {names_text(found)}.")
    return found[0]
