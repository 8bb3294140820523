"""Create a match with a form, or show the API request with which a program would create it."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from matchpod.console import match_form
from matchpod.console.match_form import FormFaults
from matchpod.console.visit import Visit
from matchpod.core.errors import IdempotencyConflictError, InvalidParamsError, MatchpodError
from matchpod.service.regions.regions import RegionState
from matchpod.web.http.responses import Response

ALREADY_CREATED = (
    "A match was created from this form before you changed it. Press Create again if you want another one."
)


async def form(visit: Visit) -> Response:
    """Show the form. In a sandbox, it is already filled in, so that it can be submitted immediately."""
    regions = await open_regions(visit)
    first = next((region for region in regions if region.is_sandbox), regions[0] if regions else None)
    may_call_back = await visit.deps.services.private_callbacks.are_allowed()
    now = datetime.fromtimestamp(visit.deps.now_ms() / 1000, UTC)
    values = match_form.default_values(
        region=first.view.code if first else "",
        is_sandbox=first is not None and first.is_sandbox,
        external_id=f"demo-{now:%Y%m%d-%H%M%S}",
        callback_url=visit.deps.sandbox_callback if may_call_back else "",
    )
    return await _page(visit, values, once=new_once())


async def create(visit: Visit) -> Response:
    """Create the match of the form. If the same form is submitted twice, only one match is created."""
    given = await visit.form()
    values, once = match_form.given_values(given), given.get("once") or new_once()
    try:
        created = await visit.deps.services.matches.create(visit.principal, _encode(values), once)
    except IdempotencyConflictError as exc:
        return await _page(visit, values, once=new_once(), faults=FormFaults({}, (ALREADY_CREATED,)), status=exc.status)
    except InvalidParamsError as exc:
        return await _page(visit, values, once=once, faults=_faults(values, exc), status=exc.status)
    except MatchpodError as exc:
        return await _page(visit, values, once=once, faults=FormFaults({}, (str(exc),)), status=exc.status)
    return visit.done(f"/console/matches/{created.server.server_id}", "created")


async def as_curl(visit: Visit) -> Response:
    """Show the API request that the form would send, and the form's faults, without creating a match."""
    given = await visit.form()
    values, faults = match_form.given_values(given), FormFaults()
    try:
        await visit.deps.services.matches.check(_encode(values))
    except InvalidParamsError as exc:
        faults = _faults(values, exc)
    body = match_form.read_body(values)
    request = {"json": msgspec.json.format(msgspec.json.encode(body), indent=2).decode(), "curl": _curl(visit, body)}
    return await _page(visit, values, once=given.get("once") or new_once(), faults=faults, request=request)


async def _page(
    visit: Visit,
    values: Mapping[str, str],
    *,
    once: str,
    faults: FormFaults | None = None,
    request: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    faults = faults or FormFaults()
    regions = await open_regions(visit)
    return visit.page(
        "create.html",
        status=status,
        form=match_form,
        fields=match_form.FIELDS,
        values=values,
        faults=faults,
        summary=[(name, match_form.FIELDS[name].label, " ".join(texts)) for name, texts in faults.by_field.items()],
        first_fault=next(iter(faults.by_field), ""),
        once=once,
        request=request,
        regions=regions,
        sandboxes=[region.view.code for region in regions if region.is_sandbox],
        scenarios=visit.deps.scenarios,
        is_more_open=any(values[name] or name in faults.by_field for name in match_form.MORE_FIELDS),
    )


async def open_regions(visit: Visit) -> list[RegionState]:
    """Return the regions that accept matches, beginning with those that have available servers."""
    accepting = [state for state in await visit.deps.services.regions.states() if state.is_switched_on]
    return sorted(accepting, key=lambda state: not state.view.is_active)


def _encode(values: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(match_form.read_body(values))


def _faults(values: Mapping[str, str], error: InvalidParamsError) -> FormFaults:
    if not error.faults:
        return FormFaults({}, (str(error),))
    return match_form.read_faults(values, error.faults)


def _curl(visit: Visit, body: Mapping[str, object]) -> str:
    url = shlex.quote(f"{visit.deps.origins.public_url}/api/v1/matches")
    data = shlex.quote(msgspec.json.encode(body).decode())
    return f"curl -s {url} -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d {data}"


def new_once() -> str:
    """Return a new idempotency key for a form."""
    return f"console-{secrets.token_urlsafe(16)}"
