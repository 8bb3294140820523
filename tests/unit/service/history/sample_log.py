"""Log lines of a server on which four players join and play one round."""

from __future__ import annotations

from tests.unit.service.match_log.test_fold import PLAYERS

STAMP = "11/15/2026 - 09:00:00.000"
STEAM_ID_BASE = 76561197960265728


def log_post(*lines: str) -> bytes:
    return "".join(f"{STAMP} - {line}\n" for line in lines).encode()


def players_join() -> list[str]:
    """All players join and pick their sides."""
    sides = ("CT", "CT", "TERRORIST", "TERRORIST")
    return [
        *(f'"{_player(number)}<>" entered the game' for number in range(4)),
        *(f'"{_player(number)}" switched from team <Unassigned> to <{side}>' for number, side in enumerate(sides)),
    ]


def first_round(map_name: str = "de_nuke", team_name: str = "Reds") -> list[str]:
    """The map goes live, and the first player kills the last one: CT wins a round."""
    return [
        f'Team playing "CT": {team_name}',
        'Team playing "TERRORIST": Blues',
        f'World triggered "Match_Start" on "{map_name}"',
        f'MatchStatus: Score: 0:0 on map "{map_name}" RoundsPlayed: 0',
        'World triggered "Round_Start"',
        f'"{_player(0)}<CT>" [1 2 3] killed "{_player(3)}<TERRORIST>" [1 2 3] with "ak47"',
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")',
        'World triggered "Round_End"',
    ]


def _player(number: int) -> str:
    return f"player {number}<{number}><[U:1:{int(PLAYERS[number]) - STEAM_ID_BASE}]>"
