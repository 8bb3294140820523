"""Golden JSON of each resource. A difference is a change of the API, or a bug."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.ports import Delivery
from matchpod.service.access.webhook_signature import attempt_headers, mask_headers, new_secret
from matchpod.storage import outbox
from tests.golden.golden_files import FOLDER as GOLDEN
from tests.golden.golden_files import check_golden
from tests.unit.web import histories, sites
from tests.unit.web.sites import NOW_MS, PLAYER, Site
from tests.vaults import tokens_of

site = sites.site
ANN = int(PLAYER) - 76561197960265728


def created(site: Site) -> bytes:
    teams = {"team1": {"name": "Alpha", "players": [PLAYER]}, "team2": {"name": "Bravo"}}
    response = site.create(
        callbackUrl="https://caller.example/done",
        callbackAuthToken="Bearer s3cret",
        externalMatchId="cup/1",
        gameSettings={"matchType": "competitive", "map": "de_dust2", "teams": teams},
    )
    return response.content


def live_server(site: Site) -> bytes:
    server_id = msgspec.json.decode(created(site))["serverId"]
    site.start(server_id)
    line = f'L 09/21/2026 - 14:13:20.123 - "Ann<2><[U:1:{ANN}]><>" entered the game\n'
    site.request("POST", f"/ingest/logs/{tokens_of(site.row(server_id)).log}", content=line.encode())
    return site.get(f"/api/v1/servers/{server_id}").content


def servers_page(site: Site) -> bytes:
    live_server(site)
    site.cancel(site.new_server())
    return site.get("/api/v1/servers?pageSize=5").content


def finished_match(site: Site) -> bytes:
    server_id = msgspec.json.decode(created(site))["serverId"]
    site.start(server_id)
    result = (GOLDEN / "example-result.json").read_bytes()
    site.end(server_id, result=result)
    # The result is embedded byte for byte, so its own golden file is enough.
    return site.get("/api/v1/matches/cup%2F1").content.replace(result, b'"example-result.json"')


def canceled(site: Site) -> bytes:
    return site.cancel(site.new_server()).content


def invalid_params(site: Site) -> bytes:
    return site.create(regoin="eu", gameSettings={"matchType": "casual", "map": "de_dust2", "maxRounds": 0}).content


def played_map(site: Site) -> str:
    """Return the id of a finished map with a timeline, statistics and a detection."""
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    return histories.map_ids(site, server_id)[0]


def maps_page(site: Site) -> bytes:
    site.new_server(gameSettings={"matchType": "deathmatch", "map": "de_dust2", "players": [PLAYER]})
    played_map(site)
    return site.get("/api/v1/cs2/matches?page=1&pageSize=3").content


def undelivered(site: Site) -> str:
    """Return the id of a callback that was given up."""
    server_id = site.new_server(callbackUrl="https://caller.example/done?key=s3cret", externalMatchId="cup/1")
    site.end(server_id, reason=CancelReason.NO_PLAYERS_JOINED)
    callback_id = f"msg_{server_id}"
    secret = new_secret(bytes(32))
    for number, status in ((1, 503), (2, None)):
        delivery = Delivery(status=status, duration_ms=31, error=None if status else "no response within 10 s")
        signed = attempt_headers(
            [secret], callback_id, b"{}", timestamp_s=NOW_MS // 1000, attempt=number, version="1.2.3", authorization="t"
        )
        next_at_ms = NOW_MS + 5_000 if number == 1 else None
        record = outbox.record_attempt(
            callback_id, delivery, number=number, at_ms=NOW_MS, next_at_ms=next_at_ms, headers=mask_headers(signed)
        )
        site.run(site.db.write(record))
    return callback_id


def callbacks_page(site: Site) -> bytes:
    undelivered(site)
    site.end(site.new_server(callbackUrl="https://caller.example/"), reason=CancelReason.SERVER_LOST)
    return site.get("/api/v1/callbacks").content


def callback_redelivered(site: Site) -> bytes:
    return site.request("POST", f"/api/v1/callbacks/{undelivered(site)}/redeliver", key=site.key).content


def callbacks_redelivered(site: Site) -> bytes:
    undelivered(site)
    return site.request("POST", "/api/v1/callbacks/redeliver", key=site.key, json={"since": "2026-09-21"}).content


def audit_page(site: Site) -> bytes:
    site.clock.at_ms += 1
    site.cancel(site.new_server())
    return site.get("/api/v1/audit?pageSize=1").content


def series(site: Site) -> str:
    played_map(site)
    series_id: str = site.get("/api/v1/cs2/series").json()["items"][0]["seriesId"]
    return series_id


def nothing(_: Site) -> str:
    return ""


READ: dict[str, tuple[Callable[[Site], object], str]] = {
    "match-in-progress": (created, "matches/cup%2F1"),
    "regions": (nothing, "regions"),
    "not-found": (nothing, "servers/srv_0"),
    "series-page": (played_map, "cs2/series"),
    "series-detail": (series, "cs2/series/{}"),
    "map-detail": (played_map, "cs2/matches/{}"),
    "map-events": (played_map, "cs2/matches/{}/events"),
    "map-rounds": (played_map, "cs2/matches/{}/rounds"),
    "leaderboard": (played_map, "cs2/matches/{}/leaderboard"),
    "invalid-query": (nothing, "cs2/matches?pageSize=0&dateFrom=today&mapName=de_dust2"),
    "callback-detail": (undelivered, "callbacks/{}"),
}
"""By golden file, what happens before a resource is read, and its path with the id of what happened."""


@pytest.mark.parametrize("name", READ)
def test_resource_that_is_read_equals_its_golden_file(site: Site, name: str) -> None:
    prepare, path = READ[name]
    check(name, site.get(f"/api/v1/{path.format(prepare(site))}").content)


@pytest.mark.parametrize(
    "make",
    [created, live_server, servers_page, finished_match, canceled, invalid_params, maps_page, callbacks_page,
     callback_redelivered, callbacks_redelivered, audit_page],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_resource_equals_its_golden_file(site: Site, make: Callable[[Site], bytes]) -> None:
    check(make.__name__.replace("_", "-"), make(site))


def check(name: str, actual: bytes) -> None:
    check_golden(f"http-{name}.json", msgspec.json.format(actual, indent=2).decode() + "\n")
