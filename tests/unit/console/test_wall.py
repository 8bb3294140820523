"""The wall sends what turns one list of cards into the next."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from matchpod.console.wall import card_changes

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


def test_same_cards_need_no_change() -> None:
    assert card_changes(cards(["a", "b"]), cards(["a", "b"])) == b""


def test_only_the_card_that_changed_is_sent() -> None:
    assert card_changes(cards(["a", "b"], "0"), cards(["a", "b"], "01")).count(b"<article") == 1


def test_card_that_moves_to_the_top_is_the_only_one_that_moves() -> None:
    changes = card_changes(cards(["a", "b", "c", "d"]), cards(["d", "a", "b", "c"]))
    assert changes == b'<div data-swap="before" data-target="card-a">%s</div>' % cards(["d"])["d"]
