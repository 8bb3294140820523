"""Write a list of matches as CSV in which no cell can be a formula for a spreadsheet."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from matchpod.console.match_wording import standing
from matchpod.service.reading.match_lists import MatchItem

MARK: Final = "\ufeff"
"""Byte order mark at the beginning of the file. Without it, spreadsheets do not read the file as UTF-8."""

_FORMULA: Final = ("=", "+", "-", "@", "\u2212")
"""First characters of texts that spreadsheets evaluate as formulas, including the Unicode minus sign."""
_BREAKS: Final = ("\t", "\r", "\n")
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Four letters and a symbol that are displayed as blank. All other invisible characters are recognized by their
category."""
_INVISIBLE: Final = frozenset("CMZ")
"""First letters of the Unicode categories of invisible characters: controls and formats (C), marks (M) and separators
(Z)."""


def maps_text(match: MatchItem) -> str:
    """Return the maps with their scores: `de_mirage 13:7; de_nuke`."""
    return "; ".join(
        f"{played.map_name} {played.team1_score}:{played.team2_score}" if played.has_score else played.map_name
        for played in match.maps
    )


COLUMNS: Final[Mapping[str, Callable[[MatchItem], str | int | None]]] = {
    "externalMatchId": lambda match: match.external_match_id,
    "serverId": lambda match: match.server_id,
    "status": lambda match: match.status.value,
    "outcome": standing,
    "reason": lambda match: None if match.reason is None else match.reason.value,
    "region": lambda match: match.region,
    "matchType": lambda match: match.game_mode,
    "team1": lambda match: match.team1,
    "team2": lambda match: match.team2,
    "team1MapsWon": lambda match: match.maps_won[0],
    "team2MapsWon": lambda match: match.maps_won[1],
    "maps": maps_text,
    "createdAt": lambda match: match.created_at,
    "endedAt": lambda match: match.ended_at,
    "playedSeconds": lambda match: match.played_s,
    "ruling": lambda match: None if match.ruling is None else match.ruling.winner.value,
    "rulingReason": lambda match: None if match.ruling is None else match.ruling.reason,
    "labels": lambda match: "; ".join(f"{label.name}: {label.value}" for label in match.shown_labels),
}
"""The columns of the file, each with a function that returns the cell for a match."""


def csv_heading() -> bytes:
    """Return the header row of the file, with the byte order mark before it."""
    return (MARK + _lines([list(COLUMNS)])).encode()


def csv_rows(matches: Iterable[MatchItem]) -> bytes:
    return _lines([safe_cell(read(match)) for read in COLUMNS.values()] for match in matches).encode()


def _lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def safe_cell(value: str | int | None) -> str:
    """Return the text of a cell, with an apostrophe before it if a spreadsheet could evaluate it as a formula.

    Spreadsheets skip spaces and invisible characters before a formula, and accept full-width and small forms of its
    characters.
    """
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_BREAKS) or _first_visible(text).startswith(_FORMULA) else text


def _first_visible(text: str) -> str:
    """Return the first visible character in its normalized form; empty if there is none."""
    for character in text:
        if unicodedata.category(character)[0] not in _INVISIBLE and character not in _BLANK:
            return unicodedata.normalize("NFKC", character)
    return ""
