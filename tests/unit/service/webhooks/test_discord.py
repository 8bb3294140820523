"""How events are written as messages."""

from __future__ import annotations

import pytest

from matchpod.core.views.organization_event_shapes import AttentionRaisedEvent, RaisedAttention
from matchpod.service.webhooks.discord import line_of, may_show

AT = "2026-11-15T12:53:19.399Z"


def raised(kind: str = "pause", *, since: str | None = None, until: str | None = None) -> AttentionRaisedEvent:
    reason = RaisedAttention(kind=kind, urgency="soon", text="paused", since=since, until=until)
    return AttentionRaisedEvent(server_id="srv_1", external_match_id=None, at=AT, attention=reason)


@pytest.mark.parametrize(
    ("event", "end"),
    [(raised(), ""), (raised(since=AT), " (since 12:53 UTC)"), (raised(until=AT), " (until 12:53 UTC)")],
)
def test_a_reason_to_look_at_a_match_says_since_when(event: AttentionRaisedEvent, end: str) -> None:
    assert line_of(event, "A – B") == f"**A – B**: needs attention: paused{end}"


def test_leads_are_never_shown() -> None:
    assert may_show(raised("loss"))
    assert not may_show(raised("leads"))
