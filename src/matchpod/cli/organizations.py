"""Who may use the service? `matchpod orgs`: organizations and the secrets that sign their callbacks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from matchpod.app import Ground
from matchpod.cli.opening import fail, run_on_ground
from matchpod.cli.terminal import Columns, minute, print_listing, say
from matchpod.service.access import Access, AccessError
from matchpod.service.principals import OrganizationView

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Organizations: each sees its own matches only and signs its callbacks with its own secret.",
)

_T = TypeVar("_T")


def run_with_access(work: Callable[[Access], Awaitable[_T]], *, needs_key: bool = False) -> _T:
    """Do something with organizations and keys; what cannot be done is one sentence and exit code 2."""

    async def on_ground(ground: Ground) -> _T:
        return await work(Access(db=ground.db, clock=ground.clock, vault=ground.vault))

    try:
        return run_on_ground(on_ground, needs_key=needs_key)
    except AccessError as fault:
        fail(str(fault), code=2)


@app.command()
def create(name: Annotated[str, typer.Argument(help="What to call it; no two have the same name.")]) -> None:
    """Add an organization and print its id."""
    created = run_with_access(lambda access: access.create_organization(name), needs_key=True)
    typer.echo(created.id)
    say(f"organization {created.name} created; it needs a key: matchpod keys create --help")


@app.command("list")
def list_organizations(
    json: Annotated[bool, typer.Option("--json", help="Print an array of objects instead of a table.")] = False,
) -> None:
    """List all organizations, by name. Times are UTC."""
    found = run_with_access(lambda access: access.organizations())
    columns: Columns[OrganizationView] = {
        "id": lambda one: one.id,
        "name": lambda one: one.name,
        "created": lambda one: minute(one.created_at),
    }
    print_listing(found, columns, as_json=json)
    if not found:
        say("there are no organizations yet; see matchpod orgs create --help")


@app.command("webhook-secret")
def webhook_secret(
    name: Annotated[str, typer.Argument(help="The organization.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Make a new secret first; the old one signs nothing any more.")
    ] = False,
) -> None:
    """Print the secret that signs an organization's callbacks."""
    if replace:
        secret = run_with_access(lambda access: access.replace_webhook_secret(name))
        say(f"the callbacks of {name} are signed with this new secret from now on")
    else:
        secret = run_with_access(lambda access: access.webhook_secret(name))
    typer.echo(secret)
