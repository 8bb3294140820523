"""The API's views of the actions on a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cs2_protocol.game import PlayerId, Team
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.actions import ACTIONS, ActionRequest, ActionState, ActionType, Obstacle, RestorePoint
from matchpod.core.match.match_actions import AT_END
from matchpod.core.match.roster import RosterRole
from matchpod.core.stored.stored_json import StoredReader
from matchpod.core.views.result_shapes import IsoTime
from matchpod.cs2.match_reader import MatchReader
from matchpod.storage.match_actions import ActionRow


class _Named(msgspec.Struct):
    """The only field of a stored request that all versions are known to write: its type."""

    type: str


_read_name = msgspec.json.Decoder(_Named).decode
_read_request = StoredReader[ActionRequest](ActionRequest).read

ActionId = Annotated[str, Meta(description="The id of the action.")]
StateOfAction = Annotated[
    ActionState,
    Meta(
        description="`requested`; `sent` to the server; `done` once the server's log or its plugin confirms it; "
        "`failed`, with the reason in `detail`."
    ),
]
Sentence = Annotated[str | None, Meta(description="Why it failed, or what happens until it is done; otherwise null.")]


class ActionView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An action on a match, with the fields of its type."""

    action_id: ActionId
    type: Annotated[str, Meta(description="The type of the action, such as `restore`. There may be more later.")]
    state: StateOfAction
    detail: Sentence
    requested_at: IsoTime
    changed_at: IsoTime
    requested_by: Annotated[
        str | None,
        Meta(
            description="The id of the key or session, or `command line`. Null for keys of the role `member`.",
        ),
    ]
    reason: Annotated[str | None, Meta(description="The `reason` of the request, or null.")]
    by: Annotated[str | None, Meta(description="The `by` of the request, or null.")]
    round: Annotated[int | UnsetType, Meta(description="`restore`: the round that is played next.")] = msgspec.UNSET
    text: Annotated[str | UnsetType, Meta(description="`say`: the text.")] = UNSET
    steam_id: Annotated[
        PlayerId | UnsetType, Meta(description="`kick`, `addPlayer`, `removePlayer`: the SteamID of the person.")
    ] = UNSET
    role: Annotated[RosterRole | UnsetType, Meta(description="`addPlayer`: their role.")] = msgspec.field(
        default=UNSET, name="as"
    )
    out: Annotated[PlayerId | UnsetType, Meta(description="`replacePlayer`: who leaves.")] = UNSET
    in_: Annotated[PlayerId | UnsetType, Meta(description="`replacePlayer`: who takes the place.")] = msgspec.field(
        default=UNSET, name="in"
    )
    seconds: Annotated[
        int | UnsetType, Meta(description="`extendJoin`: by how many seconds the deadline is extended.")
    ] = UNSET
    winner: Annotated[Team | UnsetType, Meta(description="`forfeit`: who wins.")] = UNSET
    restores: Annotated[
        str | UnsetType,
        Meta(description='In the answer to a request for a restore: what is restored, such as "5:3, round 9 begins".'),
    ] = UNSET


class PossibleAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether an action is possible now."""

    type: Annotated[ActionType, Meta(description="The action.")]
    possible: Annotated[bool, Meta(description="Whether a request for it may be accepted now.")]
    reason: Annotated[str | None, Meta(description="Why it is not possible; null if it is.")]
    retry_after: Annotated[
        int | None, Meta(description="In how many seconds it may be possible, if that is known; otherwise null.")
    ]
    fields: Annotated[tuple[str, ...], Meta(description="The fields that a request for it needs.")]


class RestorableRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A round that can be played again."""

    round: Annotated[int, Meta(description="The round that is played next: the `round` of the action.")]
    rounds_kept: Annotated[int, Meta(description="How many rounds still count.")]
    text: Annotated[str, Meta(description='What is restored, such as "5:3, round 9 begins".')]


class MatchActionsView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The actions that are possible now, and those that were requested."""

    possible: Annotated[tuple[PossibleAction, ...], Meta(description="All actions, and whether each is possible now.")]
    restorable: Annotated[
        tuple[RestorableRound, ...],
        Meta(description="The rounds that can be played again; empty unless a map with teams is live."),
    ]
    items: Annotated[tuple[ActionView, ...], Meta(description="The actions on this match, newest first.")]


def action_view(
    row: ActionRow, *, has_ended: bool, shows_actor: bool, restores: RestorePoint | None = None
) -> ActionView:
    """Return the view of an action. If the match has ended, an action that was unfinished is shown as failed.

    If a later version stored the request, the view lacks fields that this version does not know.
    """
    request = _read_request(row.request, type=ActionType.SAY)
    is_lost = has_ended and not row.state.is_final
    return ActionView(
        action_id=row.id,
        type=_read_name(row.request).type,
        state=ActionState.FAILED if is_lost else row.state,
        detail=AT_END if is_lost else row.detail,
        requested_at=iso_time(row.requested_at_ms),
        changed_at=iso_time(row.changed_at_ms),
        requested_by=row.created_by if shows_actor else None,
        reason=request.reason,
        by=request.by,
        round=UNSET if request.round is None else request.round,
        text=UNSET if request.text is None else request.text,
        steam_id=UNSET if request.steam_id is None else request.steam_id,
        role=UNSET if request.role is None else request.role,
        out=UNSET if request.out is None else request.out,
        in_=UNSET if request.in_ is None else request.in_,
        seconds=UNSET if request.seconds is None else request.seconds,
        winner=UNSET if request.winner is None else request.winner,
        restores=UNSET if restores is None else restores.text,
    )


def possible_actions(reader: MatchReader | Obstacle) -> Iterator[PossibleAction]:
    """Yield, for each type of action, whether it is possible now, and if not, why."""
    for action_type, rule in ACTIONS.items():
        found = reader if isinstance(reader, Obstacle) else reader.obstacle(action_type)
        yield PossibleAction(
            type=action_type,
            possible=found is None,
            reason=None if found is None else found.text,
            retry_after=None if found is None else found.retry_after_s,
            fields=tuple(field.name for field in rule.fields),
        )


def restorable_rounds(reader: MatchReader | Obstacle) -> tuple[RestorableRound, ...]:
    """Return the rounds that can be played again."""
    points = () if isinstance(reader, Obstacle) else reader.match.restorable()
    return tuple(RestorableRound(round=point.round, rounds_kept=point.rounds_kept, text=point.text) for point in points)
