"""Lookups of host names: what hangs for one name or organization does not delay the others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.host_lookups import HostLookups, LookupFailedError
from matchpod.ports import CallbackRequest
from tests.waiting import until

PATIENCE_S = 60.0
AddressInfo = tuple[int, int, int, str, tuple[str, int]]


class NameServer:
    """Names that begin with `hang` are answered only after `answers` is set, `unknown` never exists."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answers = threading.Event()

    def getaddrinfo(self, host: str, *_: object, **__: object) -> list[AddressInfo]:
        self.asked[host] += 1
        if host.startswith("hang"):
            self.answers.wait(PATIENCE_S)
        if host == "unknown":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("192.0.2.1", 0))] * 2


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr("matchpod.adapters.host_lookups.getaddrinfo", server.getaddrinfo)
    yield server
    server.answers.set()


def start(lookups: HostLookups, *hosts: str, org_id: str = "org_1") -> list[asyncio.Task[object]]:
    return [asyncio.create_task(lookups.addresses(host, org_id=org_id)) for host in hosts]


async def until_asked(names: NameServer, count: int) -> None:
    await until(lambda: len(names.asked) >= count)


async def resolve(lookups: HostLookups, host: str, *, org_id: str) -> object:
    async with asyncio.timeout(PATIENCE_S):
        return await lookups.addresses(host, org_id=org_id)


async def test_hanging_names_of_one_organization_leave_room_for_its_others_and_for_other_organizations(
    names: NameServer,
) -> None:
    lookups = HostLookups()
    hanging = start(lookups, *(f"hang{number}" for number in range(1_000)))
    assert await resolve(lookups, "good", org_id="org_1") == ["192.0.2.1"]
    assert await resolve(lookups, "good", org_id="org_2") == ["192.0.2.1"]
    assert not any(task.done() for task in hanging)
    names.answers.set()
    assert await asyncio.gather(*hanging) == [["192.0.2.1"]] * len(hanging)


async def test_organization_beyond_its_share_waits_until_one_of_its_lookups_ends(names: NameServer) -> None:
    lookups = HostLookups(limit=8)
    hanging = start(lookups, *(f"hang{number}" for number in range(6)))
    (waiting,) = start(lookups, "good")
    await until_asked(names, 4)
    assert await resolve(lookups, "other", org_id="org_2") == ["192.0.2.1"]
    assert names.asked.keys() == {"hang0", "hang1", "hang2", "hang3", "other"}
    assert not waiting.done()
    names.answers.set()
    await asyncio.wait_for(asyncio.gather(waiting, *hanging), PATIENCE_S)


async def test_attempts_for_one_name_share_a_lookup_also_after_a_timeout(names: NameServer) -> None:
    lookups = HostLookups(limit=8)
    tasks = start(lookups, *["hang"] * 20)
    await until_asked(names, 1)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    tasks += start(lookups, "hang", org_id="org_2")
    await asyncio.sleep(0)
    names.answers.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*tasks[1:]) == [["192.0.2.1"]] * 20
    assert names.asked == {"hang": 1}


async def test_name_is_looked_up_again_for_a_later_attempt(names: NameServer) -> None:
    lookups = HostLookups(limit=2)
    for _ in range(3):
        assert await resolve(lookups, "good", org_id="org_1") == ["192.0.2.1"]
        with pytest.raises(LookupFailedError, match="the host name was not found"):
            await resolve(lookups, "unknown", org_id="org_1")
    assert names.asked == {"good": 3, "unknown": 3}


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::1"])
async def test_address_needs_no_lookup(names: NameServer, address: str) -> None:
    assert await resolve(HostLookups(limit=0), address, org_id="org_1") == [address]
    assert not names.asked


async def test_attempt_that_waits_for_its_turn_ends_after_the_time_limit(names: NameServer) -> None:
    sender = HttpCallbackSender(total_s=0.5, max_lookups=2)
    requests = [
        CallbackRequest(url=f"http://hang{number}/", headers={}, body=b"", org_id="a", allow_private=True)
        for number in range(3)
    ]
    deliveries = await asyncio.gather(*map(sender.send, requests))
    assert [delivery.error for delivery in deliveries] == ["no response within 0.5 s"] * 3
    assert len(names.asked) == 1
