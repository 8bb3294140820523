"""Build `MatchHead`, the fields that all views of a match share, and the API's views of its server.

Views are built from the row, from how the match ended and, while it is played, from its state. A field that all lists,
pages and commands show belongs in `MatchHead`. The fields of the API's views are declared in the order of the JSON.
Secrets are decrypted by the callers of this module.
"""

from __future__ import annotations

import re
from itertools import starmap
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cs2_protocol.console_commands import quoted
from cs2_protocol.game import PlayerId, Team
from matchpod.core.effects import BY_HAND, CancelReason
from matchpod.core.iso_dates import iso_time
from matchpod.core.labels import Label
from matchpod.core.model import GAME_TYPE
from matchpod.core.rulings import Ruling, RulingOrNull
from matchpod.core.secrets import mask_url
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.marks import NO_MARKS, GotvIfOn, LabelsIfAny, Marks, SimulatedIfSo, read_marks
from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.core.views.progress import PlayerState, PublicPhase
from matchpod.core.views.result_shapes import Forfeited, IsoTime, MapState, MapStates, SeriesScore, SeriesScoreOrNull
from matchpod.service.identity.principals import Audience
from matchpod.service.reading.stored_progress import listed_players, stored_state
from matchpod.service.row_views import time_text, view_of
from matchpod.storage.servers import ServerSummary

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_Row = TypeVar("_Row", bound=ServerSummary)

Reason = Annotated[
    CancelReason | None,
    Meta(description="Why the match was canceled, as in the callback; null while it is in progress and if finished."),
]
EndedAt = Annotated[
    str | None, Meta(description="When the match ended, as in the callback; null while it is in progress.")
]
MissingPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(description="For `incomplete_roster`: the listed players who never connected. Otherwise null."),
]
ConnectedPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(description="For `incomplete_roster`: the listed players who connected at least once. Otherwise null."),
]
AbsentPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(
        description="For `incomplete_roster`: the listed players who were not on the server at the end, because "
        "they never connected or had left. Otherwise null, and for matches of older versions."
    ),
]
LogComplete = Annotated[
    bool | None,
    Meta(
        description="Whether the log of a match that was canceled during play is complete; if it is not, numbers of "
        "its maps may be too low. Null for other matches, whose maps have their own `complete`, and if unknown."
    ),
]
ErrorSentence = Annotated[
    str | None, Meta(description="What went wrong, in one sentence, if the match failed; otherwise null.")
]
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
CreatedByName = Annotated[
    str | None,
    Meta(
        description="The name of that key, or the beginning of its text if it has no name. For a session, the name of "
        "the person that the link was for, or `a link`. Null where `createdBy` is null."
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
        description="The phase of the match. `allocating` and `ended` follow from the status; in all other phases, the "
        "status is `running`."
    ),
]
StoredPhase = Annotated[
    PublicPhase, Meta(description="The phase of the match. Follows a running match within seconds.")
]


