"""Draw the diagrams in docs/match-states.md and docs/server-states.md.

Run this script after changing a transition table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from matchpod.core import server_status
from matchpod.core.match import match

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN = "<!-- states: drawn by scripts/draw_states.py -->"
END = "<!-- end of states -->"


_State = TypeVar("_State", bound=StrEnum)
_Trigger = TypeVar("_Trigger", bound=StrEnum)


def draw(transitions: Mapping[tuple[_State, _Trigger], _State], start: _State) -> str:
    """Return a Mermaid diagram with one arrow per transition.

    A state without outgoing transitions is drawn as final.
    """
    arrows = [f"    {state} --> {target}: {trigger}" for (state, trigger), target in transitions.items()]
    sources = {state for state, _ in transitions}
    final = dict.fromkeys(target for target in transitions.values() if target not in sources)
    ends = [f"    {state} --> [*]" for state in final]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {start}", *arrows, *ends, "```"])


def redraw(page: str, diagram: str) -> str:
    """Return the page with its diagram replaced."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must contain {BEGIN!r} and {END!r} around the diagram")
    return f"{head}{BEGIN}\n{diagram}\n{END}{tail}"


def diagrams() -> dict[Path, str]:
    """Return the diagram for each page."""
    return {
        DOCS / "match-states.md": draw(match.TRANSITIONS, match.MatchPhase.WARMUP),
        DOCS / "server-states.md": draw(server_status.TRANSITIONS, server_status.ServerPhase.ALLOCATING),
    }


def main(pages: Mapping[Path, str]) -> int:
    """Write the pages with their diagrams. A page that is up to date stays the same."""
    for page, diagram in pages.items():
        page.write_text(redraw(page.read_text(encoding="utf-8"), diagram), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(diagrams()))
