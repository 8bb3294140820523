"""Store the id of the installation that uses this database, and the identity ("place") of the database itself.

The id is created with the database, is the same for all replicas, and stays the same in a restored copy. Servers are
labeled with it, so that an installation releases only servers that it started itself. The place differs between the
original database and a copy. For SQLite, it comes from a file in the data folder (`adapters/database_place.py`). For
PostgreSQL, it consists of identifiers that PostgreSQL assigns. They differ in a copy made from a dump or a template,
but not in a standby.
"""

from __future__ import annotations

import secrets
from typing import Final

import msgspec

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, Statement
from matchpod.storage.rows import write_one

_ID: Final = "id"
_PLACE: Final = "place"
_EARLIER: Final = "earlier_place"

_POSTGRES_PLACE: Final = (
    "SELECT CAST(system_identifier AS TEXT) || ' ' || CAST(pg_database.oid AS TEXT) || ' '"
    " || CAST(CAST(CAST('installation' AS REGCLASS) AS OID) AS TEXT)"
    " FROM pg_control_system(), pg_database WHERE datname = current_database()"
)
"""PostgreSQL only: the identifiers of the cluster, the database and a table. Restoring a dump into the same database
creates a new table with a new identifier. A promoted standby keeps all three identifiers."""


class StoredPlace(msgspec.Struct, frozen=True):
    """Identity of the database when a service last drove matches, and its previous identity; None if unknown."""

    place: str | None
    earlier: str | None = None


async def installation_id(db: Database) -> str:
    """Return the id of the installation, a valid Kubernetes name. If the database has no id yet, create one."""
    found = await _read_id(db)
    if found is None:
        insert = "INSERT INTO installation (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
        await write_one(db, insert, {"name": _ID, "value": f"mp-{secrets.token_hex(8)}"})
        found = await _read_id(db)  # another replica may have created the id at the same time
    assert found is not None
    return found


async def _read_id(db: Database) -> str | None:
    row = await db.read_one("SELECT value FROM installation WHERE name = :name", {"name": _ID})
    return None if row is None else msgspec.convert(row[0], str)


async def read_place(db: Database) -> StoredPlace:
    found = await db.read("SELECT name, value FROM installation WHERE name IN ('place', 'earlier_place')")
    values = dict(msgspec.convert(found, list[tuple[str, str]]))
    return StoredPlace(values.get(_PLACE), values.get(_EARLIER))


async def store_place(db: Database, place: str, *, earlier: str | None) -> None:
    """Store the new identity. `earlier` stays valid until the change is complete, in case this process dies before."""
    await db.write([*set_place(place), *([_upsert(_EARLIER, earlier)] if earlier is not None else [])])


def set_place(place: str) -> list[Statement]:
    """Return the statements that set the identity and delete the previous identity."""
    return [_upsert(_PLACE, place), Statement("DELETE FROM installation WHERE name = 'earlier_place'")]


def _upsert(name: str, value: str) -> Statement:
    sql = (
        "INSERT INTO installation (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    return Statement(sql, {"name": name, "value": value})


async def postgres_place(db: Database) -> str | None:
    """Return the identity of a PostgreSQL database; None if the server does not provide the identifiers."""
    try:
        ((place,),) = await db.read(_POSTGRES_PLACE)
    except DatabaseUnavailableError:
        raise
    except DatabaseError:  # a PostgreSQL-compatible server may lack the function, or the role may not call it
        return None
    return msgspec.convert(place, str)
