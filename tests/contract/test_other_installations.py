"""Fleets meet servers of other installations: another database, a copied data folder, a shared static server."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import pytest

from cs2_protocol.console_answers import parse_log_listeners
from cs2_protocol.console_commands import LOG_LISTENERS, log_address_command
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import FleetError, GameServer, SlotInUseError
from matchpod.service.ingest.tokens import new_tokens, open_tokens
from matchpod.service.ingest.urls import IngestUrls
from matchpod.storage import servers
from tests.contract import fleet_servers, test_static_fleet
from tests.contract.console.console_site import open_site
from tests.contract.fleet_servers import answer_of, order, players_on, process_fleet, recorded_pid
from tests.contract.listed_servers import own_ids
from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.leases import FakeLease

folder = fleet_servers.folder
simulator = test_static_fleet.simulator

OURS, THEIRS = "mp-00000000000000aa", "mp-00000000000000bb"


# --- processes --------------------------------------------------------------------------------------------------------


async def test_servers_of_another_database_are_listed_as_its_own(folder: Path) -> None:
    """The data folder is the same, but the URL of the database was mistyped."""
    fleet = process_fleet(folder, owner=OURS)
    await fleet.allocate(order(fleet))
    (seen,) = await process_fleet(folder, owner=THEIRS).servers()
    assert (seen.server_id, seen.is_own, seen.owner) == ("srv_1", False, OURS)
    assert 0 <= seen.age_s < 600
    await fleet.release("srv_1", fleet.slots[0])


async def test_server_of_an_early_version_belongs_to_no_known_installation(folder: Path) -> None:
    early = process_fleet(folder)
    await early.allocate(order(early))
    fleet = process_fleet(folder, owner=OURS)
    assert [one.is_own for one in await fleet.servers()] == [None]
    assert await fleet.observe("srv_1", early.slots[0]) is FleetReport.ALIVE
    await fleet.release("srv_1", early.slots[0])
    assert await fleet.servers() == []


async def test_copy_of_a_data_folder_does_not_touch_the_servers_of_the_original(folder: Path, tmp_path: Path) -> None:
    fleet = process_fleet(folder, owner=OURS)
    slot = fleet.slots[0]
    await fleet.allocate(order(fleet))
    pid = recorded_pid(folder)
    shutil.copytree(folder, tmp_path / "copy")
    copy = process_fleet(tmp_path / "copy", tuple(map(int, fleet.slots)), owner=OURS)
    assert [(one.server_id, one.is_own) for one in await copy.servers()] == [("srv_1", False)]
    assert await copy.observe("srv_1", slot) is not FleetReport.ALIVE
    with pytest.raises(FleetError, match="in use by another program"):
        await copy.allocate(order(copy))
    await copy.release("srv_1", slot)
    assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
    assert recorded_pid(folder) == pid
    await fleet.release("srv_1", slot)


async def test_moved_data_folder_goes_on_with_its_servers(folder: Path, tmp_path: Path) -> None:
    fleet = process_fleet(folder, owner=OURS)
    await fleet.allocate(order(fleet))
    folder.rename(tmp_path / "moved")
    moved = process_fleet(tmp_path / "moved", owner=OURS)
    assert await own_ids(moved) == ["srv_1"]
    assert await moved.observe("srv_1", fleet.slots[0]) is FleetReport.ALIVE
    await moved.release("srv_1", fleet.slots[0])
    assert await moved.servers() == []


# --- static servers ---------------------------------------------------------------------------------------------------


def log_token(owner: str) -> str:
    """Return the log token of a match of an installation; an early version has no id."""
    return new_tokens(secrets.token_bytes, owner).log


def log_url(token: str) -> str:
    return IngestUrls("http://127.0.0.1:9").logs(token)


async def test_new_match_has_the_id_of_its_installation_in_its_log_token(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data") as site:
        row = await servers.get(site.resources.db, await site.create_match())
        assert row is not None
        token = open_tokens(row, site.resources.vault).log
    assert token.startswith(f"{site.resources.installation}-")
    assert len(token) > len(site.resources.installation) + 40


async def listeners(server: GameServer) -> tuple[str, ...]:
    return parse_log_listeners(await answer_of(server, LOG_LISTENERS))


def fleet_of(simulator: SimulatorProcess, owner: str = OURS) -> StaticFleet:
    return StaticFleet([StaticServer(simulator.address, PASSWORD)], RconConsoles(), owner=owner)


async def test_static_server_that_another_installation_uses_is_neither_allocated_nor_cleaned_up(
    simulator: SimulatorProcess,
) -> None:
    fleet = fleet_of(simulator)
    server = await fleet.allocate(order(fleet))
    theirs = log_token(THEIRS)
    await answer_of(server, log_address_command(log_url(theirs)))
    used = await listeners(server)
    players = await players_on(server)
    with pytest.raises(SlotInUseError, match=f"used by installation {THEIRS} of Matchpod"):
        await fleet.allocate(order(fleet, "srv_2"))
    await fleet.release("srv_2", fleet.slots[0])
    assert await listeners(server) == used != ()
    assert await players_on(server) == players
    await fleet_of(simulator, THEIRS).release("srv_1", simulator.address, FakeLease(theirs))
    assert await listeners(server) == ()


@pytest.mark.parametrize("owner", [OURS, ""], ids=["ours", "early version"])
async def test_static_server_that_we_left_is_allocated_and_cleaned_up(simulator: SimulatorProcess, owner: str) -> None:
    fleet = fleet_of(simulator)
    server = await fleet.allocate(order(fleet))
    left = log_token(owner)
    for url in (log_url(left), "http://127.0.0.1:9/statistics"):
        await answer_of(server, log_address_command(url))
    await fleet.allocate(order(fleet, "srv_2"))
    await fleet.release("srv_1", fleet.slots[0], FakeLease(left))
    assert await listeners(server) == ()
