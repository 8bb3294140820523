"""The wall sends what turns one list of cards into the next."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.console.rendering import fragment
from matchpod.console.wall import PARTS, WallView, by_label, card_changes, count_groups, label_key, label_names, render
from matchpod.core.model import MatchType
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.attention import Attention, Urgency
from matchpod.core.views.marks import Marks
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PublicPhase, WaitingFor
from matchpod.core.views.wall_groups import WallGroup, group_of_open
from matchpod.service.reading.wall import REGIONAL, WallMatch, merge_causes

KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True)


def cards(keys: list[str], contents: str = "0") -> dict[str, bytes]:
    return {
        key: f'<article id="card-{key}">{contents[index % len(contents)]}</article>'.encode()
        for index, key in enumerate(keys)
    }


def applied(page: dict[str, bytes], changes: bytes) -> dict[str, bytes]:
    """Do what a browser does with the changes."""
    shown = dict(page)
    pattern = (
        rb'<i id="card-(?P<gone>\w)" data-swap="removed"></i>'
        rb'|<article data-swap="content" id="card-(?P<same>\w)">(?P<content>.)</article>'
        rb'|<div data-swap="(?P<how>before|last)" data-target="(?P<target>[^"]*)">'
        rb'(?P<card><article id="card-(?P<new>\w)">.</article>)</div>'
    )
    position = 0
    for found in re.finditer(pattern, changes):
        assert found.start() == position, changes
        position = found.end()
        if found["gone"]:
            del shown[found["gone"].decode()]
        elif found["same"]:
            key = found["same"].decode()
            assert key in shown
            shown[key] = b'<article id="card-%s">%s</article>' % (found["same"], found["content"])
        else:
            key, target = found["new"].decode(), found["target"].decode()
            order = [one for one in shown if one != key]  # a card that is shown already moves
            assert found["how"] == b"before" or target == "cards"
            index = len(order) if target == "cards" else order.index(target.removeprefix("card-"))
            items = [(one, shown[one]) for one in order]
            items.insert(index, (key, found["card"]))
            shown = dict(items)
    assert position == len(changes), changes
    return shown


@given(old=KEYS, new=KEYS, contents=st.text("012", min_size=1, max_size=8))
def test_changes_turn_one_list_of_cards_into_the_other(old: list[str], new: list[str], contents: str) -> None:
    before, after = cards(old), cards(new, contents)
    shown = applied(before, card_changes(before, after))
    assert list(shown.items()) == list(after.items())


def test_only_the_card_that_changed_or_moved_is_sent() -> None:
    assert card_changes(cards(["a", "b"]), cards(["a", "b"])) == b""
    assert card_changes(cards(["a", "b"], "0"), cards(["a", "b"], "01")).count(b"<article") == 1
    changes = card_changes(cards(["a", "b", "c", "d"]), cards(["d", "a", "b", "c"]))
    assert changes == b'<div data-swap="before" data-target="card-a">%s</div>' % cards(["d"])["d"]


# --- counters -------------------------------------------------------------------------------------------------------

REASONS = st.builds(
    Attention,
    urgency=st.sampled_from(Urgency),
    kind=st.sampled_from(["pending", "tries", "call", "leads"]),
    text=st.just("x"),
)


def wall_match(number: int, **fields: object) -> WallMatch:
    plain = WallMatch(
        server_id=f"srv_{number}",
        game_id="a game",
        status=ServerStatus.RUNNING,
        phase=PublicPhase.LIVE,
        region="a",
        is_fast=False,
        match_type=MatchType.COMPETITIVE,
        map_count=1,
        team1=None,
        team2=None,
        created_at_ms=number,
        progress=MatchProgress(phase=PublicPhase.LIVE),
        is_followed=True,
        attention=(),
        claim=None,
        group=WallGroup.IN_PLAY,
    )
    return msgspec.structs.replace(plain, **fields)


@st.composite
def open_matches(draw: st.DrawFn) -> list[WallMatch]:
    """Draw open matches in any state, with any reasons to look at them."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        attention = sorted(draw(st.lists(REASONS, max_size=3)), key=lambda reason: -reason.urgency)
        phase, waiting_for = draw(st.sampled_from(PublicPhase)), draw(st.none() | st.sampled_from(WaitingFor))
        one = wall_match(
            number,
            phase=phase,
            region=draw(st.sampled_from("ab")),
            created_at_ms=draw(st.integers(1, 9)),
            progress=MatchProgress(phase=phase, waiting_for=waiting_for),
            attention=tuple(attention),
            group=group_of_open(phase, waiting_for),
        )
        found.append(one)
    return found


