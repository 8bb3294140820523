"""A match that its replaced server disturbs is found, and so is a trial that proves nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.chaos.replaced import BELIEVED_S, Seen, Sent, judge_replaced, other_game

EXPECTED = {"eventType": "match_over", "result": {"maps": [{"complete": True, "team1Score": 8}]}}
CALLBACK = msgspec.json.encode(EXPECTED)
OTHER = CALLBACK.replace(b"8", b"7")
UNDISTURBED = Seen(
    sent=[Sent(1.0, 200), Sent(10.0 + BELIEVED_S, 200), Sent(30.0, 410), Sent(31.0, 401), Sent(32.0, 0)],
    replaced_s=10.0,
    tries=1,
    callbacks=(CALLBACK,),
)


def test_undisturbed_match_is_accepted() -> None:
    assert list(judge_replaced(UNDISTURBED, EXPECTED)) == []
    assert UNDISTURBED.count() == {"posts": 5, "stored before": 1, "stored after": 1, "refused": 2}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"callbacks": (OTHER,)}, "1 fields of its callback differ"),
        ({"callbacks": ()}, "0 callbacks arrived"),
        ({"callbacks": (CALLBACK, CALLBACK)}, "2 callbacks arrived"),
        ({"sent": [*UNDISTURBED.sent, Sent(30.0, 200)]}, "1 posts of the first server were stored 20.0 s later"),
        ({"sent": UNDISTURBED.sent[1:]}, "sent nothing before"),
        ({"replaced_s": None}, "replaced 1 times"),
        ({"tries": 2}, "replaced 2 times"),
    ],
)
def test_each_disturbance_is_found(change: dict[str, Any], text: str) -> None:
    (found,) = judge_replaced(msgspec.structs.replace(UNDISTURBED, **change), EXPECTED)
    assert text in found


def test_other_game_has_posts_with_kills_and_an_end() -> None:
    bodies = b"".join(body for _, _, body in other_game())
    for text in (b"killed", b"Game Over", b'"event":"map_result"', b'"shotsFired":900', b'"type":"aim"'):
        assert text in bodies
