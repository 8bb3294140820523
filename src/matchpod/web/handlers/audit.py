"""Handler for the audit log."""

from __future__ import annotations

from matchpod.core.requests.audit_query import read_audit_query
from matchpod.web.endpoint import Call, Site
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json
from matchpod.web.query_strings import query_of


async def list_audit(site: Site, call: Call) -> Response:
    return private_json(await site.services.audit.list(call.caller, read_audit_query(query_of(call))))
