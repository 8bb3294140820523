"""The endpoints for callbacks: permissions, ownership, invalid input, and what they show."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
from matchpod.ports import Delivery
from matchpod.storage import outbox
from tests.unit.web import sites
from tests.unit.web.sites import NOW_MS, Site, check_error

site = sites.site
API = "/api/v1/callbacks"
URL = "https://caller.example/done?key=s3cret"
NOW = "2026-09-21T14:13:20.123Z"
HEADERS = {"webhook-id": "x", "webhook-signature": "v1,***"}


def new_callback(site: Site, *statuses: int | None, **fields: object) -> str:
    """Cancel a match and record attempts to deliver its callback; return the id of the callback."""
    server_id = site.new_server(callbackUrl=URL, **fields)
    site.end(server_id, reason=CancelReason.NO_PLAYERS_JOINED)
    callback_id = f"msg_{server_id}"
    for number, status in enumerate(statuses, start=1):
        delivery = Delivery(status=status, duration_ms=31, error=None if status else "the connection was refused")
        next_at_ms = None if number > 1 else NOW_MS + 5_000
        record = outbox.record_attempt(
            callback_id, delivery, number=number, at_ms=NOW_MS + number, next_at_ms=next_at_ms, headers=HEADERS
        )
        site.run(site.db.write(record))
    return callback_id


def redeliver(site: Site, callback_id: str, key: str | None = None) -> tuple[int, dict[str, object]]:
    response = site.request("POST", f"{API}/{callback_id}/redeliver", key=key or site.key)
    return response.status_code, response.json()


def test_attempt_of_an_older_version_has_no_headers(site: Site) -> None:
    callback_id = new_callback(site)
    delivery = Delivery(status=200, duration_ms=1)
    site.run(site.db.write(outbox.record_attempt(callback_id, delivery, number=1, at_ms=NOW_MS, next_at_ms=None)))
    assert site.get(f"{API}/{callback_id}").json()["attempts"][0]["requestHeaders"] is None


@pytest.mark.parametrize("statuses", [(200,), (503, 503)])
def test_finished_callback_is_made_due_and_the_dispatcher_woken(site: Site, statuses: tuple[int, ...]) -> None:
    callback_id = new_callback(site, *statuses)
    status, item = redeliver(site, callback_id)
    assert (status, item["id"], item["state"], item["nextAttemptAt"]) == (200, callback_id, "waiting", NOW)
    assert site.wakes == 1


def test_waiting_callback_is_not_sent_a_second_time(site: Site) -> None:
    due = new_callback(site)
    retried = new_callback(site, 503)
    claimed = new_callback(site)
    site.run(outbox.claim_callbacks(site.db, [claimed], owner="me", now_ms=NOW_MS))
    for callback_id, message in (
        (due, f"An attempt to deliver this callback is due at {NOW}. Wait for its outcome."),
        (retried, "An attempt to deliver this callback is due at 2026-09-21T14:13:25.123Z. Wait for its outcome."),
        (claimed, "An attempt to deliver this callback is under way. Wait for its outcome."),
    ):
        response = site.request("POST", f"{API}/{callback_id}/redeliver", key=site.key)
        assert check_error(response, 409, "CALLBACK_WAITING")["message"] == message
    assert site.wakes == 0


def test_callback_of_another_organization_does_not_exist(site: Site) -> None:
    callback_id = new_callback(site, 503, 503)
    for key, id_in_path in ((site.other_key, callback_id), (site.key, "msg_0"), (site.key, "a%00b")):
        check_error(site.get(f"{API}/{id_in_path}", key), 404, "NOT_FOUND")
        response = site.request("POST", f"{API}/{id_in_path}/redeliver", key=key)
        assert check_error(response, 404, "NOT_FOUND")["message"] == "There is no callback with this id."
    assert site.get(API, site.other_key).json()["items"] == []
    assert site.get(f"{API}?serverId={callback_id[4:]}", site.other_key).json()["total"] == 0
    since = {"since": "2026-01-01"}
    answer = site.request("POST", f"{API}/redeliver", key=site.other_key, json=since).json()
    assert answer == {"count": 0, "nextSince": None}
    assert site.get(f"{API}/{callback_id}").json()["state"] == "given_up"
    assert site.wakes == 0


def test_given_up_callbacks_since_a_time_are_sent_again(site: Site) -> None:
    given_up = {new_callback(site, 503, 503), new_callback(site, None, 500)}
    new_callback(site, 200)
    response = site.request("POST", f"{API}/redeliver", key=site.key, json={"since": NOW})
    assert response.json() == {"count": 2, "nextSince": None}
    assert site.wakes == 1
    assert {item["id"] for item in site.get(f"{API}?state=waiting").json()["items"]} == given_up
    again = site.request("POST", f"{API}/redeliver", key=site.key, json={"since": NOW})
    assert again.json() == {"count": 0, "nextSince": None}
    assert site.wakes == 1
