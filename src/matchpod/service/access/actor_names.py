"""Look up the names of actors (API keys and console sessions) in audit entries, for managers of an organization."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from matchpod.ports import Database
from matchpod.storage import api_keys, console_sessions

LINK: Final = "a link"
"""The name shown for a session whose link was created without a person's name. The user of the session is
unknown."""

_SESSION: Final = "ses_"


async def actor_names(db: Database, actors: Iterable[str | None]) -> dict[str, str]:
    """Return the names of actors by id.

    A key without a name is represented by its first characters. The name of a session is that of its person, or else
    `LINK`. Ids of other actors, and of keys that do not exist, are left out.
    """
    known = {actor for actor in actors if actor is not None}
    names = {actor: LINK for actor in known if is_session(actor)}
    names |= await people_of(db, names)
    if others := sorted(known - names.keys()):
        names |= {key.id: key.name or f"{key.prefix}…" for key in await api_keys.by_ids(db, others)}
    return names


async def people_of(db: Database, actors: Iterable[str]) -> dict[str, str]:
    """Return the names of the people behind those `actors` that are console sessions, by session id."""
    sessions = sorted(actor for actor in set(actors) if is_session(actor))
    return await console_sessions.people(db, sessions) if sessions else {}


def is_session(actor: str) -> bool:
    """True if the actor id is the id of a console session."""
    return actor.startswith(_SESSION)
