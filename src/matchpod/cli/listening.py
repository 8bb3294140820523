"""What does a callback look like when it arrives? `matchpod listen` is the receiver to try that with."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
import typer

from matchpod import listener
from matchpod.app import Ground
from matchpod.cli.opening import fail, run_on_ground, settings_of_process
from matchpod.cli.terminal import say
from matchpod.core.text_rules import shown
from matchpod.listener import Arrival, Callback, Listener, Score
from matchpod.service import webhook_signature
from matchpod.storage import organizations

DEMO = "demo"
"""The organization that is there from the first start on."""

MAX_PART = 300
"""Characters of one part of a line; an external id has 255 at most."""


def listen(
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any free one.")] = 9000,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="whsec_…", help="Check signatures with this webhook secret.")
    ] = None,
    org: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Check them with the secret of this organization.")
    ] = None,
    status: Annotated[
        int, typer.Option("--status", min=200, max=599, help="What to answer; 500 to try a failure.")
    ] = 204,
    json: Annotated[bool, typer.Option("--json", help="Print each body as one line.")] = False,
) -> None:
    """Receive callbacks and print them, until interrupted.

    Without --secret and --org the secret of the organization demo is used, if there is one on this machine.
    """
    if secret is not None and org is not None:
        fail("Give --secret or --org, not both.", code=2)
    known = _secret(secret, org)
    try:
        bound = listener.bind(host, port)
    except OSError as exc:
        fail(f"Port {port} of {host} is not to be had: {exc.strerror or exc}.")
    except UnicodeError:
        fail(f"--host must be an IP address or a host name, not {shown(host)!r}.", code=2)
    receiver = Listener(
        status=status,
        secrets=[] if known is None else [known],
        now_s=lambda: int(time.time()),
        on_arrival=partial(_print, as_json=json),
        on_refusal=lambda why: say(f"a request was refused: {_harmless(why)}"),
    )
    _listen(receiver, bound)


def _listen(receiver: Listener, bound: socket.socket) -> None:
    with bound:
        host, port = bound.getsockname()[:2]
        say(f'listening; create matches with "callbackUrl": "{listener.url_of(host, port)}"')
        try:
            listener.listen(receiver, bound)
        except KeyboardInterrupt:
            return  # that is how it ends


# --- the secret ---------------------------------------------------------------------------------------------------


def _secret(secret: str | None, org: str | None) -> str | None:
    if secret is not None:
        try:
            webhook_signature.sign(secret, "id", 0, b"")
        except ValueError as exc:
            fail(f"The value of --secret cannot be used: {exc}.", code=2)
        return secret
    if org is not None:
        found = run_on_ground(partial(_secret_of, name=org))
        if found is None:
            fail(f"There is no organization {shown(org)}.", code=2)
        return found
    settings = settings_of_process()
    if settings.database_url is None and not settings.database_path.exists():
        return None  # a receiver has no need of a database, so it makes none
    return run_on_ground(partial(_secret_of, name=DEMO))


async def _secret_of(ground: Ground, *, name: str) -> str | None:
    organization = await organizations.by_name(ground.db, name)
    if organization is None:
        return None
    try:
        return ground.vault.open(organization.webhook_secret)
    except ValueError as exc:
        fail(f"The secret of {shown(name)} cannot be opened: {exc}.", code=2)


# --- what is printed ----------------------------------------------------------------------------------------------


def _print(arrival: Arrival, *, as_json: bool) -> None:
    line = _one_line(arrival.body) if as_json else _described(arrival).encode(errors="replace")
    try:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever read our output has had enough. The way out must not meet the pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGINT)


def _one_line(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body


def _described(arrival: Arrival) -> str:
    callback = arrival.callback
    parts = [
        f"{datetime.now().astimezone():%H:%M:%S}",
        callback.event_type,
        callback.server_id,
        f"external id: {callback.external_match_id or 'none'}",
        _ending(callback),
        f"attempt {arrival.attempt or '?'}",
        f"Authorization: {'yes' if arrival.has_authorization else 'no'}",
        f"signature: {arrival.signature}",
    ]
    return "  ".join(_harmless(part) for part in parts)


def _ending(callback: Callback) -> str:
    if callback.result is None:
        return f"reason: {callback.reason or 'none'}"
    return _score(callback.result)


def _score(score: Score) -> str:
    if score.team1 is None or score.team2 is None:
        return f"winner: {score.winner_steam_id or 'none'} on {score.map or '?'}"
    maps = ", ".join(f"{one.team1_score}:{one.team2_score}" for one in score.maps)
    series = f"{score.team1.name} {score.team1.series_score}:{score.team2.series_score} {score.team2.name}"
    return f"winner: {score.winner or 'none'}  {series} ({maps or 'no maps'})"


def _harmless(text: str) -> str:
    """The text without what could command a terminal: names in a callback are whatever players call themselves."""
    cut = text if len(text) <= MAX_PART else text[:MAX_PART] + "…"
    return "".join(character if character.isprintable() else "\ufffd" for character in cut)
