"""A request to the Kubernetes API, as a value."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from matchpod.adapters.kubernetes.cluster_meter import Verb

JSON = "application/json"


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, and how long it may take; `body` is JSON."""

    method: str
    verb: Verb = Verb.GET
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    timeout_s: float
