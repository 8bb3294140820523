"""Run a game server on Kubernetes as Agones expects it: the entry point of a game server image.

A folder, standard library only, Python 3.9 or newer: it must run in images without Matchpod and its dependencies, as
`python3 /opt/matchpod/gameserver`. So its modules import each other relatively, and nothing else.
"""

from __future__ import annotations

from .command import main, run

__all__ = ["main", "run"]
