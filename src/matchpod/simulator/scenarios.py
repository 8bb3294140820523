"""Which story does a simulated server tell? The scenarios by name, each with the sentence that lists it.

What a scenario does is done where it happens: people that stay away in `play.visitors`, scores in `play.fate`, a
server that dies in `machine`. Here is only what they are called.
"""

from __future__ import annotations

from enum import StrEnum


class Scenario(StrEnum):
    """The stories, as `--scenario` and `sim_scenario` name them."""

    FULL_MATCH = "full_match"
    NO_SHOW = "no_show"
    INCOMPLETE_ROSTER = "incomplete_roster"
    LATE_JOIN = "late_join"
    STRANGER = "stranger"
    ALL_LEAVE = "all_leave"
    RAGE_QUIT_REJOIN = "rage_quit_rejoin"
    OVERTIME = "overtime"
    TIE = "tie"
    ONE_SIDED = "one_sided"
    ROUND_RESTORE = "round_restore"
    PAUSES = "pauses"
    CHEATER = "cheater"
    SPOOFER = "spoofer"
    SERVER_CRASH = "server_crash"
    SERVER_HANG = "server_hang"
    SLOW_MAP_LOAD = "slow_map_load"
    WRONG_MAP = "wrong_map"
    LOG_LOSS = "log_loss"
    PLUGIN_MISSING = "plugin_missing"


DESCRIPTIONS = {
    Scenario.FULL_MATCH: "everyone comes, plays to the end and leaves",
    Scenario.NO_SHOW: "nobody ever comes",
    Scenario.INCOMPLETE_ROSTER: "one or two of the expected players never come",
    Scenario.LATE_JOIN: "the last player comes three minutes after the others",
    Scenario.STRANGER: "somebody who is not listed tries to join, again and again",
    Scenario.ALL_LEAVE: "everyone leaves in the middle of a round and nobody comes back",
    Scenario.RAGE_QUIT_REJOIN: "one player leaves in anger and comes back some rounds later",
    Scenario.OVERTIME: "regulation ends level and overtime decides, once or twice",
    Scenario.TIE: "the map ends level (overtime, where it is on, is switched off)",
    Scenario.ONE_SIDED: "one team wins nearly every round",
    Scenario.ROUND_RESTORE: "a round is played again from its backup, twice, once across the half",
    Scenario.PAUSES: "tactical timeouts and a technical pause",
    Scenario.CHEATER: "one player shoots as nobody can: his play should be reported",
    Scenario.SPOOFER: "names and chat imitate lines of the server log",
    Scenario.SERVER_CRASH: "the server dies in the middle of a round, with all its connections",
    Scenario.SERVER_HANG: "the server stops in the middle of a round: sockets open, no answer, no log",
    Scenario.SLOW_MAP_LOAD: "a map takes a minute and a half to load, and the console is silent meanwhile",
    Scenario.WRONG_MAP: "the server loads another map than it was told",
    Scenario.LOG_LOSS: "some stretches of the log never leave the server",
    Scenario.PLUGIN_MISSING: "the match plugin is not installed: its commands are unknown",
}