class Ending(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a match ended. All fields are None while the match is in progress."""

    reason: CancelReason | None = None
    ended_at_ms: int | None = None
    missing_players: tuple[PlayerId, ...] | None = None
    connected_players: tuple[PlayerId, ...] | None = None
    absent_players: tuple[PlayerId, ...] | None = None
    log_complete: bool | None = None
    error: str | None = None
    forfeited_to: Team | None = None
    """The team that won by forfeit, without playing to the end; None if the match was not forfeited."""
    ruling: Ruling | None = None
    """The current ruling of an admin on the match; None if there is no ruling."""

    @property
    def ended_at(self) -> str | None:
        return time_text(self.ended_at_ms)

    @property
    def forfeit(self) -> bool | msgspec.UnsetType:
        return msgspec.UNSET if self.forfeited_to is None else True


IN_PROGRESS = Ending()


class MatchHead(Ending, frozen=True, kw_only=True):
    """The fields of a match that all its views share, including how it ended."""

    server_id: str
    game_id: str
    external_match_id: str | None = None
    region: str
    status: ServerStatus
    phase: PublicPhase
    ip: str | None = None
    """The address to which players connect; None until the server was running, because only then is it known to be
    correct."""
    port: int | None = None
    callback_url: str | None = None
    created_at_ms: int
    running_at_ms: int | None = None
    marks: Marks = NO_MARKS

    @property
    def created_at(self) -> str:
        return iso_time(self.created_at_ms)

    @property
    def shown_labels(self) -> tuple[Label, ...]:
        return tuple(starmap(Label, (self.marks.labels or {}).items()))


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
    ruling: RulingOrNull
    match: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="The current state of the match; null unless the server is running. "
            "Left out when a match is created."
        ),
    ] = msgspec.UNSET
    deadline: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(description="What the match waits for, and until when; null if it waits for nothing."),
    ] = msgspec.UNSET
    round: Annotated[
        int | msgspec.UnsetType | None,
        Meta(description="The round that is being played or was started last; null unless a map with teams is live."),
    ] = msgspec.UNSET
    sides: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="The sides that the teams play on; null unless a map with teams is live. After log lines were "
            "lost, also null until a round begins for which the log contains the sides."
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
    pending_action: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(description="The newest action that is neither done nor failed; null if there is none."),
    ] = msgspec.UNSET
    connect: Annotated[
        str | msgspec.UnsetType | None,
        Meta(
            description="The console command with which players connect, including the `serverPassword`. Null for keys "
            "that cannot create matches, and unless the server is running."
        ),
    ] = msgspec.UNSET
    created_by: CreatedBy | msgspec.UnsetType = msgspec.UNSET
    forfeit: Forfeited = msgspec.UNSET
    labels: LabelsIfAny = msgspec.UNSET
    simulated: SimulatedIfSo = msgspec.UNSET
    gotv: GotvIfOn = msgspec.UNSET
    draining: Annotated[
        bool | msgspec.UnsetType,
        Meta(
            description="Whether the server of a match that has ended is kept until its demos are uploaded, for a few "
            "minutes at most; left out if not."
        ),
    ] = msgspec.UNSET


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
    ruling: RulingOrNull
    labels: LabelsIfAny = msgspec.UNSET
    simulated: SimulatedIfSo = msgspec.UNSET
    result: Annotated[
        msgspec.Raw | None,
        Meta(
            description="Null while in progress and if canceled; otherwise the `result` of the `match_over` callback."
        ),
    ]
    forfeit: Forfeited = msgspec.UNSET


class StoredMaps(msgspec.Struct, frozen=True, kw_only=True):
    """The stored state of a match's maps, with the same fields as the live view of the match."""

    map_number: int | None = None
    series_score: SeriesScore | None = None
    maps: tuple[MapState, ...] = ()


class ServerItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server in a list; get the server for its live match, its roster and its password."""

    server_id: ServerId
    game_id: Annotated[str, Meta(description="The UUID of this session; the `sessionId` of callbacks.")]
    region: RegionCode
    status: PublicStatus
    phase: StoredPhase
    map_number: Annotated[
        int | None,
        Meta(
            description="The number of the map that is loaded or loading, from 1; of an ended match, the last one. "
            "Follows a running match within seconds. Null if unknown."
        ),
    ]
    series_score: SeriesScoreOrNull
    maps: MapStates
    ip: Annotated[str | None, Meta(description="The address players connect to; null until the server is running.")]
    port: Annotated[int | None, Meta(description="The game port; null until the server is running.")]
    callback_url: CallbackUrl
    external_match_id: AsGiven
    game_type: Annotated[str, Meta(description="Always `cs2`.")]
    created_at: IsoTime
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    absent_players: AbsentPlayers
    log_complete: LogComplete
    error: ErrorSentence
    ruling: RulingOrNull
    created_by: CreatedBy
    created_by_name: CreatedByName
    forfeit: Forfeited = msgspec.UNSET
    labels: LabelsIfAny = msgspec.UNSET
    simulated: SimulatedIfSo = msgspec.UNSET


def visible_row(row: _Row, audience: Audience) -> _Row:
    """Return the row without the creator and the secrets in the callback URL, unless the audience may see them."""
    if audience.sees_creator:
        return row
    return replace(row, created_by=None, callback_url=None if row.callback_url is None else mask_url(row.callback_url))


def summarize(row: ServerSummary, ending: Ending = IN_PROGRESS, *, progress: MatchProgress | None = None) -> MatchHead:
    """Build the head of a match. Its phase is that of `progress`; without progress, the stored phase.

    The `error` of the head is the sentence for callers, not the error in the row.
    """
    was_running = row.running_at_ms is not None
    return view_of(
        MatchHead,
        ending,
        row,
        server_id=row.id,
        phase=row.public_phase if progress is None else progress.phase,
        ip=row.ip if was_running else None,
        port=row.port if was_running else None,
        marks=read_marks(row.marks),
    )


def created_view(row: ServerSummary, *, rcon_password: str | None, ending: Ending = IN_PROGRESS) -> ServerView:
    head = summarize(row, ending)
    return view_of(ServerView, head, head.marks, game_type=GAME_TYPE, rcon_password=rcon_password)


def server_view(
    row: ServerSummary,
    *,
    rcon_password: str | None,
    ending: Ending = IN_PROGRESS,
    live: LiveState | None = None,
    connect: str | None = None,
) -> ServerView:
    """Build the view of a server, with the live state of its match while the match is running."""
    state = stored_state(row) if live is None else live
    was_running = row.running_at_ms is not None
    # For speed, the view is built directly from the row, without a `MatchHead`: this is the most frequent request.
    return view_of(
        ServerView,
        ending,
        row,
        read_marks(row.marks),
        server_id=row.id,
        phase=state.phase,
        ip=row.ip if was_running else None,
        port=row.port if was_running else None,
        game_type=GAME_TYPE,
        rcon_password=rcon_password,
        match=msgspec.Raw(state.match),
        deadline=msgspec.Raw(state.deadline),
        round=state.round,
        sides=msgspec.Raw(state.sides),
        roster=msgspec.Raw(final_roster(row.settings, ending) if live is None and row.has_ended else state.roster),
        last_heard_at=state.last_heard_at,
        pending_action=msgspec.Raw(state.pending_action),
        connect=connect,
        draining=is_draining(row) or msgspec.UNSET,
    )


def is_draining(row: ServerSummary) -> bool:
    """True if the server of an ended match is kept until the demos of the match are uploaded."""
    is_kept = row.phase is ServerPhase.ENDING and row.reason not in BY_HAND
    return is_kept and read_marks(row.marks).gotv is not msgspec.UNSET


def connect_command(row: ServerSummary, password: str | None) -> str | None:
    """Return the console command with which players connect to the server; None if the server is not running."""
    if row.phase is not ServerPhase.RUNNING or row.ip is None or row.port is None:
        return None
    address = f"connect {f'[{row.ip}]' if ':' in row.ip else row.ip}:{row.port}"
    if password is None:
        return address
    # Quote the password if necessary, because a console splits commands at spaces, and `//` begins a comment.
    return f"{address}; password {password if _PLAIN.fullmatch(password) else quoted(password)}"


def final_roster(settings: bytes, ending: Ending) -> bytes:
    """Return the roster of an ended match as JSON; null if its outcome does not say which players joined."""
    joined = ending.connected_players
    if ending.reason is CancelReason.NO_PLAYERS_JOINED:
        joined = ()
    if joined is None:
        return b"null"
    players = listed_players(settings)
    left = [replace(player, state=PlayerState.LEFT) if player.steam_id in joined else player for player in players]
    return msgspec.json.encode(left)


def match_view(row: ServerSummary, *, result: bytes | None, ending: Ending = IN_PROGRESS) -> MatchView:
    """Build the view of a match. `result` is its stored result as JSON."""
    head = summarize(row, ending)
    return view_of(MatchView, head, head.marks, result=None if result is None else msgspec.Raw(result))


def server_item(row: ServerSummary, ending: Ending, maps: StoredMaps, *, created_by_name: str | None) -> ServerItem:
    """Build the view of a server in a list."""
    head = summarize(row, ending)
    return view_of(
        ServerItem,
        head,
        head.marks,
        maps,
        game_type=GAME_TYPE,
        created_by=row.created_by,
        created_by_name=created_by_name,
    )
