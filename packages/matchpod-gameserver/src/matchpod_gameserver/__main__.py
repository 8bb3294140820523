"""Run the command from the package's folder, without an installation: `python3 /path/of/matchpod_gameserver`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

if not __package__:
    # Python has added this folder to the import path, but the package can only be imported from its parent folder.
    sys.path[0], __package__ = os.path.split(os.path.dirname(os.path.abspath(__file__)))
sys.exit(import_module(__package__).main(sys.argv[1:]))
