"""Round trips of result shapes through JSON."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import DeathmatchResult, SeriesResult
from tests.unit.core.match_driver import ANN, deathmatch
from tests.unit.core.views.test_result import PlayedGame, play


def test_series_result_round_trips_through_json() -> None:
    result = build_result(play().round(Team.TEAM1).end().match)
    assert msgspec.json.decode(msgspec.json.encode(result), type=SeriesResult) == result


def test_deathmatch_result_round_trips_through_json() -> None:
    game = PlayedGame(deathmatch(ANN)).live()
    result = build_result(game.apply(game.kill(ANN, "BOT:x")).end().match)
    assert msgspec.json.decode(msgspec.json.encode(result), type=DeathmatchResult) == result
