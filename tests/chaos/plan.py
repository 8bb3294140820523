"""Plan one round of chaos from a seed: the matches with their expected ends, and the faults. Pure.

The same seed gives the same plan. What happens during a fault still depends on the machine, so a violation is
reproduced by repeating its round, not by a single run.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from tests.chaos.log_faults import Tampering

Json = dict[str, Any]

MATCH_OVER = "match_over"
CANCELED_BY_USER = "canceled_by_user"
SERVER_LOST = "server_lost"
SERVER_FAILED = "server_failed"
ALL_PLAYERS_LEFT = "all_players_left"

SANDBOX = "sandbox"
HASTY = "hasty"
STATIC = "static"

_FIRST_PLAYER = 76561198000000001
_SERIES = {"matchType": "wingman", "map": "de_nuke", "maps": ["de_nuke", "de_inferno", "de_vertigo"]}


class MatchKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of match: its settings, the scenario of its players, and how it ends without faults."""

    scenario: str = "full_match"
    settings: Json = {}
    region: str = SANDBOX
    end: str = MATCH_OVER
    """`match_over`, or the reason of its cancellation."""
    is_repeatable: bool = True
    """False if its numbers depend on what happened before on its server, so they cannot be compared."""
    late_end: str | None = None
    """How it may end instead if the service was down until its time to join was over."""


KINDS = {
    "duel": MatchKind(),
    "series": MatchKind(settings={**_SERIES, "seriesFormat": "bo3", "maxRounds": 4}),
    "leaver": MatchKind(scenario="rage_quit_rejoin", settings={"maxRounds": 8}),
    "restored": MatchKind(scenario="round_restore", settings={"maxRounds": 8}),
    "overtime": MatchKind(scenario="overtime", settings={"maxRounds": 4}),
    "spoofer": MatchKind(scenario="spoofer"),
    "deathmatch": MatchKind(settings={"matchType": "deathmatch", "map": "de_dust2", "dmRoundMinutes": 2}),
    "all_leave": MatchKind(scenario="all_leave", settings={"maxRounds": 12}, end=ALL_PLAYERS_LEFT),
    "crash": MatchKind(scenario="server_crash", settings={"maxRounds": 12}, end=SERVER_LOST),
    "hang": MatchKind(scenario="server_hang", settings={"maxRounds": 12}, end=SERVER_LOST),
    "static": MatchKind(region=STATIC, is_repeatable=False),
    "no_show": MatchKind(scenario="no_show", region=HASTY, end="no_players_joined"),
    "incomplete": MatchKind(
        scenario="incomplete_roster", region=HASTY, end="incomplete_roster", late_end="no_players_joined"
    ),
}

PLAYED = tuple(name for name, kind in KINDS.items() if kind.end == MATCH_OVER and kind.is_repeatable)
"""Kinds that end with a result that can be compared."""

SEEDS_PER_KIND = 3
"""Different games per kind: each is also played once without faults, for comparison."""

LOCKSTEP_SPEEDS = (60, 120, 300)
"""Speeds of games whose time waits for the service."""
FREE_SPEEDS = (20, 40)
"""Speeds of games that go on while the service is down."""
FREE_KINDS = frozenset(
    {"duel", "leaver", "overtime", "spoofer", "deathmatch", "crash", "hang", "no_show", "incomplete"}
)
"""Kinds that may go on while the service is down. Not a series: a server discards the log of a map that it could not
send before it loads the next one, so numbers of that map are missing, and a result cannot say so."""
ROSTER_DELAY_S = 20
"""Simulated seconds from the last setting until players connect."""


class Receiver(StrEnum):
    """How the receiver of a callback responds."""

    ACCEPT = "accept"
    SLOW = "slow"
    """Accepts after two seconds."""
    FAIL_ONCE = "fail_once"
    RESET_ONCE = "reset_once"
    FAIL = "fail"
    HANG = "hang"
    RESET = "reset"
    DRIP = "drip"
    REDIRECT = "redirect"
    HUGE = "huge"
    """Accepts, with a body that does not end."""


ACCEPTING = frozenset({Receiver.ACCEPT, Receiver.SLOW, Receiver.FAIL_ONCE, Receiver.RESET_ONCE, Receiver.HUGE})
"""Receivers that accept the callback within its two attempts."""


