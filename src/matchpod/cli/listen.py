"""Receive and print callbacks, for trying them out: `matchpod listen`."""

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

from matchpod import callback_receiver
from matchpod.app import Resources, ResourcesError
from matchpod.app.http_server import bind
from matchpod.callback_receiver import Callback, CallbackReceiver, ReceivedCallback
from matchpod.cli.resources import fail, load_process_settings, run_with_resources
from matchpod.cli.terminal import print_note
from matchpod.core.requests.text_rules import printable
from matchpod.service.access import webhook_signature
from matchpod.storage import organizations

DEMO = "demo"
"""Name of the organization that the first start of the service creates."""

MAX_PART = 300
"""Maximum number of characters to print per field of a callback. An external id has at most 255."""


def listen(
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any free port.")] = 9000,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="whsec_…", help="Check signatures with this webhook secret.")
    ] = None,
    org: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Check signatures with the secret of this organization.")
    ] = None,
    status: Annotated[
        int, typer.Option("--status", min=200, max=599, help="The response status; 500 simulates a failure.")
    ] = 204,
    json: Annotated[bool, typer.Option("--json", help="Print each body as one line.")] = False,
) -> None:
    """Receive callbacks and print them, until interrupted.

    Without --secret and --org, signatures are checked with the secret of the organization `demo`, if there is one.
    """
    if secret is not None and org is not None:
        fail("Give --secret or --org, not both.", code=2)
    key = _secret(secret, org)
    try:
        host.encode("idna")
        bound = bind(host, port)
    except ResourcesError as exc:
        fail(str(exc))
    except UnicodeError:
        fail(f"--host must be an IP address or a host name, not {printable(host)!r}.", code=2)
    receiver = CallbackReceiver(
        status=status,
        secrets=[] if key is None else [key],
        now_s=lambda: int(time.time()),
        on_callback=partial(_print, as_json=json),
        on_rejection=lambda reason: print_note(f"request rejected: {_printable(reason)}"),
    )
    _listen(receiver, bound)


def _listen(receiver: CallbackReceiver, bound: socket.socket) -> None:
    with bound:
        url = callback_receiver.url_of(*bound.getsockname()[:2])
        note = f'listening; create matches with "callbackUrl": "{url}"'
        callback_receiver.listen(receiver, bound, on_listening=lambda: print_note(note))


# --- the secret ---------------------------------------------------------------------------------------------------


def _secret(secret: str | None, org: str | None) -> str | None:
    if secret is not None:
        try:
            webhook_signature.sign(secret, "id", 0, b"")
        except ValueError as exc:
            fail(f"The value of --secret cannot be used: {exc}.", code=2)
        return secret
    if org is not None:
        found = run_with_resources(partial(_secret_of, name=org))
        if found is None:
            fail(f"There is no organization {printable(org)}.", code=2)
        return found
    settings = load_process_settings()
    if settings.database_url is None and not settings.database_path.exists():
        return None  # this command must not create a database
    return run_with_resources(partial(_secret_of, name=DEMO))


async def _secret_of(resources: Resources, *, name: str) -> str | None:
    organization = await organizations.by_name(resources.db, name)
    if organization is None:
        return None
    try:
        return resources.vault.open(organization.webhook_secret)
    except ValueError as exc:
        fail(f"The secret of {printable(name)} cannot be decrypted: {exc}.", code=2)


# --- output -------------------------------------------------------------------------------------------------------


def _print(received: ReceivedCallback, *, as_json: bool) -> None:
    line = _one_line(received.body) if as_json else _describe(received).encode(errors="replace")
    try:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader of our output has closed the pipe. Replace standard output, so that exiting does not write to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGINT)


def _one_line(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body


def _describe(received: ReceivedCallback) -> str:
    callback = received.callback
    parts = [
        f"{datetime.now().astimezone():%H:%M:%S}",
        callback.event_type,
        callback.server_id,
        f"external id: {callback.external_match_id or 'none'}",
        _outcome_text(callback),
        f"attempt {received.attempt or '?'}",
        f"Authorization: {'yes' if received.has_authorization else 'no'}",
        f"signature: {received.signature}",
    ]
    return "  ".join(_printable(part) for part in parts)


def _outcome_text(callback: Callback) -> str:
    result = callback.result
    if result is None:
        return f"reason: {callback.reason or 'none'}"
    if result.team1 is None or result.team2 is None:
        return f"winner: {result.winner_steam_id or 'none'} on {result.map or '?'}"
    maps = ", ".join(f"{score.team1_score}:{score.team2_score}" for score in result.maps)
    series = f"{result.team1.name} {result.team1.series_score}:{result.team2.series_score} {result.team2.name}"
    by_forfeit = " by forfeit" if callback.forfeit else ""
    return f"winner: {result.winner or 'none'}{by_forfeit}  {series} ({maps or 'no maps'})"


def _printable(text: str) -> str:
    """Truncate a text and replace its control characters, because players choose the names in a callback."""
    short = text if len(text) <= MAX_PART else text[:MAX_PART] + "…"
    return "".join(character if character.isprintable() else "\ufffd" for character in short)
