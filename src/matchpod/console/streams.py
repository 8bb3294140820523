"""Read from a request which pages a stream is for."""

from __future__ import annotations

import re
from typing import Final

from matchpod.core.errors import InvalidParamsError
from matchpod.web.endpoint import Call
from matchpod.web.query_strings import query_of

PAGES: Final = "pages"
"""The parameter with the pages of a stream: `wall:POSITION,match/SERVER_ID:POSITION`, each once."""
SESSION: Final = "session"
"""The parameter with the session that the pages were loaded with."""
MAX_PAGES: Final = 40

_PAGE: Final = re.compile(r"([a-z]+(?:/[A-Za-z0-9_-]{1,64})?):([0-9a-f.]{0,32})")


def positions_of(call: Call) -> dict[str, str]:
    """Return the names of the pages, each with the position after which changes are sent; "" for everything."""
    listed = [one for one in dict(query_of(call)).get(PAGES, "").split(",") if one]
    if len(listed) > MAX_PAGES:
        raise InvalidParamsError(f"{PAGES} has {len(listed)} pages. A stream has at most {MAX_PAGES}.")
    found = [_PAGE.fullmatch(one) for one in listed]
    if None in found:
        raise InvalidParamsError(f"{PAGES} must be names with positions: `wall:POSITION,match/SERVER_ID:POSITION`.")
    return {one[1]: one[2] for one in found if one}
