"""The callback receiver, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest

from matchpod import callback_receiver
from matchpod.callback_receiver import CallbackReceiver, ReceivedCallback, Signature
from matchpod.service.access.webhook_signature import attempt_headers, new_secret
from matchpod.web.http.asgi import Message

SECRET = new_secret(b"s" * 32)
NOW_S = 1_800_000_000
CANCELED = json.dumps(
    {"eventType": "match_canceled", "serverId": "srv_1", "externalMatchId": None, "reason": "no_players_joined"}
).encode()


class ReceiverClient:
    """Sends requests to a callback receiver and records what it reports."""

    def __init__(self, *, status: int = 204, secrets: tuple[str, ...] = (SECRET,)) -> None:
        self.received: list[ReceivedCallback] = []
        self.rejections: list[str] = []
        self.receiver = CallbackReceiver(
            status=status,
            secrets=secrets,
            now_s=lambda: NOW_S,
            on_callback=self.received.append,
            on_rejection=self.rejections.append,
        )

    def send(
        self, body: bytes | AsyncIterator[bytes], headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self.receiver)
            async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as http:
                return await http.request(method, "/", content=body, headers=headers)

        return asyncio.run(request())


def signed(body: bytes, secret: str = SECRET, at_s: int = NOW_S, authorization: str | None = None) -> dict[str, str]:
    return attempt_headers(
        [secret], "cb_1", body, timestamp_s=at_s, attempt=2, version="1", authorization=authorization
    )


def test_callback_is_received_with_attempt_authorization_and_signature() -> None:
    client = ReceiverClient()
    assert client.send(CANCELED, signed(CANCELED, authorization="Bearer t")).status_code == 204
    (received,) = client.received
    assert (received.callback.event_type, received.callback.reason) == ("match_canceled", "no_players_joined")
    assert (received.body, received.attempt) == (CANCELED, "2")
    assert received.has_authorization
    assert received.signature is Signature.OK


@pytest.mark.parametrize(
    "headers",
    [{}, signed(CANCELED, new_secret(b"x" * 32)), signed(b"other bytes"), signed(CANCELED, at_s=NOW_S - 3600)],
    ids=["none", "another secret", "another body", "too old"],
)
def test_callback_with_an_invalid_signature_is_received_and_marked_wrong(headers: dict[str, str]) -> None:
    client = ReceiverClient()
    assert client.send(CANCELED, headers).status_code == 204
    (received,) = client.received
    assert received.signature is Signature.WRONG


def test_signature_is_not_checked_without_a_secret() -> None:
    client = ReceiverClient(secrets=())
    client.send(CANCELED)
    (received,) = client.received
    assert received.signature is Signature.NOT_CHECKED
    assert (received.attempt, received.has_authorization) == (None, False)


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"eventType":1}', b"[" * 100_000, b'{"eventType":"\xff"}', b"\x00" * 10],
    ids=["empty", "text", "array", "wrong field type", "deep", "bad utf-8", "zeros"],
)
def test_body_that_is_not_a_callback_is_rejected(body: bytes) -> None:
    client = ReceiverClient()
    assert client.send(body).status_code == 400
    assert client.received == []
    assert len(client.rejections) == 1


def test_body_over_the_limit_is_rejected_before_it_is_read_completely() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * (1 << 20)

    client = ReceiverClient()
    assert client.send(endless()).status_code == 413
    assert client.rejections == ["the body is larger than 16 MiB"]
    assert sent == 17


async def test_body_that_does_not_arrive_is_rejected_with_408() -> None:
    async def timeout() -> Message:
        raise TimeoutError

    async def disconnect() -> Message:
        return {"type": "http.disconnect"}

    for receive in (timeout, disconnect):
        client, sent = ReceiverClient(), list[Message]()

        async def send(message: Message, sent: list[Message] = sent) -> None:
            sent.append(message)

        await client.receiver({"type": "http", "method": "POST", "headers": []}, receive, send)
        assert (sent[0]["status"], client.rejections) == (408, ["the body did not arrive"])


def test_other_methods_are_not_allowed() -> None:
    response = ReceiverClient().send(b"", method="GET")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_callback_url_has_an_address_that_can_be_connected_to() -> None:
    for host, url in [
        ("127.0.0.1", "http://127.0.0.1:9000/"),
        ("0.0.0.0", "http://127.0.0.1:9000/"),
        ("::", "http://[::1]:9000/"),
        ("fd00::1", "http://[fd00::1]:9000/"),
    ]:
        assert callback_receiver.url_of(host, 9000) == url
