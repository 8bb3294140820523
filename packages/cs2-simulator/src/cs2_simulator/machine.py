"""Assemble one simulated server without its sockets, and simulate crashes, hangs, lost ticks and lost posts.

Everything here happens in simulated time. The owner of a machine advances its agenda, passes in console commands, and
implements `Outside`, the interface through which the machine makes requests.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.agenda import Agenda
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.console.status import is_hibernating
from cs2_simulator.log_stream import GameHeaders, LogStream
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import Outside
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game, GamePhase
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.people.bots import Bots
from cs2_simulator.play.people.visitors import Visitors
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.plugin.match_plugin import MatchPlugin
from cs2_simulator.plugin.shot_counter import ShotCounter
from cs2_simulator.scenarios import LOSABLE_POSTS, Scenario
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.sim_settings import words_in
from cs2_simulator.variables import Variables

BOOT_MS = 600_000
"""Milliseconds before `start_ms` at which the simulated clock begins. This is longer than any map load, so the server
is running at `start_ms`."""

FATAL_ROUND = 4
"""Number of the round in which the scenarios `server_crash` and `server_hang` stop the server: in the middle of a
match."""

FATAL_AFTER_MS = 12_000
"""Milliseconds from the start of the round in which the server stops (see FATAL_ROUND) until it stops."""

LOSS_SHARE = 0.02
"""Probability that a tick with lines begins a gap, in the scenario `log_loss`."""

LOSS_TICKS = 4
"""Maximum number of ticks with lines that are lost in a gap of the scenario `log_loss`."""

BEHIND_MS = 7 * 60_000
"""Milliseconds by which the clock is behind if the setup fault is `wrong_clock`. Time zones never differ by this
amount."""

_STATES = {GamePhase.LIVE: "Live", GamePhase.OVER: "GameOver"}
"""Values of `X-Game-State`. Only `Warmup` was observed in real posts; the others are guesses."""


class Machine(Watcher):
    """One server: clock, log, console, game, plugin and visitors."""

    def __init__(self, options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> None:
        self._options = options
        self._outside = outside
        self._instance_token = instance_token
        self._lost_ticks = 0
        self._maps_played = 0
        self._start_ms = start_ms
        self.agenda = Agenda(start_ms - BOOT_MS)
        self._end = TaskSlot(self.agenda)
        self.variables = Variables()
        self._lost_posts: set[str] = set()
        self.stream = LogStream(
            self.agenda,
            describe=self._describe,
            is_tick_lost=self._is_tick_lost,
            is_post_lost=self._is_post_lost,
            is_asleep=self._is_asleep,
            clock_offset_ms=-BEHIND_MS if options.setup_fault is SetupFault.WRONG_CLOCK else 0,
        )
        self.arena = Arena(self.agenda, self.stream, self.variables)
        self.arena.setup_fault = options.setup_fault
        self.door = Door(self.arena)
        self.game = Game(self.arena)
        self.visitors = Visitors(self.arena, self.door, self.game)
        Bots(self.arena, self.door)
        parts = ServerParts(self.arena, self.game, self.door, self.visitors, outside, self.stream)
        self.console = Console(parts)
        self.plugin = MatchPlugin(parts, self.console)
        ShotCounter(parts, self.console)
        self.arena.watchers.append(self)
        self._losses = self.arena.rng("losses")

    @property
    def is_busy(self) -> bool:
        """True while a map is loading and the console does not respond."""
        return self.arena.is_busy

    @property
    def is_lockstep(self) -> bool:
        """True if the clock waits until the log is acknowledged."""
        return self.variables.is_on("sim_lockstep")

    @property
    def rcon_password(self) -> str:
        """The RCON password. If empty, every password is rejected."""
        return self.variables.text("rcon_password")

    def boot(self) -> None:
        """Apply the options of the command line and load the map. When this returns, the server is running."""
        options = self._options
        if options.max_players is not None:
            self.door.max_players = options.max_players
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
        # These commands run after the map load; otherwise the config of the game mode would overwrite their settings.
        for command in options.commands:
            self.console.execute(command, "")

    def execute(self, text: str, source: str) -> str:
        """Run a command and return its output. `source` is the RCON client's address, empty for the server itself."""
        return self.console.execute(text, source)

    def map_closing(self) -> None:
        """Drop RCON connections, as a map change on a real server does, unless `sim_rcon_drop` is off."""
        if self.variables.is_on("sim_rcon_drop"):
            self._outside.drop_rcon_connections()

    # --- scenarios that end the server --------------------------------------------------------------------------

    def map_ended(self) -> None:
        """Count the maps that were played. The count is part of the seed for the log losses of the next map."""
        self._maps_played += 1

    def went_live(self) -> None:
        """Seed the log losses of this map. In a deathmatch, which has no rounds, also schedule the crash or hang."""
        self._losses = self.arena.rng("losses", self._maps_played)
        self._lost_ticks = 0
        if self.variables.mode_name == "deathmatch":
            self._schedule_end(FATAL_ROUND * FATAL_AFTER_MS)

    def round_started(self, round_number: int) -> None:
        """In FATAL_ROUND, or in the last round of a shorter match, schedule the crash or hang."""
        if round_number == min(FATAL_ROUND, max(1, self.variables.whole("mp_maxrounds"))):
            self._schedule_end(FATAL_AFTER_MS)

    def _schedule_end(self, wait_ms: int) -> None:
        self._end.cancel()
        if self.arena.scenario is Scenario.SERVER_CRASH:
            self._end.call_in(wait_ms, lambda: self._outside.exit(is_crash=True))
        elif self.arena.scenario is Scenario.SERVER_HANG:
            self._end.call_in(wait_ms, self._outside.hang)

    # --- the log ------------------------------------------------------------------------------------------------

    def _is_tick_lost(self) -> bool:
        # The first lines of a map load are never lost: without them, a reader could not recognize the load.
        if self.arena.scenario is not Scenario.LOG_LOSS or self.arena.is_busy:
            return False
        if self._lost_ticks == 0 and self._losses.random() < LOSS_SHARE:
            self._lost_ticks = self._losses.randint(1, LOSS_TICKS)
        if self._lost_ticks > 0:
            self._lost_ticks -= 1
            return True
        return False

    def _is_asleep(self) -> bool:
        """True while the server hibernates and posts nothing. It is not known whether real servers behave like this."""
        return self._options.setup_fault is SetupFault.HIBERNATES and is_hibernating(self.arena)

    def _is_post_lost(self, body: bytes) -> bool:
        """True for the first post that contains a line of a kind listed in `sim_lost_posts`, once per kind.

        Disconnects are lost only in a live match.
        """
        for name in words_in(self.variables.text("sim_lost_posts")):
            is_due = name not in self._lost_posts and (name != "disconnect" or self.game.phase is GamePhase.LIVE)
            if is_due and LOSABLE_POSTS[name] in body:
                self._lost_posts.add(name)
                return True
        return False

    def _describe(self) -> GameHeaders:
        standing = self.game.standing
        return GameHeaders(
            map_name=self.arena.map_name,
            state=_STATES.get(standing.phase, "Warmup"),
            team_ct=standing.team_name(Side.CT) or "CT",
            score_ct=standing.side_score(Side.CT),
            team_t=standing.team_name(Side.T) or "T",
            score_t=standing.side_score(Side.T),
            server_address=f"{self._options.ip}:{self._options.port}",
            steam_id=f"[A:1:{int(self._instance_token[:8], 16)}:{int(self._instance_token[8:12], 16)}]",
            instance_token=self._instance_token,
            token_secret=self.variables.text("logaddress_token_secret"),
        )