@given(open_matches())
def test_counters_add_up_to_the_matches_and_flagged_ones_are_those_that_need_attention(opened: list[WallMatch]) -> None:
    calm = merge_causes(opened)
    counters = count_groups(calm)
    assert [one.group for one in counters] == list(WallGroup)
    assert sum(one.count for one in counters) == len(calm) == len(opened)
    for one in calm:
        for view in WallView:
            shown = render(one, view)
            assert (b" data-reason=" in shown) == (b" data-urgent" in shown) == one.needs_attention
    # No reason is lost, except what is the cause of a whole region.
    for before, after in zip(opened, calm, strict=True):
        assert {reason.kind for reason in before.attention if reason not in after.attention} <= REGIONAL.keys()


@pytest.mark.parametrize("view", WallView)
@pytest.mark.parametrize(
    ("phase", "map_number", "is_shown"),
    [
        (PublicPhase.ALLOCATING, 1, False),
        (PublicPhase.WAITING_FOR_PLAYERS, 1, False),
        (PublicPhase.STARTING, 1, False),
        (PublicPhase.LIVE, 1, True),
        (PublicPhase.BETWEEN_MAPS, 2, True),
        (PublicPhase.STARTING, 2, True),
    ],
)
def test_match_has_a_score_once_it_has_begun(
    view: WallView, phase: PublicPhase, map_number: int, *, is_shown: bool
) -> None:
    progress = MatchProgress(phase=phase, map_number=map_number, score=(0, 0))
    shown = render(wall_match(1, team1="a", team2="b", phase=phase, progress=progress), view).decode()
    scores = re.findall(r'<dd>(.)</dd>|<b class="score">(.) : (.)</b>', shown)
    assert {score for found in scores for score in found if score} == {"0" if is_shown else "–"}


# --- labels ---------------------------------------------------------------------------------------------------------


def labeled(*labels: dict[str, str]) -> list[WallMatch]:
    return [wall_match(number, marks=Marks(labels=given)) for number, given in enumerate(labels)]


def test_matches_are_grouped_by_a_label_with_numbers_in_their_order() -> None:
    tables = ("10", "9", "09", "2a", "B", "b", "")
    found = labeled(*({"table": table} if table else {"round": "1"} for table in tables), {"table": "9"})
    groups = [(value, [card.server_id for card in members]) for value, members in by_label(found, "table")]
    assert groups == [
        ("B", ["srv_4"]),
        ("b", ["srv_5"]),
        ("2a", ["srv_3"]),
        ("09", ["srv_2"]),
        ("9", ["srv_1", "srv_7"]),
        ("10", ["srv_0"]),
        (None, ["srv_6"]),
    ]


@given(st.lists(st.text(), unique=True))
def test_every_value_has_a_key_of_its_own(values: list[str]) -> None:
    keys = [label_key(value) for value in (None, *values)]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[a-z0-9-]+", key) for key in keys)


def test_groupings_are_the_names_of_all_labels_and_the_chosen_one() -> None:
    found = labeled({"table": "1", "Event": "x"}, {"event": "y"}, {})
    assert label_names(found) == ["Event", "event", "table"]
    assert label_names(found, "round") == ["Event", "event", "round", "table"]
    assert label_names([]) == []


def test_label_of_a_card_can_be_searched_and_cannot_break_out() -> None:
    (hostile,) = labeled({"event": '"><script>alert(1)</script>'})
    card = fragment(PARTS, "card", hostile).decode()
    assert "<script" not in card
    assert "event:&#34;&gt;&lt;script" in card
    assert 'href="/console/matches?label=event%3A%22%3E%3Cscript%3E' in card
