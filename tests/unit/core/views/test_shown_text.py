"""Players as callers see them."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Team
from matchpod.core.views.shown_text import MAX_TEXT_CHARS, person_of, sanitize
from matchpod.core.views.timeline_items import Person
from tests.unit.core.match_driver import EVE, live_duel

ANONYMOUS = Person(steam_id=None, name="", team=None)


def test_bot_has_no_id() -> None:
    assert person_of(live_duel().match, "BOT:Kao", "", Team.TEAM2) == Person(steam_id=None, name="Kao", team=Team.TEAM2)


@pytest.mark.parametrize("player_id", [EVE, "", "Console"])
def test_unlisted_or_unidentified_player_is_anonymous(player_id: str) -> None:
    assert person_of(live_duel().match, player_id, "Eve", Team.TEAM1) == ANONYMOUS


def test_text_is_truncated() -> None:
    assert sanitize("x" * 5000) == "x" * MAX_TEXT_CHARS
