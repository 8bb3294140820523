"""Select the database of the service under test: SQLite, in `make soak` also PostgreSQL; and share the reference."""

from __future__ import annotations

import os

import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.reference_matches import Reference


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Return the URL of a PostgreSQL schema for this module, or None: the service then creates an SQLite file."""
    return None if request.param == "sqlite" else create_postgres_schema(request)


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Provide the matches as played without interruption, which all workers share."""
    own = tmp_path_factory.getbasetemp()
    return Reference(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
