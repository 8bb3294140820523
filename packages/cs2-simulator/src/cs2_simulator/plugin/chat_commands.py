"""Execute the plugin's chat commands: ready state, choice of side after a knife round, pauses.

When the plugin waits for a chat command (the choice of a side, or the end of a pause after a restored round), simulated
players write it after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from cs2_protocol.game import Side
from cs2_simulator.agenda import Script
from cs2_simulator.play.flow.standing import GamePhase
from cs2_simulator.play.player import Player
from cs2_simulator.plugin.match_course import MatchCourse
from cs2_simulator.plugin.series import PluginStage

REACTION_MS = 10_000
"""Milliseconds until players write a chat command that the plugin waits for, and between two attempts."""

SIDE_CHOICES = (".stay", ".switch", ".stay", ".swap", ".ct", ".t")
"""Messages from which the winners of a knife round choose. In half of the cases they stay on their side."""

ADMIN = "Admin"
ROUND_RESTORE = "RoundRestore"


def handle(course: MatchCourse, player: Player, command: str) -> None:
    """Execute a chat command of a player. `.` or `!` has been removed from its start."""
    match command:
        case "ready" | "r":
            _set_ready(course, player, is_ready=True)
        case "unready" | "notready" | "ur":
            _set_ready(course, player, is_ready=False)
        case "coach t" | "coach ct":
            course.coaches.appoint(player)
        case "uncoach":
            course.coaches.dismiss(player)
        case _ if player.side is not None:
            _handle_on_side(course, player, player.side, command)


def _handle_on_side(course: MatchCourse, player: Player, side: Side, command: str) -> None:
    match command:
        case "forceready":
            _force_ready(course, side)
        case "stay" | "switch" | "swap":
            _choose_side(course, player, is_switch=command != "stay")
        case "ct" | "t":
            _choose_side(course, player, is_switch=(command == "ct") is not (side is Side.CT))
        case "pause" | "tech" | "p":
            _pause(course, side)
        case "unpause" | "up":
            _unpause(course, side)
        case "tac":
            if course.is_live and not course.paused_by:
                course.execute("timeout_ct_start" if side is Side.CT else "timeout_terrorist_start")


def schedule_side_choice(course: MatchCourse, rng: Random) -> None:
    """Schedule the side choice by a winner of the knife round, repeated until it is accepted.

    The plugin waits for the choice without a limit. It repeats its question, but the server does not log this.
    """
    choice = rng.choice(SIDE_CHOICES)

    def choose() -> None:
        winners = course.arena.players_on(course.knife_winner)
        if winners:
            course.door.say(rng.choice(winners), choice)

    _repeat_while(course, lambda: course.stage is PluginStage.WAITING_FOR_KNIFE_DECISION, choose)


def schedule_unpause(course: MatchCourse) -> None:
    """After a restored round, schedule `.unpause` by one player of each side, unless `sim_unpause` is 0."""
    wait_ms = int(course.arena.variables.number("sim_unpause") * 1000)

    def unpause() -> None:
        for side in (Side.CT, Side.T):
            for player in course.arena.players_on(side)[:1]:
                course.door.say(player, ".unpause")

    if wait_ms:
        _repeat_while(course, lambda: course.paused_by == ROUND_RESTORE, unpause, wait_ms)


def _repeat_while(
    course: MatchCourse, is_awaited: Callable[[], bool], chat: Callable[[], None], every_ms: int = REACTION_MS
) -> None:
    """Let players repeat a chat command while the plugin waits for it, on this map of this match only."""
    series, map_number = course.series, course.arena.map_number

    def script() -> Script[None]:
        yield every_ms
        while is_awaited() and course.series is series and course.arena.map_number == map_number:
            chat()
            yield every_ms

    course.arena.agenda.start(script())


def _set_ready(course: MatchCourse, player: Player, *, is_ready: bool) -> None:
    if not course.stage.is_started:
        course.ready.set_ready(player, is_ready=is_ready)
        course.check_ready()


def _force_ready(course: MatchCourse, side: Side) -> None:
    is_allowed = course.settings.is_on("matchzy_allow_force_ready")
    if course.series is not None and is_allowed and not course.stage.is_started:
        course.ready.force(course.arena, side, course.series.match)
        course.check_ready()


def _choose_side(course: MatchCourse, player: Player, *, is_switch: bool) -> None:
    is_waiting = course.stage is PluginStage.WAITING_FOR_KNIFE_DECISION
    if course.series is not None and is_waiting and player.side is course.knife_winner:
        if is_switch:
            course.execute("mp_swapteams")  # the first team of the game then begins as T
        course.go_live(course.series)


def _pause(course: MatchCourse, side: Side) -> None:
    if course.is_live and not course.paused_by and untimely(course) is None:
        course.pause(side.value)


def untimely(course: MatchCourse) -> str | None:
    """Return why the match cannot be paused now, by a player or an admin; None if it can be paused."""
    if course.game.is_halftime:
        return "You cannot use this command during halftime."
    if course.game.phase is GamePhase.OVER:
        return "You cannot use this command after the game has ended."
    return "You cannot use this command when tactical timeout is active." if course.game.is_timeout_running else None


def _unpause(course: MatchCourse, side: Side) -> None:
    """Unpause when both sides have asked for it. Only an admin can end a pause by an admin."""
    if not course.is_live or not course.paused_by or course.paused_by == ADMIN:
        return
    if side not in course.asked_to_unpause:
        course.asked_to_unpause.append(side)
    if len(course.asked_to_unpause) == len(Side):
        course.unpause()
