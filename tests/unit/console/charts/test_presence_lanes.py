"""When players were on the server."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Team
from matchpod.console.charts.presence_lanes import presence_lanes
from matchpod.console.charts.stays import TimeRange, find_lanes
from matchpod.core.views.progress import PlayerState, RosterPlayer
from matchpod.core.views.timeline_items import (
    PausedItem,
    Person,
    PlayerConnectedItem,
    PlayerDisconnectedItem,
    TimelineItem,
    UnpausedItem,
)
from tests.unit.console.charts.chart_input import ANN, BEN, BOT, START, SVG, check, texts

END = "2026-03-14T20:40:00.000Z"
START_S = 1_773_518_400.0
WINDOW = START_S, START_S + 2400


def at(minute: int) -> str:
    return f"2026-03-14T20:{minute:02}:00.000Z"


def joins(minute: int, person: Person = ANN) -> TimelineItem:
    return PlayerConnectedItem(seq=1, timestamp=at(minute), round_number=None, player=person)


def leaves(minute: int, person: Person = ANN) -> TimelineItem:
    return PlayerDisconnectedItem(seq=1, timestamp=at(minute), round_number=None, player=person, reason="")


def pauses(minute: int) -> TimelineItem:
    return PausedItem(seq=1, timestamp=at(minute), round_number=None, by="CT")


def resumes(minute: int) -> TimelineItem:
    return UnpausedItem(seq=1, timestamp=at(minute), round_number=None, by="CT")


def listed(
    person: Person = ANN, state: PlayerState = PlayerState.NEVER_JOINED, since: str | None = None
) -> RosterPlayer:
    return RosterPlayer(steam_id=person.steam_id or "", name=person.name, team=person.team, state=state, since=since)


def minutes(spans: tuple[TimeRange, ...] | list[TimeRange]) -> list[tuple[float, float]]:
    return [((first - START_S) / 60, (last - START_S) / 60) for first, last in spans]


def minutes_of(*items: TimelineItem, player: RosterPlayer | None = None) -> list[tuple[float, float]]:
    (lane,) = find_lanes(items, [player or listed()], WINDOW)
    return minutes(lane.spans)


def test_lane_is_between_joining_and_leaving_or_from_the_start() -> None:
    assert minutes_of(joins(1), leaves(10), joins(12)) == [(1, 10), (12, 40)]
    assert minutes_of(leaves(10)) == [(0, 10)]


def test_player_who_stayed_since_an_earlier_map_is_here() -> None:
    before = "2026-03-14T19:00:00.000Z"
    assert minutes_of(player=listed(state=PlayerState.CONNECTED, since=before)) == [(0, 40)]
    assert minutes_of(player=listed(state=PlayerState.CONNECTED)) == [(0, 40)]
    assert minutes_of(player=listed(state=PlayerState.LEFT, since=before)) == []


def test_chart_names_those_who_never_joined() -> None:
    roster = [listed(ANN), listed(BEN)]
    tree = check(presence_lanes([joins(1), pauses(5), resumes(7)], roster, started_at=START, ended_at=END))
    assert "never joined" in texts(tree, ".//svg:text")
    assert "pausedPaused 20:05:00 to 20:07:00 UTC, 2:00 min" in texts(tree, ".//svg:text")
    assert [texts(row, "*") for row in tree.findall(".//tbody/tr")] == [
        ["Ann", "Team 1", "20:01:00 to 20:40:00", "39:00 min"],
        ["Ben", "Team 2", "never joined", "0:00 min"],
        ["Paused", "–", "20:05:00 to 20:07:00", "2:00 min"],
    ]


def test_player_who_came_at_another_time_did_not_never_join() -> None:
    player = listed(state=PlayerState.LEFT, since="2026-03-14T19:00:00.000Z")
    tree = check(presence_lanes([], [player], started_at=START, ended_at=END))
    assert "not here in this time" in texts(tree, ".//svg:text")


def test_name_comes_from_the_timeline_if_the_list_has_none() -> None:
    player = RosterPlayer(steam_id=ANN.steam_id or "", team=Team.TEAM1)
    tree = check(presence_lanes([joins(1)], [player], started_at=START, ended_at=END, team1_name="Red"))
    assert texts(tree, ".//tbody//bdi") == ["Ann", "Red"]


def test_without_a_list_all_players_have_a_lane() -> None:
    guest = Person(steam_id="1", name="Eve", team=None)
    tree = check(presence_lanes([joins(1, guest), joins(2, BOT)], [], started_at=START, ended_at=END))
    assert texts(tree, ".//tbody/tr") == ["Eve–20:01:00 to 20:40:0039:00 min"]


@pytest.mark.parametrize(
    "end", [START, "2026-03-14T19:00:00.000Z", "2026-03-14T20:00:05.000Z", "2027-03-14T20:00:00.000Z"]
)
def test_any_length_can_be_drawn(end: str) -> None:
    tree = check(presence_lanes([joins(1)], [listed()], started_at=START, ended_at=end))
    assert len(tree.findall(".//svg:line", SVG)) <= 10