class Moment(StrEnum):
    """What an observer outside can see of a match; faults and cancellations wait for it."""

    CREATED = "created"
    RUNNING = "running"
    PLAYERS = "players"
    SCORE = "score"
    ENDED = "ended"
    """Its callback has arrived."""


class GameSpec(msgspec.Struct, frozen=True):
    """A game that can be repeated: its kind and seed decide what happens."""

    kind: str
    seed: int

    def body(self, *, speed: int, is_lockstep: bool) -> Json:
        """Return `region`, `gameType` and `gameSettings` of a request for this game."""
        kind = KINDS[self.kind]
        players = [str(_FIRST_PLAYER + index) for index in range(4)]
        cvars = {
            "sim_players": ",".join(players),  # a pod knows them only from a match of the plugin
            "sim_scenario": kind.scenario,
            "sim_seed": self.seed,
            "sim_lockstep": int(is_lockstep),
            "sim_speed": speed,
            "sim_roster_delay": ROSTER_DELAY_S,
        }
        settings = {
            "matchType": "competitive",
            "map": "de_mirage",
            "maxRounds": 4,
            "freezeTime": 1,
            "customCvars": "\n".join(f"{name} {value}" for name, value in cvars.items()),
            **kind.settings,
        }
        if settings["matchType"] == "deathmatch":
            del settings["maxRounds"]
            settings["players"] = players
        else:
            settings["teams"] = {
                "team1": {"name": "Reds", "players": players[:2]},
                "team2": {"name": "Blues", "players": players[2:]},
            }
        return {"region": kind.region, "gameType": "cs2", "gameSettings": settings}


class PlannedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """One match of a round."""

    name: str
    at_s: float
    game: GameSpec
    speed: int
    is_lockstep: bool
    receiver: Receiver = Receiver.ACCEPT
    cancel_on: Moment | None = None


class FaultKind(StrEnum):
    """The kinds of faults."""

    KILL = "kill"
    """SIGKILL to a replica; it is started again at once."""
    RESTART = "restart"
    """SIGTERM to a replica; it is started again."""
    FREEZE = "freeze"
    """SIGSTOP to a replica for longer than its leases."""
    DATABASE_CRASH = "database_crash"
    """SIGKILL to PostgreSQL."""
    DATABASE_STOP = "database_stop"
    """Immediate shutdown of PostgreSQL: all connections are closed, and it recovers at the next start."""
    DISK_FULL = "disk_full"
    CLOCK_STEP = "clock_step"
    """The wall clock of a replica is set forward or back, and right again after a while."""
    SERVER_KILL = "server_kill"
    """SIGKILL to a game server."""
    SERVER_HANG = "server_hang"
    """SIGSTOP to a game server that does not come back."""
    SERVER_PAUSE = "server_pause"
    """SIGSTOP to a game server, for less time than it takes to be considered lost."""

    CONSOLE_CUT = "console_cut"
    """The consoles of static servers are cut off for a while."""
    CONSOLE_HOLD = "console_hold"
    """The consoles of static servers do not answer for a while."""
    SERVER_RESTART = "server_restart"
    """SIGKILL to a static server, which is started again."""
    LOG_CUT = "log_cut"
    """Answers to log posts are cut off, so that servers send them again."""
    LOG_HOLD = "log_hold"
    """Log posts arrive late."""
    LOG_DOUBLE = "log_double"
    """Log posts and reports arrive twice."""
    LOG_LOSE = "log_lose"
    """Log posts of a match are acknowledged and lost."""
    LOG_REORDER = "log_reorder"
    """Log posts of a match are acknowledged and arrive in another order."""
    ENTRY_RAISE = "entry_raise"
    """A bug in a replica: applying a log post of a match raises an error, each time."""
    ENTRY_STALL = "entry_stall"
    """A bug in a replica: applying a log post of a match takes two seconds, once."""
    ENTRY_DIE = "entry_die"
    """A bug in all replicas: applying a log post of a match kills the process, each time."""
    RESUMED_DIE = "resumed_die"
    """A bug in all replicas: applying the entry that a match was resumed kills the process. One is killed first."""
    ANSWER_LOSE = "answer_lose"
    """The answers to some writes are lost for a while: the transaction is committed, but its writer gets an error."""


