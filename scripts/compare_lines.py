"""How like a real match is a simulated one? Kinds of line a round, and rates of play, side by side as a table.

`python -m scripts.compare_lines REAL.log` prints the table of `docs/simulator.md`. Only the part that counts is looked
at, from the first round to `Game Over`, and RCON echoes are left out: they are the caller's, not the server's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from matchpod.cs2.log_lines import player_lines, world_lines
from matchpod.cs2.log_lines.reader import Line, LineReader

SIMULATED_MATCHES = 12

_DETAILED = {
    player_lines.Item: "verb",
    player_lines.GrenadeLaunched: "grenade",
    player_lines.Triggered: "trigger",
    world_lines.WorldTriggered: "trigger",
    world_lines.Notice: "notice",
}
_IGNORED = (world_lines.RconCommand,)


class Rates:
    """What the counted part of one or more matches holds."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.maps = 0
        self.rounds = 0
        self.kills = 0
        self.headshots = 0
        self.damage = 0
        self.unknown = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Count one map. A restart forgets what was counted before it, as knife rounds and warmup."""
        reader, held = LineReader(), list[Line]()
        for raw in lines:
            _, line = reader.read(raw)
            self.unknown += isinstance(line, world_lines.Unknown)
            if isinstance(line, world_lines.WorldTriggered) and line.trigger == "Match_Start":
                held.clear()
            elif isinstance(line, world_lines.GameOver):
                self._count(held)
                return
            else:
                held.append(line)

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
                case _:
                    pass

    def figures(self) -> dict[str, float]:
        """Rates of play, by name."""
        rounds = max(1, self.rounds)
        return {
            "rounds a map": self.rounds / max(1, self.maps),
            "kills a round": self.kills / rounds,
            "headshot share": self.headshots / max(1, self.kills),
            "damage a round": self.damage / rounds,
            "lines a round": sum(self.kinds.values()) / rounds,
        }


def _kind(line: Line) -> str:
    detail = _DETAILED.get(type(line))
    name = type(line).__name__
    return f"{name}: {getattr(line, detail)}" if detail else name


def table(real: Rates, simulated: Rates) -> str:
    """The comparison as Markdown: rates of play first, then lines a round by kind, the most common first."""
    rows = ["| | real | simulated |", "|---|---:|---:|"]
    theirs, ours = real.figures(), simulated.figures()
    rows += [f"| {name} | {theirs[name]:.2f} | {ours[name]:.2f} |" for name in theirs]
    rows += ["", "| lines a round | real | simulated |", "|---|---:|---:|"]
    kinds = sorted(real.kinds.keys() | simulated.kinds.keys(), key=lambda kind: (-real.kinds[kind], kind))
    for kind in kinds:
        rows.append(
            f"| {kind} | {real.kinds[kind] / real.rounds:.2f} | {simulated.kinds[kind] / simulated.rounds:.2f} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Compare the log named on the command line with made-up matches."""
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
