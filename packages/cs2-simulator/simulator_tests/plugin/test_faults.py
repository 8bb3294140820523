"""Tests of how events are sent, and of lost, duplicated and late ones."""

from __future__ import annotations

from itertools import pairwise

from simulator_tests.plugin.plugin_harness import EVENTS_URL, PluginHarness


def sent(faults: int, count: int = 200) -> list[int]:
    harness = PluginHarness()
    harness.variables.set("sim_report_faults", str(faults))
    sender = harness.course.report_sender
    sender.url = EVENTS_URL
    for number in range(count):
        sender.send({"number": number, "matchid": 27})
    harness.wait(31)
    return [int(str(body["number"])) for body in harness.outside.bodies]


def test_nothing_is_sent_without_a_url(harness: PluginHarness) -> None:
    harness.course.report_sender.send({"matchid": 1})
    assert harness.outside.posts == []


def test_header_is_sent_only_if_set(harness: PluginHarness) -> None:
    harness.rcon(f'matchzy_remote_log_url "{EVENTS_URL}"')
    harness.course.report_sender.send({"matchid": 1})
    harness.rcon('matchzy_remote_log_header_key "X-Token"')
    harness.rcon('matchzy_remote_log_header_value "secret"')
    harness.course.report_sender.send({"matchid": 1})
    headers = [headers for _, headers, _ in harness.outside.posts]
    assert headers[0] == {"Content-Type": "application/json; charset=utf-8"}
    assert headers[1] == headers[0] | {"X-Token": "secret"}


def test_events_arrive_once_and_in_order_without_faults() -> None:
    assert sent(0) == list(range(200))


def test_each_fault_affects_about_its_share_of_events() -> None:
    arrived = sent(20)
    lost = 200 - len(set(arrived))
    duplicated = len(arrived) - len(set(arrived))
    late = sum(one > other for one, other in pairwise(arrived))
    assert all(25 <= count <= 60 for count in (lost, duplicated, late)), (lost, duplicated, late)


def test_faults_are_the_same_for_the_same_seed() -> None:
    assert sent(10) == sent(10)


def test_all_events_are_lost_at_100_percent() -> None:
    assert sent(100) == []


def test_late_event_is_sent_after_its_delay_if_no_other_event_follows(harness: PluginHarness) -> None:
    harness.variables.set("sim_report_faults", "33")
    sender = harness.course.report_sender
    sender.url = EVENTS_URL
    number = 0
    while not sender._late:
        number += 1
        sender.send({"number": number, "matchid": 27})
    before = len(harness.outside.posts)
    harness.wait(31)
    assert [body["number"] for body in harness.outside.bodies[before:]] == [number]
