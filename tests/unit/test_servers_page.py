"""docs/servers.md lists every reason for which a match ends without a result, with its status."""

from __future__ import annotations

import re
from pathlib import Path

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.service.end_match import final_status

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "servers.md").read_text("utf-8")


def test_every_cancel_reason_has_a_row_with_its_status() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `(stopped|failed)` \|", PAGE, re.MULTILINE))
    assert rows == {reason.value: final_status(Outcome(at_ms=0, reason=reason)).value for reason in CancelReason}
