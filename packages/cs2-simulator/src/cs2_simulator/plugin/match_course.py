"""Control a match as MatchZy does: load, warmup, knife round, live, next map, end of the series.

`MatchCourse` controls the game through console commands, as the real plugin does; `match_plugin` forwards events to it.
A match without a match file (a pug) is never started. A map veto is not simulated: the first maps of the list are
played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cs2_protocol.game import Side, Team
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.outside import FetchResult
from cs2_simulator.play.flow.game import GamePhase
from cs2_simulator.play.player import UNASSIGNED, Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.plugin import cfg_files, reports
from cs2_simulator.plugin.coaches import Coaches
from cs2_simulator.plugin.demos import Demos
from cs2_simulator.plugin.faults import ReportSender, is_header
from cs2_simulator.plugin.match_file import Rejection, read_match
from cs2_simulator.plugin.player_lists import LIST_NAMES
from cs2_simulator.plugin.ready_list import ReadyList
from cs2_simulator.plugin.series import NO_MATCH_ID, PluginStage, Series, SeriesStanding, accounts_of
from cs2_simulator.plugin.settings import PluginSettings

CVARS_AFTER_LIVE_MS = 1000
"""Milliseconds after live.cfg until the variables of the match are set again, so that they override live.cfg."""

RESTORE_MS = 100
"""Milliseconds until the game restores its own backup: the plugin's timers run ten times a second."""

WARMUP_AFTER_MAP_MS = 1000
SERIES_END_AFTER_MS = 2000
"""Milliseconds from `map_result` to `series_end`, so that they are sent in this order."""

MIN_RESTART_DELAY_S = 15
BROADCAST_FLUSH_S = 10
"""Seconds that the end of a delayed broadcast needs. `mp_match_restart_delay` is at least MIN_RESTART_DELAY_S, so that
the recording is completed. For a delayed broadcast, `tv_delay` and BROADCAST_FLUSH_S are added to this minimum."""

NEXT_MAP_BEFORE_RESTART_S = 4
MAP_CHANGE_MS = 3000
RESET_BEFORE_RESTART_S = 1

DEFAULT_NAMES = ("COUNTER-TERRORISTS", "TERRORISTS")


