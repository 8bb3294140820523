"""What all views of a match have in common."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PublicPhase, WaitingFor
from matchpod.service.reading.match_head import Ending, summarize
from matchpod.service.reading.stored_progress import stored_progress
from tests.server_rows import server_row

SETTINGS = GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_dust2", "de_nuke"), players=("76561198000000001",))
ROW = server_row(
    game_id="a game",
    match_phase=PublicPhase.WAITING_FOR_PLAYERS,
    external_match_id="final",
    settings=msgspec.json.encode(SETTINGS),
    ip="10.0.0.1",
    port=27015,
    created_at_ms=1_790_000_000_000,
    running_at_ms=1_790_000_001_000,
    next_at_ms=0,
    error="node 7 is out of memory",
)


def test_errors_for_operators_are_not_in_the_summary() -> None:
    assert summarize(ROW).error is None
    ending = Ending(reason=CancelReason.SERVER_FAILED, ended_at_ms=1_790_000_002_000, error="The server failed.")
    found = summarize(ROW, ending)
    assert (found.reason, found.ended_at, found.error) == (
        CancelReason.SERVER_FAILED,
        "2026-09-21T14:13:22.000Z",
        "The server failed.",
    )


def test_address_is_known_once_the_server_has_been_running() -> None:
    assert (summarize(ROW).ip, summarize(ROW).port) == ("10.0.0.1", 27015)
    starting = summarize(msgspec.structs.replace(ROW, running_at_ms=None))
    assert (starting.ip, starting.port) == (None, None)


def test_phase_is_that_of_the_progress_if_it_is_known() -> None:
    assert summarize(ROW).phase is PublicPhase.WAITING_FOR_PLAYERS
    assert summarize(ROW, progress=MatchProgress(phase=PublicPhase.LIVE)).phase is PublicPhase.LIVE


@pytest.mark.parametrize(
    ("phase", "waiting_for", "until_ms"),
    [
        (ServerPhase.PENDING, WaitingFor.FREE_SERVER, 1_790_000_600_000),
        (ServerPhase.ALLOCATING, None, None),
        (ServerPhase.RUNNING, None, None),
    ],
)
def test_row_says_that_a_match_waits_for_a_free_server(
    phase: ServerPhase, waiting_for: WaitingFor | None, until_ms: int | None
) -> None:
    found = stored_progress(msgspec.structs.replace(ROW, phase=phase, pending_until_ms=1_790_000_600_000))
    assert (found.waiting_for, found.until_ms) == (waiting_for, until_ms)
    assert (found.map_name, found.map_number, len(found.missing)) == ("de_dust2", 1, 1)
