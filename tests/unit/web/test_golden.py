"""Each resource has this JSON, to the letter. A change of it is a change of the interface, or a bug."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from matchpod.service.conclusion import Ending
from tests.unit.web import sites
from tests.unit.web.sites import PLAYER, Site

site = sites.site
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ANN = int(PLAYER) - 76561197960265728


def created(site: Site) -> bytes:
    teams = {"team1": {"name": "Alpha", "players": [PLAYER]}, "team2": {"name": "Bravo"}}
    answer = site.create(
        callbackUrl="https://caller.example/done",
        callbackAuthToken="Bearer s3cret",
        externalMatchId="cup/1",
        gameSettings={"matchType": "competitive", "map": "de_dust2", "teams": teams},
    )
    return answer.content


def live_server(site: Site) -> bytes:
    server_id = msgspec.json.decode(created(site))["serverId"]
    site.start(server_id)
    line = f'L 09/21/2026 - 14:13:20.123 - "Ann<2><[U:1:{ANN}]><>" entered the game\n'
    site.ask("POST", f"/ingest/logs/{site.row(server_id).log_token}", content=line.encode())
    return site.get(f"/api/v1/servers/{server_id}").content


def match_in_progress(site: Site) -> bytes:
    created(site)
    return site.get("/api/v1/matches/cup%2F1").content


def finished_match(site: Site) -> bytes:
    server_id = msgspec.json.decode(created(site))["serverId"]
    site.start(server_id)
    site.end(server_id, Ending(result=(GOLDEN / "example-result.json").read_bytes()))
    return site.get("/api/v1/matches/cup%2F1").content


def canceled(site: Site) -> bytes:
    return site.cancel(site.new_server()).content


def regions(site: Site) -> bytes:
    return site.ask("GET", "/api/v1/regions").content


def invalid_params(site: Site) -> bytes:
    return site.create(regoin="eu", gameSettings={"matchType": "casual", "map": "de_dust2", "maxRounds": 0}).content


def not_found(site: Site) -> bytes:
    return site.get("/api/v1/servers/srv_0").content


@pytest.mark.parametrize(
    "make",
    [created, live_server, match_in_progress, finished_match, canceled, regions, invalid_params, not_found],
    ids=lambda make: make.__name__,
)
def test_resource_has_this_json(site: Site, make: Callable[[Site], bytes]) -> None:
    file = GOLDEN / f"http-{make.__name__.replace('_', '-')}.json"
    answered = msgspec.json.format(make(site), indent=2).decode() + "\n"
    assert answered == file.read_text("utf-8")
