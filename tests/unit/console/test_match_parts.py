"""The parts of the page of a match."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from cs2_protocol.game import Side, Team
from matchpod.console.match_board import live_board
from matchpod.console.match_view import PARTS, connect_line
from matchpod.console.match_wording import announced
from matchpod.console.rendering import fragment
from matchpod.core.model import MatchType
from matchpod.core.views.attention import Situation, attention_of
from matchpod.core.views.progress import PublicPhase, RosterPlayer
from matchpod.service.reading.match_head import created_view
from tests.server_rows import server_row


def test_roster_says_which_side_each_team_plays_on() -> None:
    roster = [RosterPlayer(steam_id=f"id of {team}", team=team) for team in Team]
    table = live_board(roster, {}, MatchType.WINGMAN, ("Owls", "Foxes"), side=Side.T, is_known=True)
    shown = fragment(PARTS, "roster", table, "srv", ()).decode()
    heads = re.findall(r'<span class="side (\w+)">(\w+)</span> <bdi class="name">(\w+)</bdi></span></th>', shown)
    assert heads == [("t", "T", "Owls"), ("ct", "CT", "Foxes")]
    players = re.sub(r"<tr class=\"team-row\">.*?</tr>", "", shown)
    assert "mark team1" not in players  # a player has no colour of a team


def test_attention_is_announced_without_the_counters_that_run() -> None:
    now = Situation(
        now_ms=900_000,
        phase=PublicPhase.PAUSED,
        silent_ms=1,
        paused_ms=1,
        called_ms=899_000,
        call="Ann: <b>!admin",
        detections=2,
    )
    reasons = attention_of(now)
    shown = fragment(PARTS, "reasons", reasons)
    assert b'data-since="1"' in shown
    assert b"<q><bdi>Ann: &lt;b&gt;!admin</bdi></q> a player asked for an admin" in shown
    text = announced(reasons)
    assert text == "nothing heard; a player asked for an admin; paused; 2 anti-cheat leads"
    assert (
        fragment(PARTS, "announced", text).decode() == f'<p id="announced" class="sr" aria-live="assertive">{text}</p>'
    )
    missing = Situation(now_ms=0, phase=PublicPhase.WAITING_FOR_PLAYERS, missing=1, join_until_ms=1_000)
    assert announced(attention_of(missing)) == "1 player missing"


@pytest.mark.parametrize(
    ("connect", "ip", "shown"),
    [
        ("connect 192.0.2.1:27015; password x", "192.0.2.1", "connect 192.0.2.1:27015; password x"),
        (None, "192.0.2.1", "connect 192.0.2.1:27015"),
        (None, "2001:db8::1", "connect [2001:db8::1]:27015"),
        (None, None, None),
    ],
)
def test_connect_line_is_what_the_api_gives(connect: str | None, ip: str | None, shown: str | None) -> None:
    row = server_row(ip=ip, port=27015, running_at_ms=2)
    assert connect_line(replace(created_view(row, rcon_password=None), connect=connect)) == shown
