"""Actions on a match over HTTP: who may ask for them, what is possible, and a request that is repeated."""

from __future__ import annotations

import httpx

from tests.unit.web import sites
from tests.unit.web.sites import PLAYER, Site, check_error

site = sites.site
DEATHMATCH = {"say", "kick", "addPlayer", "removePlayer", "replacePlayer", "extendJoin"}
"""What can be asked for before play without the match plugin."""


def running(site: Site, **settings: object) -> str:
    server_id = site.new_server(gameSettings={"matchType": "competitive", "map": "de_dust2", **settings})
    site.start(server_id)
    return server_id


def ask(site: Site, server_id: str, key: str = "", /, repeat: str = "", **body: object) -> httpx.Response:
    headers = {"Idempotency-Key": repeat} if repeat else {}
    path = f"/api/v1/servers/{server_id}/actions"
    return site.request("POST", path, key=key or site.key, headers=headers, json={"type": "say", **body})


def test_same_key_asks_once(site: Site) -> None:
    server_id = running(site)
    first, again = (ask(site, server_id, repeat="k1", text="once") for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert (again.json()["actionId"], again.headers["idempotent-replayed"]) == (first.json()["actionId"], "true")
    check_error(ask(site, server_id, repeat="k1", text="twice"), 409, "IDEMPOTENCY_CONFLICT")
    assert len(site.get(f"/api/v1/servers/{server_id}/actions").json()["items"]) == 1


def test_other_organization_may_neither_act_nor_read(site: Site) -> None:
    server_id = running(site)
    action_id = ask(site, server_id, text="ours").json()["actionId"]
    check_error(ask(site, server_id, site.other_key, text="theirs"), 403, "FORBIDDEN")
    for path in ("actions", f"actions/{action_id}"):
        check_error(site.get(f"/api/v1/servers/{server_id}/{path}", site.other_key), 403, "FORBIDDEN")


def test_deathmatch_allows_what_needs_no_plugin(site: Site) -> None:
    server_id = running(site, matchType="deathmatch", players=[PLAYER], dmRoundMinutes=10)
    shown = site.get(f"/api/v1/servers/{server_id}/actions").json()["possible"]
    assert {one["type"] for one in shown if one["possible"]} == DEATHMATCH
    check_error(ask(site, server_id, type="restore", round=1), 409, "ACTION_NOT_POSSIBLE")


def test_unknown_action_or_field_is_rejected(site: Site) -> None:
    server_id = running(site)
    assert ask(site, server_id, type="dance").status_code == 400
    assert ask(site, server_id, type="kick", steamid="1").status_code == 400
