"""Getting a server and the list of servers, canceling a match, and getting the match by its external id."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure, sentence
from matchpod.core.outcome import Outcome
from matchpod.ports import Statement
from matchpod.service.identity.principals import Role, Scope
from matchpod.storage import outbox, servers
from tests.unit.web import histories, sites
from tests.unit.web.sites import NOW_MS, OTHER_PLAYER, PLAYER, Site, check_error

site = sites.site
SERVERS = "/api/v1/servers"
ENDED_MS, ENDED_AT = NOW_MS + 60_000, "2026-09-21T14:14:20.123Z"
INCOMPLETE = Outcome(
    at_ms=ENDED_MS,
    reason=CancelReason.INCOMPLETE_ROSTER,
    missing_players=(OTHER_PLAYER,),
    connected_players=(PLAYER,),
    absent_players=(OTHER_PLAYER, PLAYER),
)
RESULT = b'{"gameMode":"competitive","format":"bo1"}'


def path(server_id: str) -> str:
    return f"/api/v1/servers/{server_id}"


def by_external_id(external_id: str) -> str:
    # Clients resolve the segments `.` and `..` before sending, unless the dots are encoded.
    return f"/api/v1/matches/{quote(external_id, safe='').replace('.', '%2E')}"


# --- get ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "scopes", "sees"),
    [
        (Role.OWNER, (Scope.SERVERS_READ, Scope.SERVERS_WRITE), True),
        (Role.ADMIN, (Scope.SERVERS_READ,), True),
        (Role.MEMBER, (Scope.SERVERS_READ, Scope.SERVERS_WRITE), False),
    ],
)
def test_creator_and_secrets_in_the_callback_url_are_shown_only_to_owners_and_admins(
    site: Site, role: Role, scopes: tuple[Scope, ...], *, sees: bool
) -> None:
    new = site.run(site.services.access.create_key("ours", role=Role.ADMIN, scopes=list(Scope), name="ladder"))
    creator, key_id = new.text, new.view.id
    url = "https://caller.example/hook?team=7&sig=s3cret#s3cret"
    created = site.create(creator, callbackUrl=url, externalMatchId="cup").json()
    assert created["callbackUrl"] == url
    assert "createdBy" not in created
    reader = site.new_key(role=role, scopes=scopes)
    for _ in range(2):  # the second answer is the one that was kept
        for key, sees_it in ((reader, sees), (site.key, True)):
            server = site.get(path(created["serverId"]), key).json()
            assert server["createdBy"] == (key_id if sees_it else None)
            assert server["callbackUrl"] == (url if sees_it else "https://caller.example/hook?team=***&sig=***")
    (item,) = site.get("/api/v1/servers", reader).json()["items"]
    assert (item["createdBy"], item["createdByName"]) == ((key_id, "ladder") if sees else (None, None))
    assert item["callbackUrl"] == (url if sees else "https://caller.example/hook?team=***&sig=***")
    site.cancel(created["serverId"])
    for address in (path(created["serverId"]), "/api/v1/servers", "/api/v1/callbacks", by_external_id("cup")):
        assert ("s3cret" in site.get(address, reader).text) == (sees and "servers" in address)


def test_callback_url_without_a_query_and_none_at_all_look_the_same_to_members(site: Site) -> None:
    member = site.new_key(role=Role.MEMBER)
    for url in ("https://caller.example/hook", None):
        assert site.get(path(site.new_server(callbackUrl=url)), member).json()["callbackUrl"] == url


def test_creator_of_a_match_of_an_earlier_version_is_unknown(site: Site) -> None:
    server_id = site.new_server()
    site.run(site.db.write([Statement("UPDATE servers SET created_by = NULL")]))
    assert site.get(path(server_id)).json()["createdBy"] is None


def test_server_of_another_organization_is_forbidden(site: Site) -> None:
    server_id = site.new_server()
    check_error(site.get(path(server_id), site.other_key), 403, "FORBIDDEN")
    check_error(site.cancel(server_id, site.other_key), 403, "FORBIDDEN")
    assert site.get(path(server_id)).json()["status"] == "allocating"


# --- in the list ---------------------------------------------------------------------------------------------------


def test_item_has_the_fields_of_its_server_without_secrets(site: Site) -> None:
    server_id = site.new_server(externalMatchId="cup", callbackUrl="https://caller.example/done")
    site.start(server_id)
    (item,) = site.get(SERVERS).json()["items"]
    server = site.get(f"{SERVERS}/{server_id}").json()
    live = {"rconPassword", "match", "deadline", "round", "sides", "roster", "lastHeardAt", "connect", "phase"}
    live.add("pendingAction")
    maps = {name: item[name] for name in ("mapNumber", "seriesScore", "maps")}
    assert {name: value for name, value in item.items() if name not in {"phase", "createdByName", *maps}} == {
        name: value for name, value in server.items() if name not in live
    }
    assert {name: server["match"][name] for name in maps} == maps
    assert "assword" not in str(item)


# --- where it stands ----------------------------------------------------------------------------------------------


GAME = {"matchType": "competitive", "map": "de_dust2", "teams": histories.TEAMS}


@pytest.mark.parametrize(
    ("role", "scopes", "is_shown"),
    [
        (Role.OWNER, [Scope.SERVERS_READ, Scope.SERVERS_WRITE], True),
        (Role.ADMIN, [Scope.SERVERS_READ, Scope.SERVERS_WRITE], True),
        (Role.MEMBER, [Scope.SERVERS_READ, Scope.SERVERS_WRITE], False),
        (Role.OWNER, [Scope.SERVERS_READ], False),
    ],
)
def test_passwords_are_shown_only_to_keys_that_can_create_matches(
    site: Site, role: Role, scopes: list[Scope], is_shown: bool
) -> None:
    server_id = site.new_server(gameSettings={**GAME, "serverPassword": "open sesame"})
    key = site.new_key(role=role, scopes=scopes)
    assert site.get(path(server_id), key).json()["connect"] is None
    site.start(server_id)
    shown = site.get(path(server_id), key)
    expected = 'connect 203.0.113.7:27015; password "open sesame"' if is_shown else None
    assert shown.json()["connect"] == expected
    assert ("sesame" in shown.text) is is_shown
    assert (shown.json()["rconPassword"] is not None) is is_shown
    site.cancel(server_id)
    assert site.get(path(server_id), key).json()["connect"] is None


def test_connect_command_is_shown_even_if_the_console_belongs_to_the_operator(site: Site) -> None:
    server_id = site.new_server()
    site.start(server_id)
    site.run(site.db.write([servers.change(server_id, site.row(server_id).fence, is_password_ours=False)]))
    server = site.get(path(server_id)).json()
    assert (server["rconPassword"], server["connect"]) == (None, "connect 203.0.113.7:27015")


# --- how it ended -------------------------------------------------------------------------------------------------


EXPLANATION = ("reason", "endedAt", "missingPlayers", "connectedPlayers", "absentPlayers", "error")


def explanations(site: Site, server_id: str) -> list[dict[str, object]]:
    """Return how the match ended, from all endpoints that say it; they must agree."""
    series = site.get(f"/api/v1/cs2/servers/{server_id}/series").json()["items"][0]
    listed = [one for one in site.get("/api/v1/cs2/series").json()["items"] if one["serverId"] == server_id]
    views = [
        site.get(path(server_id)).json(),
        site.get(by_external_id("m")).json(),
        next(one for one in site.get(SERVERS).json()["items"] if one["serverId"] == server_id),
        series,
        *listed,
        site.get(f"/api/v1/cs2/series/{series['seriesId']}").json(),
    ]
    return [{name: view[name] for name in EXPLANATION} for view in views]


def test_match_with_an_incomplete_roster_has_the_players_of_its_callback(site: Site) -> None:
    server_id = site.new_server(externalMatchId="m", callbackUrl="https://caller.example/done")
    site.start(server_id)
    site.end(server_id, INCOMPLETE)
    callback = site.run(outbox.callback_of(site.db, server_id))
    assert callback is not None
    sent = msgspec.json.decode(callback.body)
    expected = {
        "reason": sent["reason"],
        "endedAt": sent["timestamp"],
        "missingPlayers": sent["missingPlayers"],
        "connectedPlayers": sent["connectedPlayers"],
        "absentPlayers": sent["absentPlayers"],
        "error": None,
    }
    assert (expected["missingPlayers"], expected["connectedPlayers"]) == ([OTHER_PLAYER], [PLAYER])
    assert expected["absentPlayers"] == [OTHER_PLAYER, PLAYER]
    assert explanations(site, server_id) == [expected] * 6


@pytest.mark.parametrize("failure", Failure)
def test_error_of_a_failed_match_is_a_known_sentence_and_not_the_internal_error(site: Site, failure: Failure) -> None:
    server_id = site.new_server(externalMatchId="m")
    internal = servers.change(server_id, site.row(server_id).fence, error="/srv/secret: 10.0.0.9:27015 refused")
    site.run(site.db.write([internal]))
    site.end(server_id, Outcome(at_ms=ENDED_MS, reason=CancelReason.SERVER_FAILED, failure=failure))
    assert {one["error"] for one in explanations(site, server_id)} == {sentence(CancelReason.SERVER_FAILED, failure)}
    for view in (path(server_id), by_external_id("m"), "/api/v1/cs2/series"):
        assert "secret" not in site.get(view).text
        assert "10.0.0.9" not in site.get(view).text


# --- by external id -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "external_id",
    ["cup-1", "a/b/c", "50%", "%2F", "ü ß", "🎮", "?x=1#y", "..", ".", "a+b", "\\", "x" * 255, "🎮" * 255, "​"],
)
def test_match_is_found_by_any_external_id(site: Site, external_id: str) -> None:
    server_id = site.new_server(externalMatchId=external_id)
    found = site.get(by_external_id(external_id)).json()
    assert (found["externalMatchId"], found["serverId"]) == (external_id, server_id)


def test_match_that_was_not_finished_has_its_status_and_no_result(site: Site) -> None:
    ids = {name: site.new_server(externalMatchId=name) for name in ("allocating", "stopped", "failed")}
    site.cancel(ids["stopped"])
    site.end(ids["failed"], reason=CancelReason.NO_CAPACITY)
    for status in ids:
        found = site.get(by_external_id(status)).json()
        assert (found["status"], found["result"]) == (status, None)


def test_newest_of_several_matches_is_returned(site: Site) -> None:
    site.new_server(externalMatchId="m")
    site.clock.at_ms += 1
    newest = site.new_server(externalMatchId="m")
    assert site.get(by_external_id("m")).json()["serverId"] == newest


def test_external_id_of_another_organization_is_forbidden(site: Site) -> None:
    site.new_server(externalMatchId="m")
    check_error(site.get(by_external_id("m"), site.other_key), 403, "FORBIDDEN")
    check_error(site.get(by_external_id("n"), site.other_key), 404, "NOT_FOUND")


def test_path_with_invalid_utf8_is_not_found(site: Site) -> None:
    check_error(site.get("/api/v1/matches/%ff"), 404, "NOT_FOUND")
