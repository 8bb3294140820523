"""Compute the resources for a number of matches, from the figures and formulas of docs/capacity.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from math import ceil

_FIGURE = re.compile(r"^\| (\w) \| .* \| ([\d,.]+) \| .* \|$", re.MULTILINE)
_HOUR_S = 3600
EXAMPLES = (10, 100, 500, 2000)
"""Numbers of concurrent matches that are rows in the table of docs/capacity.md."""
SIZES = (100, 500, 1000, 2000)
"""Numbers of concurrent matches that are rows in the table of the chart's README."""

Figures = Mapping[str, Decimal]


def read_figures(page: str) -> Figures:
    """Return the figures by symbol, from the table in docs/capacity.md."""
    return {symbol: Decimal(value.replace(",", "")) for symbol, value in _FIGURE.findall(page)}


def replicas(matches: int, figures: Figures) -> int:
    """Return the number of replicas for this number of matches, including a spare replica."""
    return 1 + ceil(matches / figures["p"])


def example_row(matches: int, figures: Figures) -> str:
    """Return the row for this number of matches in the table of docs/capacity.md."""
    f, many = figures, replicas(matches, figures)
    servers = ceil(matches * Decimal("1.1"))
    cells = [
        matches,
        many,
        _up(matches * f["c"] / _HOUR_S),
        ceil(f["m"] + f["n"] * matches / (many - 1)),
        _up(matches * f["d"] / _HOUR_S),
        f["k"] * (many + 1),
        ceil(matches * f["r"] / _HOUR_S),
        _up(matches * f["t"] * 8 / _HOUR_S),
        _up(matches * f["w"] / 1000),
        ceil(f["y"] * 8 * matches / 1000),
        servers,
        ceil(servers * f["g"]),
        ceil(servers * f["h"]),
    ]
    return "| " + " | ".join(f"{cell:,}" for cell in cells) + " |"


def chart_table(figures: Figures) -> str:
    """Return the table of the chart's README: number of replicas, and resource requests of each replica."""
    lines = [
        "| live matches | `replicaCount` | `resources.requests.cpu` | `resources.requests.memory` |",
        "|---:|---:|---:|---:|",
    ]
    for matches in SIZES:
        many = replicas(matches, figures)
        others = matches / Decimal(many - 1)
        cpu = max(250, 50 * ceil(others * figures["c"] / _HOUR_S * 1000 / 50))
        memory = max(256, 64 * ceil((figures["m"] + figures["n"] * others) / 64))
        lines.append(f"| up to {matches:,} | {many} | {cpu}m | {memory}Mi |")
    return "\n".join(lines)


def _up(value: Decimal) -> Decimal:
    """Round up: to hundredths if the value is below 0.1, else to tenths."""
    return value.quantize(Decimal("0.01" if value < Decimal("0.1") else "0.1"), ROUND_CEILING)
