"""The states of actions follow each other, and every type has a rule."""

from __future__ import annotations

import pytest

from matchpod.core.match.actions import ACTIONS, ActionChange, ActionState, ActionType


def test_every_type_has_a_rule_with_texts() -> None:
    assert list(ACTIONS) == list(ActionType)
    for rule in ACTIONS.values():
        assert rule.phases
        assert rule.text.endswith(".")
        assert not rule.done.endswith(".")


@pytest.mark.parametrize(
    ("known", "change", "is_after"),
    [
        (("requested", None), ("requested", None), False),
        (("requested", None), ("sent", None), True),
        (("sent", None), ("sent", "in the next freeze time"), True),
        (("sent", "x"), ("requested", None), False),
        (("sent", None), ("done", None), True),
        (("done", None), ("failed", "x"), False),
        (("failed", "x"), ("done", None), False),
    ],
)
def test_action_does_not_go_back(known: tuple[str, str | None], change: tuple[str, str | None], is_after: bool) -> None:
    newer = ActionChange("action_1", ActionState(change[0]), change[1])
    assert newer.is_after(ActionState(known[0]), known[1]) is is_after
