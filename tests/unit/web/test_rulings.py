"""Rulings over HTTP: who may make them and when, and everything that shows them."""

from __future__ import annotations

from typing import Any

import httpx

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.storage import organization_events, outbox, rulings
from tests.unit.web import sites
from tests.unit.web.sites import NOW_MS, OTHER_PLAYER, PLAYER, Site, check_error

site = sites.site
UNKNOWN = "srv_00000000000000000000000000"
DAY_MS = 86_400_000
RESULT = b'{"gameMode":"competitive","format":"bo1","winner":"team1"}'
NO_SHOW = Outcome(
    at_ms=NOW_MS,
    reason=CancelReason.INCOMPLETE_ROSTER,
    missing_players=(OTHER_PLAYER,),
    connected_players=(PLAYER,),
    absent_players=(OTHER_PLAYER,),
)


def rule(site: Site, server_id: str, key: str = "", /, repeat: str = "", **body: object) -> httpx.Response:
    headers = {"Idempotency-Key": repeat} if repeat else {}
    path = f"/api/v1/servers/{server_id}/ruling"
    return site.request("POST", path, key=key or site.key, headers=headers, json=body or {"winner": "team1"})


def withdraw(site: Site, server_id: str, key: str = "") -> httpx.Response:
    return site.request("DELETE", f"/api/v1/servers/{server_id}/ruling", key=key or site.key)


def ended(site: Site, outcome: Outcome = NO_SHOW, **fields: object) -> str:
    server_id = site.new_server(callbackUrl="https://caller.example/", externalMatchId="cup-1", **fields)
    site.end(server_id, outcome)
    return server_id


def read(site: Site, path: str) -> Any:
    response = site.get(f"/api/v1/{path}")
    assert response.status_code == 200, response.text
    return response.json()


def shown(site: Site, server_id: str) -> list[Any]:
    """The ruling, wherever a caller can see it."""
    one_map = read(site, f"cs2/matches?serverId={server_id}")["items"][0]
    series = read(site, f"cs2/series?serverId={server_id}")["items"][0]
    return [
        read(site, f"servers/{server_id}")["ruling"],
        read(site, "servers")["items"][0]["ruling"],
        read(site, "matches/cup-1")["ruling"],
        series["ruling"],
        read(site, f"cs2/series/{series['id']}")["ruling"],
        one_map["ruling"],
        read(site, f"cs2/matches/{one_map['id']}")["ruling"],
        read(site, f"cs2/matches/{one_map['id']}/leaderboard")["ruling"],
    ]


def test_no_show_that_canceled_itself_is_ruled_a_win_and_shown_everywhere(site: Site) -> None:
    server_id = ended(site)
    assert shown(site, server_id) == [None] * 8
    before = read(site, f"servers/{server_id}")
    response = rule(site, server_id, winner="team2", reason="Reds did not come", by="Eva")
    assert response.status_code == 201
    ruling = response.json()
    assert ruling == {
        "id": ruling["id"],
        "winner": "team2",
        "reason": "Reds did not come",
        "by": "Eva",
        "ruledAt": "2026-09-21T14:13:20.123Z",
    }
    assert shown(site, server_id) == [ruling] * 8
    assert read(site, f"servers/{server_id}") == {**before, "ruling": ruling}
    assert withdraw(site, server_id).json() == {"ok": True}
    assert shown(site, server_id) == [None] * 8


def test_ruling_changes_neither_the_result_nor_its_callback(site: Site) -> None:
    server_id = site.new_server(callbackUrl="https://caller.example/", externalMatchId="cup-1")
    site.end(server_id, result=RESULT)
    before = read(site, "matches/cup-1")
    callbacks = site.run(outbox.list_callbacks(site.db, org_id=None, state=None, limit=9))
    ruling = rule(site, server_id, winner="none").json()
    assert read(site, "matches/cup-1") == {**before, "ruling": ruling}
    assert withdraw(site, server_id).status_code == 200
    assert read(site, "matches/cup-1") == before
    assert site.run(outbox.list_callbacks(site.db, org_id=None, state=None, limit=9)) == callbacks
    assert len(callbacks) == 1


def test_last_ruling_counts_and_an_earlier_one_does_not_come_back(site: Site) -> None:
    server_id = ended(site)
    rule(site, server_id, winner="team1")
    second = rule(site, server_id, winner="none").json()
    assert read(site, f"servers/{server_id}")["ruling"] == second
    assert withdraw(site, server_id).status_code == 200
    assert read(site, f"servers/{server_id}")["ruling"] is None
    check_error(withdraw(site, server_id), 404, "NOT_FOUND")


def test_match_in_progress_cannot_be_ruled(site: Site) -> None:
    server_id = site.new_server()
    check_error(rule(site, server_id), 409, "MATCH_NOT_ENDED")
    check_error(withdraw(site, server_id), 404, "NOT_FOUND")
    site.start(server_id)
    check_error(rule(site, server_id), 409, "MATCH_NOT_ENDED")


