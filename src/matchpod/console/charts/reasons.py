"""Words and icons for what decided a round."""

from __future__ import annotations

from typing import Final

import msgspec

from cs2_protocol.game import RoundEndReason


class ReasonMark(msgspec.Struct, frozen=True):
    """How a reason is shown: words, and the name of an icon in the template."""

    words: str
    icon: str


REASONS: Final = {
    RoundEndReason.CTS_WIN: ReasonMark("elimination", "skull"),
    RoundEndReason.TERRORISTS_WIN: ReasonMark("elimination", "skull"),
    RoundEndReason.TARGET_BOMBED: ReasonMark("bomb exploded", "burst"),
    RoundEndReason.BOMB_DEFUSED: ReasonMark("bomb defused", "tick"),
    RoundEndReason.TARGET_SAVED: ReasonMark("time ran out", "clock"),
    RoundEndReason.HOSTAGES_RESCUED: ReasonMark("hostages rescued", "person"),
    RoundEndReason.HOSTAGES_NOT_RESCUED: ReasonMark("hostages not rescued", "lock"),
    RoundEndReason.CTS_SURRENDER: ReasonMark("surrender", "flag"),
    RoundEndReason.TERRORISTS_SURRENDER: ReasonMark("surrender", "flag"),
    RoundEndReason.DRAW: ReasonMark("draw", "equal"),
    RoundEndReason.UNKNOWN: ReasonMark("reason unknown", "question"),
}
