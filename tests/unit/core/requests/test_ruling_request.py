from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.ruling_request import read_ruling_request
from matchpod.core.rulings import RuledWinner, RulingRequest


def test_only_the_winner_is_required() -> None:
    assert read_ruling_request({"winner": "none"}) == RulingRequest(winner=RuledWinner.NONE)
    full = read_ruling_request({"winner": "team2", "reason": "no-show", "by": "Eva"})
    assert full == RulingRequest(winner=RuledWinner.TEAM2, reason="no-show", by="Eva")
    assert read_ruling_request({"winner": "team1", "reason": None}).reason is None


def test_all_faults_of_a_body_are_listed() -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_ruling_request({"winner": "tie", "reason": "", "by": 3, "note": "x"})
    assert [(str(fault.path), fault.message) for fault in caught.value.faults] == [
        ("note", "is not a known field"),
        ("winner", "must be one of team1, team2, none"),
        ("reason", "must be 1 to 500 characters"),
        ("by", "must be a string"),
    ]


@pytest.mark.parametrize("body", [None, [], "team1", {}, {"reason": "no-show"}])
def test_body_without_a_winner_is_rejected(body: object) -> None:
    with pytest.raises(InvalidParamsError):
        read_ruling_request(body)
