"""What do people tell the plugin in the chat? Ready or not, their side after a knife round, pauses.

Nobody is at the keyboards here: where the plugin waits for a word of its own players (the choice of a side, the end of
a pause after a restored round), one of them says it a while later.
"""

from __future__ import annotations

from random import Random

from matchpod.core.model import Side
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.player import Player
from matchpod.simulator.plugin.match_course import MatchCourse
from matchpod.simulator.plugin.status import Stage

ANSWER_MS = 10_000
"""How long people take to write what is waited for."""

ADMIN = "Admin"
ROUND_RESTORE = "RoundRestore"


def answer(course: MatchCourse, player: Player, word: str) -> None:
    """Do what a player of the match asks for by the word after the dot."""
    if player.side is None:
        return
    match word:
        case "ready" | "r":
            _say_ready(course, player, is_ready=True)
        case "unready" | "ur":
            _say_ready(course, player, is_ready=False)
        case "forceready":
            _force_ready(course, player.side)
        case "stay" | "switch" | "swap":
            _choose_side(course, player, is_switch=word != "stay")
        case "pause" | "tech" | "p":
            _pause(course, player.side)
        case "unpause" | "up":
            _unpause(course, player.side)
        case "tac":
            if course.stage is Stage.LIVE:
                course.execute("timeout_ct_start" if player.side is Side.CT else "timeout_terrorist_start")


def let_choose(course: MatchCourse, dice: Random) -> None:
    """Let somebody of the knife round's winners choose a side, as soon as one of them is there to do it."""
    series, map_number = course.series, course.arena.map_number

    def script() -> Script[None]:
        is_switch = dice.random() < 0.5
        while True:
            yield ANSWER_MS
            is_waiting = course.stage is Stage.WAITING_FOR_KNIFE_DECISION and course.series is series
            if not is_waiting or course.arena.map_number != map_number:
                return
            winners = course.arena.on(course.knife_winner)
            if winners:
                course.door.say(dice.choice(winners), ".switch" if is_switch else ".stay")

    course.arena.agenda.start(script())


def let_unpause(course: MatchCourse) -> None:
    """Let a player of each side say that they are ready to go on after a restored round."""
    series, map_number = course.series, course.arena.map_number

    def script() -> Script[None]:
        while True:
            yield ANSWER_MS
            is_waiting = course.pauser.startswith(ROUND_RESTORE) and course.series is series
            if not is_waiting or course.arena.map_number != map_number:
                return
            for side in (Side.CT, Side.T):
                for player in course.arena.on(side)[:1]:
                    course.door.say(player, ".unpause")

    course.arena.agenda.start(script())


def _say_ready(course: MatchCourse, player: Player, *, is_ready: bool) -> None:
    if not course.stage.is_started:
        course.ready.say(player, is_ready=is_ready)
        course.check_ready()


def _force_ready(course: MatchCourse, side: Side) -> None:
    if not course.stage.is_started and course.settings.is_on("matchzy_allow_force_ready"):
        course.ready.force(course.arena, side, course.least_ready)
        course.check_ready()


def _choose_side(course: MatchCourse, player: Player, *, is_switch: bool) -> None:
    is_waiting = course.stage is Stage.WAITING_FOR_KNIFE_DECISION
    if course.series is not None and is_waiting and player.side is course.knife_winner:
        if is_switch:
            course.switch_sides()
        course.go_live(course.series)


def _pause(course: MatchCourse, side: Side) -> None:
    if course.stage is Stage.LIVE and not course.pauser:
        course.pause(side.value)


def _unpause(course: MatchCourse, side: Side) -> None:
    """Both sides must ask for it; a pause by an admin is his alone to end."""
    if course.stage is not Stage.LIVE or not course.pauser or course.pauser == ADMIN:
        return
    if side not in course.asked_to_unpause:
        course.asked_to_unpause.append(side)
    if len(course.asked_to_unpause) == len(Side):
        course.unpause()
