"""Names and descriptions of the scenarios that a simulated server can play.

The behaviour is implemented where it takes effect: absent players in `play.people.visitors`, scores in
`play.fights.fate`, a crashing server in `machine`.
"""

from __future__ import annotations

from enum import StrEnum


class Scenario(StrEnum):
    """Values of `--scenario` and `sim_scenario`."""

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
    Scenario.FULL_MATCH: "all players join, play to the end and leave",
    Scenario.NO_SHOW: "no player ever joins",
    Scenario.INCOMPLETE_ROSTER: "one or two of the expected players never join",
    Scenario.LATE_JOIN: "the last player joins three minutes after the others",
    Scenario.STRANGER: "a player who is not on the roster tries to join again and again",
    Scenario.ALL_LEAVE: "all players leave in the middle of a round and do not come back",
    Scenario.RAGE_QUIT_REJOIN: "one player leaves during the match and rejoins some rounds later",
    Scenario.OVERTIME: "regulation ends in a tie and one or two overtimes decide the map",
    Scenario.TIE: "the map ends in a tie (overtime is switched off)",
    Scenario.ONE_SIDED: "one team wins nearly every round",
    Scenario.ROUND_RESTORE: "a round backup is restored twice, once across halftime",
    Scenario.PAUSES: "tactical timeouts and a technical pause",
    Scenario.CHEATER: "one player plays inhumanly well and should be detected",
    Scenario.SPOOFER: "player names and chat imitate lines of the server log",
    Scenario.SERVER_CRASH: "the server crashes in the middle of a round and drops all connections",
    Scenario.SERVER_HANG: "the server hangs in the middle of a round: sockets stay open, no responses, no log",
    Scenario.SLOW_MAP_LOAD: "a map takes 90 seconds to load, and the console does not respond meanwhile",
    Scenario.WRONG_MAP: "the server loads a different map than requested",
    Scenario.LOG_LOSS: "parts of the log are never sent",
    Scenario.PLUGIN_MISSING: "the match plugin is not installed, so its commands are unknown",
}
