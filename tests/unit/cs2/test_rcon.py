"""Tests of RCON without sockets: packets in arbitrary chunks, and client against server in memory."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.cs2.rcon import (
    AUTH,
    AUTH_RESPONSE,
    EXEC_COMMAND,
    MAX_COMMAND_BYTES,
    MAX_OUTSTANDING,
    MAX_REQUEST_SIZE,
    MAX_RESPONSE_SIZE,
    MIRROR_END,
    RESPONSE_VALUE,
    Answer,
    AuthAccepted,
    AuthAttempt,
    AuthRefused,
    ClientConnection,
    ClientEvent,
    ClientState,
    CommandReceived,
    Frame,
    FrameReader,
    MirrorRequested,
    NotAuthenticated,
    RconProtocolError,
    ServerConnection,
    encode_frame,
)
from tests.effort import examples

int32 = st.integers(min_value=-(2**31), max_value=2**31 - 1)
frames = st.builds(Frame, id=int32, type=int32, body=st.binary(max_size=60))
chunk_sizes = st.lists(st.integers(min_value=1, max_value=40), max_size=12)

PASSWORD = "correct horse"


def chunked(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    """Split data into pieces of these sizes, with the rest as the last piece."""
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def read_all(reader: FrameReader, data: bytes, sizes: Iterable[int] = ()) -> list[Frame]:
    return [frame for chunk in chunked(data, sizes) for frame in reader.feed(chunk)]


def value(frame_id: int, body: bytes = b"") -> bytes:
    return encode_frame(Frame(frame_id, RESPONSE_VALUE, body))


def auth_response(frame_id: int) -> bytes:
    return encode_frame(Frame(frame_id, AUTH_RESPONSE))


def ready_client(*, mirrors: bool = True) -> ClientConnection:
    client = ClientConnection(mirrors=mirrors)
    client.authenticate(PASSWORD)
    assert list(client.receive(value(1) + auth_response(1))) == [AuthAccepted()]
    return client


def ready_server() -> ServerConnection:
    server = ServerConnection()
    server.accept(1)
    return server


# --- packets ---


def test_packet_is_encoded_as_the_protocol_requires() -> None:
    assert encode_frame(Frame(7, EXEC_COMMAND, b"status")) == (
        b"\x10\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00status\x00\x00"
    )


@given(st.lists(frames, max_size=6), chunk_sizes)
def test_packets_survive_any_chunking(sent: list[Frame], sizes: list[int]) -> None:
    stream = b"".join(map(encode_frame, sent))
    reader = FrameReader(MAX_REQUEST_SIZE)
    assert read_all(reader, stream, sizes) == sent
    assert list(reader.feed(value(7))) == [Frame(7, RESPONSE_VALUE)]


def test_packets_received_byte_by_byte_are_read() -> None:
    sent = [Frame(1, RESPONSE_VALUE), Frame(2, RESPONSE_VALUE, b"two")]
    stream = b"".join(map(encode_frame, sent))
    assert read_all(FrameReader(MAX_REQUEST_SIZE), stream, [1] * len(stream)) == sent


def test_unconsumed_packets_are_returned_with_the_next_bytes() -> None:
    reader = FrameReader(MAX_REQUEST_SIZE)
    reader.feed(value(1) + value(2))
    assert [frame.id for frame in reader.feed(value(3))] == [1, 2, 3]


@pytest.mark.parametrize("size", [9, 0, -1, -(2**31), MAX_REQUEST_SIZE + 1, 2**31 - 1])
def test_invalid_size_ends_the_stream(size: int) -> None:
    reader = FrameReader(MAX_REQUEST_SIZE)
    with pytest.raises(RconProtocolError, match=str(size)):
        list(reader.feed(struct.pack("<i", size)))
    with pytest.raises(RconProtocolError, match=str(size)):
        list(reader.feed(value(1)))


def test_packets_before_an_invalid_size_are_read() -> None:
    received = FrameReader(MAX_REQUEST_SIZE).feed(value(1) + bytes(4))
    assert next(received).id == 1
    with pytest.raises(RconProtocolError):
        next(received)


@pytest.mark.parametrize(
    ("payload", "body"),
    [(b"text\x00\x00", b"text"), (b"text\x00", b"text"), (b"text", b"text"), (b"\x00x\x00", b"\x00x")],
)
def test_missing_terminators_do_not_truncate_the_body(payload: bytes, body: bytes) -> None:
    packet = struct.pack("<iii", 8 + len(payload), 5, RESPONSE_VALUE) + payload
    assert read_all(FrameReader(MAX_REQUEST_SIZE), packet + value(6)) == [Frame(5, 0, body), Frame(6, 0)]


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


def test_password_is_accepted_after_the_empty_packet() -> None:
    client = ClientConnection()
    assert client.authenticate(PASSWORD) == encode_frame(Frame(1, AUTH, PASSWORD.encode()))
    assert list(client.receive(value(1))) == []
    assert list(client.receive(auth_response(1))) == [AuthAccepted()]
    assert client.state is ClientState.READY


def test_auth_response_without_the_empty_packet_is_enough() -> None:
    client = ClientConnection()
    client.authenticate(PASSWORD)
    assert list(client.receive(auth_response(1))) == [AuthAccepted()]


def test_wrong_password_is_refused() -> None:
    client = ClientConnection()
    client.authenticate("wrong")
    assert list(client.receive(value(1) + auth_response(-1))) == [AuthRefused()]
    assert client.state is ClientState.REFUSED


def test_auth_response_with_another_id_changes_nothing() -> None:
    client = ClientConnection()
    client.authenticate(PASSWORD)
    assert list(client.receive(auth_response(99))) == []
    assert client.state is ClientState.AUTHENTICATING


def test_unrequested_auth_response_changes_nothing() -> None:
    client = ClientConnection()
    assert list(client.receive(auth_response(-1) + auth_response(0))) == []
    assert client.state is ClientState.NEW


def test_second_acceptance_is_not_an_event() -> None:
    assert list(ready_client().receive(auth_response(1))) == []


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
        ClientConnection().command("status")


def test_command_is_followed_by_an_empty_packet() -> None:
    request = ready_client().command("status")
    assert request.command_id == 2
    assert request.data == encode_frame(Frame(2, EXEC_COMMAND, b"status")) + value(3)


def test_without_mirrors_a_command_is_one_packet() -> None:
    request = ready_client(mirrors=False).command("status")
    assert request.data == encode_frame(Frame(2, EXEC_COMMAND, b"status"))


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


def test_answer_is_complete_with_the_mirrored_packet() -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(value(2, b"hostname : x"))) == []
    assert list(client.receive(value(3))) == [Answer(2, "hostname : x")]
    assert list(client.receive(value(3, MIRROR_END))) == []


def test_answer_is_complete_with_the_closing_packet_alone() -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(value(2, b"text") + value(3, MIRROR_END))) == [Answer(2, "text")]


def test_without_mirrors_an_answer_is_one_packet() -> None:
    client = ready_client(mirrors=False)
    client.command("status")
    assert list(client.receive(value(2, b"all") + value(2, b"late"))) == [Answer(2, "all")]


def test_character_split_between_packets_is_joined() -> None:
    client = ready_client()
    client.command("status")
    first, second = "näme".encode()[:2], "näme".encode()[2:]
    assert list(client.receive(value(2, first) + value(2, second) + value(3))) == [Answer(2, "näme")]


def test_invalid_utf8_is_replaced() -> None:
    client = ready_client()
    client.command("status")
    assert list(client.receive(value(2, b"a\xffb") + value(3))) == [Answer(2, "a\ufffdb")]


def test_unrelated_ids_and_types_are_ignored() -> None:
    client = ready_client()
    client.command("status")
    noise = value(77, b"spew") + value(-1) + encode_frame(Frame(2, 9, b"?"))
    assert list(client.receive(noise + value(2, b"text") + noise + value(3))) == [Answer(2, "text")]


def test_outstanding_commands_are_answered_in_order() -> None:
    client = ready_client()
    ids = [client.command(text).command_id for text in ("a", "b")]
    assert client.outstanding == tuple(ids)
    stream = value(2, b"A") + value(3) + value(3, MIRROR_END) + value(4, b"B") + value(5)
    assert list(client.receive(stream)) == [Answer(ids[0], "A"), Answer(ids[1], "B")]
    assert client.outstanding == ()


@pytest.mark.parametrize("mirrors", [True, False])
def test_answer_to_a_later_command_ends_earlier_answers(mirrors: bool) -> None:
    client = ready_client(mirrors=mirrors)
    first = client.command("a").command_id
    second = client.command("b").command_id
    events = list(client.receive(value(second, b"B") + value(second + 1)))
    assert events == [Answer(first, ""), Answer(second, "B")]


def test_overlong_answer_ends_the_stream() -> None:
    client = ready_client()
    client.command("cvarlist")
    part = value(2, bytes(MAX_RESPONSE_SIZE // 2))
    list(client.receive(part + part))
    with pytest.raises(RconProtocolError, match="longer"):
        list(client.receive(value(2, b"x")))
    with pytest.raises(RconProtocolError, match="longer"):
        list(client.receive(value(3)))


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
    client, server = ClientConnection(mirrors=mirrors), ServerConnection()
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
