"""Demos go from the game server through the process that receives them to the caller, and the server is kept for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import read_page
from tests.e2e.service.running_service import RunningService, cvars, free_port_range, region, short_match

MEGABYTES = 10
SETTINGS = short_match(
    seriesFormat="bo3",
    maps=["de_nuke", "de_inferno"],
    maxRounds=2,
    recordDemo=True,
    customCvars=cvars(sim_seed=14, sim_demo_mb=MEGABYTES, sim_demo_rate=5),
)


def test_demos_of_a_series_are_whole_and_its_result_does_not_wait_for_them(
    database_url: str | None, tmp_path: Path
) -> None:
    upload_port, *ports = free_port_range(2)
    regions = region("sandbox", ports, speed=10).replace("speed =", "tv_delay = 10\nspeed =")
    settings = {"upload_port": str(upload_port)}
    with (
        CallbackReceiver() as receiver,
        RunningService(tmp_path, regions=regions, database_url=database_url, settings=settings) as service,
    ):
        server_id = service.create(SETTINGS, callbackUrl=receiver.url("/series"))["serverId"]
        assert receiver.wait_for("/series")[0].json["eventType"] == "match_over"
        server = service.get(server_id)
        assert (server["status"], server["draining"]) == ("stopped", True)
        (sandbox,) = service.call("GET", "/api/v1/regions").json
        assert sandbox["draining"] == 1
        service.wait_until_released(server_id)
        assert "draining" not in service.get(server_id)
        listed = read_page(service, f"/api/v1/cs2/matches?serverId={server_id}")
        played = sorted((one for one in listed if one["startedAt"]), key=lambda one: str(one["startedAt"]))
        demos = [service.call("GET", f"/api/v1/cs2/matches/{one['id']}/demo").json for one in played]
        assert len(demos) >= 2
        assert demos[0]["size"] == MEGABYTES * 1_000_000  # of the last map, the plugin has restored `sim_demo_mb`
        for one, demo in zip(played, demos, strict=True):
            assert (demo["state"], len(demo["files"])) == ("available", 1)
            content = service.call("GET", f"/api/v1/cs2/matches/{one['id']}/demo/file").raw
            assert hashlib.sha256(content).hexdigest() == demo["sha256"]
            assert content.endswith(b"DEM_Stop")
