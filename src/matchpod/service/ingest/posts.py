"""Store the posts and reports of game servers and plugins: commit them, pass them to the runner, then answer.

The token in a URL or header identifies the sender. Bodies are not parsed here, except counts of shots.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

import msgspec

from cs2_protocol.log_batches import MAX_HEADER_CHARS, read_post
from cs2_protocol.log_pieces import MAX_PIECE_BYTES, split_post
from matchpod.core.errors import InvalidParamsError, PayloadTooLargeError, RateLimitError
from matchpod.core.servers.log_addresses import may_be_check_token
from matchpod.cs2.match_commands import matchzy_match, uses_plugin_match
from matchpod.cs2.shots_report import ShotsReportError, read_shots_report
from matchpod.ports import Clock, Database, DatabaseError, Vault
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.ingest.budget import DEFAULT_LIMITS, IngestBudgets, IngestLimits
from matchpod.service.ingest.redaction import continues_line, redact_log, redact_report, unfinished, unfinished_before
from matchpod.service.ingest.urls import IngestUrls
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.fold import settings_of
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.regions.regions import Regions
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import raw_log, region_checks, servers
from matchpod.storage.region_checks import CheckPost
from matchpod.storage.servers import ServerRow

MAX_BODY_BYTES: Final = 1024 * 1024
"""Maximum size of a log post in bytes. A game server sends at most 250 KB."""

MAX_REPORT_BYTES: Final = 128 * 1024
"""Maximum size of a plugin's report in bytes. A report is decoded as a whole; real reports have a few KB per player."""

OPEN_FOR_MS: Final = 2_000
"""Time for which a sender is cached as open. For this time after the end of a match, its posts may still be stored."""

CUT_ENTRIES: Final = 8
"""Number of newest entries, of any kind, that are searched for the beginning of a line that a post continues. Usually
the beginning is in the newest entry."""

TOKEN_HEADER: Final = "X-Matchpod-Token"
"""The header in which the match plugin sends its token."""

_STORED_HEADERS: Final = {
    name.encode(): name
    for name in (
        "x-logbytes-beginoffset",
        "x-logbytes-endoffset",
        "x-server-instance-token",
        "x-game-map",
        "x-timestamp",
    )
}
"""The headers of a log post that are stored, by lower-case name. `read_post` uses them."""

RawHeaders = Sequence[tuple[bytes, bytes]]
"""HTTP headers as pairs of a lower-case name and a value."""

Stored = Callable[[bool], None]
"""A function that is called with True when a committed post may be answered, or with False if the post was not
committed."""

Body = bytes | Callable[[], Awaitable[bytes]]
"""The body of a request, or a function that reads it. The body of an unknown sender is not read."""

_log = logging.getLogger(__name__)

# Matches more than the tokens of `new_token`, but excludes NUL and lone surrogates, which databases reject.
_TOKEN: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")


class Receipt(Enum):
    """The result of receiving a post or report."""

    STORED = auto()
    """The post was stored, or it was an empty log post, which the server would resend forever after any other
    answer."""
    EMPTY = auto()
    """The report has no body, so it was not stored."""
    UNKNOWN_SENDER = auto()
    """The token is missing or belongs to no match."""
    MATCH_ENDED = auto()


_REFUSED: Final = {Receipt.UNKNOWN_SENDER: "unknown", Receipt.MATCH_ENDED: "ended"}
"""The metrics label under which rejected log posts are counted, by receipt."""


class _Sender(msgspec.Struct, frozen=True):
    """The server that a token belongs to. `open_until_ms` is None if its match has ended, which is final.

    A cached sender is used while this process drives its match on this server, otherwise until `open_until_ms`. So a
    post of a server that was just replaced may still be stored. It does not count, because its attempt is not the
    current one.
    """

    server_id: str
    attempt: str
    speed: float
    """The speed of game time in the server's region; 1.0 is real time."""
    open_until_ms: int | None
    secrets: tuple[bytes, ...]
    """The secrets that the service generated for the match: its tokens, and the password if it was generated."""
    log_from_bytes: int = 0
    """Number of bytes that were stored for the match when this server got its log address. They are from earlier
    servers, whose posts have been rejected since."""


