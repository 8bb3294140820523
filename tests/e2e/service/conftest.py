"""Which database does a service of these tests use? Each test runs on both kinds."""

from __future__ import annotations

import pytest

from tests.contract.databases import fresh_postgres_schema


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """A PostgreSQL schema of this module's own; None: the service makes itself an SQLite file."""
    return None if request.param == "sqlite" else fresh_postgres_schema(request)
