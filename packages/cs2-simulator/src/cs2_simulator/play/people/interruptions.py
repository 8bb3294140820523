"""Define stories that interrupt a match: timeouts, a technical pause, and restored round backups."""

from __future__ import annotations

import re
from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import Vote
from cs2_simulator.agenda import Script
from cs2_simulator.play.people.crowd import Crowd
from cs2_simulator.play.people.stories import Story
from cs2_simulator.play.player import Player

TIMEOUT_ROUNDS = {2: Side.T, 5: Side.CT}
"""Rounds in whose freeze time a side calls a timeout, with that side."""

TIMEOUT_NAMES = {Side.T: "TimeOutTs", Side.CT: "TimeOutCTs"}

TECHNICAL_ROUND = 3
TECHNICAL_MS = (20_000, 60_000)

PAUSED_BY, UNPAUSED_BY = "mp_pause_match", "mp_unpause_match"

TIMEOUT_VOTE = "StartTimeOut "
FIRST_AREA = 1200
"""Area number of a voter, before the user id is added to it. In a real log the area was 1211."""

VOTE_MS = 1_000
"""Milliseconds between two votes, and from the last vote to the timeout. In a real log with one voter it was up to two
seconds."""

REACTION_MS = 500
UNPAUSE_INTERVAL_MS = 1_000

EARLY_RESTORE = (6, 3)
"""First restore: the round in whose freeze time it happens, and the number of played rounds in the restored backup."""

ROUNDS_PAST_HALF = 2
RESTORE_TALK_MS = 2_000
RESTORE_PAUSE_MS = 10_000
"""Milliseconds from a restore to the unpause. On many servers, a restored match is paused until players unpause it."""

RESTORE_REQUESTS = ("restore pls, he crashed", "admin can we restore that", "that round should not count, restore")

_ROUND_OF_FILE = re.compile(r"round(\d+)\D*$")


class Interruption(Story):
    """Base class of interruptions. It lets a side write chat messages, and resumes play after a pause."""

    def say_for(self, side: Side, rng: Random, text: str) -> None:
        """Let a random player of a side write a message. Without players on this side, nothing happens."""
        players = self._crowd.arena.players_on(side)
        if players:
            self._crowd.door.say(rng.choice(players), text)

    def resume_play(self, rng: Random) -> Script[None]:
        """Let both sides write `.unpause`, as the plugin requires. Without the plugin, unpause the game by command."""
        game = self._crowd.game
        if not game.is_paused:
            return
        for side in Side:
            self.say_for(side, rng, ".unpause")
            yield UNPAUSE_INTERVAL_MS
        if game.is_paused:
            game.unpause(UNPAUSED_BY)


class PauseStory(Interruption):
    """Each side calls a timeout, and there is one technical pause."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._rounds_done: list[int] = []

    def freeze_began(self, round_number: int) -> None:
        if self.is_deathmatch or round_number in self._rounds_done:
            return
        self._rounds_done.append(round_number)
        side = TIMEOUT_ROUNDS.get(round_number)
        if side is not None:
            self.run(self._call_timeout(side, self.rng(round_number)))
        elif round_number == TECHNICAL_ROUND:
            self.run(self._call_technical_pause(self.rng(round_number)))

    def _call_timeout(self, side: Side, rng: Random) -> Script[None]:
        """Call a timeout: by chat in a match of the plugin, otherwise by a vote. The game itself ends the timeout."""
        yield REACTION_MS
        self.say_for(side, rng, rng.choice(("timeout", "lets take a timeout", "tac")))
        players = self._crowd.arena.players_on(side)
        if players and not any(guest.is_listed for guest in self._crowd.guests.values()):
            yield from self._vote(rng.sample(players, len(players) // 2 + 1))
        self._crowd.game.pause(TIMEOUT_NAMES[side])

    def _vote(self, voters: list[Player]) -> Script[None]:
        """Let more than half of a team vote for a timeout. The player who calls the vote is the first."""
        self._write_vote("started", voters[0])
        for voter in voters:
            self._write_vote("cast", voter, "option0")
            if voter is not voters[-1]:
                yield VOTE_MS
        self._write_vote("succeeded", voters[0])
        yield VOTE_MS

    def _write_vote(self, step: str, player: Player, option: str | None = None) -> None:
        area = f"Area {FIRST_AREA + player.user_id}"
        self._crowd.arena.log.write(Vote(step, TIMEOUT_VOTE, player.user_id, player.token, area, option))

    def _call_technical_pause(self, rng: Random) -> Script[None]:
        game = self._crowd.game
        yield REACTION_MS
        self.say_for(rng.choice(tuple(Side)), rng, ".tech")
        if not game.is_paused:
            game.pause(PAUSED_BY)
        yield rng.randint(*TECHNICAL_MS)
        yield from self.resume_play(rng)


class RoundRestore(Interruption):
    """Backups are restored twice: first early in the match, then from the second half back into the first half."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        half = self.max_rounds // 2
        self._restores = [EARLY_RESTORE]
        if half > 1:
            self._restores.append((half + ROUNDS_PAST_HALF, half - 1))

    def freeze_began(self, round_number: int) -> None:
        due = next((restore for restore in self._restores if restore[0] == round_number), None)
        if due is not None and not self.is_deathmatch:
            self._restores.remove(due)
            self.run(self._restore(due[1], self.rng(*due)))

    def _restore(self, rounds_played: int, rng: Random) -> Script[None]:
        game = self._crowd.game
        yield REACTION_MS
        self.say_for(rng.choice(tuple(Side)), rng, rng.choice(RESTORE_REQUESTS))
        yield RESTORE_TALK_MS
        file = next((file for file in game.backups() if _rounds_in(file) == rounds_played), None)
        if file is not None and game.restore(file):
            yield RESTORE_PAUSE_MS
            yield from self.resume_play(rng)


def _rounds_in(file: str) -> int | None:
    """Return the number of rounds played before a backup, which is the number at the end of its file name."""
    found = _ROUND_OF_FILE.search(file)
    return None if found is None else int(found[1])
