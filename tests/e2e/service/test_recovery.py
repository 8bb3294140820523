"""The service is killed repeatedly while matches are at every stage, without any effect on their results.

One story on each database: what is told of it afterwards is in the tests below.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from time import sleep
from typing import NamedTuple

import pytest

from tests.contract.same_result import assert_same_match
from tests.contract.test_numbers_agree import check_map_result, check_series_result
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.event_readers import EventReaders, Followed
from tests.e2e.service.game_server import ask
from tests.e2e.service.read_history import History, check_counts, is_end_lost, read_history
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    default_regions,
    free_port_range,
    region,
    short_match,
    slow_command,
    wait_until,
)
from tests.e2e.service.same_matches import (
    MATCHES,
    assert_nothing_is_left,
    assert_same_timelines,
    comparable,
    holding_writes,
    reference,
    rows,
)

SPEEDS = {"sqlite": 15, "postgres": 9}
"""Speed of the matches that are live when the service is killed, so that they still are when they are resumed. Leases
on a shared database expire after 30 s; an SQLite file belongs to one process, which drops them at once."""

FAST = 40
"""Slow enough that a player who joins three minutes late is still missing, fast enough that they are in time."""

CALM_SPEED = 5
"""Of regions where players have a minute to come: longer than a claim lasts after the death of its holder."""

DEATHS = 3
LIFE_S = 2.0
"""How long each but the last life of the service lasts after it was ready."""

STORY_S = 900.0

LIVE = ("live", "leaver", "restored", "series", "unwritten")

CUT_OFF = {"told", "canceled"}
"""Whose callbacks were under way, or might have been, when the service died first."""


class Story(NamedTuple):
    """What came of it."""

    service: RunningService
    database_url: str | None
    servers: dict[str, str]
    """The server of each match, by the match's name."""
    statuses: dict[str, str]
    """What each server's phase was when the service died first."""
    callbacks: dict[str, list[Received]]
    followed: dict[str, Followed]
    histories: dict[str, History]
    """What was read of each match in the end."""


