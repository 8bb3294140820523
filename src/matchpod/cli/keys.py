"""What opens the API? `matchpod keys`: making, listing, rotating and revoking keys.

The text of a new key stands alone on standard output, so that it can go straight into a file or a variable.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from matchpod.cli.opening import fail
from matchpod.cli.organizations import run_with_access
from matchpod.cli.terminal import Columns, minute, print_listing, say
from matchpod.core.text_rules import shown
from matchpod.service.access import CACHE_MS
from matchpod.service.principals import KeyView, NewKey, Role, Scope

UNIT_S: Final = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

_DURATION: Final = re.compile(r"([0-9]{1,9})([smhd])")
_CACHE_S: Final = CACHE_MS // 1000

_ORG = Annotated[str, typer.Option("--org", metavar="NAME", help="The organization.")]
_KEY_ID = Annotated[str, typer.Argument(metavar="KEY_ID", help="The id of the key, as keys list shows it.")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help=(
        "API keys of organizations. A key is shown once, when it is made."
        f" A running service may accept a revoked key for up to {_CACHE_S} more seconds."
    ),
)


def usual_scopes(role: Role) -> tuple[Scope, ...]:
    """What a key is for when nobody says: members look, the others also create and cancel."""
    return (Scope.SERVERS_READ,) if role is Role.MEMBER else (Scope.SERVERS_READ, Scope.SERVERS_WRITE)


@app.command()
def create(
    *,
    org: _ORG,
    role: Annotated[Role, typer.Option("--role", help="Only owners and admins create and cancel matches.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            metavar="servers:read|servers:write",
            help="May be repeated. Default: both for owner and admin, servers:read for member.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What the key is for, to tell keys apart.")] = "",
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="TIME", help="Such as 90d, 12h, 30m or 45s. Default: it never expires."),
    ] = None,
) -> None:
    """Make a key and print it: this once, it cannot be shown again."""
    expires_in_s = None if expires_in is None else _seconds(expires_in, "--expires-in")
    made = run_with_access(
        lambda access: access.create_key(
            org, name=name, role=role, scopes=scope or usual_scopes(role), expires_in_s=expires_in_s
        )
    )
    _print_new(made, f"key {made.view.id} of {org}: {role}, {' '.join(made.view.scopes)}")


@app.command("list")
def list_keys(
    org: _ORG,
    json: Annotated[bool, typer.Option("--json", help="Print an array of objects instead of a table.")] = False,
) -> None:
    """List the keys of an organization, ended ones too, the oldest first. Times are UTC."""
    found = run_with_access(lambda access: access.keys(org))
    columns: Columns[KeyView] = {
        "id": lambda key: key.id,
        "name": lambda key: key.name,
        "begins": lambda key: key.prefix,
        "role": lambda key: key.role.value,
        "scopes": lambda key: " ".join(key.scopes),
        "state": lambda key: key.state.value,
        "expires": lambda key: minute(key.expires_at),
        "last used": lambda key: minute(key.last_used_at),
    }
    print_listing(found, columns, as_json=json)
    if not found:
        say(f"{org} has no keys yet; see matchpod keys create --help")


@app.command()
def rotate(
    key_id: _KEY_ID,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="TIME", help="How long the old key goes on; 0s ends it at once.")
    ] = "24h",
) -> None:
    """Make a key like an old one and print it; the old one goes on for a while.

    The new key has the same name, role and scopes, and as long a life as the old one was given.
    """
    overlap_s = _seconds(overlap, "--overlap")
    made = run_with_access(lambda access: access.rotate_key(key_id, overlap_s=overlap_s))
    _print_new(made, f"key {made.view.id} takes the place of {key_id}, which ends in {overlap} at the latest")


@app.command(help=f"End a key for good. A running service may accept a revoked key for up to {_CACHE_S} more seconds.")
def revoke(key_id: _KEY_ID) -> None:
    """End a key for good."""
    if run_with_access(lambda access: access.revoke_key(key_id)):
        say(f"key {key_id} revoked; a running service may accept it for up to {_CACHE_S} more seconds")
    else:
        say(f"key {key_id} was revoked before")


def _print_new(made: NewKey, what: str) -> None:
    typer.echo(made.text)
    expiry = f"expires {minute(made.view.expires_at)} UTC" if made.view.expires_at else "never expires"
    say(f"{what}; it {expiry}, and is shown this once")


def _seconds(text: str, option: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        fail(f"{option} must be a whole number and s, m, h or d, such as 90d or 24h, not {shown(text)!r}.", code=2)
    return int(found[1]) * UNIT_S[found[2]]
