"""Render pages from templates.

All values are escaped. Pages contain no inline scripts or styles, because the content security policy forbids them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from matchpod.console.match_wording import finished_words, match_name, ruled, standing, waiting_words
from matchpod.core.match.actions import ACTIONS
from matchpod.web.http.responses import Header, Response

HTML = b"text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # Not `no-referrer`: with it, forms would send `Origin: null`, and over HTTP in a local network, no other header
    # shows the origin.
    (b"referrer-policy", b"strict-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
NOT_STORED: Header = (b"cache-control", b"no-store")
_TEXTS = "texts.html"
ASSETS: Mapping[str, bytes] = {
    "console.css": b"text/css; charset=utf-8",
    "charts.css": b"text/css; charset=utf-8",
    "wall.css": b"text/css; charset=utf-8",
    "wall.js": b"text/javascript; charset=utf-8",
    "match.css": b"text/css; charset=utf-8",
    "match.js": b"text/javascript; charset=utf-8",
    "console.js": b"text/javascript; charset=utf-8",
    "stream.js": b"text/javascript; charset=utf-8",
    "morph.js": b"text/javascript; charset=utf-8",
    "live.js": b"text/javascript; charset=utf-8",
    "keys.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}


def page(template: str, *, status: int = 200, headers: tuple[Header, ...] = (), **values: object) -> Response:
    return Response(render(template, **values), status, HTML, (*HEADERS, NOT_STORED, *headers))


def render(template: str, **values: object) -> bytes:
    return _templates().get_template(template).render(**values).encode()


def fragment(template: str, macro: str, *values: object, **named: object) -> bytes:
    """Render a template macro; return its output without the indentation and blank lines of the template."""
    text = getattr(_templates().get_template(template).module, macro)(*values, **named)
    return "\n".join(line for raw in str(text).splitlines() if (line := raw.strip())).encode()


def macro(template: str, name: str, /, *values: object, **named: object) -> Markup:
    """Render a template macro; return its output for use in other templates."""
    return Markup(getattr(_templates().get_template(template).module, name)(*values, **named))


def redirect(path: str, *headers: Header, status: int = 303) -> Response:
    """Return a redirect to one of our pages. With status 303, browsers request that page with GET."""
    return Response(b"", status, HTML, ((b"location", path.encode()), NOT_STORED, *HEADERS, *headers))


@cache
def assets() -> Mapping[str, Response]:
    """Return the static files of pages, by name. Their URLs contain their hash, so browsers may cache them forever."""
    folder = resources.files(__package__) / "assets"
    headers = (*HEADERS, (b"cache-control", b"public, max-age=31536000, immutable"))
    return {
        name: Response((folder / name).read_bytes(), content_type=kind, headers=headers, is_shared=True)
        for name, kind in ASSETS.items()
    }


def asset_path(name: str) -> str:
    """Return the URL of a static file. It contains a hash, so it changes when the file changes."""
    return f"/console/assets/{_digest(name)}/{name}"


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(assets()[name].body).hexdigest()[:12]


def time_tag(at: str | int | None) -> Markup:
    """Render a time in UTC. The page's script converts it to the reader's time zone."""
    if at is None or at == "":
        return Markup("–")
    return macro(_TEXTS, "time", iso(at), utc(at))


def minute(at: str | int) -> Markup:
    """Render a time without seconds, in UTC. The page's script converts it to the reader's time zone."""
    return macro(_TEXTS, "time", iso(at), utc(at), is_short=True)


def utc(at: str | int) -> str:
    """Format a time in UTC as `2026-03-14 20:03:20`."""
    return _moment(at).strftime("%Y-%m-%d %H:%M:%S")


def clock(at: str | int) -> Markup:
    """Render the time of day in UTC (a dash if unknown). The page's script converts it to the reader's time zone."""
    if at == "":
        return Markup("–")
    return macro(_TEXTS, "clock", iso(at), utc(at), _moment(at).strftime("%H:%M:%S"))


def short_clock(at: str | int) -> Markup:
    """Render the time of day without seconds, in UTC. The page's script converts it to the reader's time zone."""
    return macro(_TEXTS, "clock", iso(at), utc(at), _moment(at).strftime("%H:%M"), is_short=True)


def iso(at: str | int) -> str:
    """Format a time in UTC as ISO 8601."""
    return _moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(length_ms: float) -> str:
    """Format a duration as `42 s`, `2:05` or `1:02:05`."""
    seconds = max(0, int(length_ms / 1000))
    if seconds < 60:
        return f"{seconds} s"
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def with_page(query: Mapping[str, str], number: int) -> str:
    """Return the query string for a page of the same list."""
    return urlencode({**query, "page": str(number)})


def with_code(text: str) -> Markup:
    """Return a text in which words between backticks are rendered as code."""
    return macro(_TEXTS, "with_code", text.split("`"))


def _moment(at: str | int) -> datetime:
    when = datetime.fromtimestamp(at / 1000, UTC) if isinstance(at, int) else datetime.fromisoformat(at)
    return when.astimezone(UTC)


def _now_ms() -> int:
    return int(time.time() * 1000)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("matchpod.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "time": time_tag,
        "minute": minute,
        "utc": utc,
        "iso": iso,
        "clock": clock,
        "short_clock": short_clock,
        "duration": duration,
        "with_page": with_page,
        "with_code": with_code,
        "match_name": match_name,
    }
    environment.globals |= {
        "asset": asset_path,
        "now": _now_ms,
        "waiting_words": waiting_words,
        "standing": standing,
        "finished_words": finished_words,
        "ruled": ruled,
        "action_rules": ACTIONS,
    }
    return environment
