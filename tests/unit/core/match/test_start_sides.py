"""On which sides the teams begin the maps of a series."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Side
from matchpod.core.match.start_sides import decided_by, with_sides
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, SidesBy, StartSides, TeamRoster
from tests.unit.core.match_driver import ANN, duel

CT, T, KNIFE = StartSides.TEAM1_CT, StartSides.TEAM1_T, StartSides.KNIFE
BO1, BO3, BO5 = SeriesFormat


def unlisted(series_format: SeriesFormat) -> GameSettings:
    """A series of two named teams that anyone may join."""
    return msgspec.structs.replace(duel(series_format), team1=TeamRoster("Reds"), team2=TeamRoster("Blues"))


@pytest.mark.parametrize(
    ("series_format", "sides"), [(BO1, (CT,)), (BO3, (CT, T, KNIFE)), (BO5, (CT, T, CT, T, KNIFE))]
)
def test_teams_alternate_and_a_knife_round_begins_the_last_map(
    series_format: SeriesFormat, sides: tuple[StartSides, ...]
) -> None:
    assert with_sides(duel(series_format), "srv_1").sides == sides


def test_one_listed_player_is_enough_for_the_plugin_and_its_knife_round() -> None:
    settings = msgspec.structs.replace(unlisted(BO3), team1=TeamRoster("Reds", (ANN,)))
    assert with_sides(settings, "srv_1").sides[-1] is KNIFE


@pytest.mark.parametrize("series_format", [BO3, BO5])
def test_last_map_without_listed_players_is_drawn_by_the_server_id(series_format: SeriesFormat) -> None:
    drawn = [with_sides(unlisted(series_format), f"srv_{number}").sides for number in range(200)]
    assert drawn == [with_sides(unlisted(series_format), f"srv_{number}").sides for number in range(200)]
    assert {sides[:-1] for sides in drawn} == {(CT, T, CT, T)[: series_format.length - 1]}
    assert 60 < sum(sides[-1] is CT for sides in drawn) < 140
    assert KNIFE not in {sides[-1] for sides in drawn}


def test_drawn_side_is_the_same_in_every_version() -> None:
    last = [with_sides(unlisted(BO3), f"srv_{number}").sides[-1] for number in range(8)]
    assert last == [T, T, T, CT, T, T, T, T]


def test_given_sides_are_kept() -> None:
    given = msgspec.structs.replace(duel(BO3), sides=(T, T, CT))
    assert with_sides(given, "srv_1") == given


def test_other_modes_have_no_sides() -> None:
    for match_type in MatchType:
        if not match_type.has_series:
            assert with_sides(GameSettings(match_type=match_type, maps=("de_nuke",)), "srv_1").sides == ()


def test_settings_stored_before_there_were_sides_are_readable() -> None:
    stored = msgspec.json.decode(msgspec.json.encode(duel(BO3)))
    del stored["sides"]
    settings = msgspec.convert(stored, GameSettings)
    assert (settings.sides, settings.sides_on(1)) == ((), None)


def test_map_is_decided_by_what_its_settings_say() -> None:
    settings = msgspec.structs.replace(duel(BO3), sides=(CT, T, KNIFE))
    assert [settings.sides_on(number) for number in range(5)] == [None, CT, T, KNIFE, None]
    assert decided_by(settings, 1, Side.CT) is SidesBy.GIVEN
    assert decided_by(settings, 2, Side.T) is SidesBy.GIVEN
    assert decided_by(settings, 3, Side.T) is decided_by(settings, 3, Side.CT) is SidesBy.KNIFE


def test_nothing_decided_a_map_whose_sides_are_unknown_or_others() -> None:
    settings = msgspec.structs.replace(duel(BO3), sides=(CT, T, KNIFE))
    assert decided_by(settings, 1, Side.T) is None
    assert [decided_by(settings, number, None) for number in (1, 2, 3)] == [None] * 3
    assert decided_by(duel(BO3), 1, Side.CT) is None
