"""Send spans to an OpenTelemetry collector, as OTLP over HTTP with JSON, in a thread of its own.

Nothing waits for the collector: spans that it does not accept in time are dropped and counted. The environment
variables are the same as for OpenTelemetry's own libraries; `ignored_variables` lists the unsupported variables.
"""

from __future__ import annotations

import logging
import ssl
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from matchpod.ports import Span

BATCH_S: Final = 5.0
"""Time in seconds for which spans are collected before they are sent; the same as in OpenTelemetry's own libraries."""
MAX_BATCH: Final = 512
"""Maximum number of spans per request."""
MAX_WAITING: Final = 2048
"""Maximum number of queued spans (half an hour of spans of a busy service). If the queue is full, further spans are
dropped."""
MAX_PAUSE_S: Final = 60.0
"""Maximum delay in seconds before the next request after a failure."""
CLOSE_S: Final = 1.0
"""Timeout in seconds for the last request, during `close`."""
DEFAULT_TIMEOUT_MS: Final = 10_000

_PREFIX: Final = "OTEL_EXPORTER_OTLP_"
_EXPORTERS: Final = ("otlp", "none", "")
_OF_EXPORTER: Final = ("ENDPOINT", "HEADERS", "TIMEOUT", "PROTOCOL", "CERTIFICATE")
_VARIABLES: Final = frozenset(
    (
        *("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"),
        *(f"{_PREFIX}{signal}{name}" for signal in ("", "TRACES_") for name in _OF_EXPORTER),
    )
)
"""The environment variables that are supported."""
_BUSY: Final = frozenset({429, 502, 503, 504})
"""HTTP statuses of a collector that is busy or unavailable: the same spans are sent again later."""
_REDIRECTS: Final = range(300, 400)
_log = logging.getLogger(__name__)
_encode: Final = msgspec.json.Encoder().encode


class OtlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The URL to which spans are sent, and the resource attributes that describe this process."""

    url: str
    headers: Mapping[str, str] = {}
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    authority: ssl.SSLContext | None = None
    """TLS settings that trust the configured authority of the collector; None to trust the system's authorities."""
    resource: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """Omit the headers, which may contain an API key."""
        return f"OtlpOptions({self.url!r})"


def read_options(environment: Mapping[str, str]) -> OtlpOptions | None:
    """Return the options that the environment sets; None if tracing is off. Raise ValueError for invalid options."""

    def value_of(name: str) -> tuple[str, str]:
        """Return name and value of the variable for traces or, if that is not set, of the variable for all signals."""
        names = (f"{_PREFIX}TRACES_{name}", f"{_PREFIX}{name}")
        return next(((name, text) for name in names if (text := environment.get(name, "").strip())), (names[1], ""))

    variable, url = value_of("ENDPOINT")
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if not url or is_off or environment.get("OTEL_TRACES_EXPORTER", "").strip() == "none":
        return None
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(f"{variable} is not an HTTP URL such as http://127.0.0.1:4318")
    if value_of("PROTOCOL")[1] == "grpc":
        raise ValueError(f"{value_of('PROTOCOL')[0]} is grpc, but only OTLP over HTTP is supported (usually port 4318)")
    timeout_name, timeout = value_of("TIMEOUT")
    if timeout and not (timeout.isascii() and timeout.isdecimal() and int(timeout)):
        raise ValueError(f"{timeout_name} must be a number of milliseconds, not {timeout!r}")
    resource = {"service.name": "matchpod", **_pairs("OTEL_RESOURCE_ATTRIBUTES", environment)}
    if name := environment.get("OTEL_SERVICE_NAME", "").strip():
        resource["service.name"] = name
    return OtlpOptions(
        authority=_authority(*value_of("CERTIFICATE")),
        url=url if variable.startswith(f"{_PREFIX}TRACES_") else f"{url.rstrip('/')}/v1/traces",
        headers=_pairs(value_of("HEADERS")[0], environment),
        timeout_s=int(timeout or DEFAULT_TIMEOUT_MS) / 1000,
        resource=resource,
    )


