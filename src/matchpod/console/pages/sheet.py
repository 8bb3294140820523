"""Create many matches from a pasted sheet. If any row is invalid, create no match.

Submitting the sheet again does not create the same matches twice: each row has an idempotency key, derived from the
form and the values of the row.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import msgspec

from matchpod.console import match_form, match_sheet
from matchpod.console.match_form import FormFaults, read_faults
from matchpod.console.match_sheet import MAX_ROWS, Sheet, SheetRow, read_sheet, row_keys
from matchpod.console.pages.create import open_regions
from matchpod.console.roster_text import read_roster
from matchpod.console.visit import Visit
from matchpod.core.errors import InvalidParamsError, MatchpodError
from matchpod.web.http.responses import Response

PATH = "/console/create/sheet"


class CheckedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row as shown on the page, with the match that it would create, and its faults."""

    number: int
    external_id: str
    teams: tuple[tuple[str, int], ...]
    """Pairs of team name and number of players."""
    maps: str
    region: str
    faults: Sequence[str]
    server_id: str = ""
    """Server id of the match that was created for the row; empty if there is none."""


async def form(visit: Visit) -> Response:
    """Show the page with an empty sheet."""
    regions = await open_regions(visit)
    values = match_form.default_values(
        region=regions[0].view.code if regions else "", is_sandbox=False, external_id="", callback_url=""
    )
    return await _page(visit, values, "", once=_new_once())


async def check(visit: Visit) -> Response:
    """Show the matches that the sheet would create, and its faults. No match is created."""
    given = await visit.form()
    common, text = _common(given), given.get("sheet", "")
    sheet, rows = await _checked(visit, text, common)
    return await _page(visit, common, text, once=given.get("once") or _new_once(), sheet=sheet, rows=rows)


async def create(visit: Visit) -> Response:
    """Create the matches of the sheet, unless a row is invalid. If a limit is reached, those already created remain."""
    given = await visit.form()
    common, text, once = _common(given), given.get("sheet", ""), given.get("once") or _new_once()
    sheet, rows = await _checked(visit, text, common)
    if sheet.faults or any(row.faults for row in rows):
        return await _page(visit, common, text, once=once, sheet=sheet, rows=rows, status=400, was_sent=True)
    bodies = [_body(row) for row in sheet.rows]
    done: list[CheckedRow] = []
    for row, body, key in zip(rows, bodies, row_keys(once, bodies), strict=True):
        try:
            created = await visit.deps.services.matches.create(visit.principal, body, key)
        except MatchpodError as exc:
            stopped = msgspec.structs.replace(row, faults=[str(exc)])
            rest = [*done, stopped, *rows[len(done) + 1 :]]
            return await _page(visit, common, text, once=once, sheet=sheet, rows=rest, status=exc.status, was_sent=True)
        done.append(msgspec.structs.replace(row, server_id=created.server.server_id))
    return visit.done("/console", "matches-created", number=len(done))


async def _checked(visit: Visit, text: str, common: Mapping[str, str]) -> tuple[Sheet, list[CheckedRow]]:
    sheet = read_sheet(text, common)
    return sheet, [await _check_row(visit, row, sheet.by_row.get(row.number, ())) for row in sheet.rows]


async def _check_row(visit: Visit, row: SheetRow, faults: Sequence[str]) -> CheckedRow:
    found = list(faults)
    try:
        await visit.deps.services.matches.check(_body(row))
    except InvalidParamsError as exc:
        found += _words(read_faults(row.values, exc.faults)) if exc.faults else [str(exc)]
    values = row.values
    return CheckedRow(
        number=row.number,
        external_id=row.external_id,
        teams=tuple((values[f"team{at}Name"], len(read_roster(values[f"team{at}Players"]))) for at in (1, 2)),
        maps=", ".join(values[name].strip() for name in match_form.MAP_FIELDS if values[name].strip()),
        region=values["region"],
        faults=found,
    )


def _words(faults: FormFaults) -> list[str]:
    labels = match_form.FIELDS
    return [f"{labels[name].label}: {text}" for name, texts in faults.by_field.items() for text in texts] + [
        *faults.general
    ]


def _body(row: SheetRow) -> bytes:
    return msgspec.json.encode(match_form.read_body(row.values))


def _common(given: Mapping[str, str]) -> dict[str, str]:
    """Return the values of those fields that apply to all rows."""
    sent = {name: given[name] for name in match_sheet.COMMON_FIELDS if name in given}
    return match_form.given_values(sent)


async def _page(
    visit: Visit,
    values: Mapping[str, str],
    text: str,
    *,
    once: str,
    sheet: Sheet | None = None,
    rows: Sequence[CheckedRow] = (),
    status: int = 200,
    was_sent: bool = False,
) -> Response:
    regions = await open_regions(visit)
    return visit.page(
        "sheet.html",
        status=status,
        form=match_form,
        fields=match_form.FIELDS,
        values=values,
        faults=FormFaults(),
        first_fault="",
        text=text,
        once=once,
        sheet=sheet,
        rows=rows,
        is_wrong=sheet is not None and bool(sheet.faults or any(row.faults for row in rows)),
        created=[row for row in rows if row.server_id],
        was_sent=was_sent,
        regions=regions,
        example=match_sheet.EXAMPLE,
        columns=match_sheet.KNOWN_COLUMNS,
        max_rows=MAX_ROWS,
    )


def _new_once() -> str:
    """Return a prefix for the idempotency keys of one form."""
    return f"console-{secrets.token_urlsafe(16)}"
