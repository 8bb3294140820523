"""Select the database of the service under test: SQLite, and in `make soak` also PostgreSQL."""

from __future__ import annotations

import pytest

from tests.contract.databases import create_postgres_schema


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Return the URL of a PostgreSQL schema for this module, or None: the service then creates an SQLite file."""
    return None if request.param == "sqlite" else create_postgres_schema(request)
