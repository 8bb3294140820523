"""The console of these tests."""

from __future__ import annotations

import pytest

from simulator_tests.console.console_harness import ConsoleHarness


@pytest.fixture
def harness() -> ConsoleHarness:
    return ConsoleHarness()
