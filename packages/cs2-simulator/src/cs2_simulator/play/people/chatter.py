"""Write the players' chat: greetings, remarks after rounds, `.ready` and farewells, about 30 lines per match.

The plugin reads messages that begin with `.` or `!` as commands, so other messages never begin like this.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.agenda import Script
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.people.crowd import Crowd, Role
from cs2_simulator.play.people.stories import Story
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.sim_settings import accounts_in

GREETINGS = ("glhf", "gl hf", "hf", "hi", "good luck", "hello", "gl", "glhf all", "hey :)")
FAREWELLS = ("gg", "gg", "gg", "ggwp", "gg wp", "gh", "good game", "wp", "gg ez", "thx, gg")
REMARKS = (
    "nice", "ns", "nt", "wp", "vnh", "lol", "how", "omg", "unlucky", "lag?", "my bad", "sorry", "eco", "nice try",
    "wtf", "he was one hp", "so close", "1hp...", "what a shot", "haha", "who plays with that crosshair", "ping??",
    "ty", "n1", "that timing", "again middle", "they always go there", "report me", "my mouse died", "almost", ":D",
    "D:", "?", "gg", "did you guys know otters hold hands", "красиво", "dobry strzał", "schön", "jajaja", "ナイス",
)  # fmt: skip
PLANS = (
    "rush b", "rush a", "go mid", "stack a", "save", "force", "full buy", "slow", "split b", "drop pls", "smoke ct",
    "flash for me", "one banana", "play for picks", "dont peek", "awp mid", "fake a go b",
)  # fmt: skip

READY = ".ready"
READY_MS = (4_000, 15_000)
COACH_MS = (1_000, 3_000)
"""Milliseconds from joining a side to the message `.coach`."""

GREETERS = (2, 5)
FAREWELL_SPEAKERS = (3, 7)
CHAT_DELAY_MS = (800, 7_000)
"""Milliseconds from an event to a message about it."""

REMARKS_PER_ROUND = (0, 0, 1, 1, 1, 2)
"""Possible numbers of remarks after a round. On average there are five remarks in six rounds."""

TEAM_SHARE = 0.35
"""Share of remarks that are written to the player's own team only."""

DEATHMATCH_REMARK_MS = (15_000, 40_000)


class Chatter(Story):
    """Writes chat messages. A server has one instance for its lifetime."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._deathmatch = TaskSlot(crowd.arena.agenda)
        self._is_warmup = True

    def map_loaded(self, map_name: str) -> None:
        """Allow new `.ready` messages, because a new map begins with warmup."""
        self._is_warmup = True

    def map_closing(self) -> None:
        self.cancel()
        self._deathmatch.cancel()

    def warmup_began(self) -> None:
        self._is_warmup = True

    def player_joined(self, player: Player) -> None:
        """Let a coach write `.coach`. Let a listed player write `.ready` in warmup, but only once per map."""
        guest = self._crowd.guest_of(player)
        if guest is not None and guest.role is Role.COACH:
            self._ask_to_coach(player)
        if guest is None or guest.person.account in accounts_in(self._crowd.arena.variables.text("sim_unready")):
            return
        if guest.is_listed and self._is_warmup and not guest.is_ready:
            guest.is_ready = True
            wait_ms = self.rng("ready", guest.person.account).randint(*READY_MS)
            self.call_in(wait_ms, lambda: self._say_ready(player))

    def went_live(self) -> None:
        self._is_warmup = False
        self.cancel()  # drops earlier greetings: a match is often started twice within a few seconds
        self._schedule_chat("greeting", GREETERS, GREETINGS)
        self._deathmatch.cancel()
        if self.is_deathmatch:
            self._deathmatch.start(self._chat_in_deathmatch())

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        if not self.is_deathmatch:
            rng = self.rng("round", round_number)
            for _ in range(rng.choice(REMARKS_PER_ROUND)):
                self._remark(rng.randint(*CHAT_DELAY_MS), rng.random())

    def restored(self, rounds_played: int) -> None:
        """Let the coaches write `.coach` again, because the plugin forgets coaches when it restores a round."""
        for guest in self._crowd.present():
            if guest.player is not None and guest.role is Role.COACH:
                self._ask_to_coach(guest.player)

    def map_ended(self) -> None:
        self._deathmatch.cancel()
        self._schedule_chat("farewell", FAREWELL_SPEAKERS, FAREWELLS)

    def _schedule_chat(self, occasion: str, bounds: tuple[int, int], texts: tuple[str, ...]) -> None:
        rng = self.rng(occasion)
        count = rng.randint(*bounds)
        players = self._crowd.arena.playing
        for player in rng.sample(players, min(count, len(players))):
            self.say_in(rng.randint(*CHAT_DELAY_MS), player, rng.choice(texts))

    def _remark(self, wait_ms: int, salt: float) -> None:
        rng = self.rng("remark", salt)
        players = self._crowd.arena.playing
        if players:
            is_team_only = rng.random() < TEAM_SHARE
            text = rng.choice(PLANS if is_team_only else REMARKS)
            self.say_in(wait_ms, rng.choice(players), text, is_team_only=is_team_only)

    def _ask_to_coach(self, player: Player) -> None:
        wait_ms = self.rng("coach", player.person.account).randint(*COACH_MS)

        def ask() -> None:
            if player.side is not None and not player.is_coach:
                self._crowd.door.say(player, ".coach ct" if player.side is Side.CT else ".coach t")

        # Schedule the message outside this story, whose tasks are cancelled when the match goes live.
        self._crowd.arena.agenda.call_in(wait_ms, ask)

    def _say_ready(self, player: Player) -> None:
        if self._is_warmup and player.is_playing:
            self._crowd.door.say(player, READY)

    def _chat_in_deathmatch(self) -> Script[None]:
        rng = self.rng("deathmatch")
        while True:
            yield rng.randint(*DEATHMATCH_REMARK_MS)
            self._remark(0, rng.random())
