"""Compare simulated matches with a real match, in a table of log lines per round by kind and of rates of play.

`python -m scripts.compare_lines REAL.log` prints the table of `docs/lab/simulator.md`. Only the live part of a match is
compared: from the last `Match_Start` to `Game Over`. Logged RCON commands are excluded, because they depend on the RCON
client.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cs2_protocol.log_lines import player_lines, world_lines
from cs2_protocol.log_lines.reader import Line, LineReader

SIMULATED_MATCHES = 12

_DETAILED = {
    player_lines.ItemTransfer: "verb",
    player_lines.GrenadeLaunched: "grenade",
    player_lines.Triggered: "trigger",
    world_lines.WorldTriggered: "trigger",
    world_lines.RoundEndNotice: "notice",
}
_IGNORED = (world_lines.RconCommand,)


class Rates:
    """Counts over the live part of one or more matches, from which rates are computed."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.maps = 0
        self.rounds = 0
        self.kills = 0
        self.headshots = 0
        self.damage = 0
        self.flash_assists = 0
        self.enemies_flashed = 0
        self.unknown = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Count one map. At a restart, discard the lines before it, such as those of warmup and knife round."""
        reader, pending = LineReader(), list[Line]()
        for raw in lines:
            _, line = reader.read(raw)
            self.unknown += isinstance(line, world_lines.Unknown)
            if isinstance(line, world_lines.WorldTriggered) and line.trigger == "Match_Start":
                pending.clear()
            elif isinstance(line, world_lines.GameOver):
                self._count(pending)
                return
            else:
                pending.append(line)

    def _count(self, lines: list[Line]) -> None:
        self.maps += 1
        health: dict[str, int] = {}
        for line in lines:
            if isinstance(line, _IGNORED):
                continue
            self.kinds[_kind(line)] += 1
            match line:
                case world_lines.WorldTriggered(trigger="Round_Start"):
                    health.clear()
                    self.rounds += 1
                case player_lines.Killed():
                    self.kills += 1
                    self.headshots += "headshot" in line.modifiers
                case player_lines.Attacked() if line.player.side is not line.victim.side:
                    before = health.get(line.victim.player_id, 100)
                    self.damage += min(line.damage, before)
                    health[line.victim.player_id] = line.health
                case player_lines.Assisted(is_flash=True):
                    self.flash_assists += 1
                case player_lines.BlindedBy() if line.player.side is not line.thrower.side:
                    self.enemies_flashed += health.get(line.player.player_id, 100) > 0
                case _:
                    pass

    def figures(self) -> dict[str, float]:
        """Return the rates of play by name: per round, per map or per kill."""
        rounds = max(1, self.rounds)
        return {
            "rounds per map": self.rounds / max(1, self.maps),
            "kills per round": self.kills / rounds,
            "headshot share": self.headshots / max(1, self.kills),
            "damage per round": self.damage / rounds,
            "enemies flashed per round": self.enemies_flashed / rounds,
            "flash assists per round": self.flash_assists / rounds,
            "lines per round": sum(self.kinds.values()) / rounds,
        }


def _kind(line: Line) -> str:
    detail = _DETAILED.get(type(line))
    name = type(line).__name__
    return f"{name}: {getattr(line, detail)}" if detail else name


def table(real: Rates, simulated: Rates) -> str:
    """Return the comparison as a Markdown table: rates of play, then lines per round by kind, sorted by frequency."""
    rows = ["| | real | simulated |", "|---|---:|---:|"]
    real_rates, simulated_rates = real.figures(), simulated.figures()
    rows += [f"| {name} | {rate:.2f} | {simulated_rates[name]:.2f} |" for name, rate in real_rates.items()]
    rows += ["", "| lines per round | real | simulated |", "|---|---:|---:|"]
    kinds = sorted(real.kinds.keys() | simulated.kinds.keys(), key=lambda kind: (-real.kinds[kind], kind))
    for kind in kinds:
        rows.append(
            f"| {kind} | {real.kinds[kind] / real.rounds:.2f} | {simulated.kinds[kind] / simulated.rounds:.2f} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Compare the log file that is named on the command line with simulated matches."""
    from tests.unit.simulator.played_match import five_against_five

    if len(sys.argv) != 2:
        print("usage: python -m scripts.compare_lines REAL.log", file=sys.stderr)
        return 2
    real, simulated = Rates(), Rates()
    real.add(Path(sys.argv[1]).read_bytes().split(b"\n"))
    for seed in range(1, SIMULATED_MATCHES + 1):
        simulated.add(five_against_five(seed).log_lines())
    print(table(real, simulated))
    return 0


if __name__ == "__main__":
    sys.exit(main())
