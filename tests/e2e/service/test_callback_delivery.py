"""How callbacks reach receivers that fail, hang, drip or are gone, in one service on each database.

Each match is canceled at once: what is told does not matter here. All of them are told at the same time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver, Manner
from tests.e2e.service.running_service import Json, RunningService, cvars, free_port_range, short_match, wait_until

ATTEMPT_S = 10.0
RETRY_S = 5.0
SLACK_S = 30.0
"""For a busy machine."""

AUTHORIZATION = "Bearer a.b-c/d=="

MANNERS: dict[str, tuple[Manner, ...]] = {
    "good": ("accept",),
    "late": ("fail", "accept"),
    "bad": ("fail",),
    "away": ("redirect",),
    "closing": ("close", "accept"),
    "hanging": ("hang",),
    "dripping": ("drip",),
}


class Told:
    """One service, its receiver, and a canceled match for each manner."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.secret = service.webhook_secret()
        self.made = {name: self.cancel_one(name, *manners) for name, manners in MANNERS.items()}

    def cancel_one(self, name: str, *manners: Manner, url: str | None = None) -> Json:
        """A match that was canceled, with a receiver of these manners."""
        url = url or self.receiver.answer(f"/{name}", *manners)
        return self.cancel_with(externalMatchId=name, callbackUrl=url, callbackAuthToken=AUTHORIZATION)

    def cancel_with(self, **fields: str) -> Json:
        """A match with these fields that was canceled."""
        made = self.service.create(short_match(customCvars=cvars(30, "no_show")), **fields)
        assert self.service.cancel(made["serverId"]).status == 200
        return made

    def listed(self) -> dict[str, Json]:
        """What the operator is shown, by server."""
        done = self.service.run("callbacks", "list", "--json", "--limit", "100")
        assert done.returncode == 0, done.stderr
        return {one["serverId"]: one for one in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def database_url() -> None:
    """SQLite alone: what is tried here does not depend on the database, whose own tests try it on both."""


@pytest.fixture(scope="module")
def told(database_url: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder: Path = tmp_path_factory.mktemp("callbacks")
    with CallbackReceiver() as receiver, RunningService(folder, database_url=database_url) as service:
        yield Told(service, receiver)


def test_receivers_that_hang_delay_nobody_else(told: Told) -> None:
    for name in ("hanging", "dripping"):
        told.receiver.wait_for(f"/{name}")
    for number in range(2):
        began_s = time.monotonic()
        told.cancel_one(f"prompt-{number}", "accept")
        (received,) = told.receiver.wait_for(f"/prompt-{number}")
        assert received.at_s - began_s < ATTEMPT_S - 2  # what the others take
    assert len(told.receiver.at("/hanging")) == 1


def test_an_accepted_callback_is_sent_once_with_all_its_headers(told: Told) -> None:
    (received,) = told.receiver.wait_for("/good")
    assert received.is_signed_with(told.secret)
    assert not received.is_signed_with("whsec_" + "A" * 43 + "=")
    assert received.headers["authorization"] == AUTHORIZATION
    assert received.headers["content-type"] == "application/json"
    assert received.headers["x-matchpod-attempt"] == "1"
    assert abs(int(received.headers["webhook-timestamp"]) - time.time()) < 120


@pytest.mark.parametrize("name", ["late", "bad", "away", "closing", "hanging", "dripping"])
def test_a_failed_attempt_is_repeated_once_with_the_same_bytes(told: Told, name: str) -> None:
    first, second = told.receiver.wait_for(f"/{name}", 2)
    waited_s = second.at_s - first.at_s
    least_s = RETRY_S + (ATTEMPT_S if name in ("hanging", "dripping") else 0)
    assert least_s - 0.5 < waited_s < least_s + SLACK_S
    assert (second.id, second.body) == (first.id, first.body)
    assert [one.headers["x-matchpod-attempt"] for one in (first, second)] == ["1", "2"]
    for one in (first, second):
        assert one.is_signed_with(told.secret)
        assert one.headers["authorization"] == AUTHORIZATION


def test_the_operator_sees_what_became_of_each_callback(told: Told) -> None:
    states = {"good": "delivered", "late": "delivered", "closing": "delivered"}
    expected = {name: states.get(name, "given_up") for name in MANNERS}

    def seen() -> dict[str, str]:
        listed = told.listed()
        return {name: listed[made["serverId"]]["state"] for name, made in told.made.items()}

    wait_until(lambda: "waiting" not in seen().values(), lambda: str(seen()))
    assert seen() == expected
    listed = told.listed()
    for name, manners in MANNERS.items():
        attempts = listed[told.made[name]["serverId"]]["attempts"]
        assert len(attempts) == len(told.receiver.at(f"/{name}")) == (1 if manners == ("accept",) else 2)
    for name in ("hanging", "dripping"):
        for attempt in listed[told.made[name]["serverId"]]["attempts"]:
            assert abs(attempt["durationMs"] - 1000 * ATTEMPT_S) < 1000 * SLACK_S
    assert told.receiver.at("/elsewhere") == []


def test_a_callback_can_be_sent_again_by_hand(told: Told) -> None:
    listed = told.listed()[told.made["good"]["serverId"]]
    assert told.service.run("callbacks", "redeliver", listed["callbackId"]).returncode == 0
    first, again = told.receiver.wait_for("/good", 2)
    assert (again.id, again.body) == (first.id, first.body)
    assert again.is_signed_with(told.secret)


def test_a_receiver_that_is_not_there_and_no_receiver_at_all(told: Told) -> None:
    gone = told.cancel_one("gone", url=f"http://127.0.0.1:{free_port_range(1)[0]}/")
    silent = told.cancel_with()
    wait_until(lambda: told.listed()[gone["serverId"]]["attempts"], "the first attempt has failed")
    assert silent["serverId"] not in told.listed()
    assert (silent["callbackUrl"], silent["externalMatchId"]) == (None, None)
    assert told.service.get(silent["serverId"])["status"] == "stopped"


def test_no_secret_is_in_the_log(told: Told) -> None:
    said = json.dumps(told.service.log())
    assert AUTHORIZATION not in said
    assert told.secret not in said
    assert told.service.key not in said
