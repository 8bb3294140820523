"""Serve the two routes of `api.py` with constant responses: the yardstick without keys, rules and database."""

from __future__ import annotations

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

CREATED = (
    b'{"serverId":"srv_01k9z3b7m2q4x8c6v5n1","gameId":"92ffce42-c852-49ef-b7e6-d7787ebaa6d0","region":"bench",'
    b'"status":"allocating","ip":null,"port":null,"callbackUrl":"http://127.0.0.1:9/callback",'
    b'"externalMatchId":"bench-match-000001","gameType":"cs2","createdAt":"2026-11-15T09:08:14.169Z",'
    b'"rconPassword":"lrG3PMYlI1IL8SbL6FVLskY-"}'
)
FOUND = CREATED[:-1] + b',"match":null}'


async def get_server(request: Request) -> Response:
    """Return the same server for all ids."""
    return Response(FOUND, media_type="application/json")


async def create_match(request: Request) -> Response:
    """Read the body, as any server must, and ignore it."""
    await request.body()
    return Response(CREATED, status_code=201, media_type="application/json")


def main() -> None:
    """Serve on any free port until interrupted."""
    routes = [
        Route("/api/v1/servers/{server_id}", get_server),
        Route("/api/v1/matches", create_match, methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    uvicorn.run(app, host="127.0.0.1", port=0, loop="uvloop", http="httptools", access_log=False)


if __name__ == "__main__":
    main()
