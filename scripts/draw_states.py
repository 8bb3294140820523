"""Draws the diagram of docs/match-states.md from the table of the state machine. Run it after changing the table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from matchpod.core.match import TRANSITIONS, Phase

PAGE = Path(__file__).resolve().parents[1] / "docs" / "match-states.md"
BEGIN = "<!-- states: drawn by scripts/draw_states.py -->"
END = "<!-- end of states -->"


_State = TypeVar("_State", bound=StrEnum)
_Trigger = TypeVar("_Trigger", bound=StrEnum)


def draw(transitions: Mapping[tuple[_State, _Trigger], _State], start: _State) -> str:
    """A Mermaid diagram: an arrow for each row of the table; a state without a way out is final."""
    arrows = [f"    {state} --> {target}: {trigger}" for (state, trigger), target in transitions.items()]
    left = {state for state, _ in transitions}
    final = dict.fromkeys(target for target in transitions.values() if target not in left)
    ends = [f"    {state} --> [*]" for state in final]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {start}", *arrows, *ends, "```"])


def redraw(page: str) -> str:
    """The page with its diagram drawn anew."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the diagram between {BEGIN!r} and {END!r}")
    return f"{head}{BEGIN}\n{draw(TRANSITIONS, Phase.WARMUP)}\n{END}{tail}"


def main(page: Path) -> int:
    """Write the page; nothing changes when it is up to date."""
    page.write_text(redraw(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(PAGE))
