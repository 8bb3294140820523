"""Decide whether a request may access the console, by its host, its origin and its cookie.

Pages of other sites must not act on behalf of a logged-in user. Browsers send the origin of a request
(`Sec-Fetch-Site`; old browsers only `Origin`), so forms need no token. The host is checked because a foreign host name
may resolve to our address. Then a page of that host would have the same origin as our pages.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

from matchpod.core.errors import ForbiddenError
from matchpod.core.requests.addresses import is_loopback
from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Header

SECURE_NAME = "__Host-matchpod"
"""Name of the cookie over HTTPS. With this prefix, browsers accept the cookie only if it was set over HTTPS by the host
itself, for all paths."""
PLAIN_NAME = "matchpod"
SAFE_METHODS = ("GET", "HEAD")

_HOST: Final = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
"""Matches a host with an optional port, and nothing else."""


class OriginRules(msgspec.Struct, frozen=True):
    """The rules for access to the console of an installation with this public URL."""

    public_url: str

    @property
    def is_secure(self) -> bool:
        """True if browsers connect over HTTPS."""
        return self.public_url.startswith("https:")

    @property
    def cookie_name(self) -> str:
        return SECURE_NAME if self.is_secure else PLAIN_NAME

    def cookie_header(self, value: str, *, max_age_s: int) -> Header:
        """Return the header that sets the session cookie. With an age of 0, it deletes the cookie."""
        return self.header_of(self.cookie_name, value, max_age_s=max_age_s, path="/", same_site="Lax")

    def header_of(self, name: str, value: str, *, max_age_s: int, path: str, same_site: str) -> Header:
        parts = [f"{name}={value}", f"Path={path}", f"Max-Age={max_age_s}", "HttpOnly", f"SameSite={same_site}"]
        if self.is_secure:
            parts.append("Secure")
        return b"set-cookie", "; ".join(parts).encode()

    def read_cookie(self, call: Call) -> str:
        """Return the value of the session cookie; empty if the request has none."""
        return self.cookie_value(call, self.cookie_name)

    def cookie_value(self, call: Call, cookie_name: str) -> str:
        """Return the value of the cookie with this name; empty if the request has none.

        Browsers also send the cookies of other programs on the same host. They may contain any text.
        """
        prefix = f"{cookie_name}="
        for name, value in call.scope["headers"]:
            if name != b"cookie":
                continue
            for cookie in value.decode("latin-1").split(";"):
                if (text := cookie.strip(" \t")).startswith(prefix):
                    return str(text.removeprefix(prefix))
        return ""

    def check(self, call: Call) -> None:
        """Raise ForbiddenError unless the request was sent to our host, by one of our pages or by the user directly."""
        if not self.is_own_host(call):
            hint = "If people use another address, set MATCHPOD_PUBLIC_URL to it."
            raise ForbiddenError(f"The console is served at {self.public_url}/console. {hint}")
        if not self.is_own_origin(call):
            raise ForbiddenError("This request came from another site, so nothing was done.")

    def is_own_host(self, call: Call) -> bool:
        """True if the request was sent to the host of the public URL, or to a loopback name or address."""
        host = _host_of(call.header(b"host") or "")
        return host is not None and (host == urlsplit(self.public_url).hostname or is_loopback(host))

    def is_own_origin(self, call: Call) -> bool:
        """True if one of our pages or the user directly sent the request. Always True for safe (reading) methods."""
        if call.scope["method"] in SAFE_METHODS:
            return True
        site = call.header(b"sec-fetch-site")
        if site is not None:
            return site in ("same-origin", "none")
        origin = call.header(b"origin")
        if origin is None:
            return False
        host = call.header(b"host") or ""
        schemes = ("https",) if self.is_secure else ("http", "https")
        return origin in {f"{scheme}://{host}" for scheme in schemes}


def _host_of(header: str) -> str | None:
    found = _HOST.fullmatch(header)
    return None if found is None else (found["ipv6"] or found["name"]).lower()
