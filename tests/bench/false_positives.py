"""Measure how often honest players are reported: in simulated matches without cheaters, and in real logs.

With `--cheaters`, measure how often the cheater of a simulated match is found instead. Not part of `make bench`, since
no speed is measured; `--write` writes the figures into docs/lab/anticheat.md. Matches are simulated without the service.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from cs2_simulator.scenarios import Scenario
from matchpod.core.anticheat import blind_and_smoke, headshot_rate, kill_bursts
from matchpod.core.anticheat.detectors import Detectors
from matchpod.core.events import GameEvent
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from tests.chaos.report import heading, write_section
from tests.corpus.real_logs import COMPETITIVE, CSGO_LOGS, INFERNO, read_log, with_humans_for_bots
from tests.corpus_folder import corpus_dir
from tests.unit.simulator.played_match import PlayedMatch, mode_settings

KINDS = (headshot_rate.KIND, blind_and_smoke.KIND, kill_bursts.KIND)
STEP_MS = 2_000
MATCHES, PLAYER_MAPS, ACCUSED = "matches", "maps of a player", "matches with a report"
FOUND, WRONG = "cheater found", "another player reported"
HONEST_TITLES = (MATCHES, PLAYER_MAPS, ACCUSED, *(f"`{kind}`" for kind in KINDS))
CHEATER_TITLES = (MATCHES, FOUND, WRONG, *(f"found as `{kind}`" for kind in KINDS))
Figures = Counter[str]
"""What was counted in some matches, by the title of its column."""
HONEST_SECTION, CHEATER_SECTION = "simulated matches", "simulated cheaters"
COMMAND = ".venv/bin/python tests/bench/false_positives.py"
PLAYERS = tuple(str(76561198000000000 + 7919 * number) for number in range(10))
FIVES = {"team1": TeamRoster("Alpha", PLAYERS[:5]), "team2": TeamRoster("Beta", PLAYERS[5:])}
PAIRS = {"team1": TeamRoster("Alpha", PLAYERS[:2]), "team2": TeamRoster("Beta", PLAYERS[2:4])}
MAPS = ("de_vertigo", "de_nuke", "de_inferno")

GAMES: dict[str, tuple[GameSettings, Scenario]] = {
    "competitive": (mode_settings(MatchType.COMPETITIVE, **FIVES), Scenario.FULL_MATCH),
    "competitive, `overtime`": (mode_settings(MatchType.COMPETITIVE, **FIVES), Scenario.OVERTIME),
    "competitive, `one_sided`": (mode_settings(MatchType.COMPETITIVE, **FIVES), Scenario.ONE_SIDED),
    "competitive, `rage_quit_rejoin`": (mode_settings(MatchType.COMPETITIVE, **FIVES), Scenario.RAGE_QUIT_REJOIN),
    "competitive, best of three": (
        mode_settings(MatchType.COMPETITIVE, maps=MAPS, series_format=SeriesFormat.BO3, **FIVES),
        Scenario.FULL_MATCH,
    ),
    "wingman, best of three": (
        mode_settings(MatchType.WINGMAN, maps=MAPS, series_format=SeriesFormat.BO3, **PAIRS),
        Scenario.FULL_MATCH,
    ),
    "casual": (mode_settings(MatchType.CASUAL), Scenario.FULL_MATCH),
    "deathmatch": (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=10), Scenario.FULL_MATCH),
    "retakes": (mode_settings(MatchType.RETAKES), Scenario.FULL_MATCH),
}
"""The simulated games without cheaters, by name."""

CHEATED = ("competitive", "wingman, best of three", "casual", "deathmatch", "retakes")
"""The games that are also played with a cheater."""


class SteppedMatch(PlayedMatch):
    """Reads the log every two seconds of the game instead of every tick, which is much faster."""

    def step(self) -> None:
        self.machine.agenda.run_until(self.now_ms + STEP_MS)
        self.receive_posts()
        deadline_ms = self.reader.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self._perform(self.reader.tick(self.now_ms).effects)


def play(settings: GameSettings, scenario: Scenario, seed: int) -> PlayedMatch:
    played = SteppedMatch(settings, scenario=scenario, seed=seed)
    if not played.play():
        raise RuntimeError(f"{settings.match_type} {scenario}, seed {seed}: the match did not end")
    return played


def measure_game(name: str, seed: int) -> Figures:
    """Simulate one match and count the reports."""
    match = play(*GAMES[name], seed).reader.match
    player_maps = sum(len(played.ledger.lines()) for played in match.maps)
    return _figures([one.kind for one in match.detections], player_maps)


def _figures(kinds: Sequence[str], player_maps: int) -> Figures:
    found = Counter({MATCHES: 1, PLAYER_MAPS: player_maps, ACCUSED: int(bool(kinds))})
    return found + Counter(f"`{kind}`" for kind in kinds)


def games(matches: int, first_seed: int) -> Iterator[tuple[str, int]]:
    """Yield the game and the seed of each match; all games are played equally often."""
    names = tuple(GAMES)
    for number in range(matches):
        yield names[number % len(names)], first_seed + number // len(names)


def measure(matches: int, *, first_seed: int = 1) -> dict[str, Figures]:
    """Simulate this many matches; return the figures of each game."""
    figures = {name: Figures() for name in GAMES}
    for name, seed in games(matches, first_seed):
        figures[name] += measure_game(name, seed)
    return figures


def measure_cheaters(name: str, seeds: Iterable[int]) -> Figures:
    """Simulate a game with a cheater once per seed."""
    figures = Figures()
    for seed in seeds:
        played = play(GAMES[name][0], Scenario.CHEATER, seed)
        cheaters = {player.person.player_id for player in played.machine.arena.players if player.person.is_cheater}
        reported = played.reader.match.detections
        figures[MATCHES] += 1
        figures[FOUND] += any(one.player_id in cheaters for one in reported)
        figures[WRONG] += any(one.player_id not in cheaters for one in reported)
        figures.update({f"found as `{one.kind}`" for one in reported if one.player_id in cheaters})
    return figures


def measure_corpus(folder: Path) -> dict[str, Figures]:
    """Count the reports in the real logs, of humans and if bots count as humans."""
    figures = {"real logs": Figures(), "real logs, bots count as humans": Figures()}
    for log in (INFERNO, *CSGO_LOGS):
        _, events = read_log(folder / log)
        for name, read in zip(figures, (events, with_humans_for_bots(events)), strict=True):
            figures[name] += _observe(read)
    return figures


def _observe(events: Iterable[GameEvent]) -> Figures:
    detectors = Detectors.of(COMPETITIVE)
    found = [one.kind for event in events for one in detectors.apply(event)]
    return _figures(found, len(detectors.players))


def table(titles: Sequence[str], figures: Mapping[str, Figures]) -> list[str]:
    """Return the figures as Markdown, with a row for each game."""
    lines = [f"| | {' | '.join(titles)} |", f"|---{'|---:' * len(titles)}|"]
    for name, one in figures.items():
        lines.append(f"| {name} | {' | '.join(f'{one[title]:,}' for title in titles)} |")
    return lines


def main(arguments: list[str]) -> int:
    """Measure, print the table, and write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--matches", type=int, default=500, help="simulated matches (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first match of each game")
    parser.add_argument("--cheaters", type=int, default=0, help="only play this many matches with a cheater per game")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/lab/anticheat.md")
    args = parser.parse_args(arguments)
    if args.cheaters:
        section, command = CHEATER_SECTION, f"{COMMAND} --cheaters {args.cheaters} --seed {args.seed} --write"
        seeds = range(args.seed, args.seed + args.cheaters)
        rows = table(CHEATER_TITLES, {name: measure_cheaters(name, seeds) for name in CHEATED})
    else:
        section, command = HONEST_SECTION, f"{COMMAND} --matches {args.matches} --seed {args.seed} --write"
        rows = table(HONEST_TITLES, _measure_all(args.matches, first_seed=args.seed))
    lines = [heading(command), "", *rows]
    print("\n".join(lines))
    if args.write:
        write_section(section, lines)
    return 0


def _measure_all(matches: int, *, first_seed: int) -> dict[str, Figures]:
    figures = measure(matches, first_seed=first_seed)
    figures["all simulated matches"] = sum(figures.values(), Figures())
    return figures | (measure_corpus(corpus_dir()) if corpus_dir().is_dir() else {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
