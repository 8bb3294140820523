"""Look up the names of actors (keys and console sessions), for managers of an organization."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from matchpod.ports import Database
from matchpod.storage import api_keys, console_sessions

LINK: Final = "a link"
"""The name of a session that was begun with a link, if the link names no person. Its user is then unknown."""

_SESSION: Final = "ses_"


async def actor_names(db: Database, actors: Iterable[str | None]) -> dict[str, str]:
    """Return the names of actors by id: the name of a key, or its first characters; the name of a session's person.

    A session without a named person is called `LINK`. Ids of other actors, and of keys that do not exist, are left out.
    """
    known = {actor for actor in actors if actor is not None}
    names = {actor: LINK for actor in known if is_session(actor)}
    names |= await people_of(db, names)
    if others := sorted(known - names.keys()):
        names |= {key.id: key.name or f"{key.prefix}…" for key in await api_keys.by_ids(db, others)}
    return names


async def people_of(db: Database, actors: Iterable[str]) -> dict[str, str]:
    """Return the names of the people whose sessions are among these actors, by session."""
    sessions = sorted(actor for actor in set(actors) if is_session(actor))
    return await console_sessions.people(db, sessions) if sessions else {}


def is_session(actor: str) -> bool:
    """True for the id of a session of the console."""
    return actor.startswith(_SESSION)
