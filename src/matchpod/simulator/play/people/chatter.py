"""What do people write into the chat? A greeting, a word after a round, `.ready`, gg: some 30 lines a match.

None of it begins with `.` or `!` but the words meant for the plugin, which would hear the others as commands.
"""

from __future__ import annotations

from matchpod.simulator.agenda import Planned, Script
from matchpod.simulator.play.people.crowd import Crowd
from matchpod.simulator.play.people.stories import Story
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import RoundEnd

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

GREETERS = (2, 5)
FAREWELL_SPEAKERS = (3, 7)
SPEECH_MS = (800, 7_000)
"""How long after an occasion people write."""

REMARKS_A_ROUND = (0, 0, 1, 1, 1, 2)
"""Drawn after every round: five lines in six rounds."""

TEAM_SHARE = 0.35
"""Which share of remarks is for the team alone."""

DEATHMATCH_REMARK_MS = (15_000, 40_000)


class Chatter(Story):
    """Lets people talk; one for the life of a server."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self._deathmatch: Planned | None = None
        self._is_warmup = True

    def map_loaded(self, map_name: str) -> None:
        """Nobody has said that he is ready."""
        self._is_warmup = True

    def map_closing(self) -> None:
        """Whatever was on somebody's mind is forgotten."""
        self.close()
        self._stop_deathmatch()

    def warmup_began(self) -> None:
        """People may say that they are ready."""
        self._is_warmup = True

    def player_joined(self, player: Player) -> None:
        """A player of the plugin's match says that he is ready, once a map."""
        guest = self._crowd.guest_of(player)
        if guest is not None and guest.is_listed and self._is_warmup and not guest.is_ready:
            guest.is_ready = True
            wait_ms = self.dice("ready", guest.person.account).randint(*READY_MS)
            self.later(wait_ms, lambda: self._say_ready(player))

    def went_live(self) -> None:
        """Some greet the others."""
        self._is_warmup = False
        self.close()  # a match is often started twice within moments
        self._let_some_say("greeting", GREETERS, GREETINGS)
        self._stop_deathmatch()
        if self.is_deathmatch:
            self._deathmatch = self._crowd.arena.agenda.start(self._chat_in_deathmatch())

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """Some have something to say about it."""
        if not self.is_deathmatch:
            dice = self.dice("round", round_number)
            for _ in range(dice.choice(REMARKS_A_ROUND)):
                self._remark(dice.randint(*SPEECH_MS), dice.random())

    def map_ended(self) -> None:
        """Most say good-bye."""
        self._stop_deathmatch()
        self._let_some_say("farewell", FAREWELL_SPEAKERS, FAREWELLS)

    def _let_some_say(self, occasion: str, bounds: tuple[int, int], texts: tuple[str, ...]) -> None:
        dice = self.dice(occasion)
        count = dice.randint(*bounds)
        players = self._crowd.arena.playing
        for player in dice.sample(players, min(count, len(players))):
            self.say_in(dice.randint(*SPEECH_MS), player, dice.choice(texts))

    def _remark(self, wait_ms: int, lot: float) -> None:
        dice = self.dice("remark", lot)
        players = self._crowd.arena.playing
        if players:
            is_team_only = dice.random() < TEAM_SHARE
            text = dice.choice(PLANS if is_team_only else REMARKS)
            self.say_in(wait_ms, dice.choice(players), text, is_team_only=is_team_only)

    def _say_ready(self, player: Player) -> None:
        if self._is_warmup and player.is_playing:
            self._crowd.door.say(player, READY)

    def _chat_in_deathmatch(self) -> Script[None]:
        dice = self.dice("deathmatch")
        while True:
            yield dice.randint(*DEATHMATCH_REMARK_MS)
            self._remark(0, dice.random())

    def _stop_deathmatch(self) -> None:
        if self._deathmatch is not None:
            self._deathmatch.cancel()
            self._deathmatch = None
