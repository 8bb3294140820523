"""Live: all open matches, and those that ended without a result; what needs attention comes first."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Final

from matchpod.console.filters import storable
from matchpod.console.page_updates import Broadcast
from matchpod.console.rendering import redirect
from matchpod.console.visit import READER_ONLY, Visit
from matchpod.console.wall import Wall
from matchpod.core.errors import ForbiddenError, InvalidParamsError, MatchpodError
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import label_name_fault
from matchpod.core.views.wall_groups import WallGroup
from matchpod.service.identity.principals import Scope
from matchpod.service.reading.wall import KEPT, MAX_ENDED
from matchpod.web.http.responses import Response

NAME: Final = "wall"
"""The name of the wall in streams; grouped by a label, its name follows after a slash."""

PATH: Final = "/console"
MAX_SEARCH: Final = 300
"""Characters of a search; an external id has at most 255."""
_TIME: Final = re.compile(r"[0-9]{1,15}")


async def wall(visit: Visit) -> Response:
    """Show the wall; operators have none, and see their own page instead."""
    if visit.user.is_operator:
        return redirect("/console/operator")
    if Scope.SERVERS_READ not in visit.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    group = visit.query().get("group", "")
    broadcast = await broadcast_of(visit, "" if label_name_fault(group) else group)
    shown = broadcast.subject
    # The page's script hides what does not fit, here and in what comes later.
    search = storable(visit.query().get("search", ""))[:MAX_SEARCH]
    return visit.page("live.html", wall=shown, name=broadcast.name, position=broadcast.position, search=search)


async def acknowledge(visit: Visit) -> Response:
    """Take matches that ended without a result off the wall: those on `servers`, or older ones of a group."""
    given, service = await visit.form(), visit.deps.acknowledgements
    if "ended_before" in given:
        group, before = given.get("group", ""), given["ended_before"]
        if group not in KEPT or not _TIME.fullmatch(before):
            raise InvalidParamsError("group must be failed or canceled, and ended_before a time in ms.")
        await service.acknowledge_older(visit.principal, int(before), is_by_hand=KEPT[WallGroup(group)])
    else:
        server_ids = given.get("servers", "").split()
        if len(server_ids) > MAX_ENDED or not all(map(read_server_id, server_ids)):
            raise InvalidParamsError(f"servers must be the ids of at most {MAX_ENDED} servers.")
        await service.acknowledge(visit.principal, server_ids)
    with suppress(MatchpodError):  # it is done; the wall follows within a second
        await (await broadcast_of(visit)).refresh()
    group = given.get("grouped_by", "")
    return visit.done(PATH if label_name_fault(group) else f"{PATH}?group={group}", "acknowledged")


async def broadcast_of(visit: Visit, grouped_by: str = "") -> Broadcast:
    """Return the broadcast of the wall, by default grouped by the state of matches, else by a label."""
    org_id = visit.principal.org_id
    name = f"{NAME}/{grouped_by}" if grouped_by else NAME
    return await visit.deps.broadcasts.find(name, org_id, partial(Wall, visit.deps.overview, org_id, grouped_by))
