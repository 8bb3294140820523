"""A fleet in Agones allocates one server per match, whatever goes wrong between it and a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from matchpod.adapters.fleets.agones_console import first_password
from matchpod.adapters.fleets.agones_options import FLEET_LABEL
from matchpod.adapters.fleets.agones_servers import OWNER_LABEL, REGION_LABEL, SERVER_LABEL
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import ConsoleLostError, FleetError, FleetUnavailableError, GameServer
from tests.contract import agones_cluster
from tests.contract.agones_api import FLEET, Fault
from tests.contract.agones_cluster import (
    ALLOCATE,
    DELETE,
    LIST,
    OPTIONS,
    PASSWORD,
    AgonesCluster,
    following,
    order,
    slot_of,
    write_kubeconfig,
)
from tests.contract.agones_game_servers import SECRET
from tests.contract.fleet_servers import answer_of
from tests.contract.test_agones_consoles import CountingConsoles
from tests.waiting import until

cluster = agones_cluster.two_servers


async def test_allocation_selects_the_fleet_returns_its_address_and_puts_ids_and_no_secret_into_labels(
    cluster: AgonesCluster,
) -> None:
    server = await cluster.create().allocate(order())
    name = slot_of(server)
    port = cluster.api.game_servers.running[name].options.port
    assert server == GameServer(
        ip="127.0.0.1",
        port=port,
        rcon_host="127.0.0.1",
        rcon_port=port,
        rcon_password=PASSWORD,
        slot=f"{name}/uid-{name}",
    )
    (call,) = [call for call in cluster.api.calls if call.right == ALLOCATE]
    assert call.headers["content-type"] == "application/json"
    spec = json.loads(call.body)["spec"]
    unused = {"key": SERVER_LABEL, "operator": "DoesNotExist"}
    assert spec["selectors"] == [
        {"matchLabels": {FLEET_LABEL: FLEET}, "matchExpressions": [unused], "gameServerState": "Ready"}
    ]
    assert spec["metadata"] == {"labels": {SERVER_LABEL: "srv_1", REGION_LABEL: "eu", OWNER_LABEL: OPTIONS.owner}}
    secrets = (PASSWORD, SECRET.decode(), first_password(SECRET, name))
    assert not any(secret.encode() in call.body for call in cluster.api.calls for secret in secrets)


@pytest.mark.parametrize(("fault", "is_followed"), [(Fault.CONTENTION, False), (Fault.UNALLOCATED, True)])
async def test_allocation_is_repeated_while_servers_are_ready(
    cluster: AgonesCluster, fault: Fault, is_followed: bool
) -> None:
    cluster.api.faults[ALLOCATE] = [fault, fault]
    fleet = cluster.create()
    async with following(fleet) if is_followed else nullcontext():
        assert await fleet.allocate(order()) is not None
    assert cluster.api.count_calls(ALLOCATE) == 3


async def test_allocation_is_repeated_for_a_limited_time(cluster: AgonesCluster) -> None:
    cluster.api.faults[ALLOCATE] = [Fault.UNALLOCATED] * 1000
    assert await cluster.create(retry_s=2.0).allocate(order()) is None
    assert 2 <= cluster.api.count_calls(ALLOCATE) < 100


def move_to_another_namespace(cluster: AgonesCluster) -> None:
    url = cluster.kubeconfig.read_text().split('server: "')[1].split('"')[0]
    write_kubeconfig(cluster.kubeconfig, url, namespace="nowhere")


@pytest.mark.parametrize(
    ("break_cluster", "changes", "message"),
    [
        (None, {"fleet": "cs2-us"}, "There is no Fleet cs2-us in the namespace default"),
        (move_to_another_namespace, {}, "There is no Fleet cs2-eu in the namespace nowhere"),
        (
            lambda cluster: cluster.api.forbidden.add(ALLOCATE),
            {},
            r"lacks the right to create gameserverallocations\.al",
        ),
        (None, {"selector": {"tier": "not valid"}}, "rejected the selector or labels of the fleet"),
        (lambda cluster: cluster.api.tokens.clear(), {}, "rejected the credentials"),
    ],
    ids=["missing fleet", "missing namespace", "missing right", "rejected selector", "rejected token"],
)
async def test_fleet_that_cannot_be_used_is_told_apart_from_a_full_one(
    cluster: AgonesCluster,
    break_cluster: Callable[[AgonesCluster], None] | None,
    changes: dict[str, Any],
    message: str,
) -> None:
    if break_cluster is not None:
        break_cluster(cluster)
    with pytest.raises(FleetUnavailableError, match=message):
        await cluster.create(**changes).allocate(order())


# --- failures that leave open whether a server was allocated --------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "has_effect"),
    [
        *((fault, True) for fault in (Fault.HANG_AFTER, Fault.TEXT_500_AFTER, Fault.LATE)),
        *((fault, False) for fault in (Fault.HANG, Fault.CLOSE, Fault.TEXT_500, Fault.GARBAGE)),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_server_of_a_failed_call_is_found_and_a_call_without_effect_is_repeated(
    cluster: AgonesCluster, fault: Fault, has_effect: bool
) -> None:
    cluster.api.faults[ALLOCATE] = [fault]
    cluster.allocate_s = 0.5 if fault in (Fault.HANG, Fault.HANG_AFTER) else 30.0
    name = slot_of(await cluster.create(settle_s=10.0 if has_effect else 0.2).allocate(order()))
    assert cluster.names_of("srv_1") == [name] == cluster.api.names("Allocated")
    assert (cluster.api.count_calls(ALLOCATE) == 1) is has_effect


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.TEXT_503], ids=lambda fault: fault.name)
async def test_fleet_is_unavailable_while_the_cluster_is(cluster: AgonesCluster, fault: Fault) -> None:
    fleet = cluster.create(retry_s=0.5)
    cluster.api.outage = fault
    with pytest.raises(FleetUnavailableError):
        await fleet.allocate(order())
    with pytest.raises(FleetUnavailableError):
        await fleet.servers()
    with pytest.raises(FleetUnavailableError):
        await fleet.capacity()
    cluster.api.outage = None
    assert await fleet.allocate(order()) is not None


async def test_unknown_outcome_is_looked_up_by_the_next_attempt(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    cluster.api.faults = {ALLOCATE: [Fault.CLOSE_AFTER], LIST: [Fault.TEXT_503]}
    with pytest.raises(FleetUnavailableError):
        await fleet.allocate(order())
    (name,) = cluster.names_of("srv_1")
    assert slot_of(await fleet.allocate(order())) == name
    assert cluster.api.count_calls(ALLOCATE) == 1


async def test_cancelled_attempts_are_looked_up_by_the_next_one(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleLostError("no answer")] * 1000
    fleet = cluster.create(consoles=consoles, console_s=60.0)
    cluster.api.faults[ALLOCATE] = [Fault.HANG_AFTER]
    before_the_answer = asyncio.create_task(fleet.allocate(order()))
    await until(lambda: cluster.names_of("srv_1"))
    await cancel(before_the_answer)
    before_the_password = asyncio.create_task(fleet.allocate(order()))
    await until(lambda: consoles.passwords)
    await cancel(before_the_password)
    server = await cluster.create().allocate(order(is_repeated=True))  # as if of another process
    assert cluster.api.names("Allocated") == [slot_of(server)]
    assert server is not None
    assert "hello" in await answer_of(server, "echo hello")


async def cancel(task: asyncio.Task[GameServer | None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_server_of_a_call_that_succeeds_after_its_match_was_released_is_used(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order("srv_0"))
    cluster.api.faults[ALLOCATE] = [Fault.LATE]
    cluster.api.late_s = 3_600.0
    fleet = cluster.create(retry_s=0.0, settle_s=0.0)
    async with following(fleet):
        with pytest.raises(FleetUnavailableError):
            await fleet.allocate(order())
        await fleet.release("srv_1", "")
        assert not fleet.holds("srv_1")
        cluster.api.is_late_over.set()
        await until(lambda: fleet.holds("srv_1"))
        assert fleet.capacity_now.ready == 0
        assert [slot_of(await fleet.allocate(order()))] == cluster.names_of("srv_1")


async def test_server_of_a_failed_call_is_found_although_a_later_call_found_none(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order("srv_0"))
    cluster.api.faults[ALLOCATE] = [Fault.LATE, Fault.UNALLOCATED]
    fleet = cluster.create(settle_s=0.0)
    async with following(fleet):
        assert [slot_of(await fleet.allocate(order()))] == cluster.names_of("srv_1")


async def test_repeated_order_whose_server_is_gone_gets_none(cluster: AgonesCluster) -> None:
    slot = slot_of(await cluster.create().allocate(order()))
    cluster.api.delete(slot)
    assert await cluster.create().allocate(order(slot=slot, is_repeated=True)) is None
    assert await cluster.create().allocate(order()) is not None


async def test_server_that_another_process_replaced_is_not_deleted(cluster: AgonesCluster) -> None:
    cluster.api.faults[ALLOCATE] = [Fault.CLOSE_AFTER]
    first, second = cluster.create(), cluster.create()
    async with following(first), following(second):
        slot = slot_of(await first.allocate(order()))
        await second.release("srv_1", slot)
        name = slot_of(await second.allocate(order()))
        await until(lambda: first.holds("srv_1"))
        await cluster.api.scale(4)
        await until(lambda: first.capacity_now.total == 4)  # it has seen all changes of before
        assert await first.observe("srv_1", name) is FleetReport.ALIVE
        assert cluster.api.count_calls(DELETE) == 1
        assert cluster.names_of("srv_1") == [name]


async def test_deletion_of_a_second_server_is_repeated(cluster: AgonesCluster) -> None:
    cluster.api.faults = {ALLOCATE: [Fault.LATE], DELETE: [Fault.TEXT_503, Fault.TEXT_503]}
    cluster.api.late_s = 3_600.0
    fleet = cluster.create(settle_s=0.0, gone_poll_s=0.2)
    async with following(fleet):
        slot = slot_of(await fleet.allocate(order()))
        cluster.api.is_late_over.set()
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        await until(lambda: cluster.api.count_calls(DELETE) == 3)
        await until(lambda: cluster.names_of("srv_1") == [slot])
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_one_of_two_servers_of_a_match_is_kept_and_every_process_keeps_the_same(cluster: AgonesCluster) -> None:
    await cluster.api.scale(3)
    slots = [slot_of(await cluster.create().allocate(order())) for _ in range(2)]
    assert cluster.names_of("srv_1") == sorted(slots)
    found = await asyncio.gather(*(cluster.create().allocate(order(is_repeated=True)) for _ in range(2)))
    assert {slot_of(one) for one in found} == {slots[0]}
    assert cluster.names_of("srv_1") == [slots[0]]
    third = slot_of(await cluster.create().allocate(order()))  # the stored name decides
    assert slot_of(await cluster.create().allocate(order(slot=third, is_repeated=True))) == third
    assert cluster.names_of("srv_1") == [third]


async def test_many_matches_at_once_never_share_a_server(cluster: AgonesCluster) -> None:
    await cluster.api.scale(6)
    cluster.api.faults[ALLOCATE] = [Fault.CLOSE_AFTER, Fault.TEXT_500, Fault.TEXT_500_AFTER, Fault.CONTENTION]
    fleet = cluster.create(settle_s=0.5)
    async with following(fleet):
        servers = await asyncio.gather(*(fleet.allocate(order(f"srv_{number}")) for number in range(6)))
    assert sorted(slot_of(server) for server in servers) == cluster.api.names("Allocated")
    assert len(cluster.api.names("Allocated")) == 6


async def test_invalid_server_id_is_rejected_and_counts_as_gone(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    with pytest.raises(FleetError, match="not a valid value of a label"):
        await fleet.allocate(order("../srv_1"))
    assert await fleet.observe("../srv_1", "cs2-eu-1") is FleetReport.GONE
    assert await fleet.observe("srv_1", "../fleets/cs2-eu") is FleetReport.GONE
    await fleet.release("../srv_1", "")
    assert cluster.api.calls == []
