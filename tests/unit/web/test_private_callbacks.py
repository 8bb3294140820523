"""Matches with a callback to a private address: accepted until a request shows that there is a proxy in front."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.storage import proxy_evidence
from tests.unit.web import sites
from tests.unit.web.sites import BODY, Site, check_error, unavailable

site = sites.site

LOCAL = {"Host": "127.0.0.1:8080"}
PROXIED = {"Host": "127.0.0.1:8080", "X-Forwarded-For": "203.0.113.9"}
PRIVATE = "http://127.0.0.1:9000/"
PUBLIC = "https://caller.example/"


@pytest.fixture
def local(tmp_path: Path) -> Any:
    """A site that only this machine can call, as far as its settings show."""
    with sites.opened(tmp_path, is_explicit=False) as created:
        yield created


def create(site: Site, headers: dict[str, str] = LOCAL, *, key: str = "", **fields: object) -> httpx.Response:
    body = {**BODY, "callbackUrl": PRIVATE, **fields}
    return site.request("POST", "/api/v1/matches", key=key or site.key, headers=headers, json=body)


def send_proxied(site: Site, key: str | None) -> httpx.Response:
    return site.request("GET", "/api/v1/servers", key=key, headers=PROXIED)


def decided(site: Site, response: httpx.Response) -> bool | None:
    return site.row(response.json()["serverId"]).callback_private


def test_private_callback_is_accepted_until_a_request_with_a_key_came_through_a_proxy(local: Site) -> None:
    accepted = create(local)
    assert (accepted.status_code, decided(local, accepted)) == (201, True)
    assert send_proxied(local, local.key).status_code == 200
    rejected = check_error(create(local), 400, "INVALID_PARAMS")
    assert rejected["details"] == [
        {
            "path": "callbackUrl",
            "message": "must not be at 127.0.0.1, which is not a public address: this service sends no callbacks there;"
            " use a public address, or ask the operator of the service to set MATCHPOD_CALLBACK_PRIVATE=allow",
        }
    ]
    assert decided(local, accepted) is True, "what was accepted stays accepted"


def test_creation_through_the_proxy_is_rejected_itself(local: Site) -> None:
    for host in ("play.example", "10.0.0.5:8080"):
        check_error(create(local, {"Host": host}), 400, "INVALID_PARAMS")


@pytest.mark.parametrize("key", [None, "mk_live_" + "A" * 43, "nonsense"])
def test_requests_without_a_valid_key_prove_nothing(local: Site, key: str | None) -> None:
    assert send_proxied(local, key).status_code == 401
    assert local.request("GET", "/api/v1/regions", headers=PROXIED).status_code == 200
    assert create(local).status_code == 201


def test_poll_that_could_be_answered_at_once_counts_too(local: Site) -> None:
    server_id = create(local).json()["serverId"]
    for _ in range(2):
        assert local.request("GET", f"/api/v1/servers/{server_id}", key=local.key, headers=LOCAL).status_code == 200
    reads = local.app.server_reads
    assert reads is not None
    authorization = (b"authorization", f"Bearer {local.key}".encode())
    assert reads.read(server_id, [(b"host", b"127.0.0.1:8080"), authorization]) is not None
    assert reads.read(server_id, [(b"host", b"play.example"), authorization]) is None


def test_fault_is_listed_beside_the_others(local: Site) -> None:
    send_proxied(local, local.key)
    body = check_error(create(local, externalMatchId=""), 400, "INVALID_PARAMS")
    details: Any = body["details"]
    assert [one["path"] for one in details] == ["callbackUrl", "externalMatchId"]


def test_public_and_named_receivers_are_accepted_and_may_not_turn_out_to_be_private(local: Site) -> None:
    send_proxied(local, local.key)
    for url in (PUBLIC, "https://8.8.8.8/"):
        created = create(local, callbackUrl=url)
        assert (created.status_code, decided(local, created)) == (201, False)
    assert decided(local, create(local, callbackUrl=None)) is None


def test_repeated_creation_returns_its_match_also_afterwards(local: Site) -> None:
    first = create(local, {**LOCAL, "Idempotency-Key": "once"})
    send_proxied(local, local.key)
    assert create(local, {**LOCAL, "Idempotency-Key": "once"}).json()["serverId"] == first.json()["serverId"]


def test_proxy_is_stored_for_other_processes_and_later_ones(local: Site, caplog: pytest.LogCaptureFixture) -> None:
    def allowed(*, by_settings: bool = True, is_explicit: bool = False) -> bool:
        other = PrivateCallbacks(db=local.db, by_settings=by_settings, is_explicit=is_explicit)
        return local.run(other.are_allowed())

    running = PrivateCallbacks(db=local.db, by_settings=True, is_explicit=False)
    assert local.run(running.are_allowed())
    with caplog.at_level(logging.WARNING):
        send_proxied(local, local.key)
        send_proxied(local, local.key)
        assert [vars(record)["header"] for record in caplog.records] == ["x-forwarded-for: 203.0.113.9"]
        assert not local.run(running.are_allowed())
        assert not allowed()
    assert len(caplog.records) == 3, "each process warns once"
    assert "MATCHPOD_CALLBACK_PRIVATE" in caplog.text
    assert allowed(is_explicit=True), "an explicit setting wins"
    assert not allowed(by_settings=False)


@pytest.mark.parametrize("is_allowed", [True, False])
def test_setting_wins_over_what_is_seen_and_over_what_was_decided(local: Site, *, is_allowed: bool) -> None:
    setting = PrivateCallbacks(db=local.db, by_settings=is_allowed, is_explicit=True)
    assert not setting.is_watching
    assert [setting.may_send(one) for one in (True, False, None)] == [is_allowed] * 3
    default = PrivateCallbacks(db=local.db, by_settings=is_allowed, is_explicit=False)
    assert default.is_watching is is_allowed
    assert [default.may_send(one) for one in (True, False, None)] == [True, False, is_allowed]


def test_nothing_is_stored_if_the_setting_is_set(site: Site) -> None:
    assert send_proxied(site, site.key).status_code == 200
    assert site.run(proxy_evidence.find(site.db)) is None
    assert create(site, PROXIED).status_code == 201


def test_proxy_counts_although_it_could_not_be_stored_and_is_stored_later(local: Site) -> None:
    async def note(private: PrivateCallbacks) -> None:
        local.db.failure = unavailable()
        await private.proxy_seen("host: play.example")
        local.db.failure = None

    private = PrivateCallbacks(db=local.db, by_settings=True, is_explicit=False)
    local.run(note(private))
    assert not local.run(private.are_allowed())
    assert private.is_watching
    local.run(private.proxy_seen("host: other.example"))
    assert not private.is_watching
    assert local.run(proxy_evidence.find(local.db)) == "host: other.example"
