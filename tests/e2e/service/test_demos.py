"""Demos go from the game server through the process that receives them to the caller, and the server is kept for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.read_history import read_page
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    free_port_range,
    region,
    short_match,
    wait_until,
)

SPEED = 10
TV_DELAY_S = 10
MEGABYTES = 10
MATCHES: dict[str, Json] = {
    "series": short_match(
        seriesFormat="bo3",
        maps=["de_nuke", "de_inferno"],
        maxRounds=2,
        recordDemo=True,
        customCvars=cvars(sim_seed=14, sim_demo_mb=MEGABYTES, sim_demo_rate=5),
    ),
    "cut": short_match(recordDemo=True, customCvars=cvars(sim_demo_faults="cut_upload")),
    "silent": short_match(recordDemo=True, customCvars=cvars(sim_demo_faults="no_upload")),
    "canceled": short_match(maxRounds=24, recordDemo=True, customCvars=cvars(20)),
    "unrecorded": short_match(),
}


class Recorded:
    """The matches of one service, all created at once."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver) -> None:
        self.service = service
        self.receiver = receiver
        self.ids: dict[str, str] = {}
        for name, settings in MATCHES.items():
            created = service.create(settings, callbackUrl=receiver.url(f"/{name}"))
            self.ids[name] = created["serverId"]

    def get(self, name: str) -> Json:
        return self.service.get(self.ids[name])

    def maps(self, name: str) -> list[Json]:
        """Return the maps that were played, in order."""
        listed = read_page(self.service, f"/api/v1/cs2/matches?serverId={self.ids[name]}")
        return sorted((one for one in listed if one["startedAt"]), key=lambda one: str(one["startedAt"]))

    def demos(self, name: str) -> list[Json]:
        """Wait until the server is released; return the demo of each map that was played."""
        self.service.wait_until_released(self.ids[name])
        return self.demos_now(name)

    def demos_now(self, name: str) -> list[Json]:
        paths = [f"/api/v1/cs2/matches/{one['id']}/demo" for one in self.maps(name)]
        return [self.service.call("GET", path).json for path in paths]


@pytest.fixture(scope="module")
def recorded(database_url: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    ports = free_port_range(len(MATCHES) + 1)
    regions = region("sandbox", ports[1:], speed=SPEED).replace("speed =", f"tv_delay = {TV_DELAY_S}\nspeed =")
    settings, folder = {"upload_port": str(ports[0])}, tmp_path_factory.mktemp("demos")
    with (
        CallbackReceiver() as receiver,
        RunningService(folder, regions=regions, database_url=database_url, settings=settings) as service,
    ):
        yield Recorded(service, receiver)


def test_canceling_a_match_loses_its_demo_and_releases_its_server(recorded: Recorded) -> None:
    wait_until(lambda: [one.get("state") for one in recorded.demos_now("canceled")] == ["recording"], "a recording")
    assert recorded.get("canceled")["gotv"]["delaySeconds"] == TV_DELAY_S
    assert recorded.service.cancel(recorded.ids["canceled"]).status == 200
    (demo,) = recorded.demos("canceled")
    assert (demo["state"], demo["reason"]) == ("missing", "canceled")


def test_demos_of_a_series_are_whole_and_its_result_does_not_wait_for_them(recorded: Recorded) -> None:
    assert recorded.receiver.wait_for("/series")[0].json["eventType"] == "match_over"
    server = recorded.get("series")
    assert (server["status"], server["draining"]) == ("stopped", True)
    (sandbox,) = [one for one in recorded.service.call("GET", "/api/v1/regions").json if one["code"] == "sandbox"]
    assert sandbox["draining"] >= 1
    demos = recorded.demos("series")
    assert "draining" not in recorded.get("series")
    assert len(demos) >= 2
    assert demos[0]["size"] == MEGABYTES * 1_000_000  # of the last map, the plugin has restored `sim_demo_mb`
    for played, demo in zip(recorded.maps("series"), demos, strict=True):
        assert (demo["state"], len(demo["files"])) == ("available", 1)
        content = recorded.service.call("GET", f"/api/v1/cs2/matches/{played['id']}/demo/file").raw
        assert hashlib.sha256(content).hexdigest() == demo["sha256"]
        assert content.endswith(b"DEM_Stop")


def test_upload_that_breaks_is_missing(recorded: Recorded) -> None:
    (demo,) = recorded.demos("cut")
    assert (demo["state"], demo["reason"]) == ("missing", "cut")


def test_demo_that_does_not_come_is_given_up(recorded: Recorded) -> None:
    (demo,) = recorded.demos("silent")
    assert (demo["state"], demo["reason"]) == ("missing", "not_uploaded")
    assert recorded.receiver.wait_for("/silent")[0].json["eventType"] == "match_over"


def test_match_that_is_not_recorded_has_no_demo(recorded: Recorded) -> None:
    (answer,) = recorded.demos("unrecorded")
    assert answer["statusCode"] == 404
    assert "gotv" not in recorded.get("unrecorded")
