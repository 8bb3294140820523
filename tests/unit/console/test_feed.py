"""Every item of a timeline is a line of the feed; the names in it are harmless."""

from __future__ import annotations

import re
import typing
from typing import Any

import pytest
from msgspec.structs import replace

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.console.charts.round_strip import REASONS
from matchpod.console.feed import CHAT, KINDS, FeedEntry, feed_entries, feed_line, kind_of, type_of
from matchpod.core.match.played_map import MapStatus
from matchpod.core.views.result_shapes import AntiCheatEntry, Score
from matchpod.core.views.timeline_items import (
    ActionItem,
    AntiCheatItem,
    AssistItem,
    BombDefusedItem,
    BombExplodedItem,
    BombPlantedItem,
    ChatItem,
    DeathItem,
    KillItem,
    MapEndItem,
    MapLiveItem,
    PausedItem,
    Person,
    PlayerConnectedItem,
    PlayerDisconnectedItem,
    RoundEndItem,
    RoundRestoredItem,
    RoundStartItem,
    SideSwapItem,
    TimelineItem,
    UnpausedItem,
)
from tests.unit.console.charts import chart_input

EVIL = "<img src=x onerror=alert(1)>\"'{{7*7}}\u202e"
WHO = Person(steam_id="76561198000000001", name=EVIL, team=Team.TEAM1)
AT: dict[str, Any] = {"seq": 1, "timestamp": "2026-03-14T20:03:20.000Z", "round_number": 3}
SCORE = Score(team1=2, team2=1)
LEAD = AntiCheatEntry(
    steam_id="76561198000000001",
    name=EVIL,
    team=Team.TEAM1,
    type="Wallhack",
    reason=EVIL,
    weapon=EVIL,
    map_number=1,
    round_number=3,
    detected_at="2026-03-14T20:03:20.000Z",
)
ITEMS: list[TimelineItem] = [
    MapLiveItem(**AT, map_name=EVIL, team1_side=Side.CT, score=SCORE),
    RoundStartItem(**AT, team1_side=Side.CT),
    RoundEndItem(**AT, winner=Team.TEAM1, winner_side=Side.CT, reason=next(iter(RoundEndReason)), score=SCORE),
    RoundEndItem(**AT, winner=None, winner_side=None, reason=next(iter(RoundEndReason)), score=None),
    KillItem(
        **AT,
        killer=WHO,
        victim=WHO,
        weapon=EVIL,
        team_kill=True,
        headshot=True,
        wallbang=True,
        through_smoke=True,
        attacker_blind=True,
        noscope=True,
        in_air=True,
        distance=None,
    ),
    DeathItem(**AT, player=WHO, cause=EVIL),
    AssistItem(**AT, player=WHO, victim=WHO, flash=True),
    BombPlantedItem(**AT, player=WHO, site=EVIL),
    BombDefusedItem(**AT, player=None),
    BombDefusedItem(**AT, player=WHO),
    BombExplodedItem(**AT),
    PlayerConnectedItem(**AT, player=WHO),
    PlayerDisconnectedItem(**AT, player=WHO, reason=EVIL),
    ChatItem(**AT, player=WHO, text=EVIL, team_only=True),
    PausedItem(**AT, by=EVIL),
    UnpausedItem(**AT, by=EVIL),
    SideSwapItem(**AT, team1_side=Side.CT),
    RoundRestoredItem(**AT, rounds_kept=2, score=SCORE),
    AntiCheatItem(**AT, detection=LEAD),
    ActionItem(
        **AT,
        action_id="action_1",
        action="say",
        fields={"text": EVIL},
        state="failed",
        detail=EVIL,
        reason=None,
        by=EVIL,
    ),
    MapEndItem(**AT, status=MapStatus.FINISHED, winner=None, score=SCORE),
]


def text(item: TimelineItem, *, has_rounds: bool = True) -> str:
    return feed_line(FeedEntry(map_number=1, item=item), (EVIL, "Blues"), has_rounds=has_rounds).decode()


@pytest.mark.parametrize("item", ITEMS, ids=type_of)
def test_line_contains_no_markup_of_players(item: TimelineItem) -> None:
    line = text(item)
    assert "<img" not in line
    assert "49" not in line
    assert line.count("<bdi") == line.count("</bdi>")
    assert line.startswith("<li ")
    assert line.rstrip().endswith("</li>")


def test_line_says_in_which_round_it_was_if_there_are_rounds() -> None:
    item = DeathItem(**AT, player=WHO, cause="fall")
    assert "r3</span>" in text(item)
    assert "r3" not in text(item, has_rounds=False)


def test_every_type_of_item_has_a_line_of_its_own() -> None:
    assert {type(item) for item in ITEMS} == set(typing.get_args(TimelineItem))
    assert all(kind_of(item) in {*KINDS, CHAT} for item in ITEMS)


