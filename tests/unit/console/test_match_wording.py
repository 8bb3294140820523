"""Words for the state and the end of a match."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Team
from matchpod.console import match_wording
from matchpod.console.match_wording import match_name, standing, tone, waiting_words
from matchpod.console.rendering import fragment
from matchpod.core.effects import CancelReason
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.rulings import RuledWinner, Ruling
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PlayerState, PublicPhase, RosterPlayer, WaitingFor
from matchpod.core.views.wall_groups import WallGroup
from matchpod.service.reading.deathmatch_winners import DeathmatchWinner
from matchpod.service.reading.match_lists import MatchItem, MatchMap
from matchpod.service.reading.wall import EndedMatch

MATCH = MatchItem(
    server_id="srv_1",
    game_id="a game",
    region="sandbox",
    status=ServerStatus.RUNNING,
    phase=PublicPhase.LIVE,
    game_mode="competitive",
    team1="a",
    team2="b",
    maps=(),
    created_at_ms=1_790_000_000_000,
    played_s=None,
    maps_won=(0, 0),
)
ENDED: dict[str, object] = {"phase": PublicPhase.ENDED, "status": ServerStatus.STOPPED, "ended_at_ms": 1}
WON: dict[str, object] = {
    **ENDED,
    "maps": (
        MatchMap(
            id="a map",
            map_number=1,
            map_name="de_nuke",
            played_map_name="de_nuke",
            status=MapStatus.FINISHED,
            team1_score=5,
            team2_score=13,
            winner="team2",
            started_at_ms=1,
            finished_at_ms=2,
            is_needed=True,
        ),
    ),
}


def test_every_value_has_words() -> None:
    assert set(match_wording.STATUSES) == set(ServerStatus)
    assert set(match_wording.PHASES) == set(PublicPhase)
    assert set(match_wording.REASONS) == set(CancelReason)


@pytest.mark.parametrize(
    ("fields", "words", "drawn"),
    [
        ({}, "live", "good"),
        ({"phase": PublicPhase.ALLOCATING, "status": ServerStatus.PENDING}, "waiting for a free server", ""),
        ({"phase": PublicPhase.ENDED, "status": ServerStatus.STOPPED}, "finished", ""),
        (
            {"phase": PublicPhase.ENDED, "status": ServerStatus.STOPPED, "forfeited_to": Team.TEAM2},
            "b won by forfeit",
            "",
        ),
        ({**WON, "maps_won": (0, 2)}, "b won", ""),
        ({**WON, "maps_won": (1, 1)}, "tie", ""),
        ({**ENDED, "deathmatch_winner": DeathmatchWinner(steam_id="1", name="Ann")}, "Ann won", ""),
        ({**ENDED, "deathmatch_winner": DeathmatchWinner(team=Winner.TEAM2)}, "b won", ""),
        ({**ENDED, "deathmatch_winner": DeathmatchWinner(team=Winner.TIE)}, "tie", ""),
        ({**ENDED, "deathmatch_winner": DeathmatchWinner()}, "finished", ""),
        (
            {"phase": PublicPhase.ENDED, "status": ServerStatus.FAILED, "reason": CancelReason.NO_CAPACITY},
            "failed: no free server",
            "bad",
        ),
        (
            {"status": ServerStatus.STOPPED, "reason": CancelReason.INCOMPLETE_ROSTER, "absent_players": ("1",)},
            "canceled: 1 player was missing",
            "",
        ),
        (
            {"status": ServerStatus.STOPPED, "reason": CancelReason.INCOMPLETE_ROSTER, "missing_players": ("1", "2")},
            "canceled: 2 players were missing",
            "",
        ),
    ],
)
def test_standing_says_where_a_match_is(fields: dict[str, object], words: str, drawn: str) -> None:
    match = msgspec.structs.replace(MATCH, **fields)
    assert (standing(match), tone(match)) == (words, drawn)


def progress(phase: PublicPhase, *players: PlayerState, waiting_for: WaitingFor | None = None) -> MatchProgress:
    roster = tuple(RosterPlayer(steam_id=str(number), team=None, state=one) for number, one in enumerate(players))
    return MatchProgress(phase=phase, waiting_for=waiting_for, roster=roster)


HERE, LEFT, NEVER = PlayerState
WAITING, BETWEEN = PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.BETWEEN_MAPS
JOIN = WaitingFor.PLAYERS_TO_JOIN


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (progress(WAITING, HERE, LEFT, NEVER, waiting_for=JOIN), "waiting for 2 of 3 players"),
        (progress(WAITING, waiting_for=JOIN), "waiting for players"),
        (progress(WAITING, HERE, HERE), "players load the map"),
        (progress(WAITING, HERE, HERE, waiting_for=WaitingFor.SIDES), "players choose sides"),
        (progress(BETWEEN, HERE, HERE), "between maps"),
        (progress(BETWEEN, LEFT, LEFT, waiting_for=WaitingFor.PLAYERS_TO_RETURN), "between maps"),
        (progress(BETWEEN, HERE, LEFT, waiting_for=JOIN), "between maps, waiting for 1 of 2 players"),
    ],
)
def test_waiting_words_say_whom_a_match_waits_for(shown: MatchProgress, words: str) -> None:
    assert waiting_words(shown) == words


def test_presence_is_not_known_without_the_log() -> None:
    assert waiting_words(progress(WAITING, NEVER, NEVER), is_followed=False) == "waiting for players"


@pytest.mark.parametrize(("given", "name"), [("final", "final"), (None, "srv_1"), (" \u200b", "srv_1"), (" x", " x")])
def test_match_is_named_by_what_can_be_seen(given: str | None, name: str) -> None:
    assert match_name(msgspec.structs.replace(MATCH, external_match_id=given)) == name


@pytest.mark.parametrize("name", ["ended_line", "ended_card"])
def test_winner_is_named_and_marked_on_the_wall(name: str) -> None:
    fields = {**msgspec.structs.asdict(MATCH), **WON, "maps_won": (0, 1), "team2": "<b>"}
    match = EndedMatch(**fields, is_fast=False, players=(), is_final=True, group=WallGroup.FINISHED)
    shown = fragment("wall_parts.html", name, match).decode()
    assert "<bdi>&lt;b&gt; won</bdi>" in shown
    assert shown.count(' <b class="chip good">won</b>') == 1
    ruling = Ruling(id="ruling_1", winner=RuledWinner.TEAM1, reason=None, by=None, ruled_at="2026-03-14T20:03:20.000Z")
    ruled = fragment("wall_parts.html", name, msgspec.structs.replace(match, ruling=ruling)).decode()
    assert "<bdi>Winner by ruling: a</bdi>" in ruled
    assert ruled.index("won</b>") < ruled.index("&lt;b&gt;</bdi>", ruled.index("won</b>"))
