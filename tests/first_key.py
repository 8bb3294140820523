"""Find the API key that the first start of a service without a terminal writes into its data folder."""

from __future__ import annotations

import re
from pathlib import Path

from matchpod.app.first_run import KEY_FILE


def first_key(data_dir: Path) -> str | None:
    """Return the key; None if this was not the first start."""
    try:
        found = re.search(r"mk_live_[\w-]{43}", (data_dir / KEY_FILE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    return found[0] if found else None
