"""Where does what game servers send come in? Bytes are stored before they are answered, and then handed on.

The token in an address or header is the only thing that tells who sends. An answer is a status: 200 stored, 410 stop
sending (a game server removes the address), 401 a plugin that nobody knows. What a body means is not looked at here.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from matchpod.core.errors import PayloadTooLargeError
from matchpod.cs2.console_commands import matchzy_match, uses_plugin_match
from matchpod.cs2.log_batches import MAX_HEADER_CHARS
from matchpod.ports import Clock, Database
from matchpod.service.availability import unavailable_when_away
from matchpod.service.entries import store
from matchpod.service.folding import DETECTION, LOG, REPORT, settings_of
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.redaction import redact_log
from matchpod.service.server_views import has_ended
from matchpod.storage import servers
from matchpod.storage.servers import ServerRow

MAX_BODY_BYTES: Final = 1024 * 1024
"""A game server sends 250 KB at most, a batch of anti-cheat observations a few KB a player."""

OPEN_FOR_MS: Final = 2_000
"""How long a match is believed to go on: so long after its end its server may still be answered 200."""

MAX_KNOWN_TOKENS: Final = 10_000
"""Two tokens a match: the matches of a large process, in a few megabytes."""

TOKEN_HEADER: Final = "X-Matchpod-Token"
"""In which header the match plugin shows its token."""

STORED: Final = 200
BAD_REQUEST: Final = 400
UNKNOWN: Final = 401
GONE: Final = 410

_KEPT_HEADERS: Final = frozenset(
    {"x-logbytes-beginoffset", "x-logbytes-endoffset", "x-server-instance-token", "x-game-map", "x-timestamp"}
)
"""What the reader of posts looks at; the rest of a request says nothing about the match."""

Body = bytes | Callable[[], Awaitable[bytes]]
"""What was sent, or how to get it: of a sender that nobody knows it is not even taken in."""

# Wider than the tokens we give out; what no database takes as text (NUL, lone surrogates) stays away from it.
_TOKEN: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")


def report_url(ingest_base: str) -> str:
    """Where a server's match plugin reports, given where game servers reach us."""
    return f"{ingest_base}/ingest/reports"


class _Sender(msgspec.Struct, frozen=True):
    """Whose token it is, and until when that is believed; None once the match has ended: that never changes."""

    server_id: str
    open_until_ms: int | None


class _Tokens:
    """The senders of one kind of token. Unknown tokens are not kept: anybody can make them up."""

    def __init__(self, find: Callable[[Database, str], Awaitable[ServerRow | None]], db: Database) -> None:
        self._find = find
        self._db = db
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    async def sender(self, token: str, now_ms: int) -> _Sender | None:
        """The sender; None for a token that nobody was given."""
        known = self._senders.get(token)
        if known is not None and (known.open_until_ms is None or now_ms < known.open_until_ms):
            return known
        row = await self._find(self._db, token) if _TOKEN.fullmatch(token) else None
        if row is None:
            self._senders.pop(token, None)
            return None
        # Counted from before the look: the row may have changed while we waited for it.
        sender = _Sender(row.id, None if has_ended(row) else now_ms + OPEN_FOR_MS)
        self._senders[token] = sender
        self._senders.move_to_end(token)
        while len(self._senders) > MAX_KNOWN_TOKENS:
            self._senders.popitem(last=False)
        return sender


class Ingest:
    """Takes in what game servers and their plugins send."""

    def __init__(self, *, db: Database, clock: Clock, live: LiveMatches, measures: Measures, ingest_base: str) -> None:
        self._db = db
        self._clock = clock
        self._live = live
        self._measures = measures
        self._report_url = report_url(ingest_base)
        self._log_tokens = _Tokens(servers.by_log_token, db)
        self._report_tokens = _Tokens(servers.by_report_token, db)

    @unavailable_when_away
    async def take_log(self, token: str, headers: Mapping[str, str], body: Body) -> int:
        """Store a post of log lines; 410 for a token that is unknown or whose match has ended."""
        sender = await self._log_tokens.sender(token, self._clock.now_ms())
        if sender is None or sender.open_until_ms is None:
            self._measures.log_refused.inc("unknown" if sender is None else "ended")
            return GONE
        try:
            lines = await _whole(body)
        except PayloadTooLargeError:
            self._measures.log_refused.inc("too_large")
            raise
        # An empty post has nothing to store, but any other answer would make the server send it for ever.
        if lines:
            await store(
                self._db,
                self._live,
                sender.server_id,
                LOG,
                received_ms=self._clock.now_ms(),
                body=redact_log(lines),
                headers=_kept(headers),
            )
            self._measures.log_posts.inc()
            self._measures.log_bytes.inc(amount=len(lines))
        return STORED

    @unavailable_when_away
    async def take_report(self, token: str | None, body: Body) -> int:
        """Store a report of the match plugin; 401 for an unknown token, 410 when the match has ended."""
        return await self._take_plugin(REPORT, token, body)

    @unavailable_when_away
    async def take_detection(self, token: str | None, body: Body) -> int:
        """Store a report of an anti-cheat plugin; the same answers as for the match plugin."""
        return await self._take_plugin(DETECTION, token, body)

    @unavailable_when_away
    async def match_file(self, token: str | None) -> bytes | None:
        """The match that the plugin is to load; None where there is none to load, or no longer.

        The game stands still while its plugin waits for this: one read, nothing else.
        """
        if token is None or not _TOKEN.fullmatch(token):
            return None
        row = await servers.by_report_token(self._db, token)
        if row is None or has_ended(row):
            return None
        settings = settings_of(row)
        if not uses_plugin_match(settings):
            return None
        return msgspec.json.encode(
            matchzy_match(
                settings,
                match_id=row.plugin_match_id,
                log_url=self._report_url,
                log_header_name=TOKEN_HEADER,
                log_header_value=token,
            )
        )

    async def _take_plugin(self, kind: str, token: str | None, body: Body) -> int:
        sender = None if token is None else await self._report_tokens.sender(token, self._clock.now_ms())
        if sender is None:
            return UNKNOWN
        if sender.open_until_ms is None:
            return GONE
        report = await _whole(body)
        if not report:
            return BAD_REQUEST
        received_ms = self._clock.now_ms()
        await store(self._db, self._live, sender.server_id, kind, received_ms=received_ms, body=redact_log(report))
        self._measures.reports.inc(kind)
        return STORED


def _kept(headers: Mapping[str, str]) -> bytes:
    """The headers that are stored, as JSON; a value longer than any that makes sense is cut."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _KEPT_HEADERS:
            kept[lower] = value[:MAX_HEADER_CHARS]
    return msgspec.json.encode(kept)


async def _whole(body: Body) -> bytes:
    whole = body if isinstance(body, bytes) else await body()
    if len(whole) > MAX_BODY_BYTES:
        raise PayloadTooLargeError(f"The body is over {MAX_BODY_BYTES} bytes.")
    return whole