@pytest.fixture(scope="module")
def story(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All matches from their creation to their release."""
    ports = free_port_range(4)
    regions = "".join(
        (
            default_regions(),
            region("calm", ports[:2], speed=CALM_SPEED),
            region("sleepy", ports[2:], speed=CALM_SPEED, command=slow_command(8)),
        )
    )
    service = RunningService(tmp_path_factory.mktemp("recovery"), database_url=database_url, regions=regions)
    with ThreadPoolExecutor(1) as beside, CallbackReceiver() as receiver, service, EventReaders() as readers:
        beside.submit(reference)
        players = _Players(service, receiver, readers, SPEEDS["postgres" if database_url else "sqlite"])
        players.bring_to_every_stage()
        phases = _die_while_writing(service, database_url, players)
        for _ in range(DEATHS - 1):
            sleep(LIFE_S)
            wait_until(
                lambda: all(players.followed[name].is_open for name in LIVE), "all live matches are followed again"
            )
            service.kill()
            service.start()
        for name in players.servers:
            receiver.wait_for(f"/{name}", within_s=STORY_S)
        service.wait_until_released(*players.servers.values())
        readers.finish()
        histories = {name: read_history(service, server_id) for name, server_id in players.servers.items()}
        sleep(1)  # for what should not come
        code, _ = service.terminate()
        assert code == 0
        callbacks = {name: receiver.at(f"/{name}") for name in players.servers}
        statuses = {name: phases[server_id] for name, server_id in players.servers.items()}
        yield Story(service, database_url, players.servers, statuses, callbacks, players.followed, histories)


def _die_while_writing(service: RunningService, database_url: str | None, players: _Players) -> dict[str, str]:
    """Die in the middle of a transaction that ends a match, right after another was created; answers all phases."""
    with ThreadPoolExecutor(1) as caller:
        if database_url is None:
            players.create_one_more()  # where there is one writer, nothing is created while it waits
        with holding_writes(service, database_url):
            answer = caller.submit(service.cancel, players.servers["unwritten"])
            sleep(0.3)
            if database_url is not None:
                players.create_one_more()
            service.kill()
        failed = answer.exception()
        assert isinstance(failed, (OSError, HTTPException)), f"told that it is canceled: {answer.result()}"
    found = rows(service, database_url, "SELECT id, phase FROM servers")
    service.start()
    return {str(server_id): str(phase) for server_id, phase in found}


class _Players:
    """Creates the matches, each so early that it is where it should be when the service dies."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver, readers: EventReaders, speed: int) -> None:
        self.servers: dict[str, str] = {}
        self.followed: dict[str, Followed] = {}
        self._readers = readers
        self._service = service
        self._receiver = receiver
        self._speed = speed

    def bring_to_every_stage(self) -> None:
        service = self._service
        self._receiver.answer("/told", "hang", "accept")
        for name in LIVE:
            self._create(name, MATCHES[name].at(self._speed))
        self._create("canceled", short_match(customCvars=cvars(1)))  # not over before it is canceled
        for name in LIVE:
            # At speed 1 it is still live when the service is killed, no matter how long the rest takes. Resuming the
            # match sets its own speed again.
            ask(service.wait_for(self.servers[name], _has_score), "sim_speed 1")
        service.wait_for_status(self.servers["canceled"], "running")
        self._create("told", MATCHES["told"].at(300))
        self._receiver.wait_for("/told")
        self._create("starting", MATCHES["starting"].at(FAST), region="sleepy")
        self._create("nobody", short_match(customCvars=cvars(FAST, "no_show")), region="hasty")
        self._create("joining", MATCHES["joining"].at(FAST))
        service.wait_for(self.servers["joining"], lambda server: bool(server["match"] and server["match"]["players"]))
        for game in service.server_processes(self.servers["canceled"]):
            game.signal(signal.SIGSTOP)  # it takes its time to go
        assert service.cancel(self.servers["canceled"]).status == 200

    def create_one_more(self) -> None:
        self._create("fresh", MATCHES["fresh"].at(FAST), region="calm")

    def _create(self, name: str, settings: Json, *, region: str = "sandbox") -> None:
        url = self._receiver.url(f"/{name}")
        self.servers[name] = self._service.create(settings, region=region, callbackUrl=url)["serverId"]
        self.followed[name] = self._readers.follow(self.servers[name], self._service)


def _has_score(server: Json) -> bool:
    match = server["match"]
    return bool(match and match["score"]["team1"] + match["score"]["team2"])


def test_the_service_died_while_matches_were_at_every_stage(story: Story) -> None:
    running = dict.fromkeys(("joining", "nobody", *LIVE), "running")
    starting = {"starting": "allocating", "fresh": "allocating"}
    assert {name: story.statuses[name] for name in (*running, *starting)} == {**running, **starting}
    assert story.statuses["canceled"] == "ending"
    assert story.statuses["told"] in ("ending", "released")


def _is_whole(story: Story, name: str) -> bool:
    """False where a map of the match ended while the service was dead: that much of its log was never sent again."""
    return not any(is_end_lost(items) for items in story.histories[name].timelines)


@pytest.mark.parametrize("name", MATCHES)
def test_a_match_ends_as_if_nothing_had_happened(story: Story, name: str) -> None:
    told, expected = comparable(story.callbacks[name][0].json), reference()[name].callback
    if _is_whole(story, name):
        assert_same_match(told, expected)
    else:
        assert _standing(told) == _standing(expected)


def _standing(callback: Json) -> tuple[object, ...]:
    """Who won, by how many maps."""
    result = callback["result"]
    return callback["eventType"], result["winner"], result["team1"]["seriesScore"], result["team2"]["seriesScore"]


@pytest.mark.parametrize("name", MATCHES)
def test_a_match_is_told_as_if_nothing_had_happened(story: Story, name: str) -> None:
    if not _is_whole(story, name):
        pytest.skip("one of its maps ended while the service was down")
    assert_same_timelines(story.histories[name].timelines, name)


@pytest.mark.parametrize("name", [*MATCHES, "canceled", "nobody"])
def test_whoever_follows_a_match_gets_every_event_once_and_in_order(story: Story, name: str) -> None:
    told = story.histories[name]
    ids = [detail["id"] for detail in told.maps]
    story.followed[name].assert_got(dict(zip(ids, told.timelines, strict=True)))


@pytest.mark.parametrize("name", MATCHES)
def test_the_history_of_a_match_has_the_numbers_of_its_callback(story: Story, name: str) -> None:
    told, result = story.histories[name], story.callbacks[name][0].json["result"]
    assert told.series is not None
    check_series_result(told.series, result)
    for detail, items in zip(told.maps, told.timelines, strict=True):
        if detail["status"] == "finished":
            check_map_result(detail, result)
            if not is_end_lost(items):
                check_counts(detail, items)
        else:
            assert (detail["status"], items) == ("cancelled", [])


def test_the_history_of_canceled_matches_is_that_they_were_canceled(story: Story) -> None:
    for name in ("canceled", "nobody"):
        assert story.histories[name].statuses == ["cancelled"]
    assert story.histories["nobody"].timelines == [[]]


def test_streams_broke_off_and_went_on(story: Story) -> None:
    for name in LIVE:
        followed = story.followed[name]
        assert 1 < followed.breaks <= DEATHS
        assert followed.ends == 1


def test_a_match_whose_players_never_came_is_canceled(story: Story) -> None:
    (callback,) = story.callbacks["nobody"]
    assert (callback.json["eventType"], callback.json["reason"]) == ("match_canceled", "no_players_joined")


def test_a_match_canceled_right_before_stays_canceled(story: Story) -> None:
    body = story.callbacks["canceled"][0].json
    assert (body["eventType"], body["reason"]) == ("match_canceled", "canceled_by_user")


def test_every_callback_is_sent_once_unless_our_death_cut_it_off(story: Story) -> None:
    times = {name: len(came) for name, came in story.callbacks.items()}
    assert {name: number for name, number in times.items() if name not in CUT_OFF} == dict.fromkeys(
        set(story.servers) - CUT_OFF, 1
    )
    assert times["told"] == 2
    assert times["canceled"] in (1, 2)
    for came in story.callbacks.values():
        assert len({(one.id, one.body) for one in came}) == 1


def test_every_callback_is_known_to_be_delivered_once(story: Story) -> None:
    sql = (
        "SELECT callbacks.server_id, COUNT(*) FROM callback_attempts"
        " JOIN callbacks ON callbacks.id = callback_attempts.callback_id"
        " WHERE callback_attempts.status = 200 GROUP BY callbacks.server_id"
    )
    delivered = {str(server_id): count for server_id, count in rows(story.service, story.database_url, sql)}
    assert delivered == dict.fromkeys(story.servers.values(), 1)


def test_nothing_is_left(story: Story) -> None:
    assert_nothing_is_left(story.service, story.database_url, story.servers.values())


def test_nothing_failed_on_the_way(story: Story) -> None:
    said = [entry for number in range(DEATHS + 1) for entry in story.service.log(number + 1)]
    assert [entry for entry in said if entry["level"] in ("ERROR", "CRITICAL")] == []
