"""Tests that the timeline of a complete real match adds up to the game's own numbers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec

from cs2_protocol.game import Team
from cs2_protocol.steam_id import from_account
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.timeline_items import TimelineItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.cs2.match_reader import MatchReader
from tests.corpus.real_logs import COMPETITIVE, INFERNO, read_log
from tests.corpus.test_posts import RECEIVED_MS, post
from tests.corpus.test_real_match import ACCOUNTS, ASSISTS, KILLS, TEAM1


def live_items(corpus: Path) -> list[TimelineItem]:
    """Return the timeline items since the map went live; the knife round before that is left out."""
    reader, _ = read_log(corpus / INFERNO)
    timeline = [one.item for one in reader.timeline.drain()]
    assert [item.seq for item in timeline] == list(range(1, len(timeline) + 1))
    return timeline[max(number for number, item in enumerate(timeline) if isinstance(item, items.MapLiveItem)) :]


def before_last_round(timeline: list[TimelineItem]) -> list[TimelineItem]:
    """Return the items of the first 14 rounds, which the golden numbers cover."""
    return [item for item in timeline if item.round_number is not None and item.round_number < 15]


def test_kills_and_assists_equal_the_golden_numbers(corpus: Path) -> None:
    found = before_last_round(live_items(corpus))
    kills = Counter(item.killer.steam_id for item in found if isinstance(item, items.KillItem) and not item.team_kill)
    assists = Counter(item.player.steam_id for item in found if isinstance(item, items.AssistItem))
    assert tuple(kills[from_account(account)] for account in ACCOUNTS) == KILLS
    assert tuple(assists[from_account(account)] for account in ACCOUNTS) == ASSISTS


def test_fifteen_rounds_start_and_end_and_lead_to_the_final_score(corpus: Path) -> None:
    timeline = live_items(corpus)
    starts = [item.round_number for item in timeline if isinstance(item, items.RoundStartItem)]
    ends = [item for item in timeline if isinstance(item, items.RoundEndItem)]
    assert starts == [end.round_number for end in ends] == list(range(1, 16))
    assert [end.score.team1 + end.score.team2 for end in ends if end.score] == list(range(1, 16))
    last = timeline[-1]
    assert isinstance(last, items.MapEndItem)
    assert (last.status, last.winner, last.score) == (MapStatus.FINISHED, Winner.TEAM1, Score(13, 2))
    assert sum(isinstance(item, items.SideSwapItem) for item in timeline) == 1


def test_bomb_plant_and_defuse_are_in_the_timeline(corpus: Path) -> None:
    timeline = live_items(corpus)
    (defused,) = [item for item in timeline if isinstance(item, items.BombDefusedItem)]
    assert defused.player is not None
    assert defused.player.steam_id == from_account(97679279)
    assert any(isinstance(item, items.BombPlantedItem) for item in timeline)


def test_killers_and_victims_have_name_and_team_without_a_roster(corpus: Path) -> None:
    team1 = {from_account(account) for account in TEAM1}
    for item in live_items(corpus):
        if isinstance(item, items.KillItem):
            for person in (item.killer, item.victim):
                assert person.name
                assert person.team is (Team.TEAM1 if person.steam_id in team1 else Team.TEAM2)


def test_post_size_and_storing_the_reader_do_not_change_the_items(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    runs: list[list[MapItem]] = []
    for size in (3000, 50_000, len(data)):
        reader, timeline = MatchReader.create(COMPETITIVE, RECEIVED_MS), list[MapItem]()
        for begin, end in pairwise([*range(0, len(data), size), len(data)]):
            reader.read_post(post(data, begin, end))
            timeline += reader.timeline.drain()
            if size == 50_000:
                reader = msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=MatchReader)
        runs.append(timeline)
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0]) > 200
