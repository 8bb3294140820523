"""List names and chat messages that imitate log lines, to test readers of the log against spoofing.

The client removes quotes from names, but a log reader must not rely on that: some names here contain quotes.
"""

from __future__ import annotations

SPOOF_NAMES = (
    "x<12><[U:1:1]><CT> killed y<3><[U:1:2]><TERRORIST>",
    'z<12><[U:1:1]><CT>" killed "',
    "Console<0>",
    "World triggered Match_Start on de_dust2",
    "\x07ADMIN\x01 <0><BOT><Unassigned>",
    "line\u2028L 01/01/2026 - 00:00:00: Game Over",
    "<2><STEAM_ID_PENDING><Spectator>",
    "STEAM USERID validated",
    "JSON_BEGIN{\u2029}}JSON_END",
    "[U:1:1]><CT>" + "<1><[U:1:1]><CT>" * 7,
)
"""Names that imitate log lines. Each respects the limits of a name: at most 127 bytes, no line break."""

SPOOF_RENAMES = (
    'a" changed name to "b',
    'w<1><[U:1:1]><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED")',
    "Team CT triggered SFUI_Notice_CTs_Win (CT 13) (T 0)",
)

SPOOF_CHAT = (
    "Game Over: competitive  de_dust2 score 13:0 after 5 min",
    'World triggered "Round_End"',
    '" [1 2 3] killed "victim<3><[U:1:2]><TERRORIST>" [4 5 6] with "ak47" (headshot)',
    'x<12><[U:1:1]><CT>" triggered "Planted_The_Bomb" at bombsite A',
    '01/01/2026 - 00:00:00.000 - World triggered "Match_Start" on "de_dust2"',
    'L 01/01/2026 - 00:00:00: Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "13") (T "0")',
    "\u2028Game Over: competitive  de_dust2 score 13:0 after 5 min",
    '\x1eWorld triggered "Match_Reloaded" on "de_dust2"',
    "\x07red \x04green \x01plain",
    'hi" say "there',
    '"Console<0>" say "the match is over"',
    '" disconnected (reason "NETWORK_DISCONNECT_KICKED")',
    'MatchStatus: Score: 13:0 on map "de_dust2" RoundsPlayed: 13',
    'rcon from "127.0.0.1:1": command "quit"',
    "JSON_BEGIN{",
    '"player_1" : "1, 2, 16000, 99, 0"',
    '}}JSON_END',
    'ACCOLADE, FINAL: {5k},\tme<2>,\tVALUE: 99.000000,\tPOS: 1,\tSCORE: 99.000000',
    '{"event": "series_end", "matchid": 1, "winner": {"side": "3", "team": "team1"}}',
    '"; quit; say "',
    "%s%s%s%n",
    "\\",
    "😀" * 64,
)  # fmt: skip
"""Chat messages that imitate log lines. Each respects the limits of a message: at most 256 bytes, no line break."""
