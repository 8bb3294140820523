"""A fleet in Agones copes with everything that was seen to go wrong between it and a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_console import first_password
from matchpod.adapters.fleets.agones_options import FLEET_LABEL, read_fleet_secret
from matchpod.adapters.fleets.agones_servers import EARLY_OWNER, OWNER_LABEL, REGION_LABEL, SERVER_LABEL
from matchpod.adapters.rcon_client import RconConsole, RconConsoles
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import (
    Capacity,
    ConsoleAuthError,
    ConsoleFaultError,
    ConsoleLostError,
    FleetError,
    FleetUnavailableError,
    GameServer,
    ServerOrder,
)
from matchpod.service.runner.machine_faults import causes_of
from tests.contract.agones_api import FLEET, Fault
from tests.contract.agones_cluster import OPTIONS, AgonesCluster, agones_cluster, following, write_kubeconfig
from tests.contract.agones_game_servers import SECRET
from tests.contract.fleet_servers import answer_of
from tests.contract.listed_servers import own_ids

ALLOCATE = "create gameserverallocations"
LIST = "list gameservers"
WATCH = "watch gameservers"
GET = "get gameservers"
DELETE = "delete gameservers"
PASSWORD = "pass of the match"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    async with agones_cluster(tmp_path, replicas=2) as created:
        yield created


def order(server_id: str = "srv_1", **changes: object) -> ServerOrder:
    plain = ServerOrder(
        server_id=server_id, slot="", map_name="de_nuke", game_type=0, game_mode=1, rcon_password=PASSWORD
    )
    return msgspec.structs.replace(plain, **changes)


def slot_of(server: GameServer | None) -> str:
    """Return the name of a server, as rows of early versions have it in `slot`; now its UID follows."""
    assert server is not None
    assert server.slot is not None
    name, uid = server.slot.split("/")
    assert uid == f"uid-{name}"
    return name


def count_lists(cluster: AgonesCluster) -> int:
    """Count the lists of all servers, without those that only ask for the version."""
    return sum(call.right == LIST and call.query["limit"] != "1" for call in cluster.api.calls)


async def until(is_true: object) -> None:
    assert callable(is_true)
    async with asyncio.timeout(120):
        while not is_true():
            await asyncio.sleep(0.01)


# --- what an allocation answers -------------------------------------------------------------------------------------


async def test_address_and_ports_are_chosen_from_those_of_the_server(cluster: AgonesCluster) -> None:
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


async def test_allocation_selects_the_fleet_and_puts_ids_and_no_secret_into_labels(cluster: AgonesCluster) -> None:
    name = slot_of(await cluster.create().allocate(order()))
    (call,) = [call for call in cluster.api.calls if call.right == ALLOCATE]
    assert call.headers["content-type"] == "application/json"
    spec = json.loads(call.body)["spec"]
    assert spec["selectors"] == [{"matchLabels": {FLEET_LABEL: FLEET}, "gameServerState": "Ready"}]
    assert spec["metadata"] == {"labels": {SERVER_LABEL: "srv_1", REGION_LABEL: "eu", OWNER_LABEL: OPTIONS.owner}}
    secrets = (PASSWORD, SECRET.decode(), first_password(SECRET, name))
    assert not any(secret.encode() in call.body for call in cluster.api.calls for secret in secrets)


async def test_full_fleet_has_no_server(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    for number in range(2):
        assert await fleet.allocate(order(f"srv_{number}")) is not None
    assert await fleet.allocate(order("srv_2")) is None
    async with following(fleet):
        assert await fleet.allocate(order("srv_2")) is None


@pytest.mark.parametrize("is_followed", [False, True])
@pytest.mark.parametrize("fault", [Fault.CONTENTION, Fault.UNALLOCATED])
async def test_allocation_is_repeated_while_servers_are_ready(
    cluster: AgonesCluster, fault: Fault, is_followed: bool
) -> None:
    cluster.api.faults[ALLOCATE] = [fault, fault]
    fleet = cluster.create()
    if is_followed:
        async with following(fleet):
            assert await fleet.allocate(order()) is not None
    else:
        assert await fleet.allocate(order()) is not None
    assert cluster.api.count_calls(ALLOCATE) == 3


async def test_allocation_is_repeated_for_a_limited_time(cluster: AgonesCluster) -> None:
    cluster.api.faults[ALLOCATE] = [Fault.UNALLOCATED] * 1000
    assert await cluster.create(retry_s=0.5).allocate(order()) is None
    assert 2 <= cluster.api.count_calls(ALLOCATE) < 100


@pytest.mark.parametrize("fleet_name", ["cs2-us", "cs2-eu"])
async def test_missing_fleet_or_namespace_is_told_apart_from_a_full_one(
    cluster: AgonesCluster, fleet_name: str
) -> None:
    if fleet_name == FLEET:
        url = cluster.kubeconfig.read_text().split('server: "')[1].split('"')[0]
        write_kubeconfig(cluster.kubeconfig, url, namespace="nowhere")
    fleet = cluster.create(fleet=fleet_name)
    with pytest.raises(
        FleetUnavailableError, match=f"There is no Fleet {fleet_name} in the namespace (default|nowhere)"
    ):
        await fleet.allocate(order())


async def test_missing_right_is_named(cluster: AgonesCluster) -> None:
    cluster.api.forbidden = {ALLOCATE}
    with pytest.raises(
        FleetUnavailableError, match=r"lacks the right to create gameserverallocations\.allocation\.agones\.dev"
    ):
        await cluster.create().allocate(order())
    assert cluster.api.count_calls(LIST) == 0


async def test_rejected_selector_is_reported(cluster: AgonesCluster) -> None:
    with pytest.raises(FleetUnavailableError, match="rejected the selector or labels of the fleet"):
        await cluster.create(selector={"tier": "not valid"}).allocate(order())


async def test_rejected_token_is_reported(cluster: AgonesCluster) -> None:
    cluster.api.tokens = set()
    with pytest.raises(FleetUnavailableError, match="rejected the credentials"):
        await cluster.create().allocate(order())


async def test_invalid_server_id_is_rejected_and_counts_as_gone(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    with pytest.raises(FleetError, match="not a valid value of a label"):
        await fleet.allocate(order("../srv_1"))
    assert await fleet.observe("../srv_1", "cs2-eu-1") is FleetReport.GONE
    assert await fleet.observe("srv_1", "../fleets/cs2-eu") is FleetReport.GONE
    await fleet.release("../srv_1", "")
    assert cluster.api.calls == []


# --- failures that leave open whether a server was allocated --------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [Fault.HANG_AFTER, Fault.CLOSE_AFTER, Fault.TEXT_500_AFTER, Fault.LATE], ids=lambda fault: fault.name
)
async def test_server_of_a_failed_call_is_found_instead_of_allocating_another(
    cluster: AgonesCluster, fault: Fault
) -> None:
    cluster.api.faults[ALLOCATE] = [fault]
    cluster.allocate_s = 1.0 if fault is Fault.HANG_AFTER else 30.0
    fleet = cluster.create(settle_s=10.0)
    name = slot_of(await fleet.allocate(order()))
    assert cluster.names_of("srv_1") == [name] == cluster.api.names("Allocated")
    assert cluster.api.count_calls(ALLOCATE) == 1


@pytest.mark.parametrize(
    "fault", [Fault.HANG, Fault.CLOSE, Fault.TEXT_500, Fault.TEXT_503, Fault.GARBAGE], ids=lambda fault: fault.name
)
async def test_call_without_effect_is_repeated(cluster: AgonesCluster, fault: Fault) -> None:
    cluster.api.faults[ALLOCATE] = [fault]
    cluster.allocate_s = 1.0 if fault is Fault.HANG else 30.0
    name = slot_of(await cluster.create().allocate(order()))
    assert cluster.names_of("srv_1") == [name] == cluster.api.names("Allocated")
    assert cluster.api.count_calls(ALLOCATE) >= 2


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.TEXT_500, Fault.TEXT_503], ids=lambda fault: fault.name)
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


async def test_cancelled_attempt_is_looked_up_by_the_next_one(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    cluster.api.faults[ALLOCATE] = [Fault.HANG_AFTER]
    first = asyncio.create_task(fleet.allocate(order()))
    await until(lambda: cluster.names_of("srv_1"))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert [slot_of(await fleet.allocate(order()))] == cluster.api.names("Allocated")


async def test_attempt_cancelled_after_the_allocation_is_looked_up_by_the_next_one(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleLostError("no answer")] * 1000
    fleet = cluster.create(consoles=consoles, console_s=60.0)
    first = asyncio.create_task(fleet.allocate(order()))
    await until(lambda: consoles.passwords)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    consoles.failures.clear()
    assert [slot_of(await fleet.allocate(order()))] == cluster.api.names("Allocated")


async def test_repeated_order_of_another_process_finds_the_server(cluster: AgonesCluster) -> None:
    cluster.api.faults[ALLOCATE] = [Fault.HANG_AFTER]
    first = asyncio.create_task(cluster.create().allocate(order()))
    await until(lambda: cluster.names_of("srv_1"))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    server = await cluster.create().allocate(order(is_repeated=True))
    assert cluster.api.names("Allocated") == [slot_of(server)]
    assert server is not None
    assert "hello" in await answer_of(server, "echo hello")


async def test_server_of_a_call_that_succeeds_after_another_one_is_deleted(cluster: AgonesCluster) -> None:
    cluster.api.faults[ALLOCATE] = [Fault.LATE]
    cluster.api.late_s = 3.0
    fleet = cluster.create(settle_s=0.0)
    async with following(fleet):
        name = slot_of(await fleet.allocate(order()))
        assert cluster.names_of("srv_1") == [name]
        await until(lambda: cluster.api.count_calls(DELETE) == 1)
        assert cluster.names_of("srv_1") == [name]


async def test_server_of_a_call_that_succeeds_after_its_match_was_released_is_used(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order("srv_0"))
    cluster.api.faults[ALLOCATE] = [Fault.LATE]
    fleet = cluster.create(retry_s=0.0, settle_s=0.0)
    async with following(fleet):
        with pytest.raises(FleetUnavailableError):
            await fleet.allocate(order())
        await fleet.release("srv_1", "")
        assert not fleet.holds("srv_1")
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
        await asyncio.sleep(0.3)
        assert cluster.names_of("srv_1") == [name]


async def test_deletion_of_a_second_server_is_repeated(cluster: AgonesCluster) -> None:
    cluster.api.faults = {ALLOCATE: [Fault.LATE], DELETE: [Fault.TEXT_503, Fault.TEXT_503]}
    fleet = cluster.create(settle_s=0.0, gone_poll_s=0.2)
    async with following(fleet):
        slot = slot_of(await fleet.allocate(order()))
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        await until(lambda: cluster.api.count_calls(DELETE) == 3)
        await until(lambda: cluster.names_of("srv_1") == [slot])
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_capacity_is_known_without_a_call_while_the_fleet_is_followed(cluster: AgonesCluster) -> None:
    cluster.call_s = 1.0
    fleet = cluster.create()
    async with following(fleet):
        cluster.api.outage = Fault.HANG
        cluster.api.close_watches()
        await until(lambda: not fleet.is_followed)
        async with asyncio.timeout(5):
            assert (await fleet.capacity()).ready == 2


async def test_one_of_two_servers_of_a_match_is_kept_and_every_process_keeps_the_same(cluster: AgonesCluster) -> None:
    slots = []
    for _ in range(2):
        slots.append(slot_of(await cluster.create().allocate(order())))
    assert cluster.names_of("srv_1") == sorted(slots)
    found = await asyncio.gather(*(cluster.create().allocate(order(is_repeated=True)) for _ in range(2)))
    assert {slot_of(one) for one in found} == {slots[0]}
    assert cluster.names_of("srv_1") == [slots[0]]


async def test_stored_name_decides_which_of_two_servers_is_kept(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order())
    second = slot_of(await cluster.create().allocate(order()))
    assert slot_of(await cluster.create().allocate(order(slot=second, is_repeated=True))) == second
    assert cluster.names_of("srv_1") == [second]


async def test_release_deletes_all_servers_of_a_match(cluster: AgonesCluster) -> None:
    slot = slot_of(await cluster.create().allocate(order()))
    await cluster.create().allocate(order())
    await cluster.create().release("srv_1", slot)
    assert cluster.names_of("srv_1") == []


async def test_many_matches_at_once_never_share_a_server(cluster: AgonesCluster) -> None:
    await cluster.api.scale(6)
    cluster.api.faults[ALLOCATE] = [Fault.CLOSE_AFTER, Fault.TEXT_500, Fault.TEXT_500_AFTER, Fault.CONTENTION]
    fleet = cluster.create(settle_s=0.5)
    async with following(fleet):
        servers = await asyncio.gather(*(fleet.allocate(order(f"srv_{number}")) for number in range(6)))
    assert sorted(slot_of(server) for server in servers) == cluster.api.names("Allocated")
    assert len(cluster.api.names("Allocated")) == 6


# --- consoles -------------------------------------------------------------------------------------------------------


class CountingConsoles(RconConsoles):
    """Real consoles that remember the passwords they were opened with, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.passwords: list[str] = []
        self.failures: list[Exception | None] = []

    async def open(self, host: str, port: int, password: str) -> RconConsole:
        self.passwords.append(password)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return await super().open(host, port, password)


