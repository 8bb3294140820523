"""How does a match go? MatchZy's life of one: loaded, warmup, knife, live, map after map, and the end.

It acts on the game as the real plugin does, by console commands. What it hears from game, console and chat comes from
`match_plugin`. A match without a loaded file (a pug) is never started, and a veto is never played: the command that
would start it takes the first maps of the list, and the first of them must be started by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matchpod.core.model import Side, Team
from matchpod.simulator.outside import Fetched, Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.standing import Phase
from matchpod.simulator.play.people.visitors import Visitors
from matchpod.simulator.play.player import UNASSIGNED, Player
from matchpod.simulator.play.watcher import RoundEnd
from matchpod.simulator.plugin import cfg_files, reports, status
from matchpod.simulator.plugin.faults import ReportPost, is_header
from matchpod.simulator.plugin.match_file import Refusal, read_match
from matchpod.simulator.plugin.ready_list import ReadyList
from matchpod.simulator.plugin.series import NO_MATCH_ID, Series, Standing
from matchpod.simulator.plugin.settings import Settings
from matchpod.simulator.plugin.status import Stage
from matchpod.simulator.plugin.surroundings import CommandLine, MatchGame

CVARS_AFTER_LIVE_MS = 1000
"""The variables of the match are executed again when live.cfg has surely been read."""

WARMUP_AFTER_MAP_MS = 1000
SERIES_END_AFTER_MS = 2000
"""So that `map_result` goes out first."""

LEAST_RESTART_DELAY_S = 15
BROADCAST_FLUSH_S = 10
"""A shorter `mp_match_restart_delay` is raised: the recording needs the time, and more where the broadcast is late."""

NEXT_MAP_BEFORE_RESTART_S = 4
MAP_CHANGE_MS = 3000
RESET_BEFORE_RESTART_S = 1

DEFAULT_NAMES = ("COUNTER-TERRORISTS", "TERRORISTS")


class MatchCourse:
    """The match of one server, or none."""

    def __init__(
        self, arena: Arena, game: MatchGame, door: Door, visitors: Visitors, *, console: CommandLine, outside: Outside
    ) -> None:
        self.arena = arena
        self.game = game
        self.door = door
        self.visitors = visitors
        self.post = ReportPost(arena, outside)
        self.ready = ReadyList()
        self.settings = Settings()
        self.series: Series | None = None
        self.stage = Stage.NONE
        self.pauser = ""
        """Who paused the match; nobody while it is empty."""
        self.asked_to_unpause: list[Side] = []
        self.last_fault = ""
        """Why the last thing asked for was not done: printed to the real server's own console only."""
        self.is_whitelist_on = False
        self.knife_winner = Side.CT
        self._console = console
        self._outside = outside
        self._matches_counted = 0

    @property
    def score(self) -> tuple[int, int]:
        """The score of the map by the plugin's teams."""
        return self.game.score if self.series is None else self.series.by_team(self.game.score)

    @property
    def shown_stage(self) -> Stage:
        """The stage as it is asked for: the plugin takes the end of a map from the game, which may have left it."""
        is_left = self.stage is Stage.POST_GAME and self.game.phase is not Phase.OVER
        return Stage.LIVE if is_left else self.stage

    def execute(self, text: str) -> None:
        """Run console commands as the server itself."""
        self._console.execute(text, "")

    def place_of(self, player: Player) -> str | None:
        """The team a player must take; None where he may choose."""
        return None if self.series is None else self.series.place_of(player, self.game.team1_side)

    def after(self, wait_ms: int, act: Callable[[], None]) -> None:
        """Do something later, if the match is still loaded then."""
        series = self.series
        self.arena.agenda.call_in(wait_ms, lambda: act() if self.series is series else None)

    # --- a match comes ---------------------------------------------------------------------------------------------

    def load_from(self, url: str, headers: Mapping[str, str]) -> None:
        """Fetch a match and load it; the game stands still meanwhile. What came of it is in `last_fault` only."""
        self.last_fault = ""
        if self.series is not None:
            self.last_fault = f"A match is already setup with id: {self.series.match_id}, cannot load a new match!"
        elif not url.startswith(("http://", "https://")):
            self.last_fault = f"Invalid URL: {url}. Please provide a valid URL to load the match!"
        elif not all(is_header(name, value) for name, value in headers.items()):
            self.last_fault = "An error occured: the header cannot be sent"
        else:
            self._outside.fetch(url, headers, lambda fetched: self._take(url, fetched))

    def _take(self, url: str, fetched: Fetched) -> None:
        if fetched.status is None or not 200 <= fetched.status < 300:
            self.last_fault = f"HTTP request failed: {fetched.status or fetched.reason}"
            return
        match = read_match(fetched.body)
        if isinstance(match, Refusal):
            self.last_fault = match.reason
            if match.is_readable:
                self.reset()
            return
        self._begin(Series(match, url))

    def _begin(self, series: Series) -> None:
        self.series = series
        self.stage = Stage.WARMUP if series.maps else Stage.PRE_VETO
        self.ready.clear()
        # An address set before is part of the match before.
        self.post.url = self.post.header_name = self.post.header_value = ""
        variables = self.arena.variables
        series.original_values = {name: variables.text(name) for name in series.match.cvars if variables.knows(name)}
        is_map_right = not series.maps or self._go_to_first_map(series)
        self._set_match_cvars(series)
        self.start_warmup()
        series.take_sides(Side.CT)
        self._name_teams(series.first_name, series.second_name)
        for player in tuple(self.arena.players):
            if player.is_in_game:
                self.admit(player)
        self.name_server()
        self.post.send(reports.series_start(series))
        self.visitors.stays_after_map = True
        self.visitors.expect(*series.expected())
        if is_map_right:
            self._place_everybody()

    def _go_to_first_map(self, series: Series) -> bool:
        """Change to the first map and its mode; True when that is what is played already."""
        variables = self.arena.variables
        mode = 2 if series.match.is_wingman else 1
        is_mode_right = (variables.whole("game_type"), variables.whole("game_mode")) == (0, mode)
        if is_mode_right and self.arena.map_name == series.maps[0]:
            return True
        self.execute(f"game_mode {mode};game_type 0")
        self.after(0, lambda: self.change_map(series.maps[0]))
        return False

    def skip_veto(self) -> None:
        """Take the first maps of the list without a veto."""
        series = self.series
        if series is not None and self.stage is Stage.PRE_VETO:
            series.maps = series.match.pool[: series.match.num_maps]
            self.stage = Stage.WARMUP
            self._go_to_first_map(series)

    def change_map(self, name: str) -> None:
        """Load another map; workshop maps are named by their number."""
        self.execute("bot_kick")
        self.execute(f'host_workshop_map "{name}"' if name.isdecimal() else f'changelevel "{name}"')

    def start_warmup(self) -> None:
        """Execute warmup.cfg, which begins warmup anew and holds it."""
        self._execute_all(cfg_files.WARMUP_CFG)
        self._execute_all(cfg_files.WARMUP_HOLD)

    # --- it is played ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Leave warmup, whoever is ready: by the knife round where the map begins with one."""
        series = self.series
        if series is None or self.stage.is_started:
            return
        if self.stage is Stage.PRE_VETO:
            self.skip_veto()
            return
        if series.match_id == NO_MATCH_ID:
            self._matches_counted += 1
            series.match_id = self._matches_counted
        self._name_teams(series.first_name, series.second_name)
        self.execute(f"mp_backup_round_file {series.backup_prefix}")
        if series.needs_knife:
            self._start_knife()
        else:
            self.go_live(series)

    def _start_knife(self) -> None:
        self.stage = Stage.KNIFE
        self._execute_all(cfg_files.KNIFE_CFG)
        self.game.start_knife_round()
        self.execute("mp_restartgame 1;mp_warmup_end")

    def go_live(self, series: Series) -> None:
        """Execute live.cfg and begin the first round that counts."""
        self.stage = Stage.LIVE
        # Planned before the restart, so that the first round is already played by the match's own rules.
        self.after(CVARS_AFTER_LIVE_MS, lambda: self._set_match_cvars(series))
        self._execute_all(cfg_files.LIVE_WINGMAN_CFG if series.match.is_wingman else cfg_files.LIVE_CFG)
        self.execute("mp_restartgame 1;mp_warmup_end")
        self.execute("mp_match_end_restart true")
        self.post.send(reports.going_live(series))

    def _end_series(self, series: Series, score: tuple[int, int], team1_side: Side, restart_s: int) -> None:
        payload = reports.series_end(series, score, team1_side)
        self.arena.agenda.call_in(SERIES_END_AFTER_MS, lambda: self.post.send(payload))
        if self.settings.is_on("matchzy_reset_cvars_on_series_end"):
            for name, value in series.original_values.items():
                self.execute(f"{name} {value}")
        self.visitors.stays_after_map = False
        self.after((restart_s - RESET_BEFORE_RESTART_S) * 1000, lambda: self.reset(needs_warmup=False))

    def _go_to_next_map(self, series: Series) -> None:
        self.stage = Stage.WARMUP
        self.unpause()
        self.ready.clear()
        self.after(MAP_CHANGE_MS, lambda: self.change_map(series.maps[series.map_number]))
        series.take_sides(self.game.team1_side)
        self.start_warmup()
        self._name_teams(series.first_name, series.second_name)

    def reset(self, *, needs_warmup: bool = True) -> None:
        """Forget the match and go back to warmup."""
        is_played = self.game.phase in (Phase.KNIFE, Phase.LIVE)
        self.series = None
        self.stage = Stage.NONE
        self.unpause()
        self.ready.clear()
        # MatchZy keeps the address for events, but loses the header's value to a slip: it puts the address there.
        self.post.header_value = self.post.url
        self.visitors.stays_after_map = False
        self.visitors.forget()
        self._name_teams(*DEFAULT_NAMES)
        if is_played:
            self.game.end_now()
        if needs_warmup:
            self.start_warmup()

    def pause(self, pauser: str) -> None:
        """Pause at the next freeze time."""
        self.pauser = pauser
        self.asked_to_unpause.clear()
        self.execute("mp_pause_match")

    def unpause(self) -> None:
        """Go on."""
        self.pauser = ""
        self.execute("mp_unpause_match")

    def check_ready(self) -> None:
        """Start when enough people are ready."""
        series = self.series
        if series is None or self.stage.is_started:
            return
        if self.ready.is_enough(self.arena, series.match, self.least_ready):
            self.start()

    @property
    def least_ready(self) -> int:
        """How many of a team must be ready where somebody speaks for it."""
        given = None if self.series is None else self.series.match.min_players_to_ready
        return self.settings.whole("matchzy_minimum_ready_required") if given is None else given

    def status_text(self) -> str:
        """The answer to `get5_status`."""
        return status.status_text(
            self.shown_stage,
            self.series,
            score=self.score,
            first_team_side=self.game.team1_side,
            is_paused=bool(self.pauser),
            is_ready=self.ready.is_everybody,
        )

    # --- what happens in the game ----------------------------------------------------------------------------------

    def hold_warmup(self) -> None:
        """A map was loaded, without what was set on the one before: begin its warmup by our own file."""
        map_number = self.arena.map_number

        def hold() -> None:
            if not self.stage.is_started and self.arena.map_number == map_number:
                self.start_warmup()

        if self.series is not None:
            self.after(WARMUP_AFTER_MAP_MS, hold)

    def admit(self, player: Player) -> None:
        """Send away who is not listed; the first who stays begins warmup anew."""
        if self.series is None:
            if self.is_whitelist_on or self.settings.is_on("matchzy_kick_when_no_match_loaded"):
                self.door.kick(player, "")
        elif self.place_of(player) is None or self.is_whitelist_on:
            self.door.kick(player, "")
        else:
            self.ready.say(player, is_ready=self.stage.is_started)
            if self.stage is Stage.WARMUP and len(self.ready) == 1:
                self.start_warmup()

    def end_knife(self, winner: Side) -> None:
        """The knife round was won: its winner may choose."""
        self.stage = Stage.WAITING_FOR_KNIFE_DECISION
        self.knife_winner = winner
        # Without `mp_warmup_start`: the game goes back to warmup by itself in this tick.
        self._execute_all(cfg_files.WARMUP_CFG)

    def switch_sides(self) -> None:
        """The winners of the knife round want the other side: the game lets its first team begin as T."""
        self.execute("mp_swapteams")

    def report_round(self, series: Series, end: RoundEnd) -> None:
        """A round that counts was decided."""
        self.post.send(reports.round_end(series, end, self.score, self._players_by_team(series)))

    def end_map(self, series: Series) -> None:
        """A map is over: the next one follows, or nothing."""
        self.stage = Stage.POST_GAME
        score, team1_side = self.score, series.side_of(Team.TEAM1, self.game.team1_side)
        map_number = series.map_number
        standing = series.end_map(score)
        self.post.send(reports.map_result(series, map_number, score, team1_side))
        restart_s = self._restart_delay_s()
        match standing:
            case Standing.DECIDED:
                self._end_series(series, score, team1_side, restart_s)
            case Standing.GOES_ON:
                self.after((restart_s - NEXT_MAP_BEFORE_RESTART_S) * 1000, lambda: self._go_to_next_map(series))
            case Standing.STUCK:
                self.last_fault = "Index was out of range: no map is left and nobody has won the series"
                self.visitors.stays_after_map = False

    def name_server(self) -> None:
        """Let the server's name say who plays, as `matchzy_hostname_format` has it."""
        series = self.series
        if series is None:
            return
        names = [name.replace(" ", "_") for name in (series.match.team1.name, series.match.team2.name)]
        words = {
            "MATCH_ID": str(series.match_id),
            "MAP": self.arena.map_name.rpartition("/")[2],
            "MAPNUMBER": str(series.map_number),
            "TEAM1": names[0],
            "TEAM2": names[1],
            "TEAM1_SCORE": str(self.score[0]),
            "TEAM2_SCORE": str(self.score[1]),
        }
        name = self.settings.filled("matchzy_hostname_format", words)
        if name:
            self.execute(f"hostname {name}")

    # --- steps -----------------------------------------------------------------------------------------------------

    def _restart_delay_s(self) -> int:
        variables = self.arena.variables
        delay_s, least_s = variables.whole("mp_match_restart_delay"), LEAST_RESTART_DELAY_S
        if variables.is_on("tv_enable") and variables.whole("tv_delay") > 0:
            least_s += variables.whole("tv_delay") + BROADCAST_FLUSH_S
        if delay_s < least_s:
            delay_s = least_s
            self.execute(f"mp_match_restart_delay {delay_s}")
        return delay_s

    def _execute_all(self, commands: tuple[str, ...]) -> None:
        for command in commands:
            self.execute(command)

    def _set_match_cvars(self, series: Series) -> None:
        for name, value in series.match.cvars.items():
            self.execute(f'{name} "{value}"')

    def _name_teams(self, first: str, second: str) -> None:
        # Without quotes, as the plugin does it: a name of several words must survive that.
        self.execute(f"mp_teamname_1 {first}")
        self.execute(f"mp_teamname_2 {second}")

    def _place_everybody(self) -> None:
        for player in tuple(self.arena.players):
            place = self.place_of(player)
            if player.is_in_game and place is not None and player.team not in ("", UNASSIGNED, place):
                self.door.join(player, place)

    def _players_by_team(self, series: Series) -> tuple[list[reports.Payload], list[reports.Payload]]:
        book = self.arena.book
        tallies, rounds_played = book.tallies(), book.rounds_played()
        side = series.side_of(Team.TEAM1, self.game.team1_side)
        return (
            reports.stats_players(self.arena.on(side), tallies, rounds_played),
            reports.stats_players(self.arena.on(side.other), tallies, rounds_played),
        )
