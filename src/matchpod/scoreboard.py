"""Format a match as tables for a terminal: its maps, players and anti-cheat leads.

Names are untrusted. They are printed as plain text: no markup, control characters or direction characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cs2_protocol.game import Team, is_human
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus, PlayedMap
from matchpod.core.model import MatchType
from matchpod.core.stats import derived
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views.result import overall_lines, player_name, team_name
from matchpod.cs2.match_reader import MatchReader

MAX_NAME_CHARS = 24
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

_Column = tuple[str, Callable[[PlayerLine], str]]

# Twelve columns and the names fit into 80 characters.
_COLUMNS: tuple[_Column, ...] = (
    ("K", lambda line: f"{line.kills}"),
    ("D", lambda line: f"{line.deaths}"),
    ("A", lambda line: f"{line.all_assists}"),
    ("HS%", lambda line: f"{derived.hs_percent(line.headshots, line.kills):.0f}"),
)
_ROUND_COLUMNS: tuple[_Column, ...] = (
    ("ADR", lambda line: f"{derived.adr(line.damage, line.rounds_played):.1f}"),
    ("KAST", lambda line: f"{derived.kast_percent(line.kast_rounds, line.rounds_played):.0f}"),
    ("Imp", lambda line: f"{derived.impact(line.kills, line.all_assists, line.rounds_played):.2f}"),
    ("FK:FD", lambda line: f"{line.first_kills}:{line.first_deaths}"),
    ("Trd", lambda line: f"{line.trade_kills}"),
    ("1vX", lambda line: f"{line.clutch_wins}"),
    ("P:D", lambda line: f"{line.bomb_plants}:{line.bomb_defuses}"),
    ("MVP", lambda line: "-" if line.mvps is None else f"{line.mvps}{'' if line.are_mvps_complete else '+'}"),
)
_DEATHMATCH_COLUMNS: tuple[_Column, ...] = (
    ("K/D", lambda line: f"{derived.kd_ratio(line.kills, line.deaths):.2f}"),
    ("Damage", lambda line: f"{line.damage}"),
)
_LEGEND = (
    "KAST: rounds with a kill, assist, survival or trade, in percent. P:D: bombs planted and defused. 3+: 3 or more."
)


def scoreboard(reader: MatchReader) -> RenderableType:
    """Return the scoreboard of a match: headline, a table per map, totals, leads and notes."""
    match = reader.match
    played = [played for played in match.maps if played.status is not MapStatus.UPCOMING]
    parts: list[RenderableType] = [_headline(match, played)]
    for played_map in played:
        parts += [Text(), _map_headline(match, played_map), _players(match, played_map.ledger.lines())]
    if len(played) > 1:
        total = overall_lines(played)
        parts += [Text(), Text("All maps", style="bold"), _players(match, total)]
    parts += [Text(), *_detections(match), *_notes(reader, played)]
    return Group(*parts)


def printable_name(name: str) -> str:
    """Shorten a name, and replace characters that could move the cursor, or hide or reorder text."""
    shown = "".join("·" if unicodedata.category(char) in _HIDDEN else char for char in name[: MAX_NAME_CHARS + 1])
    return shown if len(shown) <= MAX_NAME_CHARS else f"{shown[: MAX_NAME_CHARS - 1]}…"


def _headline(match: Match, played: Sequence[PlayedMap]) -> Text:
    kind = match.settings.match_type
    if kind is MatchType.DEATHMATCH:
        return Text("deathmatch", style="bold")
    names = [printable_name(team_name(match, team)) for team in Team]
    won = match.series_score
    text = Text(f"{kind} {match.settings.series_format}: {names[0]} {won[0]} : {won[1]} {names[1]}", style="bold")
    if match.winner is None:
        text.append("  (not finished)", style="yellow")
    elif match.winner.value == "tie":
        text.append("  tie")
    else:
        text.append(f"  {names[0] if match.winner.value == 'team1' else names[1]} won", style="green")
    return text


def _map_headline(match: Match, played: PlayedMap) -> Text:
    text = Text(f"Map {played.number}: {printable_name(played.name)}", style="bold")
    if match.settings.match_type is not MatchType.DEATHMATCH:
        text.append(f"  {played.team1_score} : {played.team2_score}")
    if played.duration_s is not None:
        text.append(f"  {played.duration_s // 60}:{played.duration_s % 60:02d} min")
    else:
        text.append("  the log ends before the map does", style="yellow")
    return text


def _players(match: Match, lines: Sequence[PlayerLine]) -> Table:
    is_deathmatch = match.settings.match_type is MatchType.DEATHMATCH
    columns = _COLUMNS + (_DEATHMATCH_COLUMNS if is_deathmatch else _ROUND_COLUMNS)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Player", no_wrap=True)
    for title, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    groups = [None] if is_deathmatch else [Team.TEAM1, Team.TEAM2, None]
    for team in groups:
        members = [line for line in lines if is_deathmatch or (match.team_of(line.player_id) or line.team) is team]
        if not members:
            continue
        if team is not None:
            table.add_row(Text(printable_name(team_name(match, team)), style="bold cyan"))
        for line in members:
            table.add_row(Text(f"  {_display_name(match, line)}"), *(cell(line) for _, cell in columns))
    return table


def _display_name(match: Match, line: PlayerLine) -> str:
    if not is_human(line.player_id):
        return printable_name(line.player_id.replace(":", " ", 1))
    return printable_name(player_name(match, line.player_id)) or line.player_id


def _detections(match: Match) -> list[RenderableType]:
    if not match.detections:
        return []
    table = Table("Player", "Type", "Map", "Round", "Why", box=box.SIMPLE_HEAD, pad_edge=False)
    for found in match.detections:
        place = (f"{found.map_number}", "-" if found.round_number is None else f"{found.round_number}")
        table.add_row(Text(printable_name(found.name)), Text(found.kind), *place, Text(found.reason))
    return [Text("Anti-cheat leads, for people to review", style="bold"), table]


def _notes(reader: MatchReader, played: Sequence[PlayedMap]) -> list[RenderableType]:
    is_deathmatch = reader.match.settings.match_type is MatchType.DEATHMATCH
    notes = [] if is_deathmatch else [_LEGEND]
    notes += [f"{reader.lines_read} lines read, {reader.lines_unknown} unknown."]
    for played_map in played:
        checked = sum(record.has_game_counts for record in played_map.ledger.rounds)
        if not played_map.is_complete:
            where = f" in rounds {', '.join(map(str, played_map.missing_rounds))}" if played_map.missing_rounds else ""
            notes.append(f"Map {played_map.number}: parts of the log are missing{where}.")
        if checked and not played_map.ledger.discrepancies:
            notes.append(f"Map {played_map.number}: matches the game's own statistics after each of {checked} rounds.")
        for found in played_map.ledger.discrepancies:
            name = printable_name(player_name(reader.match, found.player_id)) or found.player_id
            notes.append(
                f"Map {played_map.number}, after round {found.round_number}: {found.field} of {name} is {found.ours:g}"
                f" according to the log, {found.game:g} according to the game."
            )
    return [Text("\n".join(notes), style="dim")]
