"""Properties of a timeline, for random events and for whole simulated matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import RoundEndReason, Side, Team, is_human
from cs2_protocol.log_batches import LogPost
from cs2_simulator.scenarios import Scenario
from matchpod.core import events as ev
from matchpod.core.effects import CancelReason
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.views import timeline_items as items
from matchpod.core.views.rounds import build_rounds
from matchpod.core.views.timeline import Timeline
from matchpod.core.views.timeline_items import TimelineItem, TimelineItemBase
from matchpod.core.views.timeline_writer import MapItem
from matchpod.cs2.match_reader import MatchReader
from tests.effort import examples
from tests.unit.core.match_driver import ANN, BEN
from tests.unit.core.test_match_laws import events, match_settings, sequences
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings

pytestmark = pytest.mark.law

PLAYERS = tuple(str(76561198000000000 + 7919 * number) for number in range(10))


def rostered(match_type: MatchType, size: int, **changes: object) -> GameSettings:
    team1, team2 = TeamRoster("Alpha", PLAYERS[:size]), TeamRoster("Beta", PLAYERS[5 : 5 + size])
    return mode_settings(match_type, team1=team1, team2=team2, **changes)


THREE_MAPS = {"series_format": SeriesFormat.BO3, "maps": ("de_nuke", "de_mirage", "de_ancient")}

MATCHES = {
    "series": (rostered(MatchType.WINGMAN, 2, max_rounds=4, **THREE_MAPS), Scenario.ONE_SIDED),
    "overtime": (rostered(MatchType.WINGMAN, 2, max_rounds=6), Scenario.OVERTIME),
    "restored": (rostered(MatchType.WINGMAN, 2, max_rounds=8), Scenario.ROUND_RESTORE),
    "deathmatch": (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=2.0), Scenario.RAGE_QUIT_REJOIN),
    "rejoin": (rostered(MatchType.COMPETITIVE, 2, max_rounds=12), Scenario.RAGE_QUIT_REJOIN),
    "stranger": (rostered(MatchType.COMPETITIVE, 2, max_rounds=4), Scenario.STRANGER),
    "pauses": (rostered(MatchType.COMPETITIVE, 2, max_rounds=8), Scenario.PAUSES),
    "spoofer": (mode_settings(MatchType.CUSTOM, max_rounds=5), Scenario.SPOOFER),
    "cheater": (mode_settings(MatchType.COMPETITIVE, max_rounds=8), Scenario.CHEATER),
    "all leave": (rostered(MatchType.WINGMAN, 2), Scenario.ALL_LEAVE),
    "log loss": (rostered(MatchType.WINGMAN, 2, max_rounds=8), Scenario.LOG_LOSS),
}


@cache
def simulated(name: str) -> PlayedMatch:
    match_settings, scenario = MATCHES[name]
    played = PlayedMatch(match_settings, scenario=scenario, seed=5)
    assert played.play()
    return played


def by_map(map_items: Sequence[MapItem]) -> dict[int, list[TimelineItem]]:
    maps: dict[int, list[TimelineItem]] = {}
    for one in map_items:
        maps.setdefault(one.map_number, []).append(one.item)
    return maps


def all_of(name: str) -> tuple[Match, dict[int, list[TimelineItem]]]:
    reader = simulated(name).reader
    return reader.match, by_map(reader.timeline.waiting)


def check_numbers(map_items: Sequence[MapItem]) -> None:
    for one in by_map(map_items).values():
        assert [item.seq for item in one] == list(range(1, len(one) + 1))


def check_connections(map_items: Sequence[MapItem]) -> None:
    """Each player connects before disconnecting, and disconnects before connecting again."""
    connected: set[str | None] = set()
    for one in map_items:
        match one.item:
            case items.PlayerConnectedItem(player=player):
                assert player.steam_id not in connected
                connected.add(player.steam_id)
            case items.PlayerDisconnectedItem(player=player):
                connected.remove(player.steam_id)


def tag(item: TimelineItemBase) -> str:
    return str(item.__struct_config__.tag)


players = st.sampled_from([ANN, BEN, "BOT:Han", "", "76561198000000099"])
at = st.integers(-(10**6), 10**15)
more = st.one_of(
    events,
    st.builds(ev.ChatMessage, at, players, st.text(max_size=300), st.booleans(), st.text(max_size=300)),
    st.builds(ev.PlayersSeen, at, st.dictionaries(st.sampled_from([ANN, BEN]), st.text()), st.sampled_from([0, 10])),
    st.builds(ev.RoundDecided, at, st.integers(1, 30), st.none(), st.none(), st.just(RoundEndReason.DRAW),
              st.integers(0, 16), st.integers(0, 16)),
    st.builds(ev.Assist, at, players, players, st.booleans(), st.booleans()),
    st.builds(ev.BombPlanted, at, players, st.none() | st.text()),
    st.builds(ev.BombDefused, at, st.none() | players),
    st.builds(ev.SidesSwapped, at, st.sampled_from(Side)),
    st.builds(ev.Paused, at, st.text()),
    st.builds(ev.Unpaused, at, st.text()),
    st.builds(ev.PlayerRenamed, at, players, st.text()),
    st.builds(ev.WarmupBegan, at),
)  # fmt: skip
event_batches = st.lists(st.one_of(more.map(lambda event: (event,)), sequences), max_size=30)


class Folded(msgspec.Struct):
    """A match and its timeline, as stored in a snapshot."""

    match: Match
    timeline: Timeline


@examples(50)
@given(match_settings, event_batches, st.integers(0, 30), st.booleans())
def test_random_events_give_consecutive_numbers_with_and_without_a_snapshot(
    settings: GameSettings, batches: list[tuple[ev.GameEvent, ...]], stored_at: int, is_canceled: bool
) -> None:
    runs: list[list[MapItem]] = []
    for is_stored in (False, True):
        folded = Folded(Match.create(settings, START_MS), Timeline())
        drained: list[MapItem] = []
        for number, batch in enumerate(batches):
            for event in batch:
                folded.match.apply(event, START_MS)
                folded.timeline.apply(event, folded.match)
            if is_stored and number == stored_at:
                drained += folded.timeline.drain()
                folded = msgspec.msgpack.decode(msgspec.msgpack.encode(folded), type=Folded)
        if is_canceled:
            folded.match.cancel(CancelReason.CANCELED_BY_USER, START_MS)
        folded.timeline.add_map_ends(folded.match)
        runs.append(drained + folded.timeline.drain())
    assert runs[0] == runs[1]
    check_numbers(runs[0])
    check_connections(runs[0])
    lines = [msgspec.json.encode(one.item) for one in runs[0]]
    assert [msgspec.json.decode(line, type=TimelineItem) for line in lines] == [one.item for one in runs[0]]


def test_simulated_match_has_consecutive_numbers_and_alternating_connections() -> None:
    for name in MATCHES:
        waiting = simulated(name).reader.timeline.waiting
        check_numbers(waiting)
        check_connections(waiting)
        assert {one.map_number for one in waiting} == {played.number for played in simulated(name).reader.match.maps}


@pytest.mark.parametrize("name", MATCHES)
def test_every_played_map_ends_once_with_the_score_of_the_result(name: str) -> None:
    match, maps = all_of(name)
    for played in match.maps:
        (end,) = [item for item in maps[played.number] if isinstance(item, items.MapEndItem)]
        assert end is maps[played.number][-1]
        assert (end.status, end.winner, end.round_number) == (played.status, played.winner, played.latest_round)
        if played.is_scored:
            assert end.score is not None
            assert (end.score.team1, end.score.team2) == (played.team1_score, played.team2_score)


def since_last_start(map_items: Sequence[TimelineItem]) -> list[TimelineItem]:
    """The items since the last start of the map: a knife round has items, but does not count."""
    last = max(number for number, item in enumerate(map_items) if isinstance(item, items.MapLiveItem))
    return list(map_items[last:])


@pytest.mark.parametrize("name", [name for name in MATCHES if name not in ("restored", "log loss")])
def test_kills_deaths_assists_and_rounds_equal_the_statistics(name: str) -> None:
    match, maps = all_of(name)
    for played in match.maps:
        map_items = since_last_start(maps[played.number])
        fights = [one for one in map_items if isinstance(one, items.KillItem)]
        kills = Counter(one.killer.steam_id for one in fights if not one.team_kill)
        deaths = Counter(one.victim.steam_id for one in fights)
        deaths.update(one.player.steam_id for one in map_items if isinstance(one, items.DeathItem))
        assists = Counter(one.player.steam_id for one in map_items if isinstance(one, items.AssistItem))
        lines = [line for line in played.ledger.lines() if is_human(line.player_id)]
        assert {line.player_id: line.kills for line in lines if line.kills} == _of_people(kills)
        assert {line.player_id: line.deaths for line in lines if line.deaths} == _of_people(deaths)
        assert {line.player_id: line.all_assists for line in lines if line.all_assists} == _of_people(assists)
        decided = [one for one in map_items if isinstance(one, items.RoundEndItem)]
        assert len(decided) == sum(record.is_decided for record in played.ledger.rounds) + _is_open(played)


@pytest.mark.parametrize("name", [name for name in MATCHES if name != "deathmatch"])
def test_survivors_counted_from_the_timeline_equal_those_of_the_rounds(name: str) -> None:
    match, maps = all_of(name)
    for played in match.maps:
        fallen = fallen_by_round(since_last_start(maps[played.number]))
        rounds = build_rounds(match, played)
        assert played.missing_rounds or len(rounds) == len(fallen)
        for one in rounds:
            if not one.complete:
                continue
            for team, of_team in ((Team.TEAM1, one.team1), (Team.TEAM2, one.team2)):
                started = {who.steam_id for who in one.players if who.team is team and who.survived is not None}
                assert of_team.survivors == len(started - fallen[one.number]), (one.number, team)
                alive = {who.steam_id for who in one.players if who.team is team and who.survived}
                assert alive == started - fallen[one.number]


def fallen_by_round(map_items: Sequence[TimelineItem]) -> dict[int, set[str | None]]:
    """The players who died or left in each round before its decision; a repeated round replaces the earlier one."""
    fallen: dict[int, set[str | None]] = {}
    current: set[str | None] = set()
    for one in map_items:
        match one:
            case items.RoundRestoredItem():
                fallen = {number: players for number, players in fallen.items() if number <= one.rounds_kept}
            case items.RoundStartItem(round_number=int(number)):
                current = fallen[number] = set()
            case items.RoundEndItem():
                current = set()
            case items.KillItem():
                current.add(one.victim.steam_id)
            case items.DeathItem() | items.PlayerDisconnectedItem():
                current.add(one.player.steam_id)
    return fallen


def _of_people(counted: Counter[str | None]) -> dict[str | None, int]:
    return {player_id: count for player_id, count in counted.items() if player_id is not None}


def _is_open(played: PlayedMap) -> bool:
    record = played.ledger.open_round
    return record is not None and record.is_decided


def test_items_of_dropped_rounds_stay_and_the_last_play_of_each_round_equals_the_statistics() -> None:
    match, maps = all_of("restored")
    map_items = since_last_start(maps[1])
    restores = [one for one in map_items if isinstance(one, items.RoundRestoredItem)]
    decided = [one for one in map_items if isinstance(one, items.RoundEndItem)]
    assert len(restores) == 2
    assert len(decided) > len(match.maps[0].ledger.rounds)
    kept: dict[int | None, list[TimelineItem]] = {}
    for one in map_items:
        if isinstance(one, items.RoundRestoredItem):
            kept = {number: of for number, of in kept.items() if number is not None and number <= one.rounds_kept}
        else:
            kept.setdefault(one.round_number, []).append(one)
    kills = Counter(
        one.killer.steam_id
        for of in kept.values()
        for one in of
        if isinstance(one, items.KillItem) and not one.team_kill
    )
    assert kills == {line.player_id: line.kills for line in match.maps[0].ledger.lines() if line.kills}


def test_each_map_of_a_series_has_its_own_timeline_without_disconnects_on_map_changes() -> None:
    match, maps = all_of("series")
    assert len(match.maps) > 1
    for played in match.maps[1:]:
        assert [tag(item) for item in maps[played.number]].count("player_disconnected") == 0
        assert {tag(item) for item in maps[played.number]} >= {"map_live", "round_start", "kill", "round_end"}


def test_scenarios_have_their_specific_items() -> None:
    assert {tag(item) for item in all_of("pauses")[1][1]} >= {"paused", "unpaused"}
    assert {tag(item) for item in all_of("overtime")[1][1]} >= {"side_swap"}
    assert {tag(item) for item in all_of("cheater")[1][1]} >= {"anti_cheat"}
    rejoin = [tag(item) for item in all_of("rejoin")[1][1]]
    assert "player_connected" in rejoin[rejoin.index("player_disconnected") :]


def post(data: bytes, begin: int, end: int) -> LogPost:
    return LogPost(body=data[begin:end], received_ms=START_MS, begin=begin, end=end, instance_token="7be6ded70c65df71")


def read(name: str, cuts: Sequence[int], *, is_stored: bool = False, is_drained: bool = False) -> list[MapItem]:
    data = b"".join(body for _, _, body in simulated(name).posts)
    reader = MatchReader.create(simulated(name).settings, START_MS)
    map_items: list[MapItem] = []
    for begin, end in pairwise([0, *cuts, len(data)]):
        reader.read_post(post(data, begin, end))
        if is_drained:
            map_items += reader.timeline.drain()
        if is_stored:
            reader = msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=MatchReader)
    return map_items + reader.timeline.drain()


@cache
def read_at_once(name: str) -> list[MapItem]:
    return read(name, [])


@examples(20)
@given(st.sampled_from(["series", "restored", "deathmatch"]), st.data())
def test_same_bytes_give_the_same_items_regardless_of_cuts_snapshots_and_draining(
    name: str, data: st.DataObject
) -> None:
    size = sum(len(body) for _, _, body in simulated(name).posts)
    cuts = sorted(data.draw(st.lists(st.integers(1, size - 1), max_size=15), "cuts"))
    is_stored, is_drained = data.draw(st.booleans(), "stored"), data.draw(st.booleans(), "drained")
    assert read(name, cuts, is_stored=is_stored, is_drained=is_drained) == read_at_once(name)
    assert len(read_at_once(name)) > 50