async def test_password_of_a_new_server_is_replaced(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    server = await cluster.create(consoles=consoles).allocate(order())
    first = first_password(SECRET, slot_of(server))
    assert consoles.passwords == [first, PASSWORD]
    assert server is not None
    with pytest.raises(ConsoleAuthError):
        await RconConsoles().open(server.rcon_host, server.rcon_port, first)


async def test_repeated_allocation_tries_the_password_of_the_match_first(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order())
    consoles = CountingConsoles()
    await cluster.create(consoles=consoles).allocate(order(is_repeated=True))
    assert consoles.passwords == [PASSWORD]


async def test_console_that_lies_is_not_opened_again(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleFaultError("packet size")] * 100
    with pytest.raises(FleetError, match="packet size") as failed:
        await cluster.create(consoles=consoles).allocate(order())
    assert any(isinstance(cause, ConsoleFaultError) for cause in causes_of(failed.value))
    assert len(consoles.passwords) == 1


async def test_repeated_allocation_sets_a_password_that_was_not_set(cluster: AgonesCluster) -> None:
    lost = CountingConsoles()
    lost.failures = [ConsoleLostError("no answer")] * 100
    with pytest.raises(FleetError, match="did not answer within 1 s: no answer"):
        await cluster.create(consoles=lost, console_s=1.0).allocate(order())
    consoles = CountingConsoles()
    server = await cluster.create(consoles=consoles).allocate(order(is_repeated=True))
    assert consoles.passwords == [PASSWORD, first_password(SECRET, slot_of(server)), PASSWORD]


async def test_console_that_does_not_answer_is_opened_again(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleLostError("loading a map"), None, ConsoleLostError("busy")]
    assert await cluster.create(consoles=consoles).allocate(order()) is not None
    assert len(consoles.passwords) == 4


async def test_other_secret_is_reported_without_being_banned(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    fleet = cluster.create(consoles=consoles, read_secret=lambda: b"another secret than that of the servers")
    with pytest.raises(FleetUnavailableError, match="does the server have the same secret") as failed:
        await fleet.allocate(order())
    assert len(consoles.passwords) == 1
    assert PASSWORD not in str(failed.value)
    assert await own_ids(fleet) == ["srv_1"]


class DeafConsoles:
    """Consoles of a server that executes no command."""

    def __init__(self) -> None:
        self.rejected = 0

    async def open(self, host: str, port: int, password: str) -> DeafConsoles:
        if password == PASSWORD:
            self.rejected += 1
            raise ConsoleAuthError("rejected")
        return self

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        return ""

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        return [""] * len(commands)

    async def close(self) -> None:
        pass


async def test_password_that_is_not_accepted_is_reported_without_being_banned(cluster: AgonesCluster) -> None:
    consoles = DeafConsoles()
    with pytest.raises(FleetError, match="does not accept the password that was set"):
        await cluster.create(consoles=consoles).allocate(order())
    assert consoles.rejected == 3


@pytest.mark.parametrize(("password", "message"), [('x"; quit', "password cannot be set"), ("", "no RCON password")])
async def test_password_that_cannot_be_set_is_rejected(cluster: AgonesCluster, password: str, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        await cluster.create().allocate(order(rcon_password=password))


# --- servers that vanish --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_followed", [False, True])
async def test_crashed_server_is_reported_as_gone(cluster: AgonesCluster, is_followed: bool) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    if not is_followed:
        cluster.kill("srv_1")
        assert await fleet.wait_gone("srv_1", slot)
        assert await fleet.observe("srv_1", slot) is FleetReport.GONE
        return
    reads = cluster.api.count_calls(GET)
    async with following(fleet):
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
        cluster.kill("srv_1")
        assert await waiting == "the GameServer is in state Unhealthy"
        assert cluster.api.count_calls(GET) == reads  # the watch told it at once
        assert await fleet.observe("srv_1", slot) is FleetReport.GONE


async def test_server_that_is_being_deleted_is_gone_although_the_end_of_it_is_late(cluster: AgonesCluster) -> None:
    cluster.api.finalize_s = 3600.0
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    reads = cluster.api.count_calls(GET)
    async with following(fleet):
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        cluster.api.delete(slot)
        assert await waiting == "the GameServer is being deleted"
        assert cluster.api.count_calls(GET) == reads
        assert await fleet.observe("srv_1", slot) is FleetReport.GONE
        await fleet.release("srv_1", slot)
        assert await own_ids(fleet) == []


@pytest.mark.parametrize("is_event", [False, True])
async def test_server_that_is_missing_after_the_history_was_lost_is_gone(
    cluster: AgonesCluster, is_event: bool
) -> None:
    cluster.api.is_gone_an_event = is_event
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    async with following(fleet):
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        await asyncio.sleep(0)
        cluster.api.remove_silently(slot)
        cluster.api.expire_versions()
        assert await waiting == "the GameServer was deleted"
        assert fleet.fault is None
    assert count_lists(cluster) == 2


async def test_closed_watches_are_opened_again_where_they_ended(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    async with following(fleet):
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        for _ in range(3):
            opened = cluster.api.watches_opened
            cluster.api.close_watches()
            await until(lambda before=opened: cluster.api.watches_opened > before)
        assert fleet.fault is None
        cluster.kill("srv_1")
        assert await waiting
    assert count_lists(cluster) == 1


async def test_half_open_watch_is_given_up(cluster: AgonesCluster) -> None:
    cluster.watch_grace_s = 1.0
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    async with following(fleet):
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        cluster.api.are_watches_frozen = True
        await until(lambda: cluster.api.watches_frozen)
        cluster.kill("srv_1")
        opened = cluster.api.watches_opened
        await until(lambda: cluster.api.watches_opened > opened)
        cluster.api.are_watches_frozen = False
        assert await waiting


async def test_watch_that_never_opens_does_not_hide_that_a_server_is_gone(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.forbidden = {WATCH}
    async with following(fleet):
        assert fleet.fault is not None
        assert "lacks the right to watch gameservers.agones.dev" in fleet.fault
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
        cluster.kill("srv_1")
        assert await waiting
        assert await fleet.observe("srv_1", slot) is FleetReport.GONE


async def test_server_is_not_gone_while_its_state_is_unknown(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.kill("srv_1")
    for fault in (Fault.CLOSE, Fault.TEXT_500, Fault.TEXT_503, Fault.GARBAGE):
        cluster.api.outage = fault
        assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
    cluster.api.outage = None
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE


async def test_server_of_another_match_is_not_that_of_this_one(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order("srv_2")))
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE
    assert await fleet.observe("srv_2", slot) is FleetReport.ALIVE
    assert await fleet.observe("srv_2", "") is FleetReport.ALIVE
    assert await fleet.observe("srv_1", "") is FleetReport.GONE
    assert await fleet.wait_gone("srv_1", slot)
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_2") == [slot]


async def test_state_of_a_followed_server_costs_no_call(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with following(fleet):
        slot = slot_of(await fleet.allocate(order()))
        await until(lambda: fleet.capacity_now.allocated == 1)
        before = cluster.api.count_calls(GET)
        for _ in range(10):
            assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
        assert cluster.api.count_calls(GET) == before


# --- release and sweeps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [Fault.CLOSE, Fault.CLOSE_AFTER, Fault.TEXT_500, Fault.TEXT_503, Fault.HANG_AFTER], ids=lambda f: f.name
)
async def test_release_is_repeated_until_it_is_confirmed(cluster: AgonesCluster, fault: Fault) -> None:
    cluster.call_s = 1.0 if fault is Fault.HANG_AFTER else 30.0
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.faults = {DELETE: [fault], LIST: [Fault.CLOSE]}
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_1") == []


async def test_release_that_cannot_be_confirmed_fails(cluster: AgonesCluster) -> None:
    fleet = cluster.create(release_s=1.0)
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.outage = Fault.TEXT_503
    with pytest.raises(FleetError, match="is not confirmed"):
        await fleet.release("srv_1", slot)
    cluster.api.outage = None
    cluster.api.forbidden = {DELETE}
    with pytest.raises(FleetUnavailableError, match=r"lacks the right to delete gameservers\.agones\.dev"):
        await fleet.release("srv_1", slot)
    cluster.api.forbidden = set()
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_1") == []


async def test_deletion_names_the_server_that_is_meant(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    uid = cluster.api.objects[slot]["metadata"]["uid"]
    await fleet.release("srv_1", slot)
    (call,) = [call for call in cluster.api.calls if call.right == DELETE]
    assert json.loads(call.body)["preconditions"] == {"uid": uid}


async def test_released_server_is_replaced_and_wakes_those_who_wait(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with following(fleet) as changed:
        slots = [slot_of(await fleet.allocate(order(f"srv_{number}"))) for number in range(2)]
        await until(lambda: fleet.capacity_now.ready == 0)
        changed.clear()
        await fleet.release("srv_0", slots[0])
        await changed.wait()
        assert await fleet.allocate(order("srv_2")) is not None


async def test_sweep_finds_servers_of_this_region_and_owner_only(cluster: AgonesCluster) -> None:
    await cluster.api.scale(4)
    await cluster.create(region="us").allocate(order("srv_us"))
    await cluster.create(owner="another").allocate(order("srv_other"))
    fleet = cluster.create()
    await fleet.allocate(order("srv_1"))
    assert await own_ids(fleet) == ["srv_1"]
    assert [(one.server_id, one.owner) for one in await fleet.servers() if not one.is_own] == [("srv_other", "another")]
    for server_id in ("srv_us", "srv_other", "srv_1"):
        await fleet.release(server_id, "")
    assert cluster.names_of("srv_us")
    assert cluster.names_of("srv_other")
    assert await own_ids(fleet) == []


async def test_sweep_finds_servers_of_a_fleet_that_is_no_longer_configured(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order())
    successor = cluster.create(fleet="cs2-new")
    assert await own_ids(successor) == ["srv_1"]
    await successor.release("srv_1", "")
    assert cluster.names_of("srv_1") == []


async def test_other_installation_with_another_region_is_seen_in_the_same_fleet(cluster: AgonesCluster) -> None:
    await cluster.create(region="laptop", owner="another").allocate(order("srv_other"))
    (seen,) = await cluster.create().servers()
    assert (seen.server_id, seen.is_own, seen.owner) == ("srv_other", False, "another")
    assert seen.age_s < 60


async def test_match_that_an_early_version_started_goes_on_after_an_upgrade(cluster: AgonesCluster) -> None:
    """All servers had the same owner then; their matches know them by name."""
    slot = slot_of(await cluster.create(owner=EARLY_OWNER).allocate(order()))
    fleet = cluster.create()
    assert [(one.server_id, one.is_own) for one in await fleet.servers()] == [("srv_1", None)]
    assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
    again = msgspec.structs.replace(order(), is_repeated=True, slot=slot)
    assert slot_of(await fleet.allocate(again)) == slot
    async with following(fleet):
        assert fleet.holds("srv_1")
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        await fleet.release("srv_1", slot)
        assert await waiting
    assert cluster.names_of("srv_1") == []


# --- capacity, faults, check ----------------------------------------------------------------------------------------


async def test_capacity_is_known_with_and_without_a_watch(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    assert await fleet.capacity() == Capacity(ready=2, allocated=0, total=2)
    await fleet.allocate(order())
    assert await fleet.capacity() == Capacity(ready=1, allocated=1, total=2)
    async with following(fleet):
        assert await fleet.capacity() == Capacity(ready=1, allocated=1, total=2)
        reads = cluster.api.count_calls("get fleets")
        await fleet.capacity()
        assert cluster.api.count_calls("get fleets") == reads
    with pytest.raises(FleetUnavailableError, match="There is no Fleet"):
        await cluster.create(fleet="cs2-us").capacity()


async def test_fault_is_reported_while_the_cluster_is_unreachable(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with following(fleet) as changed:
        assert fleet.fault is None
        changed.clear()
        cluster.api.outage = Fault.CLOSE
        cluster.api.close_watches()
        await until(lambda: fleet.fault is not None)
        assert changed.is_set()
        assert "cannot be reached" in str(fleet.fault)
        changed.clear()
        cluster.api.outage = None
        await until(lambda: fleet.fault is None)
        assert changed.is_set()
        assert await fleet.allocate(order()) is not None


async def test_missing_fleet_is_a_fault(cluster: AgonesCluster) -> None:
    fleet = cluster.create(fleet="cs2-us", missing_fleet_poll_s=0.1)
    async with following(fleet):
        await until(lambda: fleet.fault == "There is no Fleet cs2-us in the namespace default. Fleets there: cs2-eu.")
        await cluster.api.scale(1, fleet="cs2-us")
        await until(lambda: fleet.fault is None)


async def test_check_finds_nothing_wrong(cluster: AgonesCluster) -> None:
    assert await found_wrong(cluster.create()) == ([], None)


async def found_wrong(fleet: AgonesFleet) -> tuple[list[str], str | None]:
    """Return what is wrong with the settings of a fleet, which stops a service, and what may heal."""
    return list(await fleet.check()), fleet.fault


async def test_secret_is_read_again_for_every_match(cluster: AgonesCluster, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    fleet = cluster.create(read_secret=lambda: read_fleet_secret(path))
    with pytest.raises(FleetUnavailableError, match="cannot be read: No such file"):
        await fleet.allocate(order())
    path.write_bytes(SECRET)
    assert await fleet.allocate(order()) is not None


async def test_check_reports_a_missing_fleet_rights_and_a_short_secret(cluster: AgonesCluster, tmp_path: Path) -> None:
    cluster.api.forbidden = {DELETE, ALLOCATE}
    (tmp_path / "secret").write_bytes(b"short")
    fleet = cluster.create(fleet="cs2-us", read_secret=lambda: read_fleet_secret(tmp_path / "secret"))
    assert await found_wrong(fleet) == (
        [f"The fleet secret {tmp_path}/secret cannot be used: it has 5 bytes, at least 16 are needed."],
        "There is no Fleet cs2-us in the namespace default. Fleets there: cs2-eu."
        " The account of the service lacks the right to create gameserverallocations.allocation.agones.dev."
        " The account of the service lacks the right to delete gameservers.agones.dev.",
    )


async def test_check_reports_rights_as_far_as_they_are_known(cluster: AgonesCluster) -> None:
    cluster.api.forbidden = {"get fleets"}
    missing = "The account of the service lacks the right to get fleets.agones.dev"
    assert await found_wrong(cluster.create()) == ([], f"{missing}.")
    cluster.api.faults["create "] = [Fault.TEXT_503]  # the review of our rights
    wrong, fault = await found_wrong(cluster.create())
    assert wrong == []
    assert str(fault).startswith(f"{missing}: fleets.agones.dev")


async def test_cluster_without_agones_is_reported(cluster: AgonesCluster) -> None:
    cluster.api.has_agones = False
    fleet = cluster.create()
    wrong, fault = await found_wrong(fleet)
    assert wrong == []
    assert "is Agones installed there?" in str(fault)
    for call in (fleet.allocate(order()), fleet.servers(), fleet.capacity(), fleet.release("srv_1", "")):
        with pytest.raises(FleetUnavailableError, match="is Agones installed there"):
            await call
    assert await fleet.observe("srv_1", "cs2-eu-1") is FleetReport.UNKNOWN


@pytest.mark.parametrize(
    ("outage", "sentence"),
    [
        (Fault.CLOSE, "cannot be reached"),
        (Fault.TEXT_500, "could not get fleets.agones.dev"),
        (Fault.TEXT_503, "error trying to reach service"),
        (Fault.BUSY_429, "Too many requests"),
        (Fault.GARBAGE, "the answer cannot be read"),
        (Fault.HANG, "did not answer within 0.5 s"),
        (None, "rejected the credentials"),
    ],
)
async def test_check_records_what_may_heal_as_a_fault_until_it_has(
    cluster: AgonesCluster, outage: Fault | None, sentence: str
) -> None:
    tokens = cluster.api.tokens
    cluster.api.outage, cluster.api.tokens = outage, None if outage else set()
    fleet = cluster.create(check_s=0.5 if outage is Fault.HANG else 30.0)
    wrong, fault = await found_wrong(fleet)
    assert wrong == []
    assert sentence in str(fault)
    cluster.api.outage, cluster.api.tokens = None, tokens
    async with following(fleet):
        await until(lambda: fleet.fault is None)
        assert await fleet.allocate(order()) is not None


async def test_rights_are_reviewed_again_until_none_is_missing(cluster: AgonesCluster) -> None:
    cluster.api.forbidden = {DELETE}
    fleet = cluster.create(missing_fleet_poll_s=0.1)
    await fleet.check()
    async with following(fleet):
        await until(lambda: cluster.api.watches_opened)
        assert fleet.fault == "The account of the service lacks the right to delete gameservers.agones.dev."
        cluster.api.forbidden = set()
        await until(lambda: fleet.fault is None)


async def test_unusable_settings_are_reported_by_the_check(cluster: AgonesCluster) -> None:
    cluster.kubeconfig.unlink()
    wrong = f"The kubeconfig {cluster.kubeconfig} cannot be read: No such file or directory."
    assert await found_wrong(cluster.create()) == ([wrong], None)


async def test_every_right_of_the_role_is_used(cluster: AgonesCluster) -> None:
    await cluster.create(fleet="cs2-us").check()
    fleet = cluster.create()
    async with following(fleet):
        name = slot_of(await fleet.allocate(order()))
    assert await fleet.observe("srv_1", name) is FleetReport.ALIVE
    await fleet.release("srv_1", name)
    assert {call.right for call in cluster.api.calls if call.kind} == cluster.api.granted
