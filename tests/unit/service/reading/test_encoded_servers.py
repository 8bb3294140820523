"""Kept answers: used only if nothing has changed, and no more than a limit."""

from __future__ import annotations

from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.core.views.progress import PublicPhase
from matchpod.service.identity.principals import Audience
from matchpod.service.reading.encoded_servers import EncodedServer, EncodedServers


def state() -> LiveState:
    return LiveState.of(MatchProgress(phase=PublicPhase.LIVE))


def encoded(columns: tuple[int, ...] = (1,), live: LiveState | None = None) -> EncodedServer:
    return EncodedServer(org_id="org_1", columns=columns, state=live, body=b"{}")


def test_answer_is_found_only_for_the_same_row_state_and_kind_of_caller() -> None:
    kept, live = EncodedServers(), state()
    answer = encoded((1, 2), live)
    kept.keep("srv_1", answer, audience=Audience.CREATORS)
    assert kept.find("srv_1", (1, 2), live, audience=Audience.CREATORS) is answer
    assert kept.find("srv_1", (1, 3), live, audience=Audience.CREATORS) is None
    assert kept.find("srv_1", (1, 2), state(), audience=Audience.CREATORS) is None
    assert kept.find("srv_1", (1, 2), live, audience=Audience.MEMBERS) is None
    assert kept.find("srv_2", (1, 2), live, audience=Audience.CREATORS) is None


def test_later_answer_takes_the_place_of_the_one_before() -> None:
    kept = EncodedServers()
    for columns in ((1,), (2,)):
        kept.keep("srv_1", encoded(columns), audience=Audience.CREATORS)
    latest = kept.latest("srv_1", audience=Audience.CREATORS)
    assert latest is not None
    assert latest.columns == (2,)
    assert len(kept) == 1


def test_answer_that_was_built_longest_ago_is_dropped_first() -> None:
    kept = EncodedServers(max_kept=2)
    for name in ("srv_1", "srv_2", "srv_1", "srv_3"):
        kept.keep(name, encoded(), audience=Audience.MEMBERS)
    assert len(kept) == 2
    assert kept.latest("srv_2", audience=Audience.MEMBERS) is None
