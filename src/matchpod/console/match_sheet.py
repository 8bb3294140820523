"""Read matches from a pasted sheet: a row of headings (names, labels or aliases of form fields), then a row per match.

For an empty cell, the value that the form has for all matches is used. Each row is converted to the request body that
the form for a single match would send, and the service validates it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from matchpod.console import match_form
from matchpod.core.labels import SEPARATOR
from matchpod.core.model import SeriesFormat
from matchpod.core.requests import request_table as table
from matchpod.core.requests.text_rules import nearest, printable

MAX_ROWS: Final = 100
"""Maximum number of matches in a sheet. It is enough for the first round of a large tournament; creating them takes
seconds."""
COMMON_FIELDS: Final = (
    "region", "matchType", "seriesFormat", "map1", "callbackUrl", "callbackAuthToken", "joinSeconds", "onNoShow",
    "labels",
)  # fmt: skip
"""Fields that the form has for all matches. A row can override their values."""
EXAMPLE: Final = (
    "match\tteam1\tplayers1\tteam2\tplayers2\tlabel table\n"
    "cup-r1-m1\tNight Owls\t76561198000000001 76561198000000002\tBlue Foxes\t76561198000000006 76561198000000007\t1\n"
    "cup-r1-m2\tRed Pandas\t76561198000000011 76561198000000012\tGrey Wolves\t76561198000000016 76561198000000017\t2\n"
)

_LABEL: Final = re.compile(r"labels?[ :]+(\S.*)", re.IGNORECASE)
_MAPS: Final = "maps"
_ALIASES: Final = {
    "match": "externalMatchId", "id": "externalMatchId", "matchid": "externalMatchId",
    "map": "map1", _MAPS: _MAPS, "bestof": "seriesFormat", "format": "seriesFormat", "mode": "matchType",
    "team1": "team1Name", "team2": "team2Name", "players1": "team1Players", "players2": "team2Players",
    "callback": "callbackUrl", "password": "serverPassword", "token": "callbackAuthToken", "cvars": "customCvars",
}  # fmt: skip
_LINES: Final = ("team1Players", "team2Players", "players", "customCvars", "labels")
"""Fields that may have several lines. If several columns belong to the same field, each adds a line."""


def _plain(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", heading.lower())


_COLUMNS: Final = (
    {_plain(field.label): name for name, field in match_form.FIELDS.items()}
    | {_plain(name): name for name in match_form.FIELDS}
    | _ALIASES
)
KNOWN_COLUMNS: Final = (
    "match", "team1", "players1", "team2", "players2", "map", "maps", "best of", "region", "label NAME",
)  # fmt: skip
"""Headings of the usual columns, which the page lists as help."""


class SheetRow(msgspec.Struct, frozen=True):
    """A match in a sheet: the number of its row, and its form values."""

    number: int
    values: Mapping[str, str]

    @property
    def external_id(self) -> str:
        return self.values["externalMatchId"]


class Sheet(msgspec.Struct, frozen=True):
    """The matches in a sheet, and the faults of the whole sheet and of single rows."""

    rows: Sequence[SheetRow] = ()
    faults: Sequence[str] = ()
    by_row: Mapping[int, Sequence[str]] = {}


def read_sheet(text: str, common: Mapping[str, str]) -> Sheet:
    """Read a sheet; `common` contains the values for empty cells."""
    lines = _cells(text)
    if not lines:
        return Sheet(faults=("Paste a sheet: a row of headings, then a row for each match.",))
    headings, *rows = lines
    columns = [_column(heading) for heading in headings]
    faults = [fault for heading, column in zip(headings, columns, strict=True) if (fault := _unknown(heading, column))]
    if faults:
        return Sheet(faults=faults)
    filled = [(number, row) for number, row in enumerate(rows, 2) if any(row)]
    if not filled:
        return Sheet(faults=("The sheet has headings, but no match below them.",))
    if len(filled) > MAX_ROWS:
        return Sheet(faults=(f"The sheet has {len(filled)} matches. Create at most {MAX_ROWS} at once.",))
    wide = {
        number: [f"The row has {len(row)} cells, but there are {len(columns)} headings."]
        for number, row in filled
        if len(row) > len(columns)
    }
    found = [SheetRow(number, _values(columns, row, common)) for number, row in filled]
    return Sheet(found, by_row=wide | _repeated(found))


def row_keys(once: str, bodies: Sequence[bytes]) -> list[str]:
    """Return an idempotency key per body. If the same form submits the same body again, the key is the same."""
    seen: Counter[str] = Counter()
    keys = []
    for body in bodies:
        digest = hashlib.sha256(body).hexdigest()[:32]
        seen[digest] += 1
        keys.append(f"{once}-{digest}-{seen[digest]}")
    return keys


def _cells(text: str) -> list[list[str]]:
    """Return the cells per line. The delimiter is the most frequent in the headings: tab, semicolon or comma."""
    text = text.strip("\r\n")
    if not text.strip():
        return []
    heading = text.partition("\n")[0]
    delimiter = max("\t;,", key=heading.count)
    rows = csv.reader(io.StringIO(text.replace("\r\n", "\n"), newline=""), delimiter=delimiter)
    return [[cell.strip() for cell in row] for row in rows]


def _column(heading: str) -> str:
    """Return the field for a heading, `labels NAME` for a label, or an empty text if the heading is unknown."""
    label = _LABEL.fullmatch(heading)
    if label and _plain(heading) != "labels":
        return f"labels {label[1].strip()}"
    return _COLUMNS.get(_plain(heading), "")


def _unknown(heading: str, column: str) -> str | None:
    if column:
        return None
    if not heading:
        return "A column has no heading."
    near = nearest(_plain(heading), _COLUMNS)
    known = f" Is it {near}?" if near else f" Usual headings: {', '.join(KNOWN_COLUMNS)}."
    return f"The heading “{printable(heading)}” is not a field of a match.{known}"


def _values(columns: Sequence[str], row: Sequence[str], common: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, list[str]] = {}
    for column, cell in zip(columns, row, strict=False):
        field, _, label = column.partition(" ")
        if cell:
            given.setdefault(field, []).append(f"{label}{SEPARATOR} {cell}" if label else cell)
    values = {**dict.fromkeys(match_form.FIELDS, ""), **common}
    for field, cells in given.items():
        if field == _MAPS:
            names = [name for cell in cells for name in re.split(r"[\s,;]+", cell) if name]
            values |= dict(zip(match_form.MAP_FIELDS, [*names, *[""] * len(match_form.MAP_FIELDS)], strict=False))
        elif field == "seriesFormat":
            values[field] = _series(cells[-1])
        elif field == "labels":
            values[field] = "\n".join([values[field], *cells])
        else:
            values[field] = "\n".join(cells) if field in _LINES else cells[-1]
    return values


def _series(cell: str) -> str:
    """Return the series format that a text means: `3` and `best of 3` mean bo3."""
    digits = re.fullmatch(r"(?:best ?of ?|bo)?([0-9])", cell.strip(), re.IGNORECASE)
    found = f"bo{digits[1]}" if digits else cell
    return found if found in tuple(SeriesFormat) else cell


def _repeated(rows: Sequence[SheetRow]) -> dict[int, Sequence[str]]:
    """Return a fault for each row that has the same external id as an earlier row."""
    first: dict[str, int] = {}
    label = match_form.FIELDS[table.EXTERNAL_MATCH_ID.name].label
    return {
        row.number: [f"{label}: “{printable(row.external_id)}” is already in row {number}."]
        for row in rows
        if row.external_id and (number := first.setdefault(row.external_id, row.number)) != row.number
    }
