"""Settings of matches, as any version has stored them."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.model import GameSettings, MatchType, SeriesFormat, StartSides, TeamRoster
from matchpod.core.stored.stored_settings import UNKNOWN_MAP, read_settings

SETTINGS = GameSettings(
    match_type=MatchType.COMPETITIVE,
    maps=("de_nuke", "de_mirage", "de_dust2"),
    series_format=SeriesFormat.BO3,
    team1=TeamRoster("Reds", ("76561198000000001",)),
    sides=(StartSides.KNIFE,),
)


def test_settings_of_this_version_are_read_unchanged() -> None:
    assert read_settings(msgspec.json.encode(SETTINGS)) == SETTINGS


@pytest.mark.parametrize("name", GameSettings.__struct_fields__)
def test_every_field_may_be_missing(name: str) -> None:
    stored = msgspec.to_builtins(SETTINGS)
    del stored[name]
    read = read_settings(msgspec.json.encode(stored))
    others = [one for one in GameSettings.__struct_fields__ if one != name]
    assert [getattr(read, one) for one in others] == [getattr(SETTINGS, one) for one in others]


def test_unknown_mode_and_missing_maps_have_stand_ins() -> None:
    read = read_settings(b'{"match_type": "arms_race"}')
    assert (read.match_type, read.maps) == (MatchType.CUSTOM, (UNKNOWN_MAP,))


def test_sides_with_an_unknown_one_are_not_moved_to_other_maps() -> None:
    stored = {**msgspec.to_builtins(SETTINGS), "sides": ["coin_toss", "team1_t"]}
    assert read_settings(msgspec.json.encode(stored)).sides == ()
