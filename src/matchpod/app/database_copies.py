"""Detect whether this database is a copy of another installation's database, whose matches must not be driven twice.

A service that drives matches stores the identity of its database (its "place") in the database itself. If the stored
identity does not match, the database was copied or restored. The service is then read-only until an operator confirms
that the original is gone (`matchpod serve --restored`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from matchpod.adapters.database_place import BACKUP, PLACE_FILE, PlaceFile, new_token
from matchpod.app.resources import Resources, ResourcesError
from matchpod.ports import DatabaseError, DatabaseUnavailableError
from matchpod.storage.installation_identity import StoredPlace, postgres_place, read_place, store_place

RENEW_S: Final = 10 * 60.0
"""Interval in seconds at which a running service changes the token of its SQLite database. An older copy that replaces
the database is detected if the token has changed since the copy was made."""

_log = logging.getLogger(__name__)


async def claim_place(resources: Resources, *, is_restored: bool) -> str | None:
    """Record that this installation drives the matches. If it must not drive them, return a sentence with the reason.

    With `is_restored`, an operator has confirmed that the original of this database is gone.
    """
    if not resources.settings.drive:
        _log.warning("serving reads only: MATCHPOD_DRIVE is off")
        return "This process serves reads only: MATCHPOD_DRIVE is off."
    reason = await find_copy(resources)
    if reason is not None and not is_restored:
        _log.error(
            "this database is a copy: serving reads only, no match is driven",
            extra={"reason": reason, "if_the_original_is_gone": "matchpod serve --restored"},
        )
        return (
            f"This process serves reads only, because its database is a copy: {reason}."
            " If the original is gone, start once with: matchpod serve --restored."
        )
    if reason is not None:
        _log.warning("copy of a database taken over: its matches are driven from here", extra={"reason": reason})
    elif is_restored:
        _log.warning("--restored has no effect: this database is not a copy; start without it")
    try:
        await settle(resources)
    except (DatabaseUnavailableError, ResourcesError) as exc:
        if reason is not None:
            raise
        # The disk may be full. The service can run anyway, because this database is no copy.
        _log.warning("identity of the database not recorded", extra={"reason": str(exc)})
    return None


async def find_copy(resources: Resources) -> str | None:
    """Return why this database is a copy, for use after "because"; None if it is not a copy."""
    db = resources.db
    if db.is_shared:
        here = await postgres_place(db)
        if here is None or (await read_place(db)).place in (None, here):
            return None
        return "it was restored or copied from another PostgreSQL database"
    reason = await asyncio.to_thread(_find_file_copy, resources, await read_place(db))
    if reason is not None:  # read both again: a running service may have changed its token between the reads
        reason = await asyncio.to_thread(_find_file_copy, resources, await read_place(db))
    return reason


async def settle(resources: Resources) -> None:
    """Record the identity that this database has now. From now on, this database is the original."""
    db = resources.db
    if db.is_shared:
        here = await postgres_place(db)
        if here is not None and here != (await read_place(db)).place:
            await store_place(db, here, earlier=None)
        return
    file, token = PlaceFile(resources.settings.data_dir), new_token()
    # Keep the identity that the file has now, in case the process dies before the file gets the new token.
    earlier = await asyncio.to_thread(_valid_place, file, await read_place(db))
    await store_place(db, token, earlier=earlier)
    await asyncio.to_thread(_write_token, file, token)
    await store_place(db, await asyncio.to_thread(file.place), earlier=None)


async def renew_place(resources: Resources, *, pause_s: float = RENEW_S) -> None:
    """Change the token of an SQLite database every `pause_s` seconds, until cancelled."""
    while True:
        await asyncio.sleep(pause_s)
        if resources.db.is_shared:
            continue
        try:
            await settle(resources)
        except (DatabaseError, ResourcesError, OSError) as exc:  # perhaps a full disk; both tokens are valid
            _log.warning("token of the data folder not changed", extra={"reason": str(exc)})


def _valid_place(file: PlaceFile, stored: StoredPlace) -> str | None:
    """Return the stored identity that the file has: the current or the earlier identity, or None if it has neither."""
    return next((place for place in (stored.place, stored.earlier) if place is not None and file.is_at(place)), None)


def _find_file_copy(resources: Resources, stored: StoredPlace) -> str | None:
    folder, place, earlier = resources.settings.data_dir, stored.place, stored.earlier
    file = PlaceFile(folder)
    try:
        text = file.read()
        for found in (text, place):
            if found is not None and found.startswith(BACKUP):
                return f"it is a {found}"
        if place is None or _valid_place(file, stored) is not None:
            return None
    except OSError as exc:
        raise ResourcesError(f"The file {folder / PLACE_FILE} cannot be read: {exc.strerror or exc}.") from exc
    if text is None and earlier is None and place.isalnum():
        return None  # a process died during the first start, before it wrote the file
    if text is None:
        return f"its data folder has no file {PLACE_FILE}, so the database came from another folder"
    if text in {known.split()[0] for known in (place, earlier) if known is not None}:
        return "its data folder was copied or moved from another disk"
    return f"it does not belong to the file {PLACE_FILE} in its data folder: it was replaced with another database"


def _write_token(file: PlaceFile, token: str) -> None:
    try:
        file.write(token)
    except OSError as exc:
        raise ResourcesError(
            f"The file {PLACE_FILE} in the data folder cannot be written: {exc.strerror or exc}."
        ) from exc
