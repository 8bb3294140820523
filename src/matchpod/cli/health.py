"""Ask the service on this machine whether it is ready or alive: `matchpod health`."""

from __future__ import annotations

import http.client
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import typer

from matchpod.cli.resources import fail, load_process_settings
from matchpod.cli.terminal import print_note
from matchpod.core.requests.text_rules import printable
from matchpod.settings import Settings

MAX_BYTES: Final = 65_536
"""Maximum number of bytes to read from a response, because another program may be listening on the port."""


class _Reason(msgspec.Struct):
    message: str


class _Health(msgspec.Struct):
    """The body of the response to a probe: the health of the process, or an error."""

    version: str = ""
    warnings: tuple[str, ...] = ()
    message: str = ""
    details: tuple[_Reason, ...] = ()


def health(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Only ask whether the process responds, not whether it is ready.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=60, metavar="SECONDS", help="How long to wait for the answer.")
    ] = 5.0,
) -> None:
    """Ask the service on this machine whether it is ready. Containers use --live for their HEALTHCHECK.

    Exit code 0 if it is ready, 1 if it is not ready or does not answer, 2 if the settings are invalid. The request goes
    to MATCHPOD_HOST and MATCHPOD_OPS_PORT (if set) or MATCHPOD_PORT. This command opens neither the data folder nor the
    database.
    """
    url = _probe_url(load_process_settings(), "/healthz" if live else "/readyz")
    status, answer = _get(url, timeout)
    if status != HTTPStatus.OK:
        reasons = " ".join(reason.message for reason in answer.details) or answer.message or f"status {status}."
        fail(f"The service at {url} is not {'alive' if live else 'ready'}: {printable(reasons)}")
    typer.echo(f"The service at {url} is {'alive' if live else 'ready'} (version {printable(answer.version)}).")
    for warning in answer.warnings:
        print_note(printable(warning))


def _probe_url(settings: Settings, path: str) -> str:
    port = settings.port if settings.ops_port is None else settings.ops_port
    if port == 0:
        name = "PORT" if settings.ops_port is None else "OPS_PORT"
        fail(f"MATCHPOD_{name} is 0, so the service listens on any free port; set it to the port to ask.", code=2)
    return msgspec.structs.replace(settings, public_url=None).ingest_base(port) + path


def _get(url: str, timeout_s: float) -> tuple[int, _Health]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        status, body = response.status, response.read(MAX_BYTES)
    except TimeoutError:
        fail(f"The service at {url} did not answer within {timeout_s:g} s.")
    except (OSError, http.client.HTTPException) as exc:
        reason = getattr(exc, "strerror", None) or str(exc).strip() or type(exc).__name__
        fail(f"The service at {url} does not answer: {printable(reason)}.")
    finally:
        connection.close()
    try:
        return status, msgspec.json.decode(body, type=_Health)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fail(f"The program at {url} is not Matchpod: its response with status {status} has another format.")
