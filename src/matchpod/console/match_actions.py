"""Define the buttons on a match's page: their texts, when they are shown, and what they do.

To add a button, add an action to ACTIONS, and its notice to ACTION_NOTICES. The button then appears on the page of each
match whose phase allows the action. The services record actions in the audit log. This module records only actions that
reveal a secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from matchpod.console.notices import NOTICES
from matchpod.console.visit import Visit, Who
from matchpod.core.errors import ServerNotRunningError
from matchpod.core.requests.callback_query import CallbackState
from matchpod.service.access.audit import Action
from matchpod.service.identity.principals import Principal
from matchpod.service.reading.match_details import MatchDetail

ACTION_NOTICES: Final[Mapping[str, str]] = {
    **NOTICES,
    "canceled": "The match is canceled. Its server is being destroyed.",
    "action-requested": "The action is requested. What becomes of it is in the list of actions.",
    "ruled": "The ruling counts from now on.",
    "ruling-withdrawn": "The ruling is withdrawn: what was played counts.",
    "overlay-ended": "The links to the overlay no longer work.",
}
"""Text that is shown on the match's page after an action, by notice key."""


class Revealed(msgspec.Struct, frozen=True):
    """A secret that is shown once, on the page with the response to the action."""

    label: str
    text: str

    def __repr__(self) -> str:
        return f"Revealed({self.label})"


class MatchAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that a button executes; `what` describes its effect."""

    name: str
    title: str
    what: str
    button: str
    kind: str = ""
    notice: str = ""
    """Key of the notice after the action; empty if the action reveals a secret."""
    who: Who = Who.REFEREE
    is_allowed: Callable[[MatchDetail], bool]
    perform: Callable[[Visit, MatchDetail], Awaitable[object]]
    """Executes the action. Returns `Revealed` if it reveals a secret; any other return value is ignored."""


def allowed_actions(match: MatchDetail, principal: Principal) -> list[MatchAction]:
    """Return the actions that the match allows and that the principal may execute."""
    return [one for one in ACTIONS if one.is_allowed(match) and (one.who is Who.REFEREE or principal.may_create)]


async def _reveal(visit: Visit, match: MatchDetail) -> Revealed:
    server = await visit.deps.services.matches.get(visit.principal, match.server_id)
    if server.rcon_password is None:
        raise ServerNotRunningError("No RCON password is available: the match has ended, or only operators know it.")
    await visit.deps.audit.record(
        Action.PASSWORD_REVEALED,
        org_id=visit.user.org_id,
        actor=visit.user.session_id,
        target=match.server_id,
        detail=match.external_match_id or "",
    )
    return Revealed("RCON password", server.rcon_password)


async def _overlay(visit: Visit, match: MatchDetail) -> Revealed:
    token = await visit.deps.overlays.create(visit.principal, match.server_id)
    return Revealed("Overlay, for a browser source of OBS", f"{visit.deps.origins.public_url}/overlay/{token}")


def _has_sent(match: MatchDetail) -> bool:
    return bool(match.callbacks) and match.callbacks[0].state is not CallbackState.WAITING


ACTIONS: Final = (
    MatchAction(
        name="cancel",
        title="Cancel the match …",
        what="Ends the match without a result, destroys its server and sends the callback `match_canceled`. Players are"
        " disconnected. This cannot be undone.",
        button="Cancel the match",
        kind="danger",
        notice="canceled",
        who=Who.MANAGER,
        is_allowed=lambda match: not match.has_ended,
        perform=lambda visit, match: visit.deps.services.matches.cancel(visit.principal, match.server_id),
    ),
    MatchAction(
        name="acknowledge",
        title="Acknowledge …",
        what="Removes the match from the wall of everyone in your organization. It stays in the list of matches.",
        button="Acknowledge it",
        notice="acknowledged",
        is_allowed=lambda match: match.is_unacknowledged,
        perform=lambda visit, match: visit.deps.acknowledgements.acknowledge(visit.principal, [match.server_id]),
    ),
    MatchAction(
        name="password",
        title="Show the RCON password …",
        what="Shows the password of the server's console once. Anyone with this password controls the server."
        " Showing it is recorded in the audit log.",
        button="Show the password",
        who=Who.MANAGER,
        is_allowed=lambda match: match.progress is not None,
        perform=_reveal,
    ),
    MatchAction(
        name="withdraw-ruling",
        title="Withdraw the ruling …",
        what="Then there is no ruling, and what was played counts. A ruling that it had replaced does not count again.",
        button="Withdraw the ruling",
        notice="ruling-withdrawn",
        who=Who.MANAGER,
        is_allowed=lambda match: match.ruling is not None,
        perform=lambda visit, match: visit.deps.services.rulings.withdraw(visit.principal, match.server_id),
    ),
    MatchAction(
        name="redeliver",
        title="Send the callback again …",
        what="Sends the same body to the same URL once more. The receiver recognizes it by its `webhook-id`.",
        button="Send the callback",
        notice="redelivered",
        is_allowed=_has_sent,
        perform=lambda visit, match: visit.deps.services.callbacks.redeliver(visit.principal, match.callbacks[0].id),
    ),
    MatchAction(
        name="overlay",
        title="Overlay for OBS …",
        what="Creates a link that shows score and rounds of this match, and nothing else, to everyone who has it. It is"
        " shown once.",
        button="Create the link",
        is_allowed=lambda match: not match.has_ended,
        perform=_overlay,
    ),
    MatchAction(
        name="end-overlays",
        title="End overlay links …",
        what="All links to the overlay of this match stop working, also those that are open.",
        button="End the links",
        notice="overlay-ended",
        is_allowed=lambda _: True,
        perform=lambda visit, match: visit.deps.overlays.end(visit.principal, match.server_id),
    ),
)
