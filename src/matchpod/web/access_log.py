"""Describe a request for the access log, without its secrets: tokens in the path, the query string and headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from matchpod.core.secrets import HIDDEN
from matchpod.web.endpoint import Call, Endpoint, Tag
from matchpod.web.services import AccessLog

SECRET_PARAMETER: Final = "{token}"
LONG: Final = 20
"""Minimum length of a path segment to hide in an unknown path: the segment may be the token of a mistyped URL."""

_PARAMETER: Final = re.compile(r"\{\w+\}")


def is_logged(log: AccessLog, endpoint: Endpoint | None) -> bool:
    """True if requests to this endpoint (None: an unknown path) have a line in the access log."""
    return log is AccessLog.ALL or (log is AccessLog.ON and (endpoint is None or endpoint.tag is not Tag.INGEST))


def fields_of(call: Call) -> Mapping[str, object]:
    """Return the fields of a request's line in the access log, except its route, status and duration."""
    client, principal, agent = call.scope.get("client"), call.principal, call.header(b"user-agent")
    return {
        "path": shown_path(call),
        "client": None if client is None else client[0],
        "org_id": None if principal is None else principal.org_id,
        "key_id": None if principal is None else principal.key_id,
        "user_agent": agent,
    }


def shown_path(call: Call) -> str:
    """Return the path of a request with the tokens in it hidden."""
    if call.endpoint is None:
        parts = str(call.scope["path"]).split("/")
        return "/".join(HIDDEN if len(part) >= LONG else part for part in parts)
    values = iter(call.params)

    def value_of(parameter: re.Match[str]) -> str:
        value = next(values, "")
        return HIDDEN if parameter[0] == SECRET_PARAMETER else value

    return _PARAMETER.sub(value_of, call.endpoint.path)
