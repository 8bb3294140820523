"""The shapes can be written and read again."""

from __future__ import annotations

import msgspec

from matchpod.core.model import Team
from matchpod.core.result import build_result
from matchpod.core.result_shapes import DeathmatchResult, SeriesResult

from .match_builder import ANN, deathmatch
from .test_result import Play, play


def test_a_series_result_survives_json() -> None:
    result = build_result(play().round(Team.TEAM1).end().match)
    assert msgspec.json.decode(msgspec.json.encode(result), type=SeriesResult) == result


def test_a_deathmatch_result_survives_json() -> None:
    game = Play(deathmatch(ANN)).live()
    result = build_result(game.tell(game.kill(ANN, "BOT:x")).end().match)
    assert msgspec.json.decode(msgspec.json.encode(result), type=DeathmatchResult) == result
