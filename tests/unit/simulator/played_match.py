"""Play a whole match on a simulated server without sockets, which is driven as by the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cs2_protocol import console_commands
from cs2_protocol.log_batches import read_post
from cs2_simulator.agenda import TICKS_PER_S
from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import FetchResult, Upload
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.flow.game import GamePhase
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.scenarios import Scenario
from matchpod.core.effects import Effect, Kick, LoadMap, StartPlay
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2 import match_commands
from matchpod.cs2.match_reader import MatchReader
from matchpod.cs2.shots_report import ShotsReport, read_shots_report

START_MS = 1_768_849_200_000
LOG_URL = "http://127.0.0.1:9/log/token"
SHOTS_URL = "http://127.0.0.1:9/shots/token"
COUNT_SHOTS = f'matchpod_shots_url "{SHOTS_URL}"'
"""The command that has a plugin count shots."""
SOURCE = "127.0.0.1:50000"
PLAYERS = tuple(str(76561198000000000 + 7919 * number) for number in range(10))
GUESTS = tuple(str(76561198100000000 + 7919 * number) for number in range(4))
"""Coaches and spectators."""
MAX_HOURS = 8
"""How long a match is played at most, in simulated time; none takes that long."""


class Bookkeeper(Watcher):
    """Copies the simulator's own counts and score at the end of every map."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.books: list[list[Tally]] = []
        self.scores: list[tuple[int, int]] = []
        machine.arena.watchers.append(self)

    def map_ended(self) -> None:
        self.books.append(self._machine.arena.book.tallies())
        self.scores.append(self._machine.game.score)

    def restored(self, rounds_played: int) -> None:
        if self._machine.game.phase is GamePhase.OVER:  # pragma: no cover
            raise AssertionError("a round was restored after the end of the map")


