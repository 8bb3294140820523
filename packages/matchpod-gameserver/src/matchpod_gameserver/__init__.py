"""Run a game server on Kubernetes as Agones expects it: the entry point of a game server image.

Standard library only, Python 3.9 or newer: it must run in images without Matchpod and its dependencies, installed or as
a folder: `python3 /path/of/matchpod_gameserver`. So its modules import each other relatively, and nothing else.
"""

from __future__ import annotations

from .command import main, run

__all__ = ["main", "run"]
