"""Build the API views of a server and its match from a row; decrypted secrets are passed in."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cs2_protocol.console_commands import quoted
from matchpod.core.effects import CancelReason
from matchpod.core.model import GAME_TYPE
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.match_progress import LiveState
from matchpod.core.views.progress import PlayerState, PublicPhase
from matchpod.core.views.result_shapes import IsoTime
from matchpod.service.reading.endings import (
    IN_PROGRESS,
    AbsentPlayers,
    ConnectedPlayers,
    EndedAt,
    Ending,
    ErrorSentence,
    LogComplete,
    MissingPlayers,
    Reason,
)
from matchpod.service.reading.match_head import has_ended, summarize
from matchpod.service.reading.stored_progress import listed_players, stored_state
from matchpod.service.row_views import view_of
from matchpod.storage.servers import ServerSummary

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")

ServerId = Annotated[str, Meta(description="The id of the server, for get and cancel.")]
RegionCode = Annotated[str, Meta(description="The code of the region.")]
PublicStatus = Annotated[
    ServerStatus, Meta(description="Players may connect while it is `running`; `stopped` and `failed` are final.")
]
AsGiven = Annotated[str | None, Meta(description="As given at creation, or null.")]
CreatedBy = Annotated[
    str | None,
    Meta(
        description="Who created the match: the id of a key (`key_…`), or of a session of the console (`ses_…`) that "
        "was begun with a link. Null for keys of the role `member`, and for matches of earlier versions."
    ),
]
CallbackUrl = Annotated[
    str | None,
    Meta(
        description="As given at creation, or null. For keys of the role `member`, all values of its query are hidden "
        "as `***`."
    ),
]


Phase = Annotated[
    PublicPhase,
    Meta(
        description="Where the match stands. `allocating` and `ended` follow from the status; the others are `running`."
    ),
]

StoredPhase = Annotated[
    PublicPhase, Meta(description="Where the match stands. Follows a running match within seconds.")
]


class ServerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server; `match` and the fields after it are omitted from the response to a creation."""

    server_id: ServerId
    game_id: Annotated[str, Meta(description="The UUID of this session; the `sessionId` of callbacks.")]
    region: RegionCode
    status: PublicStatus
    phase: Phase
    ip: Annotated[str | None, Meta(description="The address players connect to; null until the server is running.")]
    port: Annotated[int | None, Meta(description="The game port; null until the server is running.")]
    callback_url: CallbackUrl
    external_match_id: AsGiven
    game_type: Annotated[str, Meta(description="Always `cs2`.")]
    created_at: IsoTime
    rcon_password: Annotated[
        str | None,
        Meta(
            description="The RCON password; null for keys that cannot create matches, for servers whose password "
            "belongs to their operator, and after the server has ended."
        ),
    ]
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    absent_players: AbsentPlayers
    log_complete: LogComplete
    error: ErrorSentence
    match: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="The current state of the match; null unless the server is running. "
            "Left out when a match is created."
        ),
    ] = msgspec.UNSET
    deadline: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(description="What the match waits for, and until when; null if nothing."),
    ] = msgspec.UNSET
    round: Annotated[
        int | msgspec.UnsetType | None,
        Meta(description="The round that is being played or was started last; null unless a map with teams is live."),
    ] = msgspec.UNSET
    sides: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="The sides that the teams play on; null unless a map with teams is live, and after log lines "
            "were lost, until a round begins for which the log shows them again."
        ),
    ] = msgspec.UNSET
    roster: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="All listed players, and whether they are on the server. Null if that is unknown: after the "
            "end, except for `no_players_joined` and `incomplete_roster`."
        ),
    ] = msgspec.UNSET
    last_heard_at: Annotated[
        str | msgspec.UnsetType | None,
        Meta(description="When the server last sent something; null before, and unless it is running."),
    ] = msgspec.UNSET
    connect: Annotated[
        str | msgspec.UnsetType | None,
        Meta(
            description="The console command with which players connect, including the `serverPassword`. Null for keys "
            "that cannot create matches, and unless the server is running."
        ),
    ] = msgspec.UNSET
    created_by: CreatedBy | msgspec.UnsetType = msgspec.UNSET


class MatchView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A match; its result equals that of the callback byte for byte."""

    external_match_id: AsGiven
    server_id: ServerId
    status: PublicStatus
    region: RegionCode
    created_at: IsoTime
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    absent_players: AbsentPlayers
    log_complete: LogComplete
    error: ErrorSentence
    result: Annotated[
        msgspec.Raw | None,
        Meta(
            description="Null while in progress and if canceled; otherwise the `result` of the `match_over` callback."
        ),
    ]


def created_view(row: ServerSummary, *, rcon_password: str | None, ending: Ending = IN_PROGRESS) -> ServerView:
    return view_of(ServerView, summarize(row, ending), game_type=GAME_TYPE, rcon_password=rcon_password)


def server_view(
    row: ServerSummary,
    *,
    rcon_password: str | None,
    ending: Ending = IN_PROGRESS,
    live: LiveState | None = None,
    connect: str | None = None,
) -> ServerView:
    """The view of a server, with the live state of its match while it is running."""
    found, state = summarize(row, ending), stored_state(row) if live is None else live
    roster = final_roster(row.settings, ending) if live is None and has_ended(row) else state.roster
    # Field by field: this is the most frequent request, and `view_of` takes three times as long.
    return ServerView(
        server_id=found.server_id,
        game_id=found.game_id,
        region=found.region,
        status=found.status,
        phase=state.phase,
        ip=found.ip,
        port=found.port,
        callback_url=found.callback_url,
        external_match_id=found.external_match_id,
        game_type=GAME_TYPE,
        created_at=found.created_at,
        rcon_password=rcon_password,
        reason=found.reason,
        ended_at=found.ended_at,
        missing_players=found.missing_players,
        connected_players=found.connected_players,
        absent_players=found.absent_players,
        log_complete=found.log_complete,
        error=found.error,
        match=msgspec.Raw(state.match),
        deadline=msgspec.Raw(state.deadline),
        round=state.round,
        sides=msgspec.Raw(state.sides),
        roster=msgspec.Raw(roster),
        last_heard_at=state.last_heard_at,
        connect=connect,
        created_by=row.created_by,
    )


def connect_command(row: ServerSummary, password: str | None) -> str | None:
    """The console command with which players connect to a running server; None if it is not running."""
    if row.phase is not ServerPhase.RUNNING or row.ip is None or row.port is None:
        return None
    address = f"connect {f'[{row.ip}]' if ':' in row.ip else row.ip}:{row.port}"
    if password is None:
        return address
    # Quoted if necessary: a console splits commands at spaces, and `//` begins a comment.
    return f"{address}; password {password if _PLAIN.fullmatch(password) else quoted(password)}"


def final_roster(settings: bytes, ending: Ending) -> bytes:
    """The roster of an ended match as JSON; null unless its outcome says who joined."""
    joined = ending.connected_players
    if ending.reason is CancelReason.NO_PLAYERS_JOINED:
        joined = ()
    if joined is None:
        return b"null"
    players = listed_players(settings)
    left = [msgspec.structs.replace(one, state=PlayerState.LEFT) if one.steam_id in joined else one for one in players]
    return msgspec.json.encode(left)


def match_view(row: ServerSummary, *, result: bytes | None, ending: Ending = IN_PROGRESS) -> MatchView:
    """The view of a match with its stored result (JSON)."""
    return view_of(MatchView, summarize(row, ending), result=None if result is None else msgspec.Raw(result))
