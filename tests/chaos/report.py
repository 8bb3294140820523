"""Write the figures of a run into their section of a page in docs/lab. Other sections stay as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.chaos.judge import Difference
from tests.chaos.session import Totals

LAB = Path(__file__).resolve().parents[2] / "docs" / "lab"
BEGIN, END = "<!-- figures: {name} -->", "<!-- end of figures: {name} -->"
_INDEX = re.compile(r"\[\d+\]")


def write_section(name: str, lines: Sequence[str], folder: Path = LAB) -> None:
    """Replace the section with this name on the page that has it; raise ValueError if none has."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    for page in sorted(folder.glob("*.md")):
        before, found, rest = page.read_text(encoding="utf-8").partition(begin)
        _, found_end, after = rest.partition(end)
        if found and found_end:
            page.write_text("\n".join([before + begin, "", *lines, "", end + after]), encoding="utf-8")
            return
    raise ValueError(f"No page in {folder} has a section for {name!r}: add {begin} and {end}.")


def heading(command: str) -> str:
    """Return the line that says when and how figures were measured."""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d} with version {version('matchpod')} or later, `{command}`:"


def session_lines(totals: Totals, command: str) -> list[str]:
    """Return the section of a session as Markdown."""
    rows = {
        "minutes": f"{totals.seconds / 60:.0f}",
        "rounds, from seed": f"{totals.rounds:,}, {totals.seed}",
        "matches": f"{totals.matches:,}",
        **{f"fault: {kind.replace('_', ' ')}": f"{count:,}" for kind, count in sorted(totals.injected.items())},
        **{f"ended with `{end}`": f"{count:,}" for end, count in sorted(totals.ends.items())},
        "callbacks sent again after a death, same id and bytes": f"{totals.repeats:,}",
        "servers lost without a fault, while the host took at least half of the CPU": f"{totals.overload_losses:,}",
        "differences from the undisturbed run, all marked": f"{len(totals.differences):,}",
        "violations": f"{totals.violations:,}",
    }
    lines = [heading(command), "", "| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows.items())]
    if totals.differences:
        counts = count_fields(totals.differences)
        lines += ["", "| field that differs | times |", "|---|---:|"]
        lines += [f"| `{field}` | {count:,} |" for field, count in sorted(counts.items())]
    if totals.skipped:
        lines += ["", "Faults that could not be caused: "]
        lines[-1] += "; ".join(f"{text} ({count:,})" for text, count in sorted(totals.skipped.items())) + "."
    return lines


def count_fields(differences: Sequence[Difference]) -> Counter[str]:
    """Count differences per field, whatever the map and player."""
    return Counter(_INDEX.sub("[]", one.field).removeprefix(".") for one in differences)
