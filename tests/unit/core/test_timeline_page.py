"""The documentation of timeline items lists every type with all its fields, and its examples are valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason
from matchpod.core.match.detail_limits import KILLS_PER_MINUTE, MIN_ITEMS
from matchpod.core.stats.ledger import MIN_KILLS
from matchpod.core.views.shown_text import MAX_TEXT_CHARS
from matchpod.core.views.timeline_items import TimelineItem, TimelineItemBase

PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))
KINDS = {str(kind.__struct_config__.tag): kind for kind in get_args(TimelineItem)}


def test_page_documents_exactly_the_item_types() -> None:
    assert list(SECTIONS) == list(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_documented_and_every_example_is_valid(name: str) -> None:
    explained = [
        field
        for row in re.findall(r"^\| (`.*?) \|", SECTIONS[name], re.MULTILINE)
        for field in re.findall(r"`(\w+)`", row)
    ]
    own = KINDS[name].__struct_encode_fields__
    assert explained == [field for field in own if field not in TimelineItemBase.__struct_encode_fields__]
    (example,) = re.findall(r"```json\n(.*?)```", SECTIONS[name], re.DOTALL)
    item = msgspec.json.decode(example, type=TimelineItem)
    assert isinstance(item, KINDS[name])
    assert msgspec.json.decode(msgspec.json.encode(item)) == msgspec.json.decode(example)


def test_limits_and_round_end_reasons_on_the_page_match_the_code() -> None:
    assert f"{MIN_ITEMS:,} items" in PAGE
    assert f"{MIN_KILLS:,} kills" in PAGE
    assert f"{KILLS_PER_MINUTE} for each of its players and minutes" in PAGE
    assert f"after {MAX_TEXT_CHARS} characters" in PAGE
    assert all(f"`{reason}`" in SECTIONS["round_end"] for reason in RoundEndReason)
