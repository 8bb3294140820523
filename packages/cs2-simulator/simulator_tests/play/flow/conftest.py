"""The server of most tests of the flow of a game."""

from __future__ import annotations

import pytest

from simulator_tests.play.flow.played_server import PlayedServer


@pytest.fixture
def server() -> PlayedServer:
    """A server on which a map is loaded, without players."""
    return PlayedServer()
