"""The receiver of callbacks, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest

from matchpod import listener
from matchpod.listener import Arrival, Listener, Signature
from matchpod.service.webhook_signature import attempt_headers, new_secret

SECRET = new_secret(b"s" * 32)
NOW_S = 1_800_000_000
CANCELED = json.dumps(
    {"eventType": "match_canceled", "serverId": "srv_1", "externalMatchId": None, "reason": "no_players_joined"}
).encode()


class Post:
    """A listener, and what it said."""

    def __init__(self, *, status: int = 204, secrets: tuple[str, ...] = (SECRET,)) -> None:
        self.arrivals: list[Arrival] = []
        self.refusals: list[str] = []
        self.listener = Listener(
            status=status,
            secrets=secrets,
            now_s=lambda: NOW_S,
            on_arrival=self.arrivals.append,
            on_refusal=self.refusals.append,
        )

    def send(
        self, body: bytes | AsyncIterator[bytes], headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self.listener)
            async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as client:
                return await client.request(method, "/", content=body, headers=headers)

        return asyncio.run(request())


def signed(body: bytes, secret: str = SECRET, at_s: int = NOW_S, authorization: str | None = None) -> dict[str, str]:
    return attempt_headers(
        [secret], "cb_1", body, timestamp_s=at_s, attempt=2, version="1", authorization=authorization
    )


def test_a_callback_arrives_with_attempt_authorization_and_signature() -> None:
    post = Post()
    assert post.send(CANCELED, signed(CANCELED, authorization="Bearer t")).status_code == 204
    (arrival,) = post.arrivals
    assert (arrival.callback.event_type, arrival.callback.reason) == ("match_canceled", "no_players_joined")
    assert (arrival.body, arrival.attempt) == (CANCELED, "2")
    assert arrival.has_authorization
    assert arrival.signature is Signature.OK


@pytest.mark.parametrize(
    "headers",
    [{}, signed(CANCELED, new_secret(b"x" * 32)), signed(b"other bytes"), signed(CANCELED, at_s=NOW_S - 3600)],
    ids=["none", "another secret", "another body", "an old one"],
)
def test_a_signature_that_is_not_ours_is_wrong_and_the_callback_is_shown(headers: dict[str, str]) -> None:
    post = Post()
    assert post.send(CANCELED, headers).status_code == 204
    (arrival,) = post.arrivals
    assert arrival.signature is Signature.WRONG


def test_without_a_secret_nothing_is_checked() -> None:
    post = Post(secrets=())
    post.send(CANCELED)
    (arrival,) = post.arrivals
    assert arrival.signature is Signature.NOT_CHECKED
    assert (arrival.attempt, arrival.has_authorization) == (None, False)


def test_the_answer_is_the_one_that_was_asked_for() -> None:
    post = Post(status=503)
    assert post.send(CANCELED).status_code == 503
    assert len(post.arrivals) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"eventType":1}', b"[" * 100_000, b'{"eventType":"\xff"}', b"\x00" * 10],
    ids=["empty", "text", "an array", "a wrong field", "deep", "bad utf-8", "zeros"],
)
def test_a_body_that_is_no_callback_is_refused(body: bytes) -> None:
    post = Post()
    assert post.send(body).status_code == 400
    assert post.arrivals == []
    assert len(post.refusals) == 1


def test_a_body_over_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_BODY_BYTES", 1 << 20)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * (1 << 18)

    post = Post()
    assert post.send(endless()).status_code == 413
    assert "1 MiB" in post.refusals[0]


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "BODY_S", 0.0)

    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    post = Post()
    assert post.send(never()).status_code == 408


def test_other_methods_are_told_what_this_is() -> None:
    answer = Post().send(b"", method="GET")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000/"),
        ("0.0.0.0", "http://127.0.0.1:9000/"),
        ("::", "http://[::1]:9000/"),
        ("fd00::1", "http://[fd00::1]:9000/"),
    ],
)
def test_the_address_to_use_is_one_to_connect_to(host: str, url: str) -> None:
    assert listener.url_of(host, 9000) == url
