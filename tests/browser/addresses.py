"""The addresses of the console that are checked and photographed. A new page is added by one line."""

from __future__ import annotations

from typing import Final

PUBLIC: Final = {
    "log-in": "/console/login",
    "log-in-link": "/console/login/none",
    "not-found": "/console/nothing-here",
}
"""Pages for everyone, by name."""

OF_AN_OWNER: Final = {
    "live": "/console",
}
"""Pages of an organization, by name; `{serverId}` is an open match, `{endedId}` one that has ended."""

OF_AN_OPERATOR: Final[dict[str, str]] = {}
"""Pages for operators, by name."""
