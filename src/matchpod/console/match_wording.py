"""Describe in words the state of a match, or how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from matchpod.core.demos import MissingReason
from matchpod.core.effects import CancelReason
from matchpod.core.model import Winner
from matchpod.core.requests.match_list_query import ListedOutcome
from matchpod.core.requests.text_rules import has_visible
from matchpod.core.rulings import RuledWinner, Ruling
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.attention import Attention
from matchpod.core.views.match_progress import MatchProgress
from matchpod.core.views.progress import PublicPhase, WaitingFor
from matchpod.service.reading.callbacks import CallbackItem
from matchpod.service.reading.match_details import MatchDetail
from matchpod.service.reading.match_head import MatchHead
from matchpod.service.reading.match_lists import MatchItem

STATUSES: Final[Mapping[ServerStatus, str]] = {
    ServerStatus.ALLOCATING: "getting a server",
    ServerStatus.PENDING: "waiting for a free server",
    ServerStatus.RUNNING: "running",
    ServerStatus.STOPPED: "finished or canceled",
    ServerStatus.FAILED: "failed",
}
OUTCOMES: Final[Mapping[ListedOutcome, str]] = {
    ListedOutcome.FINISHED: "finished",
    ListedOutcome.CANCELED: "canceled",
    ListedOutcome.FAILED: "failed",
}
PHASES: Final[Mapping[PublicPhase, str]] = {
    PublicPhase.ALLOCATING: "getting a server",
    PublicPhase.WAITING_FOR_PLAYERS: "waiting for players",
    PublicPhase.STARTING: "starting",
    PublicPhase.LIVE: "live",
    PublicPhase.PAUSED: "paused",
    PublicPhase.BETWEEN_MAPS: "between maps",
    PublicPhase.ENDED: "ended",
}
REASONS: Final[Mapping[CancelReason, str]] = {
    CancelReason.CANCELED_BY_USER: "canceled by your organization",
    CancelReason.CANCELED_BY_OPERATOR: "canceled by the operator",
    CancelReason.NO_PLAYERS_JOINED: "canceled: no player joined",
    CancelReason.INCOMPLETE_ROSTER: "canceled: players were missing",
    CancelReason.ALL_PLAYERS_LEFT: "canceled: all players left",
    CancelReason.NO_CAPACITY: "failed: no free server",
    CancelReason.SERVER_FAILED: "failed: the server did not work",
    CancelReason.SERVER_LOST: "failed: the server was lost",
    CancelReason.LOG_QUOTA_EXCEEDED: "failed: too much log data",
    CancelReason.IDLE_TIMEOUT: "canceled: nothing happened for too long",
    CancelReason.MAX_DURATION_EXCEEDED: "canceled: it took too long",
}

_ALL_HERE: Final[Mapping[WaitingFor | None, str]] = {
    WaitingFor.SIDES: "players choose sides",
    WaitingFor.START: "players get ready",
}


def match_name(match: MatchHead | CallbackItem) -> str:
    """Return the displayed name of a match: its external id or, if that has no visible character, its server id."""
    given = match.external_match_id
    return given if given is not None and has_visible(given) else match.server_id


def waiting_words(progress: MatchProgress, is_followed: bool = True) -> str:
    """Return what a match waits for, before play and between maps. If not `is_followed`, only its row is known."""
    is_between = progress.phase is PublicPhase.BETWEEN_MAPS
    if is_between and progress.waiting_for is not WaitingFor.PLAYERS_TO_JOIN:
        return PHASES[progress.phase]
    if not is_followed or not progress.roster:
        return PHASES[PublicPhase.WAITING_FOR_PLAYERS]
    if not progress.missing:
        return _ALL_HERE.get(progress.waiting_for, "players load the map")
    words = f"waiting for {len(progress.missing)} of {len(progress.roster)} players"
    return f"{PHASES[progress.phase]}, {words}" if is_between else words


def announced(attention: Sequence[Attention]) -> str:
    """Return the reasons for attention for screen readers, without the words that introduce a running counter."""
    texts = [reason.text.removesuffix(",").removesuffix(" for").removesuffix(", time left") for reason in attention]
    return "; ".join(texts)


def standing(match: MatchItem) -> str:
    """Return the state of a match, or how it ended, in a few words."""
    if match.reason is CancelReason.INCOMPLETE_ROSTER and match.missing_count:
        players = "player was" if match.missing_count == 1 else "players were"
        return f"canceled: {match.missing_count} {players} missing"
    if match.reason is not None:
        return REASONS[match.reason]
    if match.phase is PublicPhase.ENDED:
        return finished_words(match, match.team1 or "Team 1", match.team2 or "Team 2")
    return STATUSES[match.status] if match.status is ServerStatus.PENDING else PHASES[match.phase]


def finished_words(match: MatchItem | MatchDetail, team1: str, team2: str) -> str:
    """Return, for a match that was not canceled, how it ended."""
    match match.winner:
        case None:
            player = None if match.deathmatch_winner is None else match.deathmatch_winner.name
            return "finished" if player is None else f"{player} won"
        case Winner.TIE:
            return "tie"
        case winner:
            won = "won by forfeit" if match.forfeited_to else "won"
            return f"{team1 if winner is Winner.TEAM1 else team2} {won}"


def tone(match: MatchItem) -> str:
    """Return the style for the words about a match: `good`, `bad`, or empty for neither."""
    if match.status is ServerStatus.FAILED:
        return "bad"
    return "good" if match.status is ServerStatus.RUNNING else ""


def ruled(ruling: Ruling, team1: str, team2: str) -> str:
    """Return a ruling in a few words."""
    match ruling.winner:
        case RuledWinner.NONE:
            return "Void by ruling"
        case RuledWinner.TEAM1:
            return f"Winner by ruling: {team1}"
        case RuledWinner.TEAM2:
            return f"Winner by ruling: {team2}"
        case _:
            assert_never(ruling.winner)


DEMO_REASONS: Final[Mapping[MissingReason, str]] = {
    MissingReason.NOT_UPLOADED: "its server did not upload it in time",
    MissingReason.CANCELED: "the match was canceled",
    MissingReason.SERVER_LOST: "its server was lost",
    MissingReason.CUT: "the upload ended too early",
    MissingReason.INTERRUPTED: "the service stopped during the upload",
    MissingReason.TOO_SLOW: "the upload took too long",
    MissingReason.TOO_LARGE: "larger than the limit for a demo",
    MissingReason.OVER_QUOTA: "no space was left for the organization",
    MissingReason.DISK_FULL: "the storage was full",
    MissingReason.STORAGE_FAILED: "the storage failed",
    MissingReason.DELETED: "deleted after its retention",
}
"""Reasons why a demo is missing, in words."""