LOG_FAULTS = {
    FaultKind.LOG_CUT: Tampering.CUT,
    FaultKind.LOG_HOLD: Tampering.HOLD,
    FaultKind.LOG_DOUBLE: Tampering.DOUBLE,
    FaultKind.LOG_LOSE: Tampering.LOSE,
    FaultKind.LOG_REORDER: Tampering.REORDER,
}
BUGS = {FaultKind.ENTRY_RAISE: "raise", FaultKind.ENTRY_STALL: "stall", FaultKind.ENTRY_DIE: "die"}
LOSING = frozenset({FaultKind.LOG_LOSE, FaultKind.LOG_REORDER, FaultKind.ENTRY_RAISE, FaultKind.ENTRY_DIE})
"""Faults after which lines of a match are missing for good. They hit one match."""
LOG_FAULT_S = 8.0
LOST_SHARE = 0.05
"""Share of the writes whose answers are lost."""
LOSE_S = 60.0
"""How long answers are lost: for most of a round."""
SERVER_FAULTS = frozenset({FaultKind.SERVER_KILL, FaultKind.SERVER_HANG, FaultKind.SERVER_PAUSE})


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: at a time, or when a match is seen at a moment."""

    kind: FaultKind
    at_s: float
    lasts_s: float = 0.0
    replica: int = 0
    step_s: float = 0.0
    """By how much a clock is set."""
    match: str | None = None
    """The match that it waits for or, for the faults of game servers, also hits."""
    on: Moment | None = None
    is_early: bool = False
    """Kill a replica even if it has not become ready since its last death. Otherwise it waits, so that there is
    progress on any machine."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One round."""

    seed: int
    matches: tuple[PlannedMatch, ...]
    faults: tuple[PlannedFault, ...]
    is_lossless: bool = False
    """No fault but those in LOSING costs a line of a log: all other results must be complete."""

    def expected_ends(self, match: PlannedMatch) -> frozenset[str]:
        """Return how this match may end: `match_over`, or reasons of a cancellation."""
        if self.hit_by(FaultKind.RESUMED_DIE) == match.name:
            return frozenset({SERVER_FAILED})
        kind = KINDS[match.game.kind]
        ends = {kind.end, kind.late_end or kind.end}
        if match.cancel_on is not None:
            ends.add(CANCELED_BY_USER)
        if any(fault.match == match.name and fault.kind in SERVER_FAULTS for fault in self.faults):
            ends.add(SERVER_LOST)
        if kind.region == STATIC and any(fault.kind is FaultKind.SERVER_RESTART for fault in self.faults):
            ends.add(SERVER_LOST)
        if self.loses_lines(match):
            ends.add(ALL_PLAYERS_LEFT)  # the lines of its end may be lost, and the plugin's report is sent only once
        return frozenset(ends)

    def hit_by(self, kind: FaultKind) -> str | None:
        """Return the match that the only fault of this kind hits; None without such a fault."""
        return next((fault.match for fault in self.faults if fault.kind is kind), None)

    def loses_lines(self, match: PlannedMatch) -> bool:
        """True if a fault costs this match lines of its log."""
        return any(fault.match == match.name and fault.kind in LOSING for fault in self.faults)


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what a round contains."""

    name: str = "usual"
    matches: int
    kills: int
    faults: tuple[FaultKind, ...] = ()
    """Further faults, one of each."""
    length_s: float
    """Time within which matches are created and faults begin."""
    creation_share: float = 0.8
    """The first part of that time, in which matches are created."""
    replicas: int = 1
    kinds: tuple[str, ...] = tuple(KINDS)
    lockstep_share: float = 0.7
    """Share of the games whose time waits for the service, of those kinds that need not."""
    free_speeds: tuple[int, ...] = FREE_SPEEDS
    cancel_share: float = 0.15
    bad_receiver_share: float = 0.15
    bad_receivers: tuple[Receiver, ...] = tuple(one for one in Receiver if one is not Receiver.ACCEPT)
    is_lossless: bool = False
    """See `Plan`."""


FREEZE_S = 33.0
"""Longer than a lease."""
CLOCK_STEPS_S = (-3600.0, -120.0, 120.0, 3600.0)
CLOCK_STEP_S = 10.0
"""How long a clock is wrong."""
PAUSE_S = 12.0
"""Shorter than the 30 s without an answer after which a server is lost."""


def make_plan(seed: int, mix: Mix) -> Plan:
    """Return the plan of a round."""
    rng = Random(seed)
    matches = tuple(_make_match(rng, index, mix) for index in range(mix.matches))
    faults = [_make_kill(rng, index, mix, matches) for index in range(mix.kills)]
    faults += [_make_fault(rng, kind, mix, matches) for kind in mix.faults]
    ordered = tuple(sorted(faults, key=lambda fault: fault.at_s))
    return Plan(seed=seed, matches=matches, faults=ordered, is_lossless=mix.is_lossless)


def _make_match(rng: Random, index: int, mix: Mix) -> PlannedMatch:
    kind = (
        mix.kinds[index]
        if index < len(mix.kinds)
        else rng.choice([*mix.kinds, *(one for one in PLAYED if one in mix.kinds)])
    )
    is_lockstep = rng.random() < mix.lockstep_share or kind not in FREE_KINDS
    is_canceled = rng.random() < mix.cancel_share
    return PlannedMatch(
        name=f"m{index}-{kind}",
        at_s=round(rng.random() * mix.length_s * mix.creation_share, 2),
        game=GameSpec(kind, rng.randrange(1, 1 + SEEDS_PER_KIND)),
        speed=rng.choice(LOCKSTEP_SPEEDS if is_lockstep else mix.free_speeds),
        is_lockstep=is_lockstep,
        receiver=rng.choice(mix.bad_receivers) if rng.random() < mix.bad_receiver_share else Receiver.ACCEPT,
        cancel_on=rng.choice(list(Moment)) if is_canceled else None,
    )


def _make_kill(rng: Random, index: int, mix: Mix, matches: tuple[PlannedMatch, ...]) -> PlannedFault:
    """Kill at a random time, or when a random match is seen to change."""
    at_s = mix.length_s * (index + rng.random()) / mix.kills
    replica, is_early = rng.randrange(mix.replicas), rng.random() < 0.2
    if rng.random() < 0.5:
        return PlannedFault(kind=FaultKind.KILL, at_s=round(at_s, 2), replica=replica, is_early=is_early)
    near = min(matches, key=lambda match: abs(match.at_s - at_s))
    on = rng.choice(list(Moment))
    return PlannedFault(kind=FaultKind.KILL, at_s=near.at_s, replica=replica, match=near.name, on=on)


def _make_fault(rng: Random, kind: FaultKind, mix: Mix, matches: tuple[PlannedMatch, ...]) -> PlannedFault:
    replica = rng.randrange(mix.replicas)
    if kind is FaultKind.ANSWER_LOSE:
        return PlannedFault(kind=kind, at_s=0.0, lasts_s=LOSE_S)
    if kind in LOG_FAULTS and kind not in LOSING:
        return PlannedFault(kind=kind, at_s=round(rng.random() * mix.length_s, 2), lasts_s=LOG_FAULT_S)
    if kind in SERVER_FAULTS | LOSING | BUGS.keys():
        match = rng.choice([one for one in matches if one.game.kind in PLAYED])
        on = rng.choice((Moment.CREATED, Moment.RUNNING, Moment.PLAYERS, Moment.SCORE))
        lasts_s = {FaultKind.SERVER_PAUSE: PAUSE_S}.get(kind, LOG_FAULT_S if kind in LOSING else 0.0)
        return PlannedFault(kind=kind, at_s=match.at_s, lasts_s=lasts_s, match=match.name, on=on)
    if kind is FaultKind.SERVER_RESTART:
        match = rng.choice([one for one in matches if KINDS[one.game.kind].region == STATIC] or list(matches))
        on = rng.choice((Moment.RUNNING, Moment.PLAYERS, Moment.SCORE))
        return PlannedFault(kind=kind, at_s=match.at_s, match=match.name, on=on)
    if kind is FaultKind.CLOCK_STEP:
        at_s, step_s = round(rng.random() * mix.length_s, 2), rng.choice(CLOCK_STEPS_S)
        return PlannedFault(kind=kind, at_s=at_s, lasts_s=CLOCK_STEP_S, replica=replica, step_s=step_s)
    lasts_s = {FaultKind.FREEZE: FREEZE_S, FaultKind.RESTART: 0.0}.get(kind, 0.5 + 2.5 * rng.random())
    return PlannedFault(
        kind=kind, at_s=round(rng.random() * mix.length_s, 2), lasts_s=round(lasts_s, 2), replica=replica
    )
