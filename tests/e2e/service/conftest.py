"""The database of a service under test: SQLite; in `make soak` PostgreSQL too."""

from __future__ import annotations

import pytest

from tests.contract.databases import create_postgres_schema


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """A PostgreSQL schema of this module's own; None: the service makes itself an SQLite file."""
    return None if request.param == "sqlite" else create_postgres_schema(request)
