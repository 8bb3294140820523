"""Serve the routes of `api.py` as a bare ASGI application on uvicorn: no key, no rules, no database.

It sends the same bytes as Matchpod: complete responses that `api.py` has recorded in the folder BENCH_ANSWERS. The date
is added by uvicorn; all other headers are the recorded ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import uvicorn

from matchpod.web.http.asgi import Message, Receive, Scope, Send

PLAIN, GZIP, CREATED = "plain.http", "gzip.http", "created.http"
"""The files with responses."""


class Recorded(NamedTuple):
    """A response as the two messages of ASGI."""

    start: Message
    body: Message


def read_recorded(path: Path) -> Recorded:
    """Parse a recorded response."""
    head, _, body = path.read_bytes().partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    pairs = (line.partition(b": ") for line in lines)
    headers = [(name, value) for name, _, value in pairs if name != b"date"]
    start: Message = {"type": "http.response.start", "status": int(first.split()[1]), "headers": headers}
    return Recorded(start, {"type": "http.response.body", "body": body})


class BareApplication:
    """The ASGI callable."""

    def __init__(self, folder: Path) -> None:
        self._plain, self._gzip, self._created = (read_recorded(folder / name) for name in (PLAIN, GZIP, CREATED))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any GET with the server, compressed if accepted, and any POST with the created match."""
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
            answer = self._created
        else:
            is_packed = any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])
            answer = self._gzip if is_packed else self._plain
        await send(answer.start)
        await send(answer.body)


def main() -> None:
    """Serve on any free port until interrupted."""
    uvicorn.run(
        BareApplication(Path(os.environ["BENCH_ANSWERS"])),
        host="127.0.0.1",
        port=0,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