def ignored_variables(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the names of OpenTelemetry variables that are set, but are not supported here."""
    ignored = [name for name in environment if name.startswith("OTEL_") and name not in _VARIABLES]
    if environment.get("OTEL_TRACES_EXPORTER", "").strip() not in _EXPORTERS:
        ignored.append("OTEL_TRACES_EXPORTER")
    protocols = (f"{_PREFIX}TRACES_PROTOCOL", f"{_PREFIX}PROTOCOL")
    ignored += [name for name in protocols if environment.get(name, "").strip() not in ("", "grpc", "http/json")]
    return sorted(ignored)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Rejects redirects. A followed redirect becomes a GET request without the spans, so its status is misleading."""

    def redirect_request(self, *_args: Any, **_fields: Any) -> None:
        """Return None, so that a redirect is reported as an error."""


class OtlpExporter:
    """Collects spans, and sends them in batches from a thread."""

    def __init__(self, options: OtlpOptions, *, version: str, batch_s: float = BATCH_S) -> None:
        self._options = options
        self._version = version
        self._batch_s = batch_s
        # The opener uses the proxy in HTTP_PROXY or HTTPS_PROXY, except for hosts in NO_PROXY.
        tls = urllib.request.HTTPSHandler(context=options.authority or ssl.create_default_context())
        self._opener = urllib.request.build_opener(_NoRedirects, tls)
        self._waiting: deque[Span] = deque()
        self._woken = threading.Event()
        self._is_closing = False
        self._failures = 0
        self.exported = 0
        """Number of spans that the collector has accepted."""
        self.dropped = 0
        """Number of spans that the collector rejected, or that did not fit into the queue."""
        self._thread = threading.Thread(target=self._run, name="otlp exporter", daemon=True)
        self._thread.start()

    def export(self, span: Span) -> None:
        """Add a span to the queue, or drop it if the queue is full. Never wait, never raise."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.append(span)

    def close(self) -> None:
        """Stop the thread after it has sent the remaining spans; wait at most CLOSE_S."""
        self._is_closing = True
        self._woken.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._is_closing:
            self._woken.wait(min(self._batch_s * 2**self._failures, MAX_PAUSE_S))
            while self._waiting and self._send_batch():
                pass

    def _send_batch(self) -> bool:
        """Send the oldest spans in the queue. Return False if they stay queued, because they must be sent again."""
        batch = [self._waiting[number] for number in range(min(len(self._waiting), MAX_BATCH))]
        try:
            is_done, problem = self._post(self._body(batch))
        except Exception as exc:  # noqa: BLE001 - the thread must survive
            is_done, problem = False, f"{type(exc).__name__}: {exc}"
        if problem is None:
            self.exported += len(batch)
            if self._failures:
                _log.info("span export recovered")
            self._failures = 0
        else:
            if not self._failures:  # logged once per outage
                _log.warning("spans not exported", extra={"url": self._options.url, "reason": problem})
            self._failures = min(self._failures + 1, 10)
            if not is_done:
                return False
            self.dropped += len(batch)
        for _ in batch:
            self._waiting.popleft()
        return True

    def _post(self, body: bytes) -> tuple[bool, str | None]:
        """Send a request. Return whether its spans are finished (need no retry), and the problem, if there is one."""
        headers = {"Content-Type": "application/json", **self._options.headers}
        request = urllib.request.Request(self._options.url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._options.timeout_s):
                return True, None
        except urllib.error.HTTPError as exc:
            exc.close()
            where = exc.headers.get("Location", "").partition("?")[0] if exc.code in _REDIRECTS else ""
            return exc.code not in _BUSY, f"status {exc.code}" + (f", a redirect to {where}" if where else "")
        except OSError as exc:  # includes timeouts, unknown hosts and invalid certificates
            return False, str(exc)

    def _body(self, batch: Sequence[Span]) -> bytes:
        spans = {"scope": {"name": "matchpod", "version": self._version}, "spans": [_span(span) for span in batch]}
        resource = {"attributes": _attributes({**self._options.resource, "service.version": self._version})}
        return _encode({"resourceSpans": [{"resource": resource, "scopeSpans": [spans]}]})


def _span(span: Span) -> dict[str, object]:
    encoded: dict[str, object] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": span.kind.value,
        "startTimeUnixNano": str(span.start_ms * 1_000_000),
        "endTimeUnixNano": str(max(span.start_ms, span.end_ms) * 1_000_000),
        "attributes": _attributes(span.attributes),
        "status": {} if span.error is None else {"code": 2, "message": span.error},
    }
    if span.parent_id is not None:
        encoded["parentSpanId"] = span.parent_id
    return encoded


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, object]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in values.items()
    ]


def _authority(variable: str, file: str) -> ssl.SSLContext | None:
    if not file:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as exc:  # includes SSLError for a file without a certificate
        raise ValueError(f"{variable} is not a file with certificates in PEM: {exc}") from exc


def _pairs(variable: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the pairs of a text such as `key1=value1,key2=value2`, with percent-decoded values."""
    pairs = {}
    for item in filter(None, (part.strip() for part in environment.get(variable, "").split(","))):
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{variable} must be a list such as key1=value1,key2=value2")
        pairs[key.strip()] = unquote(value.strip())
    return pairs