@pytest.mark.parametrize("reason", RoundEndReason)
def test_winner_and_reason_of_a_round_are_named(reason: RoundEndReason) -> None:
    won = RoundEndItem(**AT, winner=Team.TEAM2, winner_side=Side.T, reason=reason, score=SCORE)
    assert "Blues</bdi>" in text(won)
    assert REASONS[reason][0] in text(won)
    assert "<b>2:1</b>" in text(won)


def test_player_without_a_name_is_shown_as_unlisted() -> None:
    unlisted = Person(steam_id=None, name="", team=None)
    assert "unlisted player" in text(PlayerConnectedItem(**AT, player=unlisted))


def test_team_of_a_player_is_told_by_a_letter_with_its_name() -> None:
    ann, ben = (
        Person(steam_id=None, name=name, team=team) for name, team in (("Ann", Team.TEAM1), ("Ben", Team.TEAM2))
    )
    line = text(AssistItem(**AT, player=ann, victim=ben, flash=False))
    assert re.search(r'<span class="mark team1" [^>]*>A</span> <bdi class="name">Ann</bdi>', line)
    assert re.search(r'aria-label="Blues" title="Blues">B</span> <bdi class="name">Ben</bdi></span>', line)


@pytest.mark.parametrize(
    ("action", "fields", "state", "expected"),
    [
        ("restore", {"round": 9}, "requested", "Restore a round: round 9 requested by Eva: a cable"),
        ("pause", {}, "done", "Pause done by Eva: a cable"),
        ("replacePlayer", {"out": "1", "in": "2"}, "failed", "Replace a player: out: Ann, in: 2 failed by Eva: No."),
        (
            "addPlayer",
            {"steamId": "1", "as": "coach2"},
            "done",
            "Add a player: Ann, coach of Blues done by Eva: a cable",
        ),
        ("dance", {"steps": 3}, "done", "dance: steps 3 done by Eva: a cable"),
    ],
)
def test_action_is_told_in_words(action: str, fields: dict[str, str | int], state: str, expected: str) -> None:
    item = ActionItem(
        **AT,
        action_id="action_1",
        action=action,
        fields=fields,
        state=state,
        detail="No." if state == "failed" else None,
        reason="a cable",
        by="Eva",
    )
    line = feed_line(FeedEntry(map_number=1, item=item), ("Reds", "Blues"), {"1": "Ann"}).decode()
    (what,) = re.findall(r'<span class="what">(.*)</span></li>', line, re.DOTALL)
    assert re.sub(r"<[^>]*>", "", what).strip() == expected


def person(name: str) -> Person:
    return Person(steam_id=None, name=name, team=None)


def kill(seq: int, victim: str) -> KillItem:
    return replace(chart_input.kill(person("Ann"), person(victim)), seq=seq)


def assist(seq: int, victim: str, player: str = "Cid", *, flash: bool = False) -> AssistItem:
    return AssistItem(**{**AT, "seq": seq}, player=person(player), victim=person(victim), flash=flash)


def test_assists_belong_to_the_line_of_their_kill() -> None:
    items: list[TimelineItem] = [
        kill(1, "Ben"),
        kill(2, "Bob"),
        assist(3, "Ben", flash=True),
        assist(4, "Bob"),
        assist(5, "Bob", "Dan"),
    ]
    entries, changed = feed_entries([(1, item) for item in items])
    assert [(entry.id, len(entry.assists)) for entry in entries] == [("line-1-1", 1), ("line-1-2", 2)]
    assert not changed
    line = re.sub(r"<[^>]*>", "", feed_line(entries[1], ("Reds", "Blues")).decode())
    assert "Ann killed Bob" in line
    assert "assisted by Cid" in line
    assert "assisted by Dan" in line
    assert "with a flash by Cid" in re.sub(r"<[^>]*>", "", feed_line(entries[0], ("Reds", "Blues")).decode())


def test_assist_that_comes_later_changes_the_line_that_is_shown() -> None:
    shown, _ = feed_entries([(1, kill(1, "Ben")), (1, kill(2, "Bob"))])
    new, changed = feed_entries([(1, assist(3, "Ben")), (2, assist(4, "Bob"))], shown)
    assert [(entry.id, len(entry.assists)) for entry in changed] == [("line-1-1", 1)]
    assert [entry.id for entry in new] == ["line-2-4"]  # of another map: not of that kill


def test_only_what_players_and_admins_wrote_to_them_is_chat() -> None:
    said: dict[str, Any] = {
        "action_id": "action_1",
        "action": "say",
        "fields": {"text": EVIL},
        "detail": None,
        "reason": None,
    }
    states = {state: ActionItem(**AT, **said, state=state, by="Eva") for state in ("requested", "done", "failed")}
    chat = {state for state, item in states.items() if FeedEntry(map_number=1, item=item).is_chat}
    assert chat == {"done"}
    assert "&lt;img" in text(states["done"])
    assert [type_of(item) for item in ITEMS if FeedEntry(map_number=1, item=item).is_chat] == ["chat"]