class _Tokens:
    """A cache of senders by token. Unknown tokens are not cached, because anyone can invent them."""

    def __init__(
        self,
        find: Callable[[Database, str], Awaitable[ServerRow | None]],
        *,
        db: Database,
        vault: Vault,
        live: LocalMatches,
        regions: Regions,
        limit: int,
    ) -> None:
        self._find = find
        self._db = db
        self._vault = vault
        self._limit = limit
        self._live = live
        self._regions = regions
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    def open_sender(self, token: str) -> _Sender | None:
        """Return the cached sender if this process drives its match and the match is played on the sender's server."""
        cached = self._senders.get(token)
        if cached is None or cached.open_until_ms is None:
            return None
        live = self._live.get(cached.server_id)
        return cached if live is not None and live.fold.attempt == cached.attempt else None

    async def sender(self, token: str, now_ms: int) -> _Sender | None:
        """Return the sender with this token; None if the token is unknown."""
        cached = self._senders.get(token)
        if cached is not None and (cached.open_until_ms is None or now_ms < cached.open_until_ms):
            return cached
        row = await self._find(self._db, token) if _TOKEN.fullmatch(token) else None
        if row is None:
            self._senders.pop(token, None)
            return None
        # Count from the time before the read, because the match may have ended since.
        open_until_ms = None if row.has_ended else now_ms + OPEN_FOR_MS
        region = self._regions.get(row.region)
        speed = region.speed if region else 1.0
        secrets = _secrets_of(row, self._vault)
        sender = _Sender(row.id, row.attempt, speed, open_until_ms, secrets, row.log_from_bytes)
        self._senders[token] = sender
        self._senders.move_to_end(token)
        while len(self._senders) > self._limit:
            self._senders.popitem(last=False)
        return sender


