"""Leave out the tests that run processes where their game servers are not installed, such as on Python 3.9."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("cs2_simulator") else ["process"]
