"""People: names, accounts, strengths."""

from __future__ import annotations

import re

from matchpod.simulator.play.people.nicknames import NICKNAMES
from matchpod.simulator.play.people.persons import MAX_NAME_BYTES, make_people, name_in_game, with_one_awper
from tests.unit.simulator.play.people.visited_server import dice


def test_same_chance_makes_the_same_people() -> None:
    assert make_people(dice(), 20, accounts=[5, 6]) == make_people(dice(), 20, accounts=[5, 6])


def test_other_chance_makes_other_people() -> None:
    assert make_people(dice(1), 10) != make_people(dice(2), 10)


def test_ids_are_those_of_real_accounts() -> None:
    for person in make_people(dice(), 64):
        assert re.fullmatch(r"7656119\d{10}", person.player_id)


def test_names_and_accounts_are_unique() -> None:
    people = make_people(dice(), 300)
    assert len({person.name for person in people}) == 300
    assert len({person.account for person in people}) == 300


def test_a_name_gets_a_number_when_all_are_taken() -> None:
    (person,) = make_people(dice(), 1, taken_names=NICKNAMES)
    again = make_people(dice(), 1, taken_names=[*NICKNAMES, person.name])[0]
    assert person.name.endswith(" 2")
    assert again.name == person.name[:-1] + "3"


def test_given_accounts_come_first_and_keep_their_id() -> None:
    people = make_people(dice(), 4, accounts=[11, 22])
    assert [person.account for person in people[:2]] == [11, 22]
    assert len(people) == 4


def test_no_more_people_are_made_than_asked_for() -> None:
    assert [person.account for person in make_people(dice(), 1, accounts=[11, 22])] == [11]


def test_a_given_nick_is_his_name_and_nobody_elses() -> None:
    nick = NICKNAMES[0]
    people = make_people(dice(), 300, accounts=[11], nicks={11: nick})
    assert people[0].name == nick
    assert nick not in [person.name for person in people[1:]]


def test_an_empty_nick_leaves_the_name_to_chance() -> None:
    assert make_people(dice(), 1, accounts=[11], nicks={11: ' "" '})[0].name in NICKNAMES


def test_what_somebody_is_like_does_not_depend_on_who_is_beside_him() -> None:
    alone = make_people(dice(), 1, accounts=[11])[0]
    among_others = make_people(dice(), 3, accounts=[12, 13, 11])[2]
    assert (alone.skill, alone.headshots, alone.address) == (
        among_others.skill,
        among_others.headshots,
        among_others.address,
    )


def test_strengths_and_addresses_keep_their_bounds() -> None:
    for person in make_people(dice(), 200):
        assert 0.6 <= person.skill <= 1.5
        assert 0.25 <= person.headshots <= 0.6
        assert re.fullmatch(r"(203\.0\.113|198\.51\.100)\.\d{1,3}:\d{4,5}", person.address)
        assert person.knife.startswith(("knife", "bayonet"))


def test_one_of_every_five_likes_the_awp() -> None:
    people = make_people(dice(), 12)
    assert [sum(person.is_awper for person in people[start : start + 5]) for start in (0, 5, 10)] == [1, 1, 1]


def test_a_team_of_two_has_one_awper() -> None:
    assert sum(person.is_awper for person in with_one_awper(dice(), make_people(dice(), 2))) == 1


def test_nobody_makes_no_team() -> None:
    assert with_one_awper(dice(), []) == []


def test_the_client_takes_quotes_and_line_breaks_out_of_a_name() -> None:
    assert name_in_game('a"b\nc') == "ab c"


def test_a_name_is_cut_between_letters() -> None:
    name = name_in_game("é" * 100)
    assert name == "é" * 63
    assert len(name.encode()) <= MAX_NAME_BYTES


def test_nicknames_fit_into_a_name() -> None:
    assert len(NICKNAMES) == len(set(NICKNAMES))
    assert all(name == name_in_game(name) for name in NICKNAMES)
