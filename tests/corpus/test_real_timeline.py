"""The timeline of a complete real match: its items add up to the game's own numbers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec

from matchpod.core import timeline_items as items
from matchpod.core.model import Team, Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.result_shapes import Score
from matchpod.core.timeline import MapItem
from matchpod.core.timeline_items import TimelineItem
from matchpod.cs2.match_reader import MatchReader
from matchpod.cs2.steam_id import from_account

from .reading import COMPETITIVE, INFERNO, read_log
from .test_posts import RECEIVED_MS, post
from .test_real_match import ACCOUNTS, ASSISTS, KILLS, TEAM1


def counting(corpus: Path) -> list[TimelineItem]:
    """Everything since the map counts: a knife round is played before."""
    reader, _ = read_log(corpus / INFERNO)
    told = [one.item for one in reader.timeline.take()]
    assert [item.seq for item in told] == list(range(1, len(told) + 1))
    return told[max(number for number, item in enumerate(told) if isinstance(item, items.MapLiveItem)) :]


def before_last_round(told: list[TimelineItem]) -> list[TimelineItem]:
    """The golden numbers are those of the first 14 rounds."""
    return [item for item in told if item.round_number is not None and item.round_number < 15]


def test_kills_and_assists_are_the_golden_numbers(corpus: Path) -> None:
    told = before_last_round(counting(corpus))
    kills = Counter(item.killer.steam_id for item in told if isinstance(item, items.KillItem) and not item.team_kill)
    assists = Counter(item.player.steam_id for item in told if isinstance(item, items.AssistItem))
    assert tuple(kills[from_account(account)] for account in ACCOUNTS) == KILLS
    assert tuple(assists[from_account(account)] for account in ACCOUNTS) == ASSISTS


def test_fifteen_rounds_start_and_end_and_the_score_grows_to_the_final_one(corpus: Path) -> None:
    told = counting(corpus)
    starts = [item.round_number for item in told if isinstance(item, items.RoundStartItem)]
    ends = [item for item in told if isinstance(item, items.RoundEndItem)]
    assert starts == [end.round_number for end in ends] == list(range(1, 16))
    assert [end.score.team1 + end.score.team2 for end in ends if end.score] == list(range(1, 16))
    last = told[-1]
    assert isinstance(last, items.MapEndItem)
    assert (last.status, last.winner, last.score) == (MapStatus.FINISHED, Winner.TEAM1, Score(13, 2))
    assert sum(isinstance(item, items.SideSwapItem) for item in told) == 1


def test_the_bomb_is_planted_and_defused_by_those_who_did_it(corpus: Path) -> None:
    told = counting(corpus)
    (defused,) = [item for item in told if isinstance(item, items.BombDefusedItem)]
    assert defused.player is not None
    assert defused.player.steam_id == from_account(97679279)
    assert any(isinstance(item, items.BombPlantedItem) for item in told)


def test_everybody_who_fights_has_a_name_and_his_team_though_nobody_was_listed(corpus: Path) -> None:
    team1 = {from_account(account) for account in TEAM1}
    for item in counting(corpus):
        if isinstance(item, items.KillItem):
            for person in (item.killer, item.victim):
                assert person.name
                assert person.team is (Team.TEAM1 if person.steam_id in team1 else Team.TEAM2)


def test_posts_of_any_size_give_the_same_items_also_when_the_reader_is_stored_after_each(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    seen: list[list[MapItem]] = []
    for size in (3000, 50_000, len(data)):
        reader, told = MatchReader.create(COMPETITIVE, RECEIVED_MS), list[MapItem]()
        for begin, end in pairwise([*range(0, len(data), size), len(data)]):
            reader.read_post(post(data, begin, end))
            told += reader.timeline.take()
            if size == 50_000:
                reader = msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=MatchReader)
        seen.append(told)
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 200
