"""Run a game server on Kubernetes as Agones expects it: the entry point of a game server image.

The package uses only the standard library of Python 3.9 or newer, because it must run in images without Matchpod and
its dependencies. It can be installed, or run from a folder (`python3 /path/of/matchpod_gameserver`), so its modules use
relative imports.
"""

from __future__ import annotations

from .command import main, run

__all__ = ["main", "run"]
