"""Tests of RCON without sockets: client, server, and both against each other in memory."""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.rcon import (
    BURST_BYTES,
    BYTES_PER_S,
    MAX_ANSWER_BYTES,
    MAX_COMMAND_BYTES,
    MAX_OUTSTANDING,
    MAX_REQUEST_SIZE,
    MAX_UNEXPECTED_BYTES,
    MIRROR_END,
    PACKET_BYTES,
    Answer,
    AnswerBudget,
    AuthAccepted,
    AuthAttempt,
    AuthRefused,
    ClientConnection,
    ClientEvent,
    ClientState,
    CommandReceived,
    MirrorRequested,
    NotAuthenticated,
    ServerConnection,
    TokenBucket,
)
from cs2_protocol.rcon_frames import (
    AUTH,
    AUTH_RESPONSE,
    EXEC_COMMAND,
    MIN_SIZE,
    RESPONSE_VALUE,
    Frame,
    FrameReader,
    RconProtocolError,
    encode_frame,
)
from protocol_tests.effort import examples

from .test_rcon_frames import chunk_sizes, chunked, value

PASSWORD = "correct horse"
LIMIT = 1000


def limit_of(command: str) -> int:
    """Answers have LIMIT bytes at most, unless the command is a number."""
    return int(command) if command.isdigit() else LIMIT


def auth_response(frame_id: int) -> bytes:
    return encode_frame(Frame(frame_id, AUTH_RESPONSE))


def ready_client(*, mirrors: bool = True) -> ClientConnection:
    client = ClientConnection(limit_of, mirrors=mirrors)
    client.authenticate(PASSWORD)
    assert list(client.receive(value(1) + auth_response(1))) == [AuthAccepted()]
    return client


def ready_server() -> ServerConnection:
    server = ServerConnection()
    server.accept(1)
    return server


# --- hostile bytes ---


@given(st.lists(st.binary(max_size=300), max_size=10))
def test_garbage_raises_only_protocol_errors_and_is_not_buffered(chunks: list[bytes]) -> None:
    reader = FrameReader(64)
    empty_size = len(pickle.dumps(reader))
    client, server = ready_client(), ready_server()
    client.command("status")
    for chunk in chunks:
        for receive in (reader.feed, client.receive, server.receive):
            try:
                list(receive(chunk))
            except RconProtocolError:
                continue
        assert len(pickle.dumps(reader)) <= empty_size + 200  # a packet of 64 bytes, or the text of the fault


@given(st.lists(st.builds(Frame, id=st.integers(-1, 6), type=st.integers(0, 4), body=st.binary(max_size=8))))
def test_well_formed_unexpected_packets_never_raise(sent: list[Frame]) -> None:
    client, server = ready_client(), ServerConnection()
    client.command("status")
    client.command("echo")
    stream = b"".join(map(encode_frame, sent))
    answers = [event.command_id for event in client.receive(stream) if isinstance(event, Answer)]
    assert answers == sorted(set(answers))
    list(server.receive(stream))


# --- the client ---


@pytest.mark.parametrize(
    ("received", "events", "state"),
    [
        pytest.param(value(1), [], ClientState.AUTHENTICATING, id="the empty packet comes first"),
        pytest.param(value(1) + auth_response(1), [AuthAccepted()], ClientState.READY, id="then the response"),
        pytest.param(auth_response(1), [AuthAccepted()], ClientState.READY, id="the response alone is enough"),
        pytest.param(value(1) + auth_response(-1), [AuthRefused()], ClientState.REFUSED, id="wrong password"),
        pytest.param(auth_response(99), [], ClientState.AUTHENTICATING, id="response with another id"),
    ],
)
def test_response_to_the_password(received: bytes, events: list[ClientEvent], state: ClientState) -> None:
    client = ClientConnection(limit_of)
    assert client.authenticate(PASSWORD) == encode_frame(Frame(1, AUTH, PASSWORD.encode()))
    assert list(client.receive(received)) == events
    assert client.state is state


def test_unrequested_auth_response_changes_nothing() -> None:
    client = ClientConnection(limit_of)
    assert list(client.receive(auth_response(-1) + auth_response(0))) == []
    assert client.state is ClientState.NEW


def test_changed_password_ends_a_ready_session() -> None:
    client = ready_client()
    client.command("rcon_password other")
    assert list(client.receive(auth_response(-1))) == [AuthRefused()]
    assert client.outstanding == ()
    with pytest.raises(ValueError):
        client.command("status")


def test_password_is_sent_once_per_connection() -> None:
    with pytest.raises(ValueError):
        ready_client().authenticate(PASSWORD)


