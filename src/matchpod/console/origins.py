"""Decide whether a request may reach the console: by its host, its origin and its cookie.

Pages of other sites must not act in the name of a logged-in user. Browsers say where a request comes from
(`Sec-Fetch-Site`, or `Origin` in old ones), so no form needs a token. The host is checked because a foreign name may
resolve to our address: a page loaded under it would share its origin with us.
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
"""The cookie name over HTTPS. Because of the prefix, browsers accept it only over HTTPS, from the host itself, for all
paths."""
PLAIN_NAME = "matchpod"
SAFE_METHODS = ("GET", "HEAD")

_HOST: Final = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
"""A host with or without a port, without any other part of a URL."""


class OriginRules(msgspec.Struct, frozen=True):
    """The rules for an installation with this public URL."""

    public_url: str

    @property
    def is_secure(self) -> bool:
        """True if browsers connect over HTTPS."""
        return self.public_url.startswith("https:")

    @property
    def cookie_name(self) -> str:
        return SECURE_NAME if self.is_secure else PLAIN_NAME

    def cookie_header(self, value: str, *, max_age_s: int) -> Header:
        """Return the header that sets the cookie of a session; an age of 0 deletes it."""
        return self.header_of(self.cookie_name, value, max_age_s=max_age_s, path="/", same_site="Lax")

    def header_of(self, name: str, value: str, *, max_age_s: int, path: str, same_site: str) -> Header:
        parts = [f"{name}={value}", f"Path={path}", f"Max-Age={max_age_s}", "HttpOnly", f"SameSite={same_site}"]
        if self.is_secure:
            parts.append("Secure")
        return b"set-cookie", "; ".join(parts).encode()

    def read_cookie(self, call: Call) -> str:
        """Return the value of the cookie; empty if there is none."""
        return self.cookie_value(call, self.cookie_name)

    def cookie_value(self, call: Call, cookie_name: str) -> str:
        """Return the value of any of our cookies; empty if there is none.

        Browsers also send the cookies of other programs on the same host, with any text in them.
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
        """Raise ForbiddenError unless the request was sent to our host, by one of our pages or directly by the user."""
        if not self.is_own_host(call):
            hint = "If people use another address, set MATCHPOD_PUBLIC_URL to it."
            raise ForbiddenError(f"The console is served at {self.public_url}/console. {hint}")
        if not self.is_own_origin(call):
            raise ForbiddenError("This request came from another site, so nothing was done.")

    def is_own_host(self, call: Call) -> bool:
        """True if the request was sent to the public host, or to this machine by a name that is always its own."""
        host = _host_of(call.header(b"host") or "")
        return host is not None and (host == urlsplit(self.public_url).hostname or is_loopback(host))

    def is_own_origin(self, call: Call) -> bool:
        """True if the request was sent by our pages or directly by the user. Always True for safe methods."""
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
