"""Words and icons for what decided a round."""

from __future__ import annotations

from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import RoundEndReason


class ReasonMark(msgspec.Struct, frozen=True):
    """How a reason is shown: words, and the shapes of an icon of 16 by 16."""

    words: str
    shapes: Markup


_ICON: Final = Markup('<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{}</svg>')

_SKULL: Final = Markup(
    '<path fill-rule="evenodd" d="M8 1a6 6 0 0 0-6 6c0 2 1 3.6 2.5 4.6V14h7v-2.4C13 10.6 14 9 14 7a6 6 0 0 0-6-6z'
    'M5.5 6a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zm5 0a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z"/>'
)
_BURST: Final = Markup(
    '<path d="M8 0l1.5 4.2L13.7 2.3 11.8 6.5 16 8l-4.2 1.5 1.9 4.2-4.2-1.9L8 16l-1.5-4.2-4.2 1.9'
    ' 1.9-4.2L0 8l4.2-1.5-1.9-4.2 4.2 1.9z"/>'
)
_TICK: Final = Markup('<path class="stroke" d="M2 8.5l4 4 8-9"/>')
_CLOCK: Final = Markup('<circle class="stroke" cx="8" cy="8" r="6"/><path class="stroke" d="M8 4.5V8l2.5 2"/>')
_PERSON: Final = Markup('<circle cx="8" cy="3.5" r="2.5"/><path d="M3 15c0-5 1.5-8 5-8s5 3 5 8z"/>')
_LOCKED: Final = Markup('<path d="M3 7h10v8H3z"/><path class="stroke" d="M5 7V4.5a3 3 0 0 1 6 0V7"/>')
_FLAG: Final = Markup('<path class="stroke" d="M3.5 1v14"/><path d="M4 2h10l-3 3 3 3H4z"/>')
_EQUAL: Final = Markup('<path class="stroke" d="M3 6h10M3 10h10"/>')
_QUESTION: Final = Markup(
    '<path class="stroke" d="M5 5.5a3 3 0 1 1 4.5 2.6C8.4 8.8 8 9.2 8 10.5"/><circle cx="8" cy="13.5" r="1.3"/>'
)

REASONS: Final = {
    RoundEndReason.CTS_WIN: ReasonMark("elimination", _SKULL),
    RoundEndReason.TERRORISTS_WIN: ReasonMark("elimination", _SKULL),
    RoundEndReason.TARGET_BOMBED: ReasonMark("bomb exploded", _BURST),
    RoundEndReason.BOMB_DEFUSED: ReasonMark("bomb defused", _TICK),
    RoundEndReason.TARGET_SAVED: ReasonMark("time ran out", _CLOCK),
    RoundEndReason.HOSTAGES_RESCUED: ReasonMark("hostages rescued", _PERSON),
    RoundEndReason.HOSTAGES_NOT_RESCUED: ReasonMark("hostages not rescued", _LOCKED),
    RoundEndReason.CTS_SURRENDER: ReasonMark("surrender", _FLAG),
    RoundEndReason.TERRORISTS_SURRENDER: ReasonMark("surrender", _FLAG),
    RoundEndReason.DRAW: ReasonMark("draw", _EQUAL),
    RoundEndReason.UNKNOWN: ReasonMark("reason unknown", _QUESTION),
}


def icon(mark: ReasonMark) -> Markup:
    """Return the icon of a reason. It is decoration: the words must be near it."""
    return _ICON.format(mark.shapes)
