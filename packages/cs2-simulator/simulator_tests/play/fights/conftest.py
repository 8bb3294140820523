"""The battlefield of most tests of fights."""

from __future__ import annotations

import pytest

from simulator_tests.play.fights.battlefield import Battlefield


@pytest.fixture
def field() -> Battlefield:
    """A round with ten living players."""
    return Battlefield().spawn_all()
