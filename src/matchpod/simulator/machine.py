"""What is one simulated server, sockets aside? Its parts put together, and the scenarios that end it badly.

Everything in here happens in simulated time. Whoever owns a machine moves its agenda, passes console commands in, and
does what it asks of the world outside.
"""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.agenda import Agenda, Planned
from matchpod.simulator.console.console import Console
from matchpod.simulator.log_stream import GameHeaders, LogStream
from matchpod.simulator.options import ServerOptions
from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.game import Game, Phase
from matchpod.simulator.play.people.visitors import Visitors
from matchpod.simulator.play.watcher import Watcher
from matchpod.simulator.plugin.match_plugin import MatchPlugin
from matchpod.simulator.scenarios import Scenario
from matchpod.simulator.variables import Variables

BOOT_MS = 600_000
"""A server is started before it is there for others: so far back its time begins, more than any map takes to load."""

FATAL_ROUND = 4
"""In which round a server of the scenarios `server_crash` and `server_hang` stops: the match is well under way."""

FATAL_AFTER_MS = 12_000
"""How long after the start of that round."""

LOSS_SHARE = 0.02
"""Which share of ticks with lines begins a stretch that is lost, in the scenario `log_loss`."""

LOSS_TICKS = 4
"""How many ticks with lines such a stretch has at most."""

_STATES = {Phase.LIVE: "Live", Phase.OVER: "GameOver"}
"""`X-Game-State`. Only `Warmup` was ever seen in a real post; the others are guesses."""


class Machine(Watcher):
    """One server: its time, log, console, game, plugin and visitors."""

    def __init__(self, options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> None:
        self._options = options
        self._outside = outside
        self._instance_token = instance_token
        self._lost_ticks = 0
        self._maps_played = 0
        self._end: Planned | None = None
        self._start_ms = start_ms
        self.agenda = Agenda(start_ms - BOOT_MS)
        self.variables = Variables()
        self.stream = LogStream(self.agenda, describe=self._describe, is_losing=self._is_losing)
        self.arena = Arena(self.agenda, self.stream, self.variables)
        self.door = Door(self.arena)
        self.game = Game(self.arena)
        self.visitors = Visitors(self.arena, self.door, self.game)
        self.console = Console(self.arena, self.game, self.door, self.visitors, outside=outside, listeners=self.stream)
        self.plugin = MatchPlugin(
            self.arena, self.game, self.door, self.visitors, console=self.console, outside=outside
        )
        self.arena.watchers.append(self)
        self._losses = self.arena.dice("losses")

    @property
    def is_busy(self) -> bool:
        """True while a map loads: the console is silent."""
        return self.arena.is_busy

    @property
    def is_lockstep(self) -> bool:
        """True when time waits for the log to be acknowledged."""
        return self.variables.is_on("sim_lockstep")

    @property
    def rcon_password(self) -> str:
        """What a console must know; empty: none gets in."""
        return self.variables.text("rcon_password")

    def boot(self) -> None:
        """Take the settings of the command line and load the map; when this returns the server is up."""
        options = self._options
        if options.max_players is not None:
            self.door.seats = options.max_players
        settings = {
            "sim_seed": str(options.seed),
            "sim_scenario": options.scenario,
            "sim_speed": f"{options.speed:g}",
            "sim_players": options.players,
            "rcon_password": options.rcon_password,
            "game_type": str(options.game_type),
            "game_mode": str(options.game_mode),
            "hostport": str(options.port),
        }
        for name, value in settings.items():
            self.variables.set(name, value)
        self.game.load_map(options.map)
        self.agenda.run_until(self._start_ms)
        # Only now: the config of the mode would have undone them.
        for command in options.commands:
            self.console.execute(command, "")

    def execute(self, text: str, source: str) -> str:
        """Run a console command and answer what it printed; `source` is the address it came from, empty for none."""
        return self.console.execute(text, source)

    def map_closing(self) -> None:
        """A map change cuts the consoles off."""
        if self.variables.is_on("sim_rcon_drop"):
            self._outside.drop_consoles()

    # --- the end of some scenarios ------------------------------------------------------------------------------

    def map_ended(self) -> None:
        """Maps are told apart by how many were played before them."""
        self._maps_played += 1

    def went_live(self) -> None:
        """What is lost depends on the seed and the map only; a deathmatch counts its fatal moment from here."""
        self._losses = self.arena.dice("losses", self._maps_played)
        self._lost_ticks = 0
        if self.variables.mode_name == "deathmatch":
            self._plan_end(FATAL_ROUND * FATAL_AFTER_MS)

    def round_started(self, round_number: int) -> None:
        """The fatal round."""
        if round_number == min(FATAL_ROUND, max(1, self.variables.whole("mp_maxrounds"))):
            self._plan_end(FATAL_AFTER_MS)

    def _plan_end(self, wait_ms: int) -> None:
        if self._end is not None:
            self._end.cancel()
        if self.arena.scenario is Scenario.SERVER_CRASH:
            self._end = self.agenda.call_in(wait_ms, lambda: self._outside.exit(is_crash=True))
        elif self.arena.scenario is Scenario.SERVER_HANG:
            self._end = self.agenda.call_in(wait_ms, self._outside.hang)

    # --- the log ------------------------------------------------------------------------------------------------

    def _is_losing(self) -> bool:
        # Without the first lines of a load nobody could tell that there was one.
        if self.arena.scenario is not Scenario.LOG_LOSS or self.arena.is_busy:
            return False
        if self._lost_ticks == 0 and self._losses.random() < LOSS_SHARE:
            self._lost_ticks = self._losses.randint(1, LOSS_TICKS)
        if self._lost_ticks > 0:
            self._lost_ticks -= 1
            return True
        return False

    def _describe(self) -> GameHeaders:
        game = self.game
        return GameHeaders(
            map_name=self.arena.map_name,
            state=_STATES.get(game.phase, "Warmup"),
            team_ct=game.team_name(Side.CT) or "CT",
            score_ct=game.side_score(Side.CT),
            team_t=game.team_name(Side.T) or "T",
            score_t=game.side_score(Side.T),
            server_address=f"{self._options.ip}:{self._options.port}",
            steam_id=f"[A:1:{int(self._instance_token[:8], 16)}:{int(self._instance_token[8:12], 16)}]",
            instance_token=self._instance_token,
            token_secret=self.variables.text("logaddress_token_secret"),
        )