def test_rulings_are_final_after_thirty_days(site: Site) -> None:
    server_id = ended(site)
    site.clock.at_ms += 30 * DAY_MS
    assert rule(site, server_id).status_code == 201
    site.clock.at_ms += 1
    check_error(rule(site, server_id), 409, "RULING_TOO_LATE")
    check_error(withdraw(site, server_id), 409, "RULING_TOO_LATE")
    assert read(site, f"servers/{server_id}")["ruling"]["winner"] == "team1"


def test_matches_of_others_and_unknown_ones_cannot_be_ruled(site: Site) -> None:
    server_id = ended(site)
    check_error(rule(site, server_id, site.other_key), 403, "FORBIDDEN")
    check_error(withdraw(site, server_id, site.other_key), 403, "FORBIDDEN")
    check_error(rule(site, UNKNOWN), 404, "NOT_FOUND")
    check_error(withdraw(site, UNKNOWN), 404, "NOT_FOUND")
    check_error(rule(site, UNKNOWN, winner="tie"), 400, "INVALID_PARAMS")


def test_deathmatch_can_only_be_void(site: Site) -> None:
    server_id = ended(site, gameSettings={"matchType": "deathmatch", "map": "de_dust2"})
    body = check_error(rule(site, server_id, winner="team1"), 400, "INVALID_PARAMS")
    assert body["details"] == [{"path": "winner", "message": "must be none: a deathmatch has no teams"}]
    assert rule(site, server_id, winner="none").status_code == 201


def test_repeated_request_makes_one_ruling(site: Site) -> None:
    server_id, other = ended(site), ended(site)
    first = rule(site, server_id, repeat="k1", winner="team1")
    site.clock.at_ms += 1
    assert rule(site, server_id, repeat="k1", winner="team1").json() == first.json()
    check_error(rule(site, server_id, repeat="k1", winner="team2"), 409, "IDEMPOTENCY_CONFLICT")
    check_error(rule(site, server_id, repeat="a b", winner="team2"), 400, "INVALID_PARAMS")
    assert rule(site, other, repeat="k1", winner="team2").json()["winner"] == "team2"
    assert site.create(None, "k1").status_code == 201
    assert [event for event in events(site) if event.startswith(b'{"type":"ruling"')].__len__() == 2
    site.clock.at_ms += DAY_MS
    assert rule(site, server_id, repeat="k1", winner="team2").json()["winner"] == "team2"


def events(site: Site) -> list[bytes]:
    stored = site.run(organization_events.read_after(site.db, site.row(ended(site)).org_id, 0, limit=100))
    return [line for _, line in stored]


def test_rulings_are_in_the_stream_and_in_the_audit_log(site: Site) -> None:
    server_id = ended(site)
    ruling = rule(site, server_id, winner="team2", reason="no-show", by="Eva")
    site.clock.at_ms += 1
    withdraw(site, server_id)
    head = f'{{"type":"ruling","serverId":"{server_id}","externalMatchId":"cup-1","at":'
    assert [event.decode() for event in events(site) if b'"ruling"' in event] == [
        f'{head}"2026-09-21T14:13:20.123Z","simulated":true,"ruling":{ruling.text}}}',
        f'{head}"2026-09-21T14:13:20.124Z","simulated":true,"ruling":null}}',
    ]
    acts = [one for one in read(site, "audit")["items"] if one["target"] == server_id][:2]
    assert [(one["action"], one["detail"]) for one in reversed(acts)] == [
        ("match_ruled", "team2 wins; no-show; decided by Eva"),
        ("ruling_withdrawn", "team2 wins; no-show; decided by Eva"),
    ]


def test_caches_of_an_ended_match_notice_a_ruling(site: Site) -> None:
    server_id = site.new_server(externalMatchId="cup-1")
    site.end(server_id, result=RESULT)
    path = "/api/v1/matches/cup-1"
    tag = site.get(path).headers["etag"]
    assert site.request("GET", path, key=site.key, headers={"If-None-Match": tag}).status_code == 304
    rule(site, server_id)
    assert site.request("GET", path, key=site.key, headers={"If-None-Match": tag}).status_code == 200


def test_rulings_of_an_organization_are_limited_per_minute(site: Site) -> None:
    server_id = ended(site)
    statuses = [rule(site, server_id).status_code for _ in range(121)]
    assert statuses == [201] * 120 + [429]
    assert int(rule(site, server_id).headers["retry-after"]) >= 1
    assert len(site.run(rulings.of_server(site.db, server_id))) == rulings.MAX_LISTED
    site.clock.at_ms += 60_000
    assert withdraw(site, server_id).status_code == 200
