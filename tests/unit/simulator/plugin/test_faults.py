"""Events on their way: lost, doubled, late."""

from __future__ import annotations

from itertools import pairwise

from .stand import EVENTS_URL, Stand


def sent(faults: int, count: int = 200) -> list[int]:
    stand = Stand()
    stand.variables.set("sim_report_faults", str(faults))
    post = stand.course.post
    post.url = EVENTS_URL
    for number in range(count):
        post.send({"number": number, "matchid": 27})
    stand.wait(31)
    return [int(str(body["number"])) for body in stand.world.bodies]


def test_without_an_address_nothing_is_sent() -> None:
    stand = Stand()
    stand.course.post.send({"matchid": 1})
    assert stand.world.posts == []


def test_header_is_sent_only_where_one_is_set() -> None:
    stand = Stand()
    stand.rcon(f'matchzy_remote_log_url "{EVENTS_URL}"')
    stand.course.post.send({"matchid": 1})
    stand.rcon('matchzy_remote_log_header_key "X-Token"')
    stand.rcon('matchzy_remote_log_header_value "secret"')
    stand.course.post.send({"matchid": 1})
    headers = [headers for _, headers, _ in stand.world.posts]
    assert headers[0] == {"Content-Type": "application/json; charset=utf-8"}
    assert headers[1] == headers[0] | {"X-Token": "secret"}


def test_without_faults_every_event_comes_once_and_in_order() -> None:
    assert sent(0) == list(range(200))


def test_each_fault_takes_about_its_share() -> None:
    arrived = sent(20)
    lost = 200 - len(set(arrived))
    doubled = len(arrived) - len(set(arrived))
    late = sum(one > other for one, other in pairwise(arrived))
    assert all(25 <= count <= 60 for count in (lost, doubled, late)), (lost, doubled, late)


def test_faults_are_the_same_for_the_same_seed() -> None:
    assert sent(10) == sent(10)


def test_everything_is_lost_at_a_hundred_per_cent() -> None:
    assert sent(100) == []


def test_late_event_that_nothing_overtakes_comes_at_last() -> None:
    stand = Stand()
    stand.variables.set("sim_report_faults", "33")
    post = stand.course.post
    post.url = EVENTS_URL
    number = 0
    while not post._late:
        number += 1
        post.send({"number": number, "matchid": 27})
    before = len(stand.world.posts)
    stand.wait(31)
    assert [body["number"] for body in stand.world.bodies[before:]] == [number]
