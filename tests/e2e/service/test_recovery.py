"""The service is killed, in `make soak` repeatedly, while matches are at every stage, without any effect on their results.

The fixture plays all matches once on each database; the tests check the recorded results.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from time import sleep
from typing import NamedTuple

import pytest

from tests.contract.same_numbers import check_map_result, check_series_result
from tests.contract.same_result import assert_same_match
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.event_readers import EventReaders, FollowedMatch
from tests.e2e.service.game_server import execute
from tests.e2e.service.read_history import History, check_counts, is_end_lost, read_history
from tests.e2e.service.reference_matches import (
    MATCHES,
    Reference,
    assert_nothing_is_left,
    blocked_writes,
    comparable,
    read_rows,
)
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    default_regions,
    free_port_range,
    has_score,
    region,
    short_match,
    slow_command,
    wait_until,
)
from tests.effort import sized

SPEEDS = {"sqlite": sized(60, 15), "postgres": 9}
"""Speed of the matches that are live when the service is killed, so that they are still live when they are resumed.
Leases on a shared database end some 5 s after a kill; an SQLite file belongs to one process, which drops them at startup. In
`make test` games wait until their log is acknowledged, and the service is killed once."""

FAST = 40
"""Speed: slow enough that a player three minutes late is still missing at a kill, but fast enough to join in time."""

CALM_SPEED = 5
"""Speed of regions where players have a minute to join: longer than the lease of a dead process lasts."""

KILLS = sized(1, 3)
UPTIME_S = 2.0
"""How long the service runs after it is ready, before it is killed again."""

CALLBACK_S = 900.0

LIVE = [name for name in ("live", "leaver", "restored", "series", "uncommitted") if name in MATCHES]

INTERRUPTED = {"delivering", "canceled"}
"""Matches whose callbacks were, or may have been, in progress when the service was first killed."""


class RecoveryRun(NamedTuple):
    """What was recorded about all matches."""

    service: RunningService
    database_url: str | None
    servers: dict[str, str]
    """Server id by match name."""
    statuses: dict[str, str]
    """Phase of each server when the service was first killed."""
    callbacks: dict[str, list[Received]]
    followed: dict[str, FollowedMatch]
    histories: dict[str, History]
    """History of each match at the end."""


@pytest.fixture(scope="module")
def run(
    database_url: str | None, tmp_path_factory: pytest.TempPathFactory, reference: Reference
) -> Iterator[RecoveryRun]:
    """Play all matches from creation to release."""
    ports = free_port_range(4)
    regions = "".join(
        (
            default_regions(),
            region("calm", ports[:2], speed=CALM_SPEED),
            region("late", ports[2:], speed=CALM_SPEED, command=slow_command(8)),
        )
    )
    service = RunningService(tmp_path_factory.mktemp("recovery"), database_url=database_url, regions=regions)
    with ThreadPoolExecutor(1) as executor, CallbackReceiver() as receiver, service, EventReaders() as readers:
        executor.submit(lambda: reference.matches)
        matches = _Matches(service, receiver, readers, SPEEDS["postgres" if database_url else "sqlite"])
        matches.bring_to_every_stage()
        phases = _kill_during_write(service, database_url, matches)
        for _ in range(KILLS - 1):
            sleep(UPTIME_S)
            wait_until(
                lambda: all(matches.followed[name].is_open for name in LIVE),
                "the streams of all live matches are connected again",
            )
            service.kill()
            service.start()
        for name in matches.servers:
            receiver.wait_for(f"/{name}", within_s=CALLBACK_S)
        service.wait_until_released(*matches.servers.values())
        readers.finish()
        histories = {name: read_history(service, server_id) for name, server_id in matches.servers.items()}
        code, _ = service.terminate()
        assert code == 0
        callbacks = {name: receiver.at(f"/{name}") for name in matches.servers}
        statuses = {name: phases[server_id] for name, server_id in matches.servers.items()}
        yield RecoveryRun(service, database_url, matches.servers, statuses, callbacks, matches.followed, histories)


def _kill_during_write(service: RunningService, database_url: str | None, matches: _Matches) -> dict[str, str]:
    """Kill the service during the transaction that ends a match, right after creating another; return all phases."""
    with ThreadPoolExecutor(1) as caller:
        if database_url is None:
            matches.create_last()  # SQLite has one writer: no match can be created while it waits
        with blocked_writes(service, database_url):
            response = caller.submit(service.cancel, matches.servers["uncommitted"])
            sleep(0.3)
            if database_url is not None:
                matches.create_last()
            service.kill()
        failed = response.exception()
        assert isinstance(failed, (OSError, HTTPException)), f"the cancellation was confirmed: {response.result()}"
    found = read_rows(service, database_url, "SELECT id, phase FROM servers")
    service.start()
    return {str(server_id): str(phase) for server_id, phase in found}


class _Matches:
    """Creates the matches, each in time to be at its intended stage when the service is killed."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver, readers: EventReaders, speed: int) -> None:
        self.servers: dict[str, str] = {}
        self.followed: dict[str, FollowedMatch] = {}
        self._readers = readers
        self._service = service
        self._receiver = receiver
        self._speed = speed

    def bring_to_every_stage(self) -> None:
        service = self._service
        self._receiver.configure("/delivering", "hang", "accept")
        for name in LIVE:
            self._create(name, MATCHES[name].settings_at(self._speed))
        self._create("canceled", short_match(customCvars=cvars(1)))  # does not end before it is canceled
        for name in LIVE:
            # At speed 1 the match is still live when the service is killed, even if the steps below take long. Resuming
            # the match sets its own speed again.
            execute(service.wait_for(self.servers[name], has_score), "sim_speed 1")
        service.wait_for_status(self.servers["canceled"], "running")
        self._create("delivering", MATCHES["delivering"].settings_at(300))
        self._receiver.wait_for("/delivering")
        if "starting" in MATCHES:
            self._create("starting", MATCHES["starting"].settings_at(FAST), region="late")
        self._create("joining", MATCHES["joining"].settings_at(FAST))
        service.wait_for(self.servers["joining"], lambda server: bool(server["match"] and server["match"]["players"]))
        for game in service.server_processes(self.servers["canceled"]):
            game.signal(signal.SIGSTOP)  # so that the release takes a while
        assert service.cancel(self.servers["canceled"]).status == 200

    def create_last(self) -> None:
        self._create("fresh", MATCHES["fresh"].settings_at(FAST), region="calm")

    def _create(self, name: str, settings: Json, *, region: str = "sandbox") -> None:
        url = self._receiver.url(f"/{name}")
        self.servers[name] = self._service.create(settings, region=region, callbackUrl=url)["serverId"]
        self.followed[name] = self._readers.follow(self.servers[name], self._service)


