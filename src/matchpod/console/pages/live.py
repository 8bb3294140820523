"""Show the wall: open matches and matches that ended recently or failed, and above them a strip of urgent matches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlencode

from matchpod.console.filters import storable
from matchpod.console.notices import ACKNOWLEDGED
from matchpod.console.page_updates import Broadcast
from matchpod.console.rendering import redirect
from matchpod.console.visit import READER_ONLY, Visit
from matchpod.console.wall import Wall, WallView
from matchpod.core.errors import ForbiddenError, InvalidParamsError, MatchpodError, NotFoundError
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import label_name_fault
from matchpod.core.views.wall_groups import WallGroup
from matchpod.service.identity.principals import Scope
from matchpod.service.reading.wall import MAX_ENDED
from matchpod.web.http.responses import Response

NAMES: Final = {"table": WallView.TABLE, "wall": WallView.CARDS}
"""Views of the wall, by the name that the wall has in streams. If the wall is grouped by a label, the name is followed
by a slash and the name of the label. Pages of earlier versions show cards and use the name `wall`."""

PATH: Final = "/console"
FILTERS: Final = ("view", "group", "state", "region", "label", "search", "screen")
"""Query parameters of the page. Those that filter matches are applied by the page's script, also to matches that are
added later."""
MUTED: Final = (
    ("call", "a player asked for an admin"),
    ("gone", "a player is gone"),
    ("roster", "players are missing before play"),
    ("silence", "nothing is heard from a server"),
    ("pause", "a long pause"),
    ("failed", "a match failed"),
    ("pending", "matches wait for a free server"),
    ("tries", "a server did not start at the first try"),
)
"""Kinds of attention that a user can mute in the browser, with their descriptions."""
MAX_SEARCH: Final = 300
"""Maximum length of a search text. An external match id has at most 255 characters."""
_TIME: Final = re.compile(r"[0-9]{1,15}")


async def wall(visit: Visit) -> Response:
    """Show the wall of the user's organization; redirect operators to their own page."""
    if visit.user.is_operator:
        return redirect("/console/operator")
    if Scope.SERVERS_READ not in visit.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    query = visit.query()
    group, view = query.get("group", ""), query.get("view", "")
    name = _name("" if label_name_fault(group) else group, WallView.CARDS if view == WallView.CARDS else WallView.TABLE)
    broadcast = await broadcast_of(visit, name)
    return visit.page(
        "live.html",
        wall=broadcast.subject,
        name=broadcast.name,
        position=broadcast.position,
        search=storable(query.get("search", ""))[:MAX_SEARCH],
        is_full=query.get("screen") == "full",
        muted=MUTED,
    )


async def acknowledge(visit: Visit) -> Response:
    """Acknowledge failed matches: those in `servers`, or all that ended before `ended_before`. The wall hides them."""
    given, service = await visit.form(), visit.deps.acknowledgements
    if given.get("group", WallGroup.FAILED) != WallGroup.FAILED:  # sent by a page of an earlier version
        raise InvalidParamsError("Only failed matches can be acknowledged.")
    if "ended_before" in given:
        done = await service.acknowledge_older(visit.principal, _time(given["ended_before"], "ended_before"))
    else:
        server_ids = given.get("servers", "").split()
        if len(server_ids) > MAX_ENDED or not all(map(read_server_id, server_ids)):
            raise InvalidParamsError(f"servers must be the ids of at most {MAX_ENDED} servers.")
        done = await service.acknowledge(visit.principal, server_ids)
    return await _back(visit, given, ACKNOWLEDGED, number=done.at_ms if done.count else 0)


async def undo(visit: Visit) -> Response:
    """Undo the acknowledgements that the user made at the time in the field `at`."""
    given = await visit.form()
    await visit.deps.acknowledgements.undo(visit.principal, _time(given.get("at", ""), "at"))
    return await _back(visit, given, "acknowledgement-undone")


async def claim(visit: Visit) -> Response:
    """Store a claim on a match: who takes care of it."""
    given = await visit.form()
    name, note = given.get("name", "").strip(), given.get("note", "").strip()
    await visit.deps.claims.claim(visit.principal, visit.call.params[0], name=name, note=note)
    return await _back(visit, given, "claimed")


async def release_claim(visit: Visit) -> Response:
    """Delete the claim on a match."""
    await visit.deps.claims.release(visit.principal, visit.call.params[0])
    return await _back(visit, await visit.form(), "claim-released")


async def broadcast_of(visit: Visit, name: str) -> Broadcast:
    """Return the broadcast of the wall with this name in streams; NotFoundError if the name is unknown."""
    kind, _, grouped_by = name.partition("/")
    if kind not in NAMES or (grouped_by and label_name_fault(grouped_by)):
        raise NotFoundError("There is no such page.")
    org_id = visit.principal.org_id
    create = partial(Wall, visit.deps.overview, org_id, grouped_by, view=NAMES[kind])
    return await visit.deps.broadcasts.find(name, org_id, create)


def _name(grouped_by: str, view: WallView) -> str:
    kind = next(kind for kind, drawn in NAMES.items() if drawn is view)
    return f"{kind}/{grouped_by}" if grouped_by else kind


def _time(text: str, field: str) -> int:
    if not _TIME.fullmatch(text):
        raise InvalidParamsError(f"{field} must be a time in ms.")
    return int(text)


async def _back(visit: Visit, given: Mapping[str, str], notice: str, number: int = 0) -> Response:
    """Redirect to the wall with the parameters that the field `back` contains. The wall already shows the change."""
    before = {name: value for name, value in parse_qsl(given.get("back", "").removeprefix("?")) if name in FILTERS}
    with suppress(MatchpodError):  # the change is stored, and walls show it within a second anyway
        await visit.deps.broadcasts.refresh(visit.principal.org_id, NAMES)
    return visit.done(f"{PATH}?{urlencode(before)}" if before else PATH, notice, number=number)
