"""Generate names and chat texts that imitate log lines, for the spoofing tests."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .samples import PLAYER_LINES, WORLD_LINES

PIECES = [
    '"', "<", ">", "<3>", "<3><", '<1><[U:1:101]><CT>" ', '<1><[U:1:101]>" ', '<9><BOT><>" ', '" say "', '" say_team "',
    '<2><[U:1:102]><TERRORIST>" [1 2 3] killed "', '" [4 5 6] with "ak47" (headshot)', "entered the game",
    "STEAM USERID validated", ' connected, address "1.2.3.4:5"', ' triggered "Planted_The_Bomb" at bombsite A',
    "Game Over: competitive  de_inferno score 13:0 after 1 min", 'World triggered "Match_Start" on "x"', "\u2028", "\u2029",
    "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\x01", "\x10", "\t", "\r", "\\", "`", "$", "{", "}", "'", "//", ";",
    "L 01/19/2026 - 19:02:08: ", "08/19/2025 - 18:19:46.278 - ", "é", "😀", "\ufffd", "JSON_BEGIN{", '"player_1" : "',
    '" = "', 'Console<0>" say "', "disconnected (reason \"", '")', 'changed name to "', ' switched from team <CT> to <TERRORIST>',
]  # fmt: skip


def hostile_texts(seed: int) -> Iterator[str]:
    """Yield an endless series of texts that a player could use as a name or in chat; none has a line feed."""
    dice = random.Random(seed)
    lines = PLAYER_LINES + WORLD_LINES
    while True:
        kind = dice.random()
        if kind < 0.3:
            text = dice.choice(lines)
        elif kind < 0.5:
            line = dice.choice(lines)
            cut = dice.randrange(len(line))
            text = line[cut:] if dice.random() < 0.5 else line[:cut]
        elif kind < 0.7:
            text = dice.choice(PIECES) + dice.choice(lines) + dice.choice(PIECES)
        else:
            text = "".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 8)))
        yield text.replace("\n", " ")
