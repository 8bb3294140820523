"""The script of a match day, five times as fast as people play it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import match_day


@pytest.mark.soak
def test_every_incident_of_a_match_day_is_found_and_solved_in_the_browser(tmp_path: Path, browser: Browser) -> None:
    assert match_day.run(tmp_path, browser, speed=5, pictures=None) == []
