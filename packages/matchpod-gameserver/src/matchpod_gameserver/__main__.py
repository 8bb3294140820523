"""Run the command from a folder, without an installed package: `python3 /path/of/matchpod_gameserver`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

if not __package__:
    # Python has put this folder into the path, but the package is found from the folder above.
    sys.path[0], __package__ = os.path.split(os.path.dirname(os.path.abspath(__file__)))
sys.exit(import_module(__package__).main(sys.argv[1:]))
