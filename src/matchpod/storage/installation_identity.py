"""Store which installation this database belongs to: its id, and where the database is.

The id is made with the database, the same for all replicas, and kept by a restored copy. Servers are labelled with it,
so that an installation releases only servers that it started itself. The place tells the original from a copy. That of
an SQLite database comes from a file in its data folder (`adapters/database_place.py`); that of a PostgreSQL database is
how PostgreSQL identifies it: a copy by dump or template has other numbers, a standby the same.
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
"""PostgreSQL only: the numbers of the cluster, the database, and a table, which a dump restored into the same database
creates again. A standby that was promoted has the same three."""


class StoredPlace(msgspec.Struct, frozen=True):
    """Where the database was when a service last drove matches on it, and before that; None if none ever did."""

    place: str | None
    earlier: str | None = None


async def installation_id(db: Database) -> str:
    """Return the id of the installation, and make it first if this database has none; it is a valid Kubernetes name."""
    found = await _read_id(db)
    if found is None:
        insert = "INSERT INTO installation (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
        await write_one(db, insert, {"name": _ID, "value": f"mp-{secrets.token_hex(8)}"})
        found = await _read_id(db)  # not what was written: another replica may have been first
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
    """Store the place; `earlier` is accepted too, if this process dies before the change is complete."""
    await db.write([*set_place(place), *([_upsert(_EARLIER, earlier)] if earlier is not None else [])])


def set_place(place: str) -> list[Statement]:
    """The statements that replace the place, and forget the earlier one."""
    return [_upsert(_PLACE, place), Statement("DELETE FROM installation WHERE name = 'earlier_place'")]


def _upsert(name: str, value: str) -> Statement:
    sql = (
        "INSERT INTO installation (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    return Statement(sql, {"name": name, "value": value})


async def postgres_place(db: Database) -> str | None:
    """Return where a PostgreSQL database is; None if the server does not say."""
    try:
        ((place,),) = await db.read(_POSTGRES_PLACE)
    except DatabaseUnavailableError:
        raise
    except DatabaseError:  # a relative of PostgreSQL without this function, or without the right to call it
        return None
    return msgspec.convert(place, str)