def test_commands_require_authentication() -> None:
    with pytest.raises(ValueError):
        ClientConnection(limit_of).command("status")


@pytest.mark.parametrize("text", ["say a\nquit", "say a\rquit", "say \x00", "x" * (MAX_COMMAND_BYTES + 1), "\ud800"])
def test_invalid_command_is_rejected(text: str) -> None:
    client = ready_client()
    with pytest.raises(ValueError):
        client.command(text)
    assert client.outstanding == ()


def test_command_length_is_limited_in_bytes() -> None:
    client = ready_client()
    client.command("x" * MAX_COMMAND_BYTES)
    with pytest.raises(ValueError):
        client.command("é" * (MAX_COMMAND_BYTES // 2 + 1))


def test_number_of_unanswered_commands_is_bounded() -> None:
    client = ready_client()
    for _ in range(MAX_OUTSTANDING):
        client.command("status")
    with pytest.raises(ValueError):
        client.command("status")


NOISE = value(77, b"spew") + value(-1) + encode_frame(Frame(2, 9, b"?"))


@pytest.mark.parametrize(
    ("received", "text"),
    [
        pytest.param(value(2, b"text"), None, id="incomplete without the mirrored packet"),
        pytest.param(value(2, b"text") + value(3) + value(3, MIRROR_END), "text", id="complete with it"),
        pytest.param(value(2, b"text") + value(3, MIRROR_END), "text", id="complete with the closing packet alone"),
        pytest.param(value(2, b"n\xc3") + value(2, b"\xa4me") + value(3), "näme", id="split character is joined"),
        pytest.param(value(2, b"a\xffb") + value(3), "a\ufffdb", id="invalid UTF-8 is replaced"),
        pytest.param(NOISE + value(2, b"text") + NOISE + value(3), "text", id="other ids and types are ignored"),
    ],
)
def test_answer_of_packets(received: bytes, text: str | None) -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(received)) == ([] if text is None else [Answer(2, text)])


@pytest.mark.parametrize("mirrors", [True, False])
def test_answer_to_a_later_command_ends_earlier_answers(mirrors: bool) -> None:
    client = ready_client(mirrors=mirrors)
    first = client.command("a").command_id
    second = client.command("b").command_id
    events = list(client.receive(value(second, b"B") + value(second + 1)))
    assert events == [Answer(first, ""), Answer(second, "B")]


# --- limits of the client ---


def size_field(size: int, frame_id: int) -> bytes:
    """Return the first bytes of a packet, without its body."""
    return struct.pack("<ii", size, frame_id)


def test_answer_may_have_its_limit_and_no_byte_more() -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(value(2, bytes(LIMIT)) + value(3))) == [Answer(2, "\0" * LIMIT)]
    client.command("status")
    with pytest.raises(RconProtocolError, match=f"{LIMIT + 11} is not between 10 and {LIMIT + 10}"):
        list(client.receive(size_field(LIMIT + 11, 4)))


