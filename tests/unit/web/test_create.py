"""POST /api/v1/matches: what it answers, to whom, and what it refuses."""

from __future__ import annotations

import pytest

from matchpod.service.principals import Role, Scope
from matchpod.storage import region_flags
from tests.unit.web import sites
from tests.unit.web.sites import BODY, OTHER_PLAYER, PLAYER, Site, away, check_error

site = sites.site
PATH = "/api/v1/matches"


def settings(**fields: object) -> dict[str, object]:
    return {"matchType": "competitive", "map": "de_dust2", **fields}


def test_created_server_is_allocating_without_address_and_with_password(site: Site) -> None:
    answer = site.create(externalMatchId="cup/1", callbackUrl="https://caller.example/done")
    server = answer.json()
    assert answer.status_code == 201
    assert (server["status"], server["ip"], server["port"]) == ("allocating", None, None)
    assert len(server["rconPassword"]) == 32
    assert (server["externalMatchId"], server["callbackUrl"]) == ("cup/1", "https://caller.example/done")
    assert "match" not in server
    assert answer.headers["cache-control"] == "no-store"


def test_optional_fields_are_null_when_they_were_not_given(site: Site) -> None:
    server = site.create().json()
    assert (server["externalMatchId"], server["callbackUrl"]) == (None, None)


def test_secrets_of_the_request_are_never_returned(site: Site) -> None:
    answer = site.create(callbackAuthToken="Bearer s3cret", gameSettings=settings(serverPassword="hunter2"))
    assert answer.status_code == 201
    shown = answer.text + site.get(f"/api/v1/servers/{answer.json()['serverId']}").text
    assert "s3cret" not in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
def test_owner_and_admin_may_create(site: Site, role: Role) -> None:
    assert site.create(site.new_key(role=role)).status_code == 201


def test_member_may_not_create_even_with_the_scope(site: Site) -> None:
    body = check_error(site.create(site.new_key(role=Role.MEMBER)), 403, "FORBIDDEN")
    assert "owner or admin" in str(body["message"])


def test_key_without_the_scope_may_not_create(site: Site) -> None:
    body = check_error(site.create(site.new_key(scopes=[Scope.SERVERS_READ])), 403, "FORBIDDEN")
    assert "servers:write" in str(body["message"])


def test_all_faults_of_a_body_are_listed(site: Site) -> None:
    wrong = {"region": "mars", "gameType": "cs2", "gameSettings": {"matchType": "casual", "map": "x", "maxRounds": 0}}
    body = check_error(site.ask("POST", PATH, key=site.key, json={**wrong, "regoin": 1}), 400, "INVALID_PARAMS")
    details = body["details"]
    assert isinstance(details, list)
    assert {fault["path"] for fault in details} == {"region", "regoin", "gameSettings.maxRounds"}
    assert "did you mean region" in next(fault["message"] for fault in details if fault["path"] == "regoin")


@pytest.mark.parametrize(
    "wrong",
    [
        settings(matchType="deathmatch", players=[PLAYER], teams={"team1": {}, "team2": {}}),
        settings(players=[PLAYER]),
        settings(matchType="casual", teams={"team1": {}, "team2": {}}),
        settings(matchType="deathmatch", seriesFormat="bo3"),
        settings(dmSubMode="ffa"),
        settings(dmRoundMinutes=5),
        settings(teams={"team1": {}}),
        settings(teams={"team1": {"players": [PLAYER]}, "team2": {"players": [PLAYER]}}),
        settings(teams={"team1": {"players": [PLAYER, PLAYER]}, "team2": {}}),
        settings(teams={"team1": {"name": "a;quit"}, "team2": {}}),
        settings(matchType="deathmatch", dmRoundMinutes=0.5),
        settings(maxRounds=201),
        settings(freezeTime=-1),
        settings(freezeTime=61),
        settings(maxRounds=1.5),
        settings(map="../de_dust2"),
        settings(maps="de_nuke"),
        settings(serverPassword='a"b'),
        settings(customCvars="sv_cheats 1"),
        {"matchType": "competitive"},
        {"map": "de_dust2"},
        {"matchType": "football", "map": "de_dust2"},
        None,
        [],
    ],
)
def test_settings_that_break_a_rule_are_refused(site: Site, wrong: object) -> None:
    check_error(site.create(gameSettings=wrong), 400, "INVALID_PARAMS")


