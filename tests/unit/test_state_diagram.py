"""The pages about match and server states agree with the transition tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pytest

from matchpod.core.match.match import MatchPhase, Trigger
from matchpod.core.server_status import ServerPhase, ServerStatus, ServerStep
from scripts import draw_states


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    BROKEN = "broken"


class Push(StrEnum):
    SWITCH = "switch"
    HAMMER = "hammer"


def test_page_is_up_to_date() -> None:
    for path in draw_states.diagrams():
        page = path.read_text(encoding="utf-8")
        assert page == draw_states.redraw(page, draw_states.diagrams()[path]), "run python -m scripts.draw_states"


def test_page_explains_every_phase_and_trigger_of_a_match() -> None:
    for name in [*MatchPhase, *Trigger]:
        assert f"| `{name}` |" in (draw_states.DOCS / "match-states.md").read_text(encoding="utf-8")


def test_page_explains_every_phase_step_and_status_of_a_server() -> None:
    for name in [*ServerPhase, *ServerStep, *ServerStatus]:
        assert f"| `{name}` |" in (draw_states.DOCS / "server-states.md").read_text(encoding="utf-8")


def test_diagram_has_one_arrow_per_transition_and_marks_final_states() -> None:
    table = {
        (Light.RED, Push.SWITCH): Light.GREEN,
        (Light.GREEN, Push.SWITCH): Light.RED,
        (Light.GREEN, Push.HAMMER): Light.BROKEN,
    }
    assert draw_states.draw(table, Light.RED).splitlines() == [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> red",
        "    red --> green: switch",
        "    green --> red: switch",
        "    green --> broken: hammer",
        "    broken --> [*]",
        "```",
    ]


def test_old_diagram_is_replaced_and_surrounding_text_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{draw_states.BEGIN}\nold\n{draw_states.END}\nafter\n", encoding="utf-8")
    assert draw_states.main({page: "new"}) == 0
    written = page.read_text(encoding="utf-8")
    assert written == f"before\n{draw_states.BEGIN}\nnew\n{draw_states.END}\nafter\n"
    assert draw_states.redraw(written, "new") == written


def test_page_without_diagram_markers_is_rejected() -> None:
    with pytest.raises(ValueError, match="around the diagram"):
        draw_states.redraw("no markers here", "new")
