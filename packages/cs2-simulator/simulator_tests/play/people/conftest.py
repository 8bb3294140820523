"""The servers of most tests of people."""

from __future__ import annotations

import pytest

from simulator_tests.play.people.visited_server import VisitedServer


@pytest.fixture
def server() -> VisitedServer:
    return VisitedServer()


@pytest.fixture
def filled() -> VisitedServer:
    server = VisitedServer()
    server.fill()
    return server
