"""POST /api/v1/matches: responses, permissions and validation."""

from __future__ import annotations

import gzip

import httpx
import pytest

from matchpod.service.identity.principals import Scope
from matchpod.service.match_log.fold import settings_of
from tests.unit.web import sites
from tests.unit.web.sites import BODY, OTHER_PLAYER, PLAYER, Site, check_error

site = sites.site
PATH = "/api/v1/matches"


def settings(**fields: object) -> dict[str, object]:
    return {"matchType": "competitive", "map": "de_dust2", **fields}


@pytest.mark.parametrize("content", [b"", b"[" * 5000, b'{"a": "\\ud800"}', b"[]"])
def test_body_that_is_not_a_json_object_is_rejected(site: Site, content: bytes) -> None:
    check_error(site.request("POST", PATH, key=site.key, content=content), 400, "INVALID_PARAMS")


def test_content_type_is_ignored(site: Site) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert site.request("POST", PATH, key=site.key, headers=headers, json=BODY).status_code == 201


# --- idempotency keys -------------------------------------------------------------------------------------------------


def test_only_the_response_to_a_repeated_creation_says_so(site: Site) -> None:
    first, again, other = (site.create(None, key) for key in ("k-1", "k-1", "k-2"))
    assert again.json() == first.json()
    shown = [response.headers.get("idempotent-replayed") for response in (first, again, other, site.create())]
    assert shown == [None, "true", None, None]
    assert again.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_invalid_idempotency_key_is_rejected(site: Site, key: str) -> None:
    check_error(site.create(None, key), 400, "INVALID_PARAMS")


def test_two_different_idempotency_keys_are_rejected(site: Site) -> None:
    def create(*keys: str) -> httpx.Response:
        headers = [("Authorization", f"Bearer {site.key}"), *(("Idempotency-Key", key) for key in keys)]

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=site.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://matchpod.test") as client:
                return await client.post(PATH, headers=headers, json=BODY)

        return site.run(exchange())

    body = check_error(create("k-1", "k-2"), 400, "INVALID_PARAMS")
    assert body["message"] == "The request has 2 different Idempotency-Key headers; send one."
    assert create("k-1", "k-1").status_code == 201
    assert site.run(site.db.read("SELECT COUNT(*) FROM servers")) == [(1,)]


# --- limits and order of checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "status", "code"), [(65_536, 400, "INVALID_PARAMS"), (65_537, 413, "PAYLOAD_TOO_LARGE")]
)
def test_body_over_the_limit_is_rejected(site: Site, size: int, status: int, code: str) -> None:
    check_error(site.request("POST", PATH, key=site.key, content=b" " * size), status, code)


@pytest.mark.parametrize("encoding", ["gzip", "x-custom", "identity, gzip"])
def test_encoded_body_is_rejected(site: Site, encoding: str) -> None:
    headers = {"Content-Encoding": encoding}
    response = site.request("POST", PATH, key=site.key, content=gzip.compress(b"{}"), headers=headers)
    body = check_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert body["message"] == f"The request body has the Content-Encoding {encoding}. Send it without one."
    assert response.headers["accept-encoding"] == "identity"


def test_identity_is_no_encoding(site: Site) -> None:
    headers = {"Content-Encoding": "Identity"}
    check_error(site.request("POST", PATH, key=site.key, content=b"{}", headers=headers), 400, "INVALID_PARAMS")


def test_key_and_scope_are_checked_before_the_body(site: Site) -> None:
    check_error(site.request("POST", PATH, content=b"{"), 401, "UNAUTHORIZED")
    reader = site.new_key(scopes=[Scope.SERVERS_READ])
    check_error(site.request("POST", PATH, key=reader, content=b"{"), 403, "FORBIDDEN")


@pytest.mark.parametrize(
    ("given", "sides"),
    [
        ({}, ["team1_ct", "team1_t", "knife"]),
        ({"sides": ["team1_t", "knife", "team1_t"]}, ["team1_t", "knife", "team1_t"]),
    ],
)
def test_sides_of_all_maps_are_stored_with_the_match(site: Site, given: dict[str, object], sides: list[str]) -> None:
    teams = {"team1": {"players": [PLAYER]}, "team2": {"players": [OTHER_PLAYER]}}
    server = site.create(gameSettings=settings(seriesFormat="bo3", teams=teams, **given)).json()
    row = site.row(server["serverId"])
    assert settings_of(row).sides == tuple(sides)
