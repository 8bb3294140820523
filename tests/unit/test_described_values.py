"""Pages describe every value of the closed sets that callers see: cancel reasons and statistics."""

from __future__ import annotations

import re
from pathlib import Path

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.views.result_shapes import DeathmatchPlayer, ExtraStats, MapPlayer
from matchpod.service.end_match import final_status

DOCS = Path(__file__).resolve().parents[2] / "docs"
IN_A_RANGE = {"clutch1v2", "clutch1v3", "clutch1v4", "tripleKills", "quadKills"}
"""Statistics that are described by the first and the last of their kind."""
NO_STATISTICS = {"steamId", "name", "extraStats"}


def named_on(page: str) -> set[str]:
    """Return all words in backticks."""
    return set(re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8")))


def test_every_cancel_reason_has_a_row_with_its_status() -> None:
    page = (DOCS / "servers.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(stopped|failed)` \|", page, re.MULTILINE))
    assert rows == {reason.value: final_status(Outcome(at_ms=0, reason=reason)).value for reason in CancelReason}


def test_every_statistic_of_a_result_is_described() -> None:
    fields = {field for shape in (ExtraStats, MapPlayer, DeathmatchPlayer) for field in shape.__struct_encode_fields__}
    assert fields - named_on("stats.md") == IN_A_RANGE | NO_STATISTICS