class PlayedMatch:
    """A simulated server and the match that is played on it. Implements `Outside` for the server."""

    def __init__(
        self,
        settings: GameSettings,
        *,
        scenario: Scenario = Scenario.FULL_MATCH,
        seed: int = 1,
        extra: tuple[str, ...] = (),
    ) -> None:
        self.settings = settings
        self.extra = extra
        options = ServerOptions(scenario=scenario, seed=str(seed), rcon_password="secret", map=settings.maps[0])
        self.machine = Machine(options, self, start_ms=START_MS, instance_token="7be6ded70c65df71")
        self.bookkeeper = Bookkeeper(self.machine)
        self.reader = MatchReader.create(settings, START_MS)
        self.posts: list[tuple[int, dict[str, str], bytes]] = []
        self.reports: list[bytes] = []
        self.shots_reports: list[ShotsReport] = []
        self.is_gone = False
        self.is_hung = False
        self.effects: list[Effect] = []

    # --- the interface `Outside` ----------------------------------------------------------------------------------

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        file = match_commands.matchzy_match(
            self.settings,
            match_id=27,
            log_url="http://127.0.0.1:9/events",
            log_header_name="X-Token",
            log_header_value="t",
        )
        done(FetchResult(200, msgspec.json.encode(file)))

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        raise AssertionError("unexpected upload")

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        if url == SHOTS_URL:
            self.shots_reports.append(read_shots_report(body))
            self.reader.read_shots(self.shots_reports[-1], self.now_ms)
            return
        self.reports.append(body)
        self._perform(self.reader.read_report(body, self.now_ms).effects)

    def exit(self, *, is_crash: bool) -> None:
        self.is_gone = True

    def hang(self) -> None:
        self.is_hung = True

    def set_speed(self, speed: float) -> None:
        """Do nothing: the test advances the clock."""

    def drop_rcon_connections(self) -> None:
        """Do nothing: there are no connections."""

    # --- running a match ------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return self.machine.agenda.now_ms

    def execute(self, *texts: str) -> None:
        for text in texts:
            self.machine.execute(text, SOURCE)

    def step(self) -> None:
        """Run the next tick with a task, or a second if there is none; then read log posts and apply a due deadline."""
        if not self.machine.agenda.run_next():
            self.machine.agenda.run_until(self.now_ms + 1000)
        self.receive_posts()
        deadline_ms = self.reader.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self._perform(self.reader.tick(self.now_ms).effects)

    def receive_posts(self) -> None:
        stream = self.machine.stream
        for listener in tuple(stream.idle_listeners):
            request = stream.next_request(listener)
            if request is not None:
                stream.handle_response(listener, 200)
                self.posts.append((self.now_ms, dict(request.headers), request.body))
                post = read_post(dict(request.headers), request.body, received_ms=self.now_ms)
                self._perform(self.reader.read_post(post).effects)

    def run_until(self, is_reached: Callable[[], bool], *, hours: float = MAX_HOURS) -> bool:
        """Run until a condition is met. Return False if the time is up, or the server ends or hangs, before that."""
        until_ms = self.now_ms + round(hours * 3_600_000)
        while not is_reached():
            if self.now_ms > until_ms or self.is_gone or self.is_hung:
                return False
            self.step()
        return True

    def wait(self, seconds: float) -> None:
        until_ms = self.now_ms + round(seconds * 1000)
        self.run_until(lambda: self.now_ms >= until_ms)

    def configure(self) -> None:
        """Boot the server and send the commands that set it up."""
        settings = self.settings
        self.machine.boot()
        self.run_until(lambda: not self.machine.is_busy)
        self.execute(*match_commands.setup_commands(settings, map_name=settings.maps[0]))
        self._wait_for_load()
        self.execute("log on", console_commands.log_address_command(LOG_URL))
        if match_commands.uses_plugin_match(settings):
            self.execute(
                console_commands.load_match_command("http://127.0.0.1:9/match", header_name="X-Token", header_value="t")
            )
            self._wait_for_load()
        elif settings.roster:
            self.execute(f'sim_players "{",".join(settings.roster)}"')
        self.apply_settings()
        self.execute(*match_commands.warmup_commands(settings))

    def _wait_for_load(self) -> None:
        self.machine.agenda.run_until(self.now_ms + 2000 // TICKS_PER_S)  # a load begins one frame after its command
        self.run_until(lambda: not self.machine.is_busy)

    def apply_settings(self) -> None:
        number = self.reader.match.map_number
        self.execute(*match_commands.match_commands(self.settings, map_number=number), *self.extra)

    def play(self, *, hours: float = MAX_HOURS) -> bool:
        """Configure the server and play until the match has an outcome. Return False if it gets none."""
        self.configure()
        return self.run_until(lambda: self.reader.match.outcome is not None, hours=hours)

    def _perform(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            match effect:
                case Kick():
                    self.execute(console_commands.kick_command(effect.user_id, effect.reason))
                case StartPlay():
                    self.apply_settings()
                    self.execute(*match_commands.start_commands(self.settings))
                case LoadMap() if not match_commands.uses_plugin_match(self.settings):
                    self.execute(*match_commands.team_name_commands(self.settings, map_number=effect.map_number))
                    self.execute(match_commands.load_map_command(effect.map_name))
                case _:
                    pass

    def record(self, path: Path) -> Path:
        with path.open("wb") as file:
            for received_ms, headers, body in self.posts:
                row = {"receivedAt": received_ms, "headers": headers, "bodyBase64": body}
                file.write(msgspec.json.encode(row) + b"\n")
        return path

    def log_lines(self) -> list[bytes]:
        return [line for _, _, body in self.posts for line in body.split(b"\n") if line]


def five_against_five(seed: int) -> PlayedMatch:
    played = PlayedMatch(rostered(MatchType.COMPETITIVE, 5), seed=seed)
    assert played.play()
    return played


def rostered(match_type: MatchType, size: int, **changes: object) -> GameSettings:
    """Return the settings of a mode with two listed teams of this size."""
    team1, team2 = TeamRoster("Alpha", PLAYERS[:size]), TeamRoster("Beta", PLAYERS[5 : 5 + size])
    return mode_settings(match_type, team1=team1, team2=team2, **changes)


def coached(match_type: MatchType, size: int, **changes: object) -> GameSettings:
    """Return the settings of two listed teams with a coach each, and two spectators."""
    settings = rostered(match_type, size, **changes)
    assert settings.team1 is not None
    assert settings.team2 is not None
    return msgspec.structs.replace(
        settings,
        team1=msgspec.structs.replace(settings.team1, coaches=GUESTS[:1]),
        team2=msgspec.structs.replace(settings.team2, coaches=GUESTS[1:2]),
        spectators=GUESTS[2:],
    )


def mode_settings(match_type: MatchType, **changes: object) -> GameSettings:
    return msgspec.structs.replace(GameSettings(match_type=match_type, maps=("de_inferno",)), **changes)
