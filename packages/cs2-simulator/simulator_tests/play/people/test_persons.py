"""Test invented people: names, accounts, skills."""

from __future__ import annotations

from cs2_simulator.play.people.nicknames import NICKNAMES
from cs2_simulator.play.people.persons import MAX_NAME_BYTES, make_people, name_in_game
from simulator_tests.play.people.visited_server import rng


def test_same_seed_creates_the_same_people() -> None:
    assert make_people(rng(), 20, accounts=[5, 6]) == make_people(rng(), 20, accounts=[5, 6])


def test_names_and_accounts_are_unique() -> None:
    people = make_people(rng(), 300)
    assert len({person.name for person in people}) == 300
    assert len({person.account for person in people}) == 300


def test_number_is_appended_when_all_names_are_taken() -> None:
    (person,) = make_people(rng(), 1, taken_names=NICKNAMES)
    second = make_people(rng(), 1, taken_names=[*NICKNAMES, person.name])[0]
    assert person.name.endswith(" 2")
    assert second.name == person.name[:-1] + "3"


def test_given_nick_is_used_and_is_unique() -> None:
    nick = NICKNAMES[0]
    people = make_people(rng(), 300, accounts=[11], nicks={11: nick})
    assert people[0].name == nick
    assert nick not in [person.name for person in people[1:]]


def test_quotes_and_line_breaks_are_removed_from_names() -> None:
    assert name_in_game('a"b\nc') == "ab c"


def test_long_name_is_cut_between_characters() -> None:
    name = name_in_game("é" * 100)
    assert name == "é" * 63
    assert len(name.encode()) <= MAX_NAME_BYTES
