"""The audit log in words: what was done, and where its target is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from matchpod.service.access.audit import Action, AuditItem

WORDS: Final[Mapping[str, str]] = {
    Action.LINK_CREATED: "printed a link to log in",
    Action.LOGGED_IN: "logged in",
    Action.LOGGED_OUT: "logged out",
    Action.LOG_IN_FAILED: "failed to log in",
    Action.SESSION_ENDED: "ended a session",
    Action.MATCH_CREATED: "created a match",
    Action.MATCH_CANCELED: "canceled a match",
    Action.MATCH_ACKNOWLEDGED: "acknowledged a match without a result",
    Action.PASSWORD_REVEALED: "revealed a password",
    Action.CALLBACK_REDELIVERED: "sent a callback again",
    Action.KEY_CREATED: "created a key",
    Action.KEY_ROTATED: "rotated a key",
    Action.KEY_REVOKED: "revoked a key",
    Action.SECRET_REVEALED: "revealed the webhook secret",
    Action.SECRET_REPLACED: "replaced the webhook secret",
    Action.OLD_SECRET_ENDED: "ended the old webhook secret",
    Action.SECRETS_REENCRYPTED: "encrypted the stored secrets with another key",
    Action.REGION_CHANGED: "switched a region",
    Action.SWEEP_CONFIRMED: "confirmed the release of servers without a match",
    Action.BACKUP_WRITTEN: "wrote a backup",
    Action.PRUNE_STARTED: "started to delete what is past its retention",
    Action.RECOMPUTE_STARTED: "started to recompute statistics",
    Action.OVERLAY_CREATED: "created a link to the overlay",
    Action.OVERLAYS_ENDED: "ended the links to the overlay",
    Action.ORGANIZATION_CREATED: "created an organization",
}

_PAGES: Final[Mapping[str, str]] = {
    Action.MATCH_CREATED: "/console/matches/",
    Action.MATCH_CANCELED: "/console/matches/",
    Action.MATCH_ACKNOWLEDGED: "/console/matches/",
    Action.PASSWORD_REVEALED: "/console/matches/",
    Action.OVERLAY_CREATED: "/console/matches/",
    Action.OVERLAYS_ENDED: "/console/matches/",
    Action.CALLBACK_REDELIVERED: "/console/deliveries/",
    Action.LOG_IN_FAILED: "/console/access#",
    Action.KEY_CREATED: "/console/access#",
    Action.KEY_ROTATED: "/console/access#",
    Action.KEY_REVOKED: "/console/access#",
    Action.REGION_CHANGED: "/console/regions#",
    Action.SWEEP_CONFIRMED: "/console/regions#",
    Action.RECOMPUTE_STARTED: "/console/matches/",
}


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One act as a line of the log."""

    id: str
    at: str
    who: str
    """What the session was begun with, the key of a program, or the command line; empty if it is not known."""
    session_id: str
    """Empty for the command line, and for programs that use a key."""
    what: str
    target: str
    address: str
    """The page of the target; empty if there is none."""
    detail: str


def audit_lines(
    items: Iterable[AuditItem], *, log_ins: Mapping[str, str], key_names: Mapping[str, str]
) -> list[AuditLine]:
    """Return acts as lines; `log_ins` says how each session was begun, `key_names` how keys are called."""
    return [
        AuditLine(
            id=item.id,
            at=item.at,
            who=_who(item, log_ins, key_names),
            session_id=item.actor if item.actor.startswith("ses_") else "",
            what=WORDS.get(item.action, item.action.replace("_", " ")),
            target=item.target,
            address=f"{_PAGES[item.action]}{item.target}" if item.target and item.action in _PAGES else "",
            detail=item.detail.partition(", ")[2] if item.action == Action.LOGGED_IN else item.detail,
        )
        for item in items
    ]


def session_words(begun: str, key_names: Mapping[str, str]) -> str:
    """Return what a session was begun with: `a link`, or the name of a key; `begun` is the detail of its log-in."""
    what = begun.removeprefix("with ").partition(", ")[0]  # followed by how often, if that was repeated
    return key_names.get(what, what)


def _who(item: AuditItem, log_ins: Mapping[str, str], key_names: Mapping[str, str]) -> str:
    if item.actor in log_ins:
        return session_words(log_ins[item.actor], key_names)
    return "" if item.actor.startswith("ses_") else key_names.get(item.actor, item.actor)
