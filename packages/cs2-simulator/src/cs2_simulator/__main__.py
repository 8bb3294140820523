"""Run a simulated server: `python -m cs2_simulator`."""

from __future__ import annotations

from cs2_simulator.wire.command_line import run

run()