def test_service_was_killed_while_matches_were_at_every_stage(run: RecoveryRun) -> None:
    running = dict.fromkeys(("joining", *LIVE), "running")
    starting: dict[str, str] = {name: "allocating" for name in ("starting", "fresh") if name in MATCHES}
    assert {name: run.statuses[name] for name in (*running, *starting)} == {**running, **starting}
    assert run.statuses["canceled"] == "ending"
    assert run.statuses["delivering"] in ("ending", "released")


def _has_complete_log(run: RecoveryRun, name: str) -> bool:
    """False if a map of the match ended while the service was down: the end of its log was lost."""
    return not any(is_end_lost(items) for items in run.histories[name].timelines)


@pytest.mark.parametrize("name", MATCHES)
def test_result_equals_that_of_an_uninterrupted_match(run: RecoveryRun, reference: Reference, name: str) -> None:
    actual, expected = comparable(run.callbacks[name][0].json), reference.matches[name].callback
    if _has_complete_log(run, name):
        assert_same_match(actual, expected)
    else:
        assert _series_result(actual) == _series_result(expected)


def _series_result(callback: Json) -> tuple[object, ...]:
    """Return the event type, the winner and the series score."""
    result = callback["result"]
    return callback["eventType"], result["winner"], result["team1"]["seriesScore"], result["team2"]["seriesScore"]


@pytest.mark.parametrize("name", MATCHES)
def test_timelines_equal_those_of_an_uninterrupted_match(run: RecoveryRun, reference: Reference, name: str) -> None:
    if not _has_complete_log(run, name):
        pytest.skip("one of its maps ended while the service was down")
    reference.assert_same_timelines(run.histories[name].timelines, name)


@pytest.mark.parametrize("name", [*MATCHES, "canceled"])
def test_readers_get_every_event_once_and_in_order(run: RecoveryRun, name: str) -> None:
    history = run.histories[name]
    ids = [detail["id"] for detail in history.maps]
    run.followed[name].assert_received(dict(zip(ids, history.timelines, strict=True)))


@pytest.mark.parametrize("name", MATCHES)
def test_history_of_a_match_agrees_with_its_callback(run: RecoveryRun, name: str) -> None:
    history, result = run.histories[name], run.callbacks[name][0].json["result"]
    assert history.series is not None
    check_series_result(history.series, result)
    for detail, items in zip(history.maps, history.timelines, strict=True):
        if detail["status"] == "finished":
            check_map_result(detail, result)
            if not is_end_lost(items):
                check_counts(detail, items)
        else:
            assert (detail["status"], items) == ("cancelled", [])


def test_history_shows_a_canceled_match_as_cancelled(run: RecoveryRun) -> None:
    assert run.histories["canceled"].statuses == ["cancelled"]


def test_broken_streams_are_resumed_and_end_once(run: RecoveryRun) -> None:
    for name in LIVE:
        followed = run.followed[name]
        assert KILLS - 1 <= followed.breaks <= KILLS
        assert followed.ends == 1


def test_match_canceled_just_before_a_kill_stays_canceled(run: RecoveryRun) -> None:
    body = run.callbacks["canceled"][0].json
    assert (body["eventType"], body["reason"]) == ("match_canceled", "canceled_by_user")


def test_every_callback_is_sent_once_unless_a_kill_interrupted_it(run: RecoveryRun) -> None:
    counts = {name: len(received) for name, received in run.callbacks.items()}
    assert {name: number for name, number in counts.items() if name not in INTERRUPTED} == dict.fromkeys(
        set(run.servers) - INTERRUPTED, 1
    )
    assert counts["delivering"] == 2
    assert counts["canceled"] in (1, 2)
    for received in run.callbacks.values():
        assert len({(one.id, one.body) for one in received}) == 1


def test_every_callback_has_one_successful_attempt(run: RecoveryRun) -> None:
    sql = (
        "SELECT callbacks.server_id, COUNT(*) FROM callback_attempts"
        " JOIN callbacks ON callbacks.id = callback_attempts.callback_id"
        " WHERE callback_attempts.status = 200 GROUP BY callbacks.server_id"
    )
    delivered = {str(server_id): count for server_id, count in read_rows(run.service, run.database_url, sql)}
    assert delivered == dict.fromkeys(run.servers.values(), 1)


def test_every_match_ends_once_and_leaves_no_slot_or_server(run: RecoveryRun) -> None:
    assert_nothing_is_left(run.service, run.database_url, run.servers.values())


def test_no_errors_are_logged_in_any_run(run: RecoveryRun) -> None:
    entries = [entry for number in range(KILLS + 1) for entry in run.service.log(number + 1)]
    assert [entry for entry in entries if entry["level"] in ("ERROR", "CRITICAL")] == []
