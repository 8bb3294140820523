"""Show a notice once, on the page that follows a submitted form. A cookie passes it on.

The cookie contains the key of the notice, a number and the path of the page, but no text. Only that page shows the
notice and deletes the cookie. So the notice does not appear again after a reload or in a copied URL. All pages know the
keys in NOTICES; the page of a match also knows the keys of its actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.console.origins import OriginRules
from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Header

ACKNOWLEDGED: Final = "acknowledged"
"""Key of the notice after an acknowledgement. The notice's number is the time of the acknowledgement, which is needed
to undo it, or 0 if it cannot be undone."""

NOTICES: Final = {
    ACKNOWLEDGED: "Acknowledged. It is gone from the wall of everyone in your organization.",
    "acknowledgement-undone": "It is back on the wall of everyone in your organization.",
    "claimed": "Claimed. Everyone in your organization sees who takes care of the match.",
    "claim-released": "The claim was released. The match can be claimed again.",
    "redelivered": "The callback is being sent again.",
    "webhook-changed": "The webhook was changed.",
    "webhook-deleted": "The webhook was deleted.",
    "webhook-on": "The webhook is on. It sends what happens from now on.",
    "webhook-off": "The webhook is off.",
    "webhook-tested": "The test is being sent. Load the page again to see the answer.",
    "delivery-redelivered": "The delivery is being sent again.",
    "deliveries-sent": "The given-up deliveries are being sent again.",
    "no-deliveries-sent": "No delivery was given up since that time, so none was sent.",
    "none-sent": "No callback was given up since that time, so none was sent.",
    "sent": "{callbacks} being sent again. None remains.",
    "sent-some": "{callbacks} being sent again. More remain: the form below begins where this request ended.",
    "created": "The match was created.",
    "matches-created": "{matches} created.",
    "selection-canceled": "{matches} canceled.",
    "selection-not-canceled": "Nothing was canceled: these matches have ended.",
    "selection-redelivered": "{callbacks} being sent again.",
    "selection-not-redelivered": "No callback was sent: there is none, or it is waiting for an attempt already.",
    "nothing-selected": "No match was selected.",
    "logged-out": "You are logged out.",
    "session-ended": "The session has ended.",
    "other-sessions-ended": "All other sessions have ended.",
    "no-sessions-ended": "There was no other session to end.",
    "key-revoked": "The key is revoked. Its sessions have ended too.",
    "organization-created": "The organization was created. Create its first key with `matchpod keys create`.",
    "region-checking": "The servers of the region are being checked. Servers with a match are left alone.",
    "region-on": "The region accepts new matches.",
    "region-off": "The region accepts no new matches. Running matches go on.",
}
"""Texts of the notices, by key."""
MAX_AGE_S: Final = 60
"""Lifetime of the cookie in seconds. A browser opens the next page much sooner."""
NAME: Final = "matchpod-notice"

_VALUE: Final = re.compile(r"(?P<word>[a-z-]+)\.(?P<number>[0-9]{1,15})@(?P<path>/[!-~]*)")


class Notice(msgspec.Struct, frozen=True):
    """The text of a notice, and the header that deletes the cookie."""

    text: str = ""
    headers: tuple[Header, ...] = ()
    word: str = ""
    number: int = 0


def notice_header(origins: OriginRules, path: str, word: str, number: int = 0) -> Header:
    """Return the header (a cookie) that makes the page at this path show a notice once."""
    return _header(origins, f"{word}.{number}@{path.partition('?')[0]}", max_age_s=MAX_AGE_S)


def read_notice(origins: OriginRules, call: Call, texts: Mapping[str, str] = NOTICES) -> Notice:
    """Return the notice for the requested page, if its key is in `texts`; otherwise an empty notice."""
    found = _VALUE.fullmatch(origins.cookie_value(call, _name(origins)))
    if found is None or found["path"] != call.scope["path"] or found["word"] not in texts:
        return Notice()
    number = int(found["number"])
    callbacks = "1 callback is" if number == 1 else f"{number} callbacks are"
    matches = "1 match was" if number == 1 else f"{number} matches were"
    text = texts[found["word"]].format(callbacks=callbacks, matches=matches)
    return Notice(text, (_header(origins, "", max_age_s=0),), found["word"], number)


def _name(origins: OriginRules) -> str:
    return f"__Secure-{NAME}" if origins.is_secure else NAME


def _header(origins: OriginRules, value: str, *, max_age_s: int) -> Header:
    return origins.header_of(_name(origins), value, max_age_s=max_age_s, path="/console", same_site="Strict")
