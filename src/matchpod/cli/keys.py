"""Create, list, rotate and revoke API keys: `matchpod keys`.

Only the new key itself goes to standard output, so that it can be piped into a file or a variable.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from matchpod.cli.organizations import run_with_access
from matchpod.cli.resources import fail
from matchpod.cli.terminal import AsJson, Columns, command_group, print_listing, print_note, short_time
from matchpod.core.requests.text_rules import printable
from matchpod.service.access.organizations import CACHE_MS
from matchpod.service.identity.principals import KeyView, NewKey, Role, Scope

UNIT_S: Final = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

_DURATION: Final = re.compile(r"([0-9]{1,9})([smhd])")
_CACHE_S: Final = CACHE_MS // 1000

_ORG = Annotated[str, typer.Option("--org", metavar="NAME", help="The organization.")]
_KEY_ID = Annotated[str, typer.Argument(metavar="KEY_ID", help="The id of the key, as keys list shows it.")]

app = command_group(
    "API keys of organizations. A key is shown only once, when it is created."
    f" A running service may accept a revoked key for up to {_CACHE_S} more seconds."
)


def default_scopes(role: Role) -> tuple[Scope, ...]:
    """Return the scopes of a key that is created without --scope: members read, other roles also write."""
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
        typer.Option(
            "--expires-in", metavar="TIME", help="Such as 90d, 12h, 30m or 45s. Default: the key never expires."
        ),
    ] = None,
) -> None:
    """Create an API key and print it. It is not shown again."""
    expires_in_s = None if expires_in is None else _seconds(expires_in, "--expires-in")
    new_key = run_with_access(
        lambda access: access.create_key(
            org, name=name, role=role, scopes=scope or default_scopes(role), expires_in_s=expires_in_s
        )
    )
    _print_new(new_key, f"key {new_key.view.id} of {org}: {role}, {' '.join(new_key.view.scopes)}")


@app.command("list")
def list_keys(
    org: _ORG,
    json: AsJson = False,
) -> None:
    """List the keys of an organization, oldest first, including expired and revoked keys. Times are UTC."""
    found = run_with_access(lambda access: access.keys(org))
    columns: Columns[KeyView] = {
        "id": lambda key: key.id,
        "name": lambda key: key.name,
        "prefix": lambda key: key.prefix,
        "role": lambda key: key.role.value,
        "scopes": lambda key: " ".join(key.scopes),
        "state": lambda key: key.state.value,
        "expires": lambda key: short_time(key.expires_at),
        "last used": lambda key: short_time(key.last_used_at),
    }
    print_listing(found, columns, as_json=json)
    if not found:
        print_note(f"{org} has no keys yet; see matchpod keys create --help")


@app.command()
def rotate(
    key_id: _KEY_ID,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="TIME", help="How long the old key stays valid; may be 0s.")
    ] = "24h",
) -> None:
    """Create a replacement for a key and print it. The old key stays valid for the time in --overlap.

    The new key has the same name, role, scopes and lifetime as the old key.
    """
    overlap_s = _seconds(overlap, "--overlap")
    new_key = run_with_access(lambda access: access.rotate_key(key_id, overlap_s=overlap_s))
    _print_new(new_key, f"key {new_key.view.id} replaces {key_id}, which expires in {overlap} at the latest")


@app.command(help=f"Revoke a key permanently. A running service may accept it for up to {_CACHE_S} more seconds.")
def revoke(key_id: _KEY_ID) -> None:
    """Revoke a key permanently."""
    if run_with_access(lambda access: access.revoke_key(key_id)):
        print_note(f"key {key_id} revoked; a running service may accept it for up to {_CACHE_S} more seconds")
    else:
        print_note(f"key {key_id} was already revoked")


def _print_new(new_key: NewKey, what: str) -> None:
    typer.echo(new_key.text)
    expiry = f"expires {short_time(new_key.view.expires_at)} UTC" if new_key.view.expires_at else "never expires"
    print_note(f"{what}; it {expiry} and is shown only once")


def _seconds(text: str, option: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        fail(f"{option} must be a whole number followed by s, m, h or d, such as 90d, not {printable(text)!r}.", code=2)
    return int(found[1]) * UNIT_S[found[2]]
