"""The server of most tests of the plugin."""

from __future__ import annotations

import pytest

from simulator_tests.plugin.plugin_harness import PluginHarness


@pytest.fixture
def harness() -> PluginHarness:
    return PluginHarness()
