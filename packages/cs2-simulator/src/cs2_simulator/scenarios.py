"""Define the scenarios that a simulated server can play, and the log posts that it can lose, with descriptions.

The behavior is implemented where it takes effect: demos in `plugin.demos`, absent players in `play.people.visitors`,
scores in `play.fights.fate`, a crash of the server in `machine`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

LOSABLE_POSTS = {
    "restore": b'World triggered "Match_Reloaded"',
    "disconnect": b'" disconnected (reason "',
    "end": b" - Game Over: ",
}
"""Values of `sim_lost_posts`, each with the text by which the post to lose is recognized."""


class DemoFault(StrEnum):
    """Values of `sim_demo_faults`: how recording or uploading of demos fails."""

    NO_RECORDING = "no_recording"
    NO_UPLOAD = "no_upload"
    CUT_UPLOAD = "cut_upload"


class Scenario(StrEnum):
    """Values of `--scenario` and `sim_scenario`, with descriptions."""

    FULL_MATCH = "full_match", "all players join, play to the end and leave"
    NO_SHOW = "no_show", "no player ever joins"
    INCOMPLETE_ROSTER = "incomplete_roster", "one or two of the expected players never join"
    LATE_JOIN = "late_join", "the last player joins three minutes after the others"
    STRANGER = "stranger", "a player who is not on the roster tries to join again and again"
    EARLY_LEAVER = "early_leaver", "the last player joins late; before that another one leaves and does not come back"
    LOADING_CRASH = (
        "loading_crash",
        "one player's client crashes while it loads the map, and connects again, over and over",
    )
    LEAVER = "leaver", "one player leaves in the middle of a round and does not come back"
    ALL_LEAVE = "all_leave", "all players leave in the middle of a round and do not come back"
    RAGE_QUIT_REJOIN = "rage_quit_rejoin", "one player leaves during the match and rejoins some rounds later"
    IDLE_KICK = "idle_kick", "two players who stand idle are kicked in the middle of a round and rejoin later"
    SPECTATOR = "spectator", "one player moves to the spectators and returns to their side a round later"
    WARMUP_BOTS = "warmup_bots", "bots fill up the warmup and are kicked when players join and when it ends"
    OVERTIME = "overtime", "regulation ends in a tie and one or two overtimes decide the map (it is switched on)"
    TIE = "tie", "the map ends in a tie (overtime is switched off)"
    ONE_SIDED = "one_sided", "one team wins nearly every round"
    ROUND_RESTORE = "round_restore", "a round backup is restored twice, once across halftime"
    PAUSES = "pauses", "tactical timeouts and a technical pause"
    CHEATER = "cheater", "one player plays inhumanly well and should be detected"
    SPOOFER = "spoofer", "player names and chat imitate lines of the server log"
    SERVER_CRASH = "server_crash", "the server crashes in the middle of a round and drops all connections"
    SERVER_HANG = "server_hang", "the server hangs in the middle of a round: sockets stay open, no responses, no log"
    SLOW_MAP_LOAD = "slow_map_load", "a map takes 90 seconds to load, and the console does not respond meanwhile"
    WRONG_MAP = "wrong_map", "the server loads a different map than requested"
    LOG_LOSS = "log_loss", "parts of the log are never sent"
    PLUGIN_MISSING = "plugin_missing", "the match plugin is not installed, so its commands are unknown"

    description: str

    @property
    def is_ordinary(self) -> bool:
        """True if players behave as in FULL_MATCH.

        The players of LOG_LOSS do, so that its log can be compared with a full log.
        """
        return self in (Scenario.FULL_MATCH, Scenario.LOG_LOSS)

    def __new__(cls, value: str, description: str) -> Self:
        """Create a member from its value and description."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member
