"""Hide the parts of a callback URL that may be secret."""

from __future__ import annotations

from matchpod.core.requests.secret_names import HIDDEN


def mask_url(url: str) -> str:
    """Return the URL with user info and all values of its query hidden, and without its fragment.

    Every value is hidden, whatever its name: receivers use names such as `code`, `sig` or `k` for their secrets.
    """
    address, question_mark, query = url.partition("#")[0].partition("?")
    scheme, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    user_info, at, host = authority.rpartition("@")
    masked = f"{HIDDEN if user_info else ''}{at}{host}"
    hidden = "&".join(map(_mask_part, query.split("&")))
    return f"{scheme}{slashes}{masked}{slash}{path}{question_mark}{hidden}"


def _mask_part(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals:
        return HIDDEN if name else ""
    return f"{name}={HIDDEN if value else ''}"
