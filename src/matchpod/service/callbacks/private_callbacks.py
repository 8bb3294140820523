"""Decide whether callbacks may go to private addresses: when a match is created, and kept with it.

The setting decides, if there is one. Otherwise they may if only this machine can call the service: it listens on
loopback, and its public URL is loopback. A proxy in front lets others call it all the same: a request with a valid key
shows it if it was sent to another host, or forwarded for another machine. From then on no new match may, in any process
and after a restart; the matches that were accepted before keep what was decided.
"""

from __future__ import annotations

import logging

from matchpod.ports import Database, DatabaseError
from matchpod.storage import proxy_evidence

_log = logging.getLogger(__name__)


class PrivateCallbacks:
    """The decision for new and for existing matches.

    `by_settings` is what the settings decide; `is_explicit` is True if the setting about it is set.
    """

    def __init__(self, *, db: Database, by_settings: bool, is_explicit: bool) -> None:
        self._db = db
        self._by_settings = by_settings
        self._is_explicit = is_explicit
        self._is_proxy_known = False
        self._is_stored = False

    @property
    def is_watching(self) -> bool:
        """True while a request through a proxy would change the decision, or is not stored yet."""
        return self._by_settings and not self._is_explicit and not self._is_stored

    async def are_allowed(self) -> bool:
        """True if the callback of a match that is created now may go to a private address."""
        if self.is_watching and (header := await proxy_evidence.find(self._db)) is not None:
            self._is_stored = True
            self._close(header)
        return self._by_settings and not self._is_proxy_known

    async def proxy_seen(self, header: str) -> None:
        """Note that a request came through a proxy, as this header shows."""
        self._close(header)
        try:
            await proxy_evidence.store(self._db, header)
        except DatabaseError as exc:  # the request is answered all the same, and the next one stores it
            _log.warning("sign of a proxy not stored", extra={"reason": str(exc)})
        else:
            self._is_stored = True

    def may_send(self, decided: bool | None) -> bool:
        """True if a callback may go to a private address; `decided` at its creation, None by an earlier version."""
        return self._by_settings if self._is_explicit or decided is None else decided

    def _close(self, header: str) -> None:
        if not self._is_proxy_known:
            self._is_proxy_known = True
            _log.warning(
                "new matches may not send callbacks to private addresses: other machines reach the service through a "
                "proxy; set MATCHPOD_CALLBACK_PRIVATE to allow or deny them",
                extra={"header": header},
            )
