"""Read the body of a request for an action on a match. The table `ACTIONS` lists the fields of each type."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from cs2_protocol.game import Team
from matchpod.core.faults import FaultCode, FieldPath
from matchpod.core.match.actions import ACTIONS, ActionRequest, ActionType
from matchpod.core.match.roster import RosterRole
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests import ruling_request, text_rules
from matchpod.core.requests.json_fields import AnyField, Faults, Fields, RequestField

ACTION_ID: Final = r"action_[0-9a-z]{26}"
"""Pattern of action ids."""

MAX_RESTORED_ROUND: Final = 500
MIN_EXTENSION_S: Final = 10
MAX_EXTENSION_S: Final = 3600

_STEAM_ID: Final = rules.text(
    text_rules.player_id_fault, pattern=f"^{text_rules.PLAYER_ID}$", example="76561198000000001"
)

TYPE: Final = RequestField(
    name="type", label="Action", rule=rules.choice(ActionType), meaning="What to do.", is_required=True
)
ROUND: Final = RequestField(
    name="round",
    label="Round",
    rule=rules.integer(1, MAX_RESTORED_ROUND),
    meaning="`restore`: the round that is played next; 1 restarts the map.",
)
TEXT: Final = RequestField(
    name="text",
    label="Text",
    rule=rules.text(text_rules.said_text_fault, longest=text_rules.MAX_SAID, format="team-name"),
    meaning='`say`: without " ; \\ % $ { } ` // and without control, format and line-separator characters.',
)
STEAM_ID: Final = RequestField(
    name="steamId", label="Player", rule=_STEAM_ID, meaning="`kick`, `addPlayer`, `removePlayer`: the person."
)
AS: Final = RequestField(
    name="as",
    label="As",
    rule=rules.choice(RosterRole),
    meaning="`addPlayer`: their role; `player` in a match without teams.",
)
OUT: Final = RequestField(name="out", label="Who leaves", rule=_STEAM_ID, meaning="`replacePlayer`: who leaves.")
IN: Final = RequestField(
    name="in", label="Who takes the place", rule=_STEAM_ID, meaning="`replacePlayer`: who takes the place."
)
SECONDS: Final = RequestField(
    name="seconds",
    label="Seconds",
    rule=rules.integer(MIN_EXTENSION_S, MAX_EXTENSION_S),
    meaning="`extendJoin`: the seconds to add.",
)
WINNER: Final = RequestField(name="winner", label="Winner", rule=rules.choice(Team), meaning="`forfeit`: who wins.")
BY: Final = replace(
    ruling_request.BY,
    label="Who asked for it",
    meaning="The person at your platform who asked for it; the same rules.",
)
REASON: Final = ruling_request.REASON

VALUES: Final[tuple[AnyField, ...]] = (ROUND, TEXT, STEAM_ID, AS, OUT, IN, SECONDS, WINNER)
"""The fields that only some types of actions have."""
FIELDS: Final[tuple[AnyField, ...]] = (TYPE, *VALUES, REASON, BY)


def read_action_request(body: object, action_id: str) -> ActionRequest:
    """Return the validated request with `action_id`. Raise InvalidParamsError with all faults if `body` is invalid."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), FIELDS, faults)
    if fields is None:
        raise faults.error()
    action_type = fields.read(TYPE)
    wanted = {field.name for field in ACTIONS[action_type].fields} if action_type is not None else set()
    for field in VALUES if action_type is not None else ():
        if field.name in wanted and not fields.has(field):
            fields.fault(field, FaultCode.REQUIRED)
        elif field.name not in wanted and fields.has(field):
            fields.fault(field, FaultCode.OTHER_ACTION, action=action_type or "")
    found = ActionRequest(
        id=action_id,
        type=action_type or ActionType.SAY,
        round=fields.read(ROUND),
        text=fields.read(TEXT),
        steam_id=fields.read(STEAM_ID),
        role=fields.read(AS),
        out=fields.read(OUT),
        in_=fields.read(IN),
        seconds=fields.read(SECONDS),
        winner=fields.read(WINNER),
        reason=fields.read(REASON),
        by=fields.read(BY),
    )
    if faults:
        raise faults.error()
    return found


def read_action_id(text: str) -> str | None:
    """Return the text if it is a valid action id, else None."""
    return text if re.fullmatch(ACTION_ID, text) else None
