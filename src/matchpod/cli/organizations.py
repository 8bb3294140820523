"""Create and list organizations, and show their webhook secrets: `matchpod orgs`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, TypeVar

import typer

from matchpod.app import Resources
from matchpod.cli.resources import run_with_resources
from matchpod.cli.terminal import AsJson, Columns, command_group, print_listing, print_note, short_time
from matchpod.core.requests.text_rules import printable
from matchpod.service.access.organizations import Access, AccessError
from matchpod.service.identity.principals import OrganizationView

app = command_group("Organizations: each sees only its own matches and has its own secret to sign callbacks.")

MAX_NAMES: Final = 20
"""Maximum number of organizations to name in an error message."""
NO_ORGANIZATIONS: Final = "There are no organizations yet. Create one: matchpod orgs create NAME."

_T = TypeVar("_T")


def run_with_access(
    work: Callable[[Access], Awaitable[_T]], *, needs_key: bool = False, may_create: bool = False
) -> _T:
    async def with_access(resources: Resources) -> _T:
        return await work(Access(db=resources.db, clock=resources.clock, vault=resources.vault))

    return run_with_resources(with_access, needs_key=needs_key, may_create=may_create)


async def find_organization(access: Access, name: str) -> OrganizationView:
    """Return the organization with this name; raise AccessError with the known names if there is none."""
    known = await access.organizations()
    for organization in known:
        if organization.name == name:
            return organization
    others = f"Organizations: {names_text(known)}." if known else NO_ORGANIZATIONS
    raise AccessError(f"There is no organization named {printable(name)!r}. {others}")


def names_text(known: Sequence[OrganizationView]) -> str:
    """Return the first MAX_NAMES names of these organizations, separated by commas."""
    names = ", ".join(organization.name for organization in known[:MAX_NAMES])
    return names if len(known) <= MAX_NAMES else f"{names} and {len(known) - MAX_NAMES} others"


@app.command()
def create(name: Annotated[str, typer.Argument(help="A unique name.")]) -> None:
    """Create an organization and print its id."""
    created = run_with_access(lambda access: access.create_organization(name), needs_key=True, may_create=True)
    typer.echo(created.id)
    print_note(f"organization {created.name} created; it needs a key: matchpod keys create --help")


@app.command("list")
def list_organizations(
    json: AsJson = False,
) -> None:
    """List all organizations, ordered by name. Times are UTC."""
    found = run_with_access(lambda access: access.organizations())
    columns: Columns[OrganizationView] = {
        "id": lambda organization: organization.id,
        "name": lambda organization: organization.name,
        "created": lambda organization: short_time(organization.created_at),
    }
    print_listing(found, columns, as_json=json)
    if not found:
        print_note("there are no organizations yet; see matchpod orgs create --help")


@app.command("webhook-secret")
def webhook_secret(
    name: Annotated[str, typer.Argument(help="The organization.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Create a new secret first. The old secret also signs for a day.")
    ] = False,
    now: Annotated[bool, typer.Option("--now", help="Stop using the old secret now instead of after a day.")] = False,
) -> None:
    """Print the secret that signs an organization's callbacks. This is recorded in the audit log."""
    if replace:
        secret = run_with_access(lambda access: access.replace_webhook_secret(name, keeps_old=not now))
        also = "" if now else ", and for a day also with the old secret; --now ends that"
        print_note(f"the callbacks of {name} are now signed with this new secret{also}")
    else:
        secret = run_with_access(lambda access: access.reveal_webhook_secret(name))
        if now:
            run_with_access(lambda access: access.end_old_webhook_secret(name))
            print_note(f"the callbacks of {name} are now signed with this secret only")
    typer.echo(secret)
