"""Which path parameters and headers are there? Each once, with the values it may have."""

from __future__ import annotations

from typing import Final

from matchpod.core.text_rules import MAX_EXTERNAL_ID
from matchpod.service import ingest
from matchpod.service.matches import MAX_IDEMPOTENCY_KEY
from matchpod.web.endpoint import Parameter

NO_CONTROL: Final = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"
"""Text without control characters."""

SERVER_ID: Final = Parameter(
    name="id",
    place="path",
    text="The `serverId`.",
    schema={"type": "string", "pattern": "^[0-9A-Za-z_-]{1,64}$", "example": "srv_01hf7yat000000000000000000"},
)
EXTERNAL_MATCH_ID: Final = Parameter(
    name="externalMatchId",
    place="path",
    text="The id given at creation, percent-encoded: it may contain slashes and any other character.",
    schema={"type": "string", "minLength": 1, "maxLength": MAX_EXTERNAL_ID, "pattern": NO_CONTROL},
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="Idempotency-Key",
    place="header",
    text="The same key with the same body answers the same server for 24 hours, and creates nothing.",
    schema={"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]+$"},
    is_required=False,
)
TOKEN: Final = Parameter(
    name="token",
    place="path",
    text="The token that the game server was given.",
    schema={"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"},
)
TOKEN_HEADER: Final = Parameter(
    name=ingest.TOKEN_HEADER,
    place="header",
    text="The token that the game server was given.",
    schema={"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"},
)
FILE: Final = Parameter(
    name="file",
    place="path",
    text="The name of the file.",
    schema={"type": "string", "enum": ["docs.css", "docs.js"]},
)
