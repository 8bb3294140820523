"""The API's views of the actions on a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, Team
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.actions import ACTIONS, ActionRequest, ActionState, ActionType, Obstacle, RestorePoint
from matchpod.core.match.match_actions import AT_END
from matchpod.core.match.roster import RosterRole
from matchpod.core.views.result_shapes import IsoTime
from matchpod.cs2.match_reader import MatchReader
from matchpod.storage.match_actions import ActionRow

_read_request = msgspec.json.Decoder(ActionRequest).decode

ActionId = Annotated[str, Meta(description="The id of the action.")]
StateOfAction = Annotated[
    ActionState,
    Meta(
        description="`requested`; `sent` to the server; `done` once the server's log or its plugin says so; `failed`, "
        "with the reason in `detail`."
    ),
]
Sentence = Annotated[str | None, Meta(description="Why it failed, or what happens until it is done; otherwise null.")]


class ActionView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An action on a match. Of the fields that a request may have, those of its type are there."""

    action_id: ActionId
    type: Annotated[ActionType, Meta(description="What was asked for.")]
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
    reason: Annotated[str | None, Meta(description="As given, or null.")]
    by: Annotated[str | None, Meta(description="As given, or null.")]
    round: int | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    steam_id: PlayerId | msgspec.UnsetType = msgspec.UNSET
    role: RosterRole | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="as")
    out: PlayerId | msgspec.UnsetType = msgspec.UNSET
    in_: PlayerId | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="in")
    seconds: int | msgspec.UnsetType = msgspec.UNSET
    winner: Team | msgspec.UnsetType = msgspec.UNSET
    restores: Annotated[
        str | msgspec.UnsetType,
        Meta(description='In the answer to a request for a restore: what is restored, such as "5:3, round 9 begins".'),
    ] = msgspec.UNSET


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
    """What can be done to a match now, and what was asked for."""

    possible: tuple[PossibleAction, ...]
    restorable: tuple[RestorableRound, ...]
    items: Annotated[tuple[ActionView, ...], Meta(description="The actions on this match, newest first.")]


def action_view(
    row: ActionRow, *, has_ended: bool, shows_actor: bool, restores: RestorePoint | None = None
) -> ActionView:
    """The view of an action; one of an ended match is not under way, whatever an earlier version has stored."""
    request = _read_request(row.request)
    is_lost = has_ended and not row.state.is_final
    unset = msgspec.UNSET
    return ActionView(
        action_id=row.id,
        type=request.type,
        state=ActionState.FAILED if is_lost else row.state,
        detail=AT_END if is_lost else row.detail,
        requested_at=iso_time(row.requested_at_ms),
        changed_at=iso_time(row.changed_at_ms),
        requested_by=row.created_by if shows_actor else None,
        reason=request.reason,
        by=request.by,
        round=unset if request.round is None else request.round,
        text=unset if request.text is None else request.text,
        steam_id=unset if request.steam_id is None else request.steam_id,
        role=unset if request.role is None else request.role,
        out=unset if request.out is None else request.out,
        in_=unset if request.in_ is None else request.in_,
        seconds=unset if request.seconds is None else request.seconds,
        winner=unset if request.winner is None else request.winner,
        restores=unset if restores is None else restores.text,
    )


def possible_actions(reader: MatchReader | Obstacle) -> Iterator[PossibleAction]:
    """Say for each action whether it is possible; without a running server, why none is."""
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
    """The rounds that can be played again."""
    points = () if isinstance(reader, Obstacle) else reader.match.restorable()
    return tuple(RestorableRound(round=one.round, rounds_kept=one.rounds_kept, text=one.text) for one in points)
