"""Read the body of a ruling. Its JSON Schema and the console's form are built from the fields defined here."""

from __future__ import annotations

from typing import Final

from matchpod.core.faults import FieldPath
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests import text_rules
from matchpod.core.requests.json_fields import AnyField, Faults, Fields, RequestField
from matchpod.core.rulings import RuledWinner, RulingRequest

WINNER: Final = RequestField(
    name="winner",
    label="Winner",
    rule=rules.choice(RuledWinner),
    meaning="`team1`, `team2`, or `none`: the match is void. A deathmatch can only be void.",
    is_required=True,
)
REASON: Final = RequestField(
    name="reason",
    label="Reason",
    rule=rules.text(text_rules.reason_fault, longest=text_rules.MAX_REASON, format="reason"),
    meaning="Why, for people: trimmed, without control, format and line-separator characters.",
)
BY: Final = RequestField(
    name="by",
    label="Decided by",
    rule=rules.text(text_rules.person_fault, longest=text_rules.MAX_PERSON, format="person"),
    meaning="The person at your platform who decided; the same rules.",
)
RULING: Final[tuple[AnyField, ...]] = (WINNER, REASON, BY)


def read_ruling_request(body: object) -> RulingRequest:
    """Return the validated request; InvalidParamsError with all faults if the decoded body is invalid."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), RULING, faults)
    if fields is None:
        raise faults.error()
    winner, reason, by = fields.read(WINNER), fields.read(REASON), fields.read(BY)
    if faults or winner is None:
        raise faults.error()
    return RulingRequest(winner=winner, reason=reason, by=by)
