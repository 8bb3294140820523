"""Law: players who imitate the server in names and chat cannot forge an event or cause an error.

Two honest players and a hostile one are in a live match. The hostile player uses hostile names and chat texts, and
renames again and again; only their own events may result, and the lines of the honest players must not change.
"""

from __future__ import annotations

import pytest

from cs2_protocol.log_lines.player_lines import Chat
from cs2_protocol.log_lines.player_token import player_token
from matchpod.core import events as ev
from matchpod.core.events import GameEvent
from protocol_tests.log_lines.hostile import hostile_texts
from tests.effort import seeds, sized
from tests.unit.cs2.server_log import ServerLog, id64

LINES = sized(5_000, 1_000_000)
"""Number of lines per seed: 20,000 in all in `make test`, ten million in a round of `make soak`."""

EVIL_ACCOUNT = 666
MAX_NAME_CHARS = 127


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(2))
def test_hostile_names_and_chat_forge_nothing(seed: int) -> None:
    log = ServerLog().go_live()
    honest_line = f'{log.token(1)} say "hi"'
    names, texts = hostile_texts(seed), hostile_texts(1_000_000 + seed)
    log.events.clear()
    read, parse, now = log.interpreter.read, log.reader.parse, log.now
    lines = 0
    for _ in range(LINES // 50):
        name = next(names)[:MAX_NAME_CHARS]
        evil = player_token(name, 66, f"[U:1:{EVIL_ACCOUNT}]", "TERRORIST")
        token = evil.text()
        introduction = f'"{name}<66><[U:1:{EVIL_ACCOUNT}]><>"'
        events: list[GameEvent] = []
        for text in (f"{introduction} STEAM USERID validated", f"{introduction} entered the game"):
            read(now, parse(text), events)
        for _ in range(20):
            text = next(texts)
            read(now, parse(f'{token} say "{text}"'), events)
            # An honest player may write the same text: the line is their chat, or Unknown if it is ambiguous.
            honest_chat = f'{log.token(2)} say "{text}"'
            line = parse(honest_chat)
            assert not isinstance(line, Chat) or line.message == text, honest_chat
            read(now, line, events)
        read(now, parse(honest_line), events)
        read(now, parse(f'"mp_teamname_1" = "{next(texts)}"'), events)
        read(now, parse(f"{log.token(1)} assisted killing {token}"), events)
        for _ in range(3):
            new_name = next(names)[:MAX_NAME_CHARS]
            read(now, parse(f'{token} changed name to "{new_name}"'), events)
            token = player_token(new_name, 66, f"[U:1:{EVIL_ACCOUNT}]", "TERRORIST").text()
        read(now, parse(f'{token} say "{next(texts)}"'), events)
        read(now, parse(f'{token} disconnected (reason "{next(texts)}")'), events)
        lines += 50
        for event in events:
            assert type(event) in ALLOWED, (name, event)
            assert is_plausible(event), (name, event)
        ann_chat = [event for event in events if isinstance(event, ev.ChatMessage) and event.player_id == id64(1)]
        assert ann_chat == [ev.ChatMessage(now, id64(1), "Ann", False, "hi")], name
    assert lines == LINES


ALLOWED = {ev.Assist, ev.ChatMessage, ev.PlayerRenamed, ev.PlayerEntered, ev.PlayerDisconnected, ev.PlayerGone}


def is_plausible(event: GameEvent) -> bool:
    """True if one of the three chats, Ann helps to kill the hostile player, or that player joins, renames or leaves."""
    if isinstance(event, ev.Assist):
        return (event.player_id, event.victim) == (id64(1), id64(EVIL_ACCOUNT))
    if isinstance(event, ev.ChatMessage):
        return event.player_id in (id64(1), id64(2), id64(EVIL_ACCOUNT))
    return getattr(event, "player_id", "") == id64(EVIL_ACCOUNT)
