"""What a watch has seen is kept, counted, and passed on to those who wait for it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from matchpod.adapters.fleets.agones_cache import ServerCache
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_servers import OWNER_LABEL, REGION_LABEL, SERVER_LABEL, ServerRef
from matchpod.adapters.kubernetes.api_errors import ApiForbiddenError, UnreachableError
from matchpod.adapters.kubernetes.objects import AgonesServer, GameServerStatus, ObjectMeta
from matchpod.ports import Capacity

LABELS = {REGION_LABEL: "eu", OWNER_LABEL: "mp-1"}
OPTIONS = AgonesOptions(fleet="cs2", region="eu", owner="mp-1", read_secret=lambda: b"x" * 16)
LOST = UnreachableError("the cluster cannot be reached")


def server(
    name: str, state: str = "Ready", *, match: str | None = None, uid: str = "1", is_deleting: bool = False
) -> AgonesServer:
    labels = {**LABELS, SERVER_LABEL: match} if match else {}
    deletion = "2026-11-15T00:00:00Z" if is_deleting else None
    meta = ObjectMeta(name=name, uid=uid, labels=labels, deletion_timestamp=deletion)
    return AgonesServer(metadata=meta, status=GameServerStatus(state=state))


class Watched:
    """A cache, and what it reported."""

    def __init__(self) -> None:
        self.changes = 0
        self.labelled: list[str] = []
        self.cache = ServerCache(OPTIONS, lambda one: self.labelled.append(one.metadata.name))
        self.cache.begin(self._count)

    def _count(self) -> None:
        self.changes += 1


def followed(*servers: AgonesServer) -> Watched:
    watched = Watched()
    watched.cache.replace(servers)
    watched.cache.connected()
    return watched


def test_cache_is_current_while_it_is_listed_and_watched() -> None:
    cache = Watched().cache
    assert not cache.is_current
    cache.replace([])
    assert not cache.is_current
    cache.connected()
    assert cache.is_current
    cache.failed(LOST)
    assert not cache.is_current


def test_servers_are_counted_unless_they_are_on_their_way_out() -> None:
    cache = followed(
        server("a"),
        server("b", "Allocated"),
        server("c", "Scheduled"),
        server("d", "Unhealthy"),
        server("e", is_deleting=True),
        server("f", "Allocated", is_deleting=True),
    ).cache
    assert cache.capacity() == Capacity(ready=1, allocated=1, total=3)


def test_change_is_reported_when_a_server_becomes_ready_and_not_otherwise() -> None:
    watched = followed(server("a", "Allocated"))
    assert watched.changes == 0
    watched.cache.change(server("b", "Scheduled"), is_deleted=False)
    assert watched.changes == 0
    watched.cache.change(server("b"), is_deleted=False)
    watched.cache.change(server("b"), is_deleted=False)
    assert watched.changes == 1
    watched.cache.replace([server("b")])
    assert watched.changes == 1
    watched.cache.replace([server("b"), server("c")])
    assert watched.changes == 2


def test_server_is_found_by_match_and_name_while_the_cache_is_current() -> None:
    watched = followed(server("a", "Allocated", match="srv_1"))
    assert watched.cache.find("srv_1", ServerRef("a", "1")) is not None
    assert watched.cache.find("srv_1", ServerRef("a")) is not None
    assert watched.cache.find("srv_1", ServerRef("a", "2")) is None
    assert watched.cache.find("srv_2", ServerRef("a")) is None
    assert watched.cache.find("srv_1", ServerRef("b")) is None
    assert watched.labelled == ["a"]
    watched.cache.failed(LOST)
    assert watched.cache.find("srv_1", ServerRef("a")) is None


async def test_those_who_wait_for_a_server_are_told_that_it_is_gone() -> None:
    cache = followed(*(server(name, "Allocated", match="srv_1") for name in "abcd")).cache
    wait = partial(cache.waiting_for, "srv_1")
    with wait(ServerRef("a", "1")) as first, wait(ServerRef("a")) as second, wait(ServerRef("b")) as deleting:
        cache.change(server("a", "Allocated", match="srv_1"), is_deleted=True)
        cache.change(server("b", "Allocated", match="srv_1", is_deleting=True), is_deleted=False)
        assert first.result() == second.result() == "the GameServer was deleted"
        assert deleting.result() == "the GameServer is being deleted"
    with wait(ServerRef("c")) as missing, wait(ServerRef("d")) as present:
        cache.replace([server("d", "Allocated", match="srv_1")])
        assert missing.result() == "the GameServer was deleted"
        assert not present.done()


async def test_late_deletion_of_another_server_of_the_same_name_is_ignored() -> None:
    cache = followed(server("a", "Allocated", uid="2", match="srv_1")).cache
    with cache.waiting_for("srv_1", ServerRef("a", "2")) as gone:
        cache.change(server("a", uid="1"), is_deleted=True)
        assert not gone.done()
    assert cache.capacity().total == 1


async def test_server_that_is_no_longer_shown_as_that_of_its_match_must_be_read_again() -> None:
    """What is shown may be older than the allocation, so it proves nothing."""
    shown = server("a", "Allocated", match="srv_1")
    for later in (server("a"), server("a", "Allocated", match="srv_2"), server("a", match="srv_1", uid="2")):
        for is_listed in (False, True):
            cache = followed(shown).cache
            with cache.waiting_for("srv_1", ServerRef("a", "1")) as gone:
                cache.replace([later]) if is_listed else cache.change(later, is_deleted=False)
                assert gone.done()
                assert gone.result() is None


def test_cluster_is_unreachable_until_it_answers() -> None:
    cache = followed().cache
    assert not cache.is_unreachable
    cache.failed(LOST)
    assert cache.is_unreachable
    cache.failed(ApiForbiddenError(403, "Forbidden", "no"))
    assert not cache.is_unreachable
    cache.failed(LOST)
    cache.replace([])
    assert not cache.is_unreachable
    cache.failed(LOST)
    cache.connected()
    assert not cache.is_unreachable


async def test_waiting_that_was_given_up_leaves_nothing_behind() -> None:
    cache = followed(server("a")).cache
    with cache.waiting_for("srv_1", ServerRef("a")) as gone:
        gone.cancel()
        cache.change(server("a"), is_deleted=True)
    await asyncio.sleep(0)
    assert cache._waiting == {}


def test_lost_connection_is_a_fault_only_if_it_cannot_be_opened_again() -> None:
    watched = followed()
    watched.cache.failed(LOST)
    assert watched.cache.fault is None
    watched.cache.failed(LOST)
    assert watched.cache.fault == "the cluster cannot be reached."
    assert watched.changes == 1
    watched.cache.failed(LOST)
    assert watched.changes == 1
    watched.cache.connected()
    assert watched.cache.fault is None
    assert watched.changes == 2


def test_missing_right_and_missing_fleet_are_faults_at_once() -> None:
    watched = followed()
    watched.cache.failed(ApiForbiddenError(403, "Forbidden", "no"))
    assert "lacks the right to watch" in str(watched.cache.fault)
    watched.cache.connected()
    watched.cache.set_fleet_fault("There is no Fleet.")
    watched.cache.set_fleet_fault("There is no Fleet.")
    assert watched.cache.fault == "There is no Fleet."
    watched.cache.set_fleet_fault(None)
    assert watched.cache.fault is None
    assert watched.changes == 4


def test_fault_that_a_check_found_is_reported_when_the_fleet_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    cache = ServerCache(OPTIONS, lambda _: None)
    cache.failed(LOST)
    assert cache.fault is not None
    assert caplog.records == []
    changes: list[str | None] = []
    cache.begin(lambda: changes.append(cache.fault))
    assert changes == ["the cluster cannot be reached."]
    assert [record.getMessage() for record in caplog.records] == ["fleet unavailable"]
