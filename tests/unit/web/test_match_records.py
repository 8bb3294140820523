"""The result of a match, and the log of its server, by the id of the server."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error
from tests.vaults import tokens_of

site = sites.site
RESULT = b'{"gameMode":"competitive",  "format":"bo1"}'
LINES = b'L 09/21/2026 - 14:13:20.123 - World triggered "Round_Start"\nL 09/21/2026 - \xff\x00 \xc3\xbc\n'


def result_of(server_id: str) -> str:
    return f"/api/v1/servers/{server_id}/result"


def log_of(server_id: str) -> str:
    return f"/api/v1/servers/{server_id}/log"


def post_log(site: Site, server_id: str, lines: bytes) -> None:
    answer = site.request("POST", f"/ingest/logs/{tokens_of(site.row(server_id)).log}", content=lines)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("external_id", [None, "cup"])
def test_result_is_that_of_the_callback_byte_for_byte(site: Site, external_id: str | None) -> None:
    server_id = site.new_server(externalMatchId=external_id)
    site.end(server_id, result=RESULT)
    answer = site.get(result_of(server_id))
    assert (answer.status_code, answer.content) == (200, RESULT)
    again = site.request("GET", result_of(server_id), key=site.key, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_match_in_progress_has_no_result_yet(site: Site) -> None:
    server_id = site.new_server()
    for _ in range(2):
        error = check_error(site.get(result_of(server_id)), 409, "MATCH_NOT_ENDED")
        assert error["message"] == "The match has no result yet: it has not ended. Retry after its callback."
        site.start(server_id)


def test_canceled_match_has_no_result(site: Site) -> None:
    server_id = site.new_server()
    site.end(server_id, reason=CancelReason.NO_PLAYERS_JOINED)
    error = check_error(site.get(result_of(server_id)), 404, "NOT_FOUND")
    assert error["message"] == "The match has no result: it was canceled (no_players_joined)."


def test_log_is_what_the_server_posted_until_now(site: Site) -> None:
    server_id = site.new_server()
    assert (site.get(log_of(server_id)).status_code, site.get(log_of(server_id)).content) == (200, b"")
    site.start(server_id)
    post_log(site, server_id, LINES)
    post_log(site, server_id, b"L the second post\n")
    for _ in range(2):
        answer = site.get(log_of(server_id))
        assert answer.content == LINES + b"L the second post\n"
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-disposition"] == f'attachment; filename="{server_id}.log"'
        assert answer.headers["cache-control"] == "no-store"
        site.cancel(server_id)


@pytest.mark.parametrize("read", [result_of, log_of])
@pytest.mark.parametrize("server_id", ["srv_00000000000000000000000000", "x", "%00", "%ff"])
def test_unknown_server_has_no_records(site: Site, read: object, server_id: str) -> None:
    assert callable(read)
    check_error(site.get(read(server_id)), 404, "NOT_FOUND")


def test_records_of_another_organization_are_forbidden(site: Site) -> None:
    server_id = site.new_server()
    site.end(server_id, result=RESULT)
    for path in (result_of(server_id), log_of(server_id)):
        check_error(site.get(path, site.other_key), 403, "FORBIDDEN")