class MatchCourse:
    """State and progress of the match that is loaded on one server, if any."""

    def __init__(self, parts: ServerParts, console: Console) -> None:
        self.arena = parts.arena
        self.game = parts.game
        self.door = parts.door
        self.visitors = parts.visitors
        self.report_sender = ReportSender(parts.arena, parts.outside)
        self.ready = ReadyList()
        self.settings = PluginSettings()
        self.series: Series | None = None
        self.stage = PluginStage.NONE
        self.paused_by = ""
        """Who or what paused the match; empty if it is not paused."""
        self.asked_to_unpause: list[Side] = []
        self.last_fault = ""
        """The last error. A real server prints most of them only to its own console."""
        self.knife_winner = Side.CT
        self.coaches = Coaches(parts.arena, parts.door, lambda: bool(self.paused_by) or self.game.is_timeout_running)
        self.demos = Demos(parts.arena, self.settings, parts.outside)
        self._console = console
        self._outside = parts.outside
        self._last_match_id = 0

    @property
    def score(self) -> tuple[int, int]:
        """The score of the map, as (team1, team2) of the match file."""
        return self.game.score if self.series is None else self.series.by_team(self.game.score)

    @property
    def is_live(self) -> bool:
        """True from the live start of a map. It stays true after the map's end, unless the series is decided."""
        series = self.series
        is_over = self.stage is PluginStage.POST_GAME
        return self.stage is PluginStage.LIVE or (
            is_over and series is not None and series.standing is not SeriesStanding.DECIDED
        )

    @property
    def shown_stage(self) -> PluginStage:
        """The stage that `get5_status` prints.

        As in MatchZy, a map that has ended is POST_GAME until play continues, then LIVE.
        """
        is_left = self.stage is PluginStage.POST_GAME and self.game.phase is not GamePhase.OVER
        return PluginStage.LIVE if is_left else self.stage

    def execute(self, text: str) -> None:
        self._console.execute(text, "")

    def required_team(self, player: Player) -> str | None:
        """The team that a player must join; None if the player is free to choose, or is not listed."""
        return None if self.series is None else self.series.required_team(player, self.game.team1_side)

    def after(self, wait_ms: int, callback: Callable[[], None]) -> None:
        """Schedule a callback. It is skipped if the match is no longer loaded by then."""
        series = self.series
        self.arena.agenda.call_in(wait_ms, lambda: callback() if self.series is series else None)

    # --- loading ---------------------------------------------------------------------------------------------------

    def load_from(self, url: str, headers: Mapping[str, str]) -> None:
        """Fetch a match file and load it.

        The game is frozen until the response. Errors are only stored in `last_fault`.
        """
        self.last_fault = ""
        if self.series is not None:
            self.last_fault = f"A match is already setup with id: {self.series.match_id}, cannot load a new match!"
        elif not url.startswith(("http://", "https://")):
            self.last_fault = f"Invalid URL: {url}. Please provide a valid URL to load the match!"
        elif not all(is_header(name, value) for name, value in headers.items()):
            self.last_fault = "An error occured: the header cannot be sent"
        else:
            self._outside.fetch(url, headers, lambda fetched: self._load(url, fetched))

    def _load(self, url: str, fetched: FetchResult) -> None:
        if fetched.status is None or not 200 <= fetched.status < 300:
            self.last_fault = f"HTTP request failed: {fetched.status or fetched.reason}"
            return
        match = read_match(fetched.body, default_min_ready=int(self.settings.text("matchzy_minimum_ready_required")))
        if isinstance(match, Rejection):
            self.last_fault = match.reason
            if match.is_readable:
                self.reset()
            return
        self._begin(Series(match, url))

    def _begin(self, series: Series) -> None:
        self.series = series
        self.stage = PluginStage.WARMUP
        self.ready.clear()
        # Ignore a report URL that was set before: it belongs to the previous match.
        self.report_sender.url = self.report_sender.header_name = self.report_sender.header_value = ""
        variables = self.arena.variables
        series.original_values = {name: variables.text(name) for name in series.match.cvars if variables.is_known(name)}
        is_map_right = self._go_to_first_map(series)
        self._set_match_cvars(series)
        self.start_warmup()
        series.assign_sides(Side.CT)
        self._name_teams(*series.names)
        for player in tuple(self.arena.players):
            if player.is_in_game:
                self.admit(player)
        self.update_hostname()
        self.report_sender.send(reports.series_start(series))
        self.visitors.crowd.stays_after_map = True
        self.visitors.expect(
            *(series.expected_people(name) for name in LIST_NAMES),
            coaches=accounts_of({**series.match.team1.coaches, **series.match.team2.coaches}),
        )
        if is_map_right:
            self._move_players_to_teams()

    def _go_to_first_map(self, series: Series) -> bool:
        """Change to the first map and its mode. Return True if both are already active."""
        variables = self.arena.variables
        mode = 2 if series.match.is_wingman else 1
        is_mode_right = (variables.whole("game_type"), variables.whole("game_mode")) == (0, mode)
        if is_mode_right and self.arena.map_name == series.maps[0]:
            return True
        self.execute(f"game_mode {mode};game_type 0")
        self.after(0, lambda: self.change_map(series.maps[0]))
        return False

    def change_map(self, name: str) -> None:
        """Load another map. A numeric name is a workshop id."""
        self.execute("bot_kick")
        self.execute(f'host_workshop_map "{name}"' if name.isdecimal() else f'changelevel "{name}"')

    def start_warmup(self) -> None:
        """Execute warmup.cfg. It restarts the warmup and stops the warmup timer."""
        self.execute(cfg_files.WARMUP_CFG)
        self.execute(cfg_files.WARMUP_HOLD)

    # --- playing ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """End warmup without checking who is ready. If the map has a knife round, start it; otherwise go live."""
        series = self.series
        if series is None or self.stage.is_started:
            return
        if series.match_id == NO_MATCH_ID:
            self._last_match_id += 1
            series.match_id = self._last_match_id
        self._name_teams(*series.names)
        self.execute(f"mp_backup_round_file {series.backup_prefix}")
        if series.needs_knife:
            self._start_knife()
        else:
            self.go_live(series)

    def _start_knife(self) -> None:
        self.stage = PluginStage.KNIFE
        self.execute(cfg_files.KNIFE_CFG)
        self.game.start_knife_round()
        self.execute("mp_restartgame 1;mp_warmup_end")

    def go_live(self, series: Series) -> None:
        """Execute live.cfg and begin the first round that counts."""
        self.stage = PluginStage.LIVE
        # Scheduled before the restart, so that the variables of the match apply from the first round on.
        self.after(CVARS_AFTER_LIVE_MS, lambda: self._set_match_cvars(series))
        self.execute(cfg_files.LIVE_WINGMAN_CFG if series.match.is_wingman else cfg_files.LIVE_CFG)
        self.execute("mp_restartgame 1;mp_warmup_end")
        self.execute("mp_match_end_restart true")
        self.demos.start(series)
        self.report_sender.send(reports.going_live(series))

    def _end_series(self, series: Series, score: tuple[int, int], team1_side: Side, restart_s: int) -> None:
        payload = reports.series_end(series, score, team1_side)
        self.arena.agenda.call_in(SERIES_END_AFTER_MS, lambda: self.report_sender.send(payload))
        if self.settings.is_on("matchzy_reset_cvars_on_series_end"):
            for name, value in series.original_values.items():
                self.execute(f"{name} {value}")
        self.visitors.crowd.stays_after_map = False
        self.after((restart_s - RESET_BEFORE_RESTART_S) * 1000, lambda: self.reset(needs_warmup=False))

    def _go_to_next_map(self, series: Series) -> None:
        self.stage = PluginStage.WARMUP
        self.unpause()
        self.ready.clear()
        self.after(MAP_CHANGE_MS, lambda: self.change_map(series.maps[series.map_number]))
        series.assign_sides(self.game.team1_side)
        self.start_warmup()
        self._name_teams(*series.names)

    def reset(self, *, needs_warmup: bool = True) -> None:
        """Unload the match. If it is being played, abort it. Execute warmup.cfg if `needs_warmup`."""
        is_played = self.game.phase in (GamePhase.KNIFE, GamePhase.LIVE)
        self.series = None
        self.stage = PluginStage.NONE
        self.unpause()
        self.ready.reset()
        self.coaches.forget()
        self.demos.forget()
        # MatchZy keeps the report URL, but a bug overwrites the header value with the URL.
        self.report_sender.header_value = self.report_sender.url
        self.visitors.crowd.stays_after_map = False
        self.visitors.forget_roster()
        self._name_teams(*DEFAULT_NAMES)
        if is_played:
            self.game.end_now()
        if needs_warmup:
            self.start_warmup()

    def pause(self, paused_by: str) -> None:
        """Pause the match at the next freeze time."""
        self.paused_by = paused_by
        self.coaches.spare()
        self.execute("mp_pause_match")

    def unpause(self) -> None:
        self.paused_by = ""
        self.asked_to_unpause.clear()
        self.execute("mp_unpause_match")

    def restore(self, series: Series, file: str) -> None:
        """Restore the player lists of a backup immediately, and the game's own backup a moment later."""
        series.restore(file)
        self.coaches.forget()
        self.game.end_timeouts()
        self.demos.start(series)
        self.after(RESTORE_MS, lambda: self.execute(f"mp_backup_restore_load_file {file.removesuffix('.json')}.txt"))

    def check_ready(self) -> None:
        series = self.series
        if series is None or self.stage.is_started:
            return
        if self.ready.can_start(self.arena, series.match):
            self.start()

    # --- game events -----------------------------------------------------------------------------------------------

    def schedule_warmup(self) -> None:
        """Schedule warmup.cfg after a map load, because the load has reset the variables."""
        map_number = self.arena.map_number

        def restart() -> None:
            if not self.stage.is_started and self.arena.map_number == map_number:
                self.start_warmup()

        if self.series is not None:
            self.after(WARMUP_AFTER_MAP_MS, restart)

    def admit(self, player: Player) -> None:
        """Kick a player who is not listed. The first admitted player restarts warmup."""
        if self.series is None:
            if self.settings.is_on("matchzy_kick_when_no_match_loaded"):
                self.door.kick(player)
        elif self.required_team(player) is None:
            self.door.kick(player)
        else:
            self.ready.set_ready(player, is_ready=self.stage.is_started)
            if self.stage is PluginStage.WARMUP and len(self.ready) == 1:
                self.start_warmup()

    def end_knife(self, winner: Side) -> None:
        """End the knife round. Its winner may then choose a side."""
        self.stage = PluginStage.WAITING_FOR_KNIFE_DECISION
        self.knife_winner = winner
        # Omit `mp_warmup_start`: the game itself returns to warmup in this tick.
        self.execute(cfg_files.WARMUP_CFG)

    def report_round(self, series: Series, end: RoundEnd) -> None:
        self.report_sender.send(reports.round_end(series, end, self.score, self._players_by_team(series)))

    def end_map(self, series: Series) -> None:
        """Report the end of a map and schedule the next map or the end of the series."""
        self.stage = PluginStage.POST_GAME
        score, team1_side = self.score, series.side_of(Team.TEAM1, self.game.team1_side)
        map_number = series.map_number
        self.demos.map_ended(series, rounds_played=sum(score))
        standing = series.end_map(score)
        self.report_sender.send(reports.map_result(series, map_number, score, team1_side))
        restart_s = self._restart_delay_s()
        match standing:
            case SeriesStanding.DECIDED:
                self._end_series(series, score, team1_side, restart_s)
            case SeriesStanding.GOES_ON:
                self.after((restart_s - NEXT_MAP_BEFORE_RESTART_S) * 1000, lambda: self._go_to_next_map(series))
            case SeriesStanding.STUCK:
                self.last_fault = "Index was out of range: no map is left and the series is undecided"
                self.visitors.crowd.stays_after_map = False

    def update_hostname(self) -> None:
        series = self.series
        if series is None:
            return
        values = {
            "MATCH_ID": str(series.match_id),
            "MAP": self.arena.map_name.rpartition("/")[2],
            "MAPNUMBER": str(series.map_number),
            "TEAM1": series.match.team1.name.replace(" ", "_"),
            "TEAM2": series.match.team2.name.replace(" ", "_"),
            "TEAM1_SCORE": str(self.score[0]),
            "TEAM2_SCORE": str(self.score[1]),
        }
        name = self.settings.formatted("matchzy_hostname_format", values)
        if name:
            self.execute(f"hostname {name}")

    # --- steps -----------------------------------------------------------------------------------------------------

    def _restart_delay_s(self) -> int:
        variables = self.arena.variables
        delay_s, min_s = variables.whole("mp_match_restart_delay"), MIN_RESTART_DELAY_S
        if variables.is_on("tv_enable") and variables.whole("tv_delay") > 0:
            min_s += variables.whole("tv_delay") + BROADCAST_FLUSH_S
        if delay_s < min_s:
            delay_s = min_s
            self.execute(f"mp_match_restart_delay {delay_s}")
        return delay_s

    def _set_match_cvars(self, series: Series) -> None:
        for name, value in series.match.cvars.items():
            self.execute(f'{name} "{value}"')

    def _name_teams(self, first: str, second: str) -> None:
        # Not quoted, as in the plugin. Team names of several words must still work.
        self.execute(f"mp_teamname_1 {first}")
        self.execute(f"mp_teamname_2 {second}")

    def _move_players_to_teams(self) -> None:
        for player in tuple(self.arena.players):
            team = self.required_team(player)
            if player.is_in_game and team is not None and player.team not in ("", UNASSIGNED, team):
                self.door.join(player, team)

    def _players_by_team(self, series: Series) -> tuple[list[reports.Payload], list[reports.Payload]]:
        book = self.arena.book
        tallies, rounds_played = book.tallies(), book.rounds_played()
        side = series.side_of(Team.TEAM1, self.game.team1_side)
        return (
            reports.stats_players(self.arena.everyone_on(side), tallies, rounds_played),
            reports.stats_players(self.arena.everyone_on(side.other), tallies, rounds_played),
        )
