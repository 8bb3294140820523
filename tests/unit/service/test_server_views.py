"""API views of server rows."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.service.server_views import has_ended, match_view, server_view
from matchpod.storage.servers import ServerRow
from tests.vaults import stored_tokens

ROW = ServerRow(
    id="srv_1",
    game_id="a game",
    org_id="org_1",
    region="eu",
    phase=ServerPhase.ALLOCATING,
    status=ServerStatus.ALLOCATING,
    settings=b"{}",
    callback_auth=b"auth",
    rcon_password=b"sealed",
    server_password=b"sealed",
    **stored_tokens("log", "report"),
    plugin_match_id=1,
    ip="10.0.0.1",
    port=27015,
    created_at_ms=1_790_000_000_000,
    next_at_ms=0,
)


def test_server_that_never_ran_has_no_address() -> None:
    view = server_view(ROW, rcon_password=None)
    assert (view.ip, view.port, view.rcon_password) == (None, None, None)
    assert b'"match"' not in msgspec.json.encode(view)


def test_server_that_ran_keeps_its_address() -> None:
    ended = msgspec.structs.replace(
        ROW, running_at_ms=5, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED, ended_at_ms=9
    )
    view = server_view(ended, rcon_password=None, match=None)
    assert (view.ip, view.port, view.status) == ("10.0.0.1", 27015, ServerStatus.STOPPED)
    assert msgspec.json.encode(view).endswith(b'"match":null}')


def test_live_match_and_result_are_embedded_byte_for_byte() -> None:
    assert b'"match":{ "map" : null }' in msgspec.json.encode(
        server_view(ROW, rcon_password="pw", match=msgspec.Raw(b'{ "map" : null }'))
    )
    assert b'"result":{"adr": 81.20}' in msgspec.json.encode(match_view(ROW, result=b'{"adr": 81.20}'))
    assert b'"result":null' in msgspec.json.encode(match_view(ROW, result=None))


@pytest.mark.parametrize("phase", ServerPhase)
def test_match_has_ended_in_the_phases_ending_and_released(phase: ServerPhase) -> None:
    row = msgspec.structs.replace(ROW, phase=phase)
    assert has_ended(row) is (phase in (ServerPhase.ENDING, ServerPhase.RELEASED))
