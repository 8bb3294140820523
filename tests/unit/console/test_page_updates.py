"""Everyone who looks at a page gets what changes on it, in order and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from matchpod.console.page_updates import MAX_OF_OWNER, Broadcast, Broadcasts, Pace, Viewer, frame, swapped
from matchpod.core.errors import RateLimitError, UnavailableError


class Counter:
    """A subject that shows a number."""

    def __init__(self) -> None:
        self.number = 0
        self.reads = 0
        self.shown = -1
        self.is_down = False

    async def changes(self) -> bytes:
        self.reads += 1
        if self.is_down:
            raise UnavailableError("The database is unavailable. Retry later.")
        if self.shown == self.number:
            return b""
        self.shown = self.number
        return b"changed to %d" % self.number

    def everything(self) -> bytes:
        return b"all %d" % self.shown

    async def read(self, times: int) -> None:
        """Wait until it was read this number of times from now on."""
        last = self.reads + times
        while self.reads < last:
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def broadcasts(request: pytest.FixtureRequest) -> AsyncIterator[Broadcasts]:
    """Broadcasts that read their subjects often, with the pace that a test names."""
    opened = Broadcasts(lambda: 1_234, getattr(request, "param", Pace(tick_s=0.01)))
    yield opened
    opened.close()


def paced(*, beat_s: float = 5.0, kept: int = 60, idle_ticks: int = 15) -> pytest.MarkDecorator:
    """Let a test have broadcasts of this pace."""
    pace = Pace(tick_s=0.01, beat_s=beat_s, kept=kept, idle_ticks=idle_ticks)
    return pytest.mark.parametrize("broadcasts", [pace], indirect=True, ids=["paced"])


async def find(broadcasts: Broadcasts, subject: Counter) -> Broadcast:
    return await broadcasts.find("counter", "org", lambda: subject)


async def next_data(viewer: Viewer) -> list[str]:
    """Return the data of the next events that are not the time."""
    while True:
        frames = await viewer.next(5)
        assert frames is not None
        events = [one for one in frames.decode().split("\n\n") if one and not one.startswith("event: time")]
        if events:
            lines = [line for one in events for line in one.splitlines()]
            return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


async def test_all_viewers_get_what_was_rendered_once(broadcasts: Broadcasts) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    viewers = [broadcasts.view("org", {await find(broadcasts, Counter()): broadcast.position}) for _ in range(5)]
    for viewer in viewers:
        await viewer.next(5)  # the time
    subject.number = 1
    assert {await viewer.next(5) for viewer in viewers} == {frame("counter", broadcast.position, b"changed to 1")}


async def test_viewer_that_comes_back_gets_what_it_missed(broadcasts: Broadcasts) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    position = broadcast.position
    watching = broadcasts.view("org", {broadcast: position})
    for number in (1, 2):
        subject.number = number
        await next_data(watching)
    assert await next_data(broadcasts.view("org", {broadcast: position})) == ["changed to 1", "changed to 2"]


@pytest.mark.parametrize("position", ["", "other.3", "x", "{boot}.99999", "{boot}.-1", "{boot}." + "9" * 400])
async def test_viewer_with_an_unknown_position_gets_everything(broadcasts: Broadcasts, position: str) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    given = position.format(boot=broadcast.position.partition(".")[0])
    assert await next_data(broadcasts.view("org", {broadcast: given})) == ["all 0"]


@paced(kept=2)
async def test_viewer_that_missed_too_much_gets_everything(broadcasts: Broadcasts) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    position = broadcast.position
    watching = broadcasts.view("org", {broadcast: position})
    for number in range(1, 5):
        subject.number = number
        await next_data(watching)
    assert await next_data(broadcasts.view("org", {broadcast: position})) == ["all 4"]


async def test_outage_of_the_database_is_waited_out(broadcasts: Broadcasts) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    viewer = broadcasts.view("org", {broadcast: broadcast.position})
    subject.is_down = True
    await subject.read(3)
    subject.is_down, subject.number = False, 1
    assert await next_data(viewer) == ["changed to 1"]


@paced(beat_s=3_600.0)
async def test_page_that_can_be_read_again_is_told_at_once(broadcasts: Broadcasts) -> None:
    subject = Counter()
    broadcast = await find(broadcasts, subject)
    viewer = broadcasts.view("org", {broadcast: broadcast.position})
    assert await viewer.next(5) == b"event: time\ndata: 1234\n\n"
    broadcasts.pace = Pace(tick_s=0.01, beat_s=0.05)
    subject.is_down = True
    await subject.read(10)  # for longer than a beat
    subject.is_down = False
    assert await viewer.next(5) == b"event: time\ndata: 1234\n\n"


@paced(idle_ticks=3)
async def test_subject_without_viewers_is_forgotten(broadcasts: Broadcasts) -> None:
    subject = Counter()
    first = await find(broadcasts, subject)
    broadcasts.view("org", {first: first.position}).close()
    await subject.read(3)
    assert await find(broadcasts, Counter()) is not first


async def test_subject_that_cannot_be_read_is_not_kept(broadcasts: Broadcasts) -> None:
    subject = Counter()
    subject.is_down = True
    with pytest.raises(UnavailableError):
        await find(broadcasts, subject)
    assert (await find(broadcasts, Counter())).subject is not subject


async def test_page_that_could_not_be_read_does_not_stop_a_later_one(broadcasts: Broadcasts) -> None:
    may_go_on = asyncio.Event()

    class Failing(Counter):
        async def changes(self) -> bytes:
            if self.reads == 0:
                await may_go_on.wait()
            self.is_down = self.reads == 0
            return await super().changes()

    requests = [asyncio.create_task(find(broadcasts, subject)) for subject in (Failing(), Counter())]
    await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(UnavailableError):
        await requests[0]
    broadcast = await requests[1]
    assert await find(broadcasts, Counter()) is broadcast
    shown = broadcast.subject
    assert isinstance(shown, Counter)
    viewer = broadcasts.view("org", {broadcast: broadcast.position})
    shown.number = 7
    assert await next_data(viewer) == ["changed to 7"]


async def test_streams_of_one_owner_are_limited(broadcasts: Broadcasts) -> None:
    broadcast = await find(broadcasts, Counter())
    for _ in range(MAX_OF_OWNER):
        broadcasts.view("overlay", {broadcast: broadcast.position})
    with pytest.raises(RateLimitError):
        broadcasts.view("overlay", {broadcast: broadcast.position})
    broadcasts.view("another organization", {broadcast: broadcast.position})


async def test_closing_ends_all_streams_and_admits_no_new_ones(broadcasts: Broadcasts) -> None:
    broadcast = await find(broadcasts, Counter())
    viewer = broadcasts.view("org", {broadcast: broadcast.position})
    broadcasts.close()
    assert await viewer.next(5) is None
    with pytest.raises(UnavailableError):
        broadcasts.view("org", {broadcast: ""})


@paced(beat_s=0.1)
async def test_subject_that_cannot_be_read_is_named_with_the_time(broadcasts: Broadcasts) -> None:
    subject, other = Counter(), Counter()
    broadcast = await find(broadcasts, subject)
    beside = await broadcasts.find("beside", "org", lambda: other)
    viewer = broadcasts.view("org", {broadcast: broadcast.position, beside: beside.position})
    assert await viewer.next(5) == b"event: time\ndata: 1234\n\n"
    subject.is_down = True
    while (found := await viewer.next(5)) == b"event: time\ndata: 1234\n\n":
        pass
    assert found == b"event: time\ndata: 1234 counter\n\n"
    subject.is_down = False
    while (found := await viewer.next(5)) == b"event: time\ndata: 1234 counter\n\n":
        pass
    assert found == b"event: time\ndata: 1234\n\n"


async def test_viewer_without_news_returns_after_a_while(broadcasts: Broadcasts) -> None:
    broadcast = await find(broadcasts, Counter())
    viewer = broadcasts.view("org", {broadcast: broadcast.position})
    await viewer.next(0.05)  # the time
    assert await viewer.next(0.05) == b""


async def test_viewer_follows_several_subjects_from_their_positions(broadcasts: Broadcasts) -> None:
    subjects = Counter(), Counter()
    first = await broadcasts.find("n0", "org", lambda: subjects[0])
    second = await broadcasts.find("n1", "org", lambda: subjects[1])
    viewer = broadcasts.view("org", {first: first.position, second: ""}, gone=["match/srv_x"])
    opening = await viewer.next(5)
    assert opening is not None
    assert opening.split(b"\n\n")[:2] == [
        b"event: gone\ndata: match/srv_x",
        frame("n1", second.position, b"all 0").strip(),
    ]
    assert b"event: n0" not in opening
    subjects[0].number = 1
    assert await viewer.next(5) == frame("n0", first.position, b"changed to 1")
    assert len(broadcasts.readers) == 1
    viewer.close()
    assert not first.viewers | second.viewers
    assert len(broadcasts.readers) == 0


def test_fragment_changes_the_element_with_its_id() -> None:
    assert swapped(b'<p id="a" class="b">x id="c"</p>') == b'<p data-swap="content" id="a" class="b">x id="c"</p>'


def test_lines_of_a_fragment_become_lines_of_an_event() -> None:
    event = frame("wall", "b.1", b"<p>\none\r\n\n</p>")
    assert event == b"event: wall\nid: b.1\ndata: <p>\ndata: one\ndata: </p>\n\n"


@paced(idle_ticks=1)
async def test_viewer_that_comes_during_the_last_reading_is_not_forgotten(broadcasts: Broadcasts) -> None:
    is_reading, may_go_on = asyncio.Event(), asyncio.Event()

    class Slow(Counter):
        async def changes(self) -> bytes:
            if self.reads == 1:
                is_reading.set()
                await may_go_on.wait()
            return await super().changes()

    subject = Slow()
    broadcast = await find(broadcasts, subject)
    await is_reading.wait()
    viewer = broadcasts.view("org", {await find(broadcasts, subject): broadcast.position})
    may_go_on.set()
    await subject.read(1)
    subject.number = 1
    assert await next_data(viewer) == ["changed to 1"]
