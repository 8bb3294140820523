"""Decide whether the callbacks of a match may be sent to private addresses. The decision is stored with the match.

If MATCHPOD_CALLBACK_PRIVATE is set, it decides. Otherwise private addresses are allowed only if the service listens on
loopback and its public URL is a loopback URL, so that other machines can reach the service only through a proxy. A
request with a valid key is evidence of a proxy if its `Host` is another host, or if it was forwarded for another
machine. After such a request, private addresses are denied for new matches, in all processes and after restarts.
Existing matches keep their decision.
"""

from __future__ import annotations

import logging

from matchpod.ports import Database, DatabaseError
from matchpod.storage import proxy_evidence

_log = logging.getLogger(__name__)


class PrivateCallbacks:
    """Decides whether callbacks of new and existing matches may be sent to private addresses.

    `by_settings` is the decision that follows from the settings; `is_explicit` is True if MATCHPOD_CALLBACK_PRIVATE is
    set.
    """

    def __init__(self, *, db: Database, by_settings: bool, is_explicit: bool) -> None:
        self._db = db
        self._by_settings = by_settings
        self._is_explicit = is_explicit
        self._is_proxy_known = False
        self._is_stored = False

    @property
    def is_watching(self) -> bool:
        """True if requests must be checked: private addresses are allowed by default, and no evidence is stored."""
        return self._by_settings and not self._is_explicit and not self._is_stored

    async def are_allowed(self) -> bool:
        """True if callbacks of new matches may be sent to private addresses."""
        if self.is_watching and (header := await proxy_evidence.find(self._db)) is not None:
            self._is_stored = True
            self._close(header)
        return self._by_settings and not self._is_proxy_known

    async def proxy_seen(self, header: str) -> None:
        """Record that a request came through a proxy; `header` is the request header that shows this."""
        self._close(header)
        try:
            await proxy_evidence.store(self._db, header)
        except DatabaseError as exc:  # do not fail the request; the next one through the proxy is stored
            _log.warning("evidence of proxy not stored", extra={"reason": str(exc)})
        else:
            self._is_stored = True

    def may_send(self, decided: bool | None) -> bool:
        """True if a callback may be sent to a private address.

        `decided` is the decision that is stored with the match; None if an earlier version created the match.
        """
        return self._by_settings if self._is_explicit or decided is None else decided

    def _close(self, header: str) -> None:
        if not self._is_proxy_known:
            self._is_proxy_known = True
            _log.warning(
                "callbacks of new matches to private addresses denied, because other machines reach the service "
                "through a proxy; set MATCHPOD_CALLBACK_PRIVATE to allow or deny such callbacks",
                extra={"header": header},
            )
