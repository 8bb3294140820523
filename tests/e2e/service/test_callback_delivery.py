"""Delivery of callbacks to receivers that accept, fail, hang, respond slowly or are unreachable.

Each match is canceled immediately, because the content does not matter here. All callbacks are sent at the same time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.service.callback_receiver import Behavior, CallbackReceiver
from tests.e2e.service.running_service import Json, RunningService, cvars, free_port_range, short_match, wait_until

ATTEMPT_S = 10.0
RETRY_S = 5.0
SLACK_S = 30.0
"""Extra time for a busy machine."""

AUTHORIZATION = "Bearer a.b-c/d=="

BEHAVIORS: dict[str, tuple[Behavior, ...]] = {
    "good": ("accept",),
    "late": ("fail", "accept"),
    "bad": ("fail",),
    "redirecting": ("redirect",),
    "closing": ("close", "accept"),
    "hanging": ("hang",),
    "dripping": ("drip",),
}


class CallbackDelivery:
    """A service, a receiver, and a canceled match for each behavior of the receiver."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.secret = service.webhook_secret()
        self.created = {name: self.cancel_one(name, *behaviors) for name, behaviors in BEHAVIORS.items()}

    def cancel_one(self, name: str, *behaviors: Behavior, url: str | None = None) -> Json:
        """Create and cancel a match whose callback gets these responses."""
        url = url or self.receiver.configure(f"/{name}", *behaviors)
        return self.cancel_with(externalMatchId=name, callbackUrl=url, callbackAuthToken=AUTHORIZATION)

    def cancel_with(self, **fields: str) -> Json:
        """Create and cancel a match with these fields."""
        created = self.service.create(short_match(customCvars=cvars(30, "no_show")), **fields)
        assert self.service.cancel(created["serverId"]).status == 200
        return created

    def listed(self) -> dict[str, Json]:
        """Return the output of `callbacks list` by server id."""
        done = self.service.run("callbacks", "list", "--json", "--limit", "100")
        assert done.returncode == 0, done.stderr
        return {one["serverId"]: one for one in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def database_url() -> None:
    """Use only SQLite: delivery does not depend on the database, and storage is tested on both."""


@pytest.fixture(scope="module")
def delivery(database_url: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CallbackDelivery]:
    folder: Path = tmp_path_factory.mktemp("callbacks")
    with CallbackReceiver() as receiver, RunningService(folder, database_url=database_url) as service:
        yield CallbackDelivery(service, receiver)


def test_hanging_receivers_do_not_delay_other_callbacks(delivery: CallbackDelivery) -> None:
    for name in ("hanging", "dripping"):
        delivery.receiver.wait_for(f"/{name}")
    for number in range(2):
        began_s = time.monotonic()
        delivery.cancel_one(f"prompt-{number}", "accept")
        (received,) = delivery.receiver.wait_for(f"/prompt-{number}")
        assert received.at_s - began_s < ATTEMPT_S - 2  # less than the timeout of the hanging ones
    assert len(delivery.receiver.at("/hanging")) == 1


def test_accepted_callback_is_sent_once_with_all_headers(delivery: CallbackDelivery) -> None:
    (received,) = delivery.receiver.wait_for("/good")
    assert received.is_signed_with(delivery.secret)
    assert not received.is_signed_with("whsec_" + "A" * 43 + "=")
    assert received.headers["authorization"] == AUTHORIZATION
    assert received.headers["content-type"] == "application/json"
    assert received.headers["x-matchpod-attempt"] == "1"
    assert abs(int(received.headers["webhook-timestamp"]) - time.time()) < 120


@pytest.mark.parametrize("name", ["late", "bad", "redirecting", "closing", "hanging", "dripping"])
def test_failed_delivery_is_retried_once_with_the_same_body(delivery: CallbackDelivery, name: str) -> None:
    first, second = delivery.receiver.wait_for(f"/{name}", 2)
    waited_s = second.at_s - first.at_s
    min_wait_s = RETRY_S + (ATTEMPT_S if name in ("hanging", "dripping") else 0)
    assert min_wait_s - 0.5 < waited_s < min_wait_s + SLACK_S
    assert (second.id, second.body) == (first.id, first.body)
    assert [one.headers["x-matchpod-attempt"] for one in (first, second)] == ["1", "2"]
    for one in (first, second):
        assert one.is_signed_with(delivery.secret)
        assert one.headers["authorization"] == AUTHORIZATION


def test_callbacks_list_shows_the_state_and_attempts_of_each_callback(delivery: CallbackDelivery) -> None:
    states = {"good": "delivered", "late": "delivered", "closing": "delivered"}
    expected = {name: states.get(name, "given_up") for name in BEHAVIORS}

    def current_states() -> list[str]:
        return [one["state"] for one in delivery.service.call("GET", "/api/v1/callbacks").json["items"]]

    wait_until(lambda: "waiting" not in current_states(), lambda: str(current_states()))
    listed = delivery.listed()
    assert {name: listed[created["serverId"]]["state"] for name, created in delivery.created.items()} == expected
    for name, behaviors in BEHAVIORS.items():
        attempts = listed[delivery.created[name]["serverId"]]["attempts"]
        assert len(attempts) == len(delivery.receiver.at(f"/{name}")) == (1 if behaviors == ("accept",) else 2)
    for name in ("hanging", "dripping"):
        for attempt in listed[delivery.created[name]["serverId"]]["attempts"]:
            assert abs(attempt["durationMs"] - 1000 * ATTEMPT_S) < 1000 * SLACK_S
    assert delivery.receiver.at("/elsewhere") == []


def test_callback_can_be_redelivered_by_an_operator(delivery: CallbackDelivery) -> None:
    listed = delivery.listed()[delivery.created["good"]["serverId"]]
    assert delivery.service.run("callbacks", "redeliver", listed["callbackId"]).returncode == 0
    first, second = delivery.receiver.wait_for("/good", 2)
    assert (second.id, second.body) == (first.id, first.body)
    assert second.is_signed_with(delivery.secret)


def test_matches_with_an_unreachable_receiver_or_without_a_callback_url_end(delivery: CallbackDelivery) -> None:
    unreachable = delivery.cancel_one("unreachable", url=f"http://127.0.0.1:{free_port_range(1)[0]}/")
    without_url = delivery.cancel_with()
    wait_until(lambda: delivery.listed()[unreachable["serverId"]]["attempts"], "the first attempt has failed")
    assert without_url["serverId"] not in delivery.listed()
    assert (without_url["callbackUrl"], without_url["externalMatchId"]) == (None, None)
    assert delivery.service.get(without_url["serverId"])["status"] == "stopped"


def test_log_contains_no_secrets(delivery: CallbackDelivery) -> None:
    log = json.dumps(delivery.service.log())
    assert AUTHORIZATION not in log
    assert delivery.secret not in log
    assert delivery.service.key not in log