class Ingest:
    """Stores the posts and reports that game servers and their plugins send."""

    def __init__(  # noqa: PLR0913 - one argument per collaborator
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        live: LocalMatches,
        log_writer: LogWriter,
        metrics: Metrics,
        urls: IngestUrls,
        regions: Regions,
        turns: FoldTurns,
        quota_bytes: int | None,
        limits: IngestLimits = DEFAULT_LIMITS,
    ) -> None:
        self._db = db
        self._turns = turns
        self._quota_bytes = quota_bytes
        self._budgets = IngestBudgets(limits=limits)
        self._clock = clock
        self._log_writer = log_writer
        self._metrics = metrics
        metrics.log_refused.preset((*_REFUSED.values(), "too_large", "too_fast"))
        metrics.reports.preset((EntryKind.REPORT, EntryKind.DETECTION, EntryKind.SHOTS))
        self._urls = urls
        tokens_of = partial(_Tokens, db=db, vault=vault, live=live, regions=regions, limit=limits.max_tokens)
        self._log_tokens = tokens_of(servers.by_log_token)
        self._report_tokens = tokens_of(servers.by_report_token)

    def take_log(self, token: str, headers: RawHeaders, lines: bytes, stored: Stored) -> bool:
        """Begin to store an ordinary log post of a match that this process drives.

        `stored` is called when the post may be answered.

        Return False for any other post, such as a large post, or a post that continues a line. In this case, and if
        `stored` is called with False, the caller must call `store_log`.
        """
        sender = self._log_tokens.open_sender(token)
        if sender is None or not 0 < len(lines) <= MAX_PIECE_BYTES or continues_line(lines):
            return False
        entry = _log_entry(sender, _stored_headers(headers), lines, received_ms=self._clock.now_ms())
        return self._take(token, sender, entry, stored)

    def take_report(self, token: str, report: bytes, stored: Stored) -> bool:
        """Begin to store an ordinary report of the match plugin, as `take_log` does. Its answer is never delayed."""
        return self._take_report(EntryKind.REPORT, token, report, stored)

    def take_shots(self, token: str, report: bytes, stored: Stored) -> bool:
        """Begin to store an ordinary count of shots, as `take_report` does."""
        if self._report_tokens.open_sender(token) is None or not _are_shots(report):
            return False
        return self._take_report(EntryKind.SHOTS, token, report, stored)

    def _take_report(self, kind: EntryKind, token: str, report: bytes, stored: Stored) -> bool:
        sender = self._report_tokens.open_sender(token)
        if sender is None or not 0 < len(report) <= MAX_REPORT_BYTES:
            return False
        return self._take(token, sender, self._report_entry(kind, sender, report), stored)

    def _take(self, token: str, sender: _Sender, entry: NewEntry, stored: Stored) -> bool:
        size = len(entry.body)  # redaction does not change the size
        budget = self._budgets.take(token, size, sender.speed)
        if budget is None:
            return False
        kind, is_log = entry.kind, entry.kind == EntryKind.LOG

        def done(result: int | DatabaseError) -> None:
            budget.taken -= 1
            if isinstance(result, DatabaseError):
                stored(False)  # noqa: FBT003 - a protocol of one value
                return
            stored(True)  # noqa: FBT003 - as above
            if is_log:
                self._log_stored(sender, size, result)
            else:
                self._report_stored(sender, kind, result)

        self._log_writer.add(sender.server_id, (entry,), done, may_hold=is_log)
        return True

    @unavailable_on_outage
    async def store_log(self, token: str, headers: RawHeaders, body: Body, *, source: str = "") -> Receipt:
        """Store a log post. `source` is the sender's address. It is used only if the server is being checked."""
        try:
            receipt = await self._store_log(token, headers, body)
            if receipt is Receipt.UNKNOWN_SENDER and await self._is_checked(token, headers, source):
                return Receipt.STORED
        except PayloadTooLargeError:
            self._metrics.log_refused.inc("too_large")
            raise
        except RateLimitError:
            self._metrics.log_refused.inc("too_fast")
            raise
        if receipt in _REFUSED:
            self._metrics.log_refused.inc(_REFUSED[receipt])
        return receipt

    async def _is_checked(self, token: str, headers: RawHeaders, source: str) -> bool:
        """Record a post of a server check without its lines. False if the token does not belong to such a check."""
        if not (may_be_check_token(token) and _TOKEN.fullmatch(token)):
            return False
        stamp = _stored_headers(headers).get("x-timestamp")
        post = CheckPost(received_ms=self._clock.now_ms(), source=source, stamp=stamp)
        return await region_checks.record_post(self._db, token, post)

    async def _store_log(self, token: str, headers: RawHeaders, body: Body) -> Receipt:
        sender = await self._sender(self._log_tokens, token)
        if isinstance(sender, Receipt):
            return sender
        async with self._budgets.turn(token, sender.speed) as budget:
            lines = await _read(body)
            budget.spend(len(lines))
            # Check again, because the server may have been replaced. Usually the sender is still cached.
            sender = await self._sender(self._log_tokens, token)
            if isinstance(sender, Receipt):
                return sender
            if lines:
                entries = await self._log_entries(sender, _stored_headers(headers), lines)
                stored = await self._log_writer.append(sender.server_id, entries, may_wait=True, may_hold=True)
                self._log_stored(sender, len(lines), stored)
        return Receipt.STORED

    @unavailable_on_outage
    async def store_report(self, token: str | None, body: Body) -> Receipt:
        return await self._append_report(EntryKind.REPORT, token, body)

    @unavailable_on_outage
    async def store_detection(self, token: str | None, body: Body) -> Receipt:
        """Store a report of an anti-cheat plugin."""
        return await self._append_report(EntryKind.DETECTION, token, body)

    @unavailable_on_outage
    async def store_shots(self, token: str | None, body: Body) -> Receipt:
        """Store a count of shots. Raise InvalidParamsError if it is malformed."""
        return await self._append_report(EntryKind.SHOTS, token, body)

    @unavailable_on_outage
    async def match_file(self, token: str | None) -> bytes | None:
        """Return the match file for the match plugin; None if the token has no open match that uses the plugin.

        The game freezes while its plugin waits for the response, so there is only one database read.
        """
        if token is None or not _TOKEN.fullmatch(token):
            return None
        row = await servers.by_report_token(self._db, token)
        if row is None or row.has_ended:
            return None
        settings = settings_of(row)
        if not uses_plugin_match(settings):
            return None
        return msgspec.json.encode(
            matchzy_match(
                settings,
                match_id=row.plugin_match_id,
                log_url=self._urls.of(row.region).reports,
                log_header_name=TOKEN_HEADER,
                log_header_value=token,
            )
        )

    async def _sender(self, tokens: _Tokens, token: str) -> _Sender | Receipt:
        """Return the sender with this token, or the receipt if its posts are rejected."""
        sender = await tokens.sender(token, self._clock.now_ms())
        if sender is None:
            return Receipt.UNKNOWN_SENDER
        return Receipt.MATCH_ENDED if sender.open_until_ms is None else sender

    async def _append_report(self, kind: EntryKind, token: str | None, body: Body) -> Receipt:
        if token is None:
            return Receipt.UNKNOWN_SENDER
        tokens = self._report_tokens
        sender = tokens.open_sender(token) or await self._sender(tokens, token)
        if isinstance(sender, Receipt):
            return sender
        async with self._budgets.turn(token, sender.speed) as budget:
            report = await _read(body, MAX_REPORT_BYTES)
            budget.spend(len(report))
            sender = tokens.open_sender(token) or await self._sender(tokens, token)  # check again, as in `_store_log`
            if isinstance(sender, Receipt):
                return sender
            if not report:
                return Receipt.EMPTY
            if kind is EntryKind.SHOTS:
                _check_shots(report)
            entry = self._report_entry(kind, sender, report)
            stored = await self._log_writer.append(sender.server_id, [entry], may_wait=True)
            self._report_stored(sender, kind, stored)
        return Receipt.STORED

    def _report_entry(self, kind: EntryKind, sender: _Sender, report: bytes) -> NewEntry:
        body = redact_report(report, sender.secrets)
        return NewEntry(kind=kind, received_ms=self._clock.now_ms(), body=body, attempt=sender.attempt)

    async def _log_entries(self, sender: _Sender, headers: Mapping[str, str], lines: bytes) -> list[NewEntry]:
        """Return the entries of a post, one per piece. A large post takes long to redact, so this is done in turns."""
        received_ms = self._clock.now_ms()
        before = await self._line_before(sender, headers) if continues_line(lines) else b""
        new: list[NewEntry] = []

        def redact(piece: tuple[Mapping[str, str], bytes]) -> bool:
            nonlocal before
            if new:
                before = unfinished(before + new[-1].body)
            new.append(_log_entry(sender, *piece, received_ms=received_ms, before=before))
            return True

        if len(lines) <= MAX_PIECE_BYTES:
            redact((headers, lines))
        else:
            await self._turns.run(split_post(headers, lines), redact)
        return new

    async def _line_before(self, sender: _Sender, headers: Mapping[str, str]) -> bytes:
        """Return the unfinished line or command that a post continues."""
        newest = await raw_log.newest_of_kind(self._db, sender.server_id, EntryKind.LOG, count=CUT_ENTRIES)
        posts = [
            read_post(msgspec.json.decode(post.headers, type=dict[str, str]), post.body, received_ms=post.received_ms)
            for post in newest
            if post.attempt == sender.attempt
        ]
        return unfinished_before(posts, read_post(headers, b"", received_ms=0).begin)

    def _log_stored(self, sender: _Sender, size: int, stored: int) -> None:
        """Count a stored post of `size` bytes; `stored` is the total number of bytes stored for the match."""
        self._metrics.log_posts.inc()
        self._metrics.log_bytes.inc(amount=size)
        self._end_over_quota(sender, stored)

    def _report_stored(self, sender: _Sender, kind: str, stored: int) -> None:
        """Count a stored report; `stored` is the total number of bytes stored for the match."""
        self._metrics.reports.inc(kind)
        self._end_over_quota(sender, stored)

    def _end_over_quota(self, sender: _Sender, stored: int) -> None:
        """If the server exceeds its quota, append an entry to end the match. If that fails, the next post retries."""
        sent = stored - sender.log_from_bytes
        if self._quota_bytes is None or sent <= self._quota_bytes:
            return
        about = {"server_id": sender.server_id}
        _log.warning("match exceeds its log quota", extra={**about, "bytes": sent, "quota": self._quota_bytes})

        def done(result: int | DatabaseError) -> None:
            if isinstance(result, DatabaseError):
                _log.warning("match over log quota could not be ended", extra={**about, "reason": str(result)})

        end = NewEntry(kind=EntryKind.OVER_QUOTA, received_ms=self._clock.now_ms(), attempt=sender.attempt)
        self._log_writer.add(sender.server_id, (end,), done)