@pytest.mark.parametrize(
    "right",
    [
        settings(teams={"team1": {"players": [PLAYER]}, "team2": {"name": "B", "players": [OTHER_PLAYER]}}),
        settings(matchType="wingman", seriesFormat="bo3", maps=["de_nuke"]),
        settings(matchType="deathmatch", players=[PLAYER], dmSubMode="team", dmRoundMinutes=1.5),
        settings(matchType="custom", map="workshop/123", maxRounds=30.0, freezeTime=0),
        settings(customCvars="// ours\nmp_friendlyfire 1\nsim_seed 7"),
        settings(teams=None, players=None, maxRounds=None),
    ],
)
def test_settings_that_keep_all_rules_are_taken(site: Site, right: object) -> None:
    assert site.create(gameSettings=right).status_code == 201


@pytest.mark.parametrize(
    "fields",
    [
        {"gameType": "csgo"},
        {"callbackUrl": "ftp://caller.example"},
        {"callbackUrl": "/done"},
        {"callbackAuthToken": "a\r\nb"},
        {"externalMatchId": ""},
        {"externalMatchId": "a\nb"},
        {"externalMatchId": "x" * 256},
        {"region": None},
        {"extra": 1},
    ],
)
def test_fields_that_break_a_rule_are_refused(site: Site, fields: dict[str, object]) -> None:
    check_error(site.create(**fields), 400, "INVALID_PARAMS")


def test_region_that_takes_no_matches_is_refused(site: Site) -> None:
    site.run(region_flags.set_active(site.db, "sandbox", False))
    body = check_error(site.create(), 400, "INVALID_PARAMS")
    assert "accepts no new servers" in str(body["message"])


@pytest.mark.parametrize("content", [b"", b"{", b"nonsense", b"\xff\xfe", b"[" * 5000, b'{"a": "\\ud800"}'])
def test_body_that_is_not_json_is_refused(site: Site, content: bytes) -> None:
    check_error(site.ask("POST", PATH, key=site.key, content=content), 400, "INVALID_PARAMS")


@pytest.mark.parametrize("content", [b"[]", b"1", b"null", b'"text"'])
def test_body_that_is_no_object_is_refused(site: Site, content: bytes) -> None:
    check_error(site.ask("POST", PATH, key=site.key, content=content), 400, "INVALID_PARAMS")


def test_content_type_is_not_insisted_on(site: Site) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert site.ask("POST", PATH, key=site.key, headers=headers, json=BODY).status_code == 201


# --- the same request twice -------------------------------------------------------------------------------------------


def test_same_idempotency_key_and_body_answer_the_same_server(site: Site) -> None:
    first, second = (site.create(None, "k-1") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()


def test_same_idempotency_key_with_another_body_is_a_conflict(site: Site) -> None:
    site.create(None, "k-1")
    check_error(site.create(None, "k-1", externalMatchId="other"), 409, "IDEMPOTENCY_CONFLICT")


def test_idempotency_key_of_another_organization_is_another_key(site: Site) -> None:
    first = site.create(None, "k-1").json()
    second = site.create(site.stranger, "k-1").json()
    assert first["serverId"] != second["serverId"]


def test_idempotency_key_can_be_used_anew_after_a_day(site: Site) -> None:
    first = site.create(None, "k-1").json()
    site.clock.at_ms += 24 * 60 * 60 * 1000 + 1
    assert site.create(None, "k-1").json()["serverId"] != first["serverId"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_idempotency_key_must_be_visible_and_short(site: Site, key: str) -> None:
    check_error(site.create(None, key), 400, "INVALID_PARAMS")


# --- how much, and when -----------------------------------------------------------------------------------------------


def test_body_over_the_limit_is_refused(site: Site) -> None:
    check_error(site.ask("POST", PATH, key=site.key, content=b" " * 65_537), 413, "PAYLOAD_TOO_LARGE")


def test_body_of_exactly_the_limit_is_read(site: Site) -> None:
    check_error(site.ask("POST", PATH, key=site.key, content=b" " * 65_536), 400, "INVALID_PARAMS")


def test_database_that_is_away_is_told_with_a_time_to_try_again(site: Site) -> None:
    site.get("/api/v1/servers/srv_0")  # the key is known from now on
    site.db.trouble = away()
    answer = site.create()
    check_error(answer, 503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) >= 1


def test_nothing_is_checked_before_the_key(site: Site) -> None:
    check_error(site.ask("POST", PATH, content=b"{"), 401, "UNAUTHORIZED")


def test_scope_is_checked_before_the_body(site: Site) -> None:
    reader = site.new_key(scopes=[Scope.SERVERS_READ])
    check_error(site.ask("POST", PATH, key=reader, content=b"{"), 403, "FORBIDDEN")