HALF = value(2, bytes(LIMIT // 2))


@pytest.mark.parametrize(
    ("command", "accepted", "rejected", "fault"),
    [
        pytest.param("status", b"", size_field(8 * 1024 * 1024, 2), "packet size", id="before its bytes arrive"),
        pytest.param("status", HALF + HALF + value(2), value(2, b"x"), "packet size", id="all parts of an answer"),
        pytest.param(
            "10", b"", struct.pack("<iii", MIN_SIZE + 10, 2, RESPONSE_VALUE) + b"x" * 12, "longer", id="no terminators"
        ),
        pytest.param(
            str(2 * MAX_ANSWER_BYTES),
            b"",
            size_field(MAX_ANSWER_BYTES + MIN_SIZE + 1, 2),
            "packet size",
            id="any answer",
        ),
    ],
)
def test_answer_above_its_limit_is_rejected(command: str, accepted: bytes, rejected: bytes, fault: str) -> None:
    client = ready_client()
    client.command(command)
    assert list(client.receive(accepted)) == []
    for received in (rejected, value(3)):
        with pytest.raises(RconProtocolError, match=fault):
            list(client.receive(received))


def test_each_command_has_its_own_limit() -> None:
    client = ready_client()
    client.commands(("10", "100"))
    assert list(client.receive(value(4, bytes(100)) + value(5)))[1] == Answer(4, "\0" * 100)
    client = ready_client()
    client.commands(("10", "100"))
    with pytest.raises(RconProtocolError, match="packet size"):
        list(client.receive(value(2, bytes(11))))


def test_answers_share_the_budget_of_their_call() -> None:
    client, budget = ready_client(), AnswerBudget(150)
    client.commands(("100", "100"), budget)
    assert list(client.receive(value(2, bytes(100)) + value(3))) == [Answer(2, "\0" * 100)]
    with pytest.raises(RconProtocolError, match="61 is not between 10 and 60"):
        list(client.receive(value(4, bytes(51))))


def test_packet_that_is_not_expected_may_not_be_large() -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(value(77, bytes(MAX_UNEXPECTED_BYTES)))) == []
    for frame_id in (3, 77):
        client = ready_client()
        client.command("status")
        with pytest.raises(RconProtocolError, match="packet size"):
            list(client.receive(size_field(MAX_UNEXPECTED_BYTES + 11, frame_id)))


def packets_until_the_end(client: ClientConnection, packet: bytes) -> int:
    """Send the same packet until the client ends the stream; return how many it accepted."""
    for count in range(2 * BURST_BYTES // PACKET_BYTES):
        try:
            list(client.receive(packet))
        except RconProtocolError:
            return count
    raise AssertionError("the stream did not end")


@pytest.mark.parametrize("frame_id", [2, 3, 1, -1, 77])
def test_endless_empty_packets_end_the_stream(frame_id: int) -> None:
    client = ready_client()
    client.command("status")
    assert 200 < packets_until_the_end(client, value(frame_id)) < 300


def test_one_chunk_of_empty_packets_ends_the_stream() -> None:
    client = ready_client()
    with pytest.raises(RconProtocolError, match="KiB per second"):
        list(client.receive(value(77) * (BURST_BYTES // PACKET_BYTES)))


def test_endless_bytes_end_the_stream() -> None:
    accepted = packets_until_the_end(ready_client(), value(77, bytes(MAX_UNEXPECTED_BYTES)))
    assert accepted < BURST_BYTES / MAX_UNEXPECTED_BYTES


def test_server_may_send_at_the_lasting_rate_for_ever() -> None:
    client = ready_client()
    for second in range(100):
        for _ in range(BYTES_PER_S // (MAX_UNEXPECTED_BYTES + PACKET_BYTES + 14)):
            list(client.receive(value(77, bytes(MAX_UNEXPECTED_BYTES)), second))


def test_all_open_commands_may_be_answered_at_once() -> None:
    client = ready_client()
    requests = client.commands(["status"] * MAX_OUTSTANDING)
    answers = [value(one.command_id) + ServerConnection().mirror(one.command_id + 1) for one in requests]
    assert len(list(client.receive(b"".join(answers)))) == MAX_OUTSTANDING


def test_any_number_of_commands_may_be_answered_one_by_one() -> None:
    client = ready_client()
    for _ in range(1000):
        request = client.command("mp_buytime 20")
        mirror_id = request.command_id + 1
        answer = value(request.command_id) + value(mirror_id) + value(mirror_id, MIRROR_END)
        assert list(client.receive(answer)) == [Answer(request.command_id, "")]


def test_ids_wrap_around_within_32_bits() -> None:
    client = ready_client()
    client._last_id = 2**31 - 2
    assert client.command("a").command_id == 2**31 - 1
    assert list(client.receive(value(2**31 - 1, b"A") + value(1))) == [Answer(2**31 - 1, "A")]
    assert client.command("b").command_id == 2


# --- the server ---


def test_client_is_authenticated_only_after_accept() -> None:
    server = ServerConnection()
    assert list(server.receive(encode_frame(Frame(5, AUTH, b"secret")))) == [AuthAttempt(5, "secret")]
    assert not server.is_authenticated
    assert server.accept(5) == value(5) + auth_response(5)
    assert server.is_authenticated


def test_refusal_has_the_empty_packet_and_ends_an_earlier_login() -> None:
    server = ready_server()
    assert server.refuse(5) == value(5) + auth_response(-1)
    assert not server.is_authenticated


@pytest.mark.parametrize("frame_type", [EXEC_COMMAND, RESPONSE_VALUE, 9])
def test_packets_before_the_password_are_not_authenticated(frame_type: int) -> None:
    server = ServerConnection()
    assert list(server.receive(encode_frame(Frame(5, frame_type, b"quit")))) == [NotAuthenticated(5)]
    assert server.deny() == auth_response(-1)


def test_command_in_the_same_chunk_as_the_password_is_received() -> None:
    server = ServerConnection()
    chunk = encode_frame(Frame(1, AUTH, b"secret")) + encode_frame(Frame(2, EXEC_COMMAND, b"status"))
    seen = []
    for event in server.receive(chunk):
        seen.append(event)
        if isinstance(event, AuthAttempt):
            server.accept(event.id)
    assert seen == [AuthAttempt(1, "secret"), CommandReceived(2, "status")]


def test_unknown_packet_type_is_ignored() -> None:
    stream = encode_frame(Frame(2, 9)) + value(3)
    assert list(ready_server().receive(stream)) == [MirrorRequested(3)]


def test_server_rejects_large_packets() -> None:
    with pytest.raises(RconProtocolError):
        list(ready_server().receive(struct.pack("<i", MAX_REQUEST_SIZE + 1)))


def test_answer_is_one_packet_or_several_parts() -> None:
    server = ready_server()
    assert server.answer(2, "") == value(2)
    assert server.answer(2, "x" * 5000) == value(2, b"x" * 5000)
    assert server.answer(2, "abcde", split_at=2) == value(2, b"ab") + value(2, b"cd") + value(2, b"e")


# --- client and server ---


def serve(server: ServerConnection, data: bytes, answers: dict[str, str], split_at: int | None) -> bytes:
    """Return the bytes that a server with these answers sends."""
    out = b""
    for event in server.receive(data):
        match event:
            case AuthAttempt(id=attempt_id, password=password):
                out += server.accept(attempt_id) if password == PASSWORD else server.refuse(attempt_id)
            case CommandReceived(id=command_id, text=text):
                out += server.answer(command_id, answers[text], split_at=split_at)
            case MirrorRequested(id=mirror_id):
                out += server.mirror(mirror_id)
            case NotAuthenticated():
                raise AssertionError("a packet arrived before the password was accepted")
    return out


def converse(texts: list[str], sizes: list[int], *, mirrors: bool, split_at: int | None) -> list[Answer]:
    """Send all commands at once and return the answers, with both directions split into chunks."""
    client, server = ClientConnection(lambda _: MAX_ANSWER_BYTES, mirrors=mirrors), ServerConnection()
    answers = {f"ask {n}": text for n, text in enumerate(texts)}

    def exchange(data: bytes) -> list[ClientEvent]:
        back = b"".join(serve(server, chunk, answers, split_at) for chunk in chunked(data, sizes))
        return [event for chunk in chunked(back, sizes) for event in client.receive(chunk)]

    assert exchange(client.authenticate(PASSWORD)) == [AuthAccepted()]
    requests = [client.command(question) for question in answers]
    events = exchange(b"".join(request.data for request in requests))
    received = [event for event in events if isinstance(event, Answer)]
    assert [answer.command_id for answer in received] == [request.command_id for request in requests]
    assert client.outstanding == ()
    return received


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(texts, max_size=5), chunk_sizes, st.none() | st.integers(min_value=1, max_value=30))
def test_every_answer_belongs_to_its_command(asked: list[str], sizes: list[int], split_at: int | None) -> None:
    assert [answer.text for answer in converse(asked, sizes, mirrors=True, split_at=split_at)] == asked


@given(st.lists(texts, max_size=5), chunk_sizes)
def test_every_answer_belongs_to_its_command_without_mirrors(asked: list[str], sizes: list[int]) -> None:
    assert [answer.text for answer in converse(asked, sizes, mirrors=False, split_at=None)] == asked


@examples(10)
@given(chunk_sizes, st.sampled_from([None, 4096]))
def test_long_answers_are_complete(sizes: list[int], split_at: int | None) -> None:
    asked = ["", "ä" * 100_000, "end"]
    assert [answer.text for answer in converse(asked, sizes, mirrors=True, split_at=split_at)] == asked


# --- the token bucket ---


def test_burst_may_be_spent_at_once() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(7, 5.0)
    assert bucket.spend(3, 5.0)
    assert not bucket.spend(0.1, 5.0)


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 0.0)
    assert not bucket.spend(3, 1.0)
    assert bucket.spend(3, 1.5)
    assert not bucket.spend(11, 1000.0)
    assert bucket.spend(10, 1000.0)


def test_granted_tokens_may_exceed_the_burst_up_to_a_limit() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 0.0)
    bucket.grant(4, 15)
    assert bucket.spend(4, 0.0)
    bucket.grant(100, 15)
    assert not bucket.spend(16, 1000.0)
    assert bucket.spend(15, 1000.0)


def test_time_neither_adds_to_granted_tokens_nor_takes_them() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(0, 0.0)
    bucket.grant(5, 15)
    bucket.grant(5, 12)
    assert not bucket.spend(16, 1000.0)
    assert bucket.spend(15, 1000.0)


def test_clock_that_goes_back_gives_no_tokens() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 100.0)
    assert not bucket.spend(1, 0.0)
    assert bucket.spend(1, 0.5)