def _log_entry(
    sender: _Sender, headers: Mapping[str, str], lines: bytes, *, received_ms: int, before: bytes = b""
) -> NewEntry:
    """Return the entry of a post or of a piece of a post; `before` is the unfinished line that it continues."""
    return NewEntry(
        kind=EntryKind.LOG,
        received_ms=received_ms,
        body=redact_log(lines, sender.secrets, before=before),
        headers=msgspec.json.encode(headers),
        attempt=sender.attempt,
    )


def _are_shots(report: bytes) -> bool:
    try:
        _check_shots(report)
    except InvalidParamsError:
        return False
    return True


def _check_shots(report: bytes) -> None:
    try:
        read_shots_report(report)
    except ShotsReportError as exc:
        raise InvalidParamsError(f"The body is not a report of shots: {exc}.") from exc


def _stored_headers(headers: RawHeaders) -> dict[str, str]:
    """Return the headers to store. Values longer than MAX_HEADER_CHARS are truncated."""
    return {
        _STORED_HEADERS[name]: value[:MAX_HEADER_CHARS].decode("latin-1")
        for name, value in headers
        if name in _STORED_HEADERS
    }


def _secrets_of(row: ServerRow, vault: Vault) -> tuple[bytes, ...]:
    """Return the secrets that the service generated for a match. (Secrets from callers could match other text.)"""
    sealed = (row.log_token, row.report_token, row.rcon_password if row.is_password_ours else None)
    try:
        return tuple(vault.open(secret).encode() for secret in sealed if secret is not None)
    except ValueError:  # encrypted with another vault key; store the post nevertheless
        return ()


async def _read(body: Body, limit: int = MAX_BODY_BYTES) -> bytes:
    content = body if isinstance(body, bytes) else await body()
    if len(content) > limit:
        raise PayloadTooLargeError(f"The body is larger than {limit} bytes.")
    return content
