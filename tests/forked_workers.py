"""Run tests in several processes that are forked when all tests are collected: each further one costs next to nothing.

Workers of pytest-xdist import and collect all tests each, which takes seconds of CPU time per worker. Here a worker takes
the next group of tests whenever it has finished one, and sends its reports to the process that collected. Tests that only
compute are left to workers of their own, which give way: they use the cores while others wait.
"""

from __future__ import annotations

import gc
import itertools
import os
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FORK = get_context("fork")
NUMBER_BYTES = 4
GIVE_WAY = 10
"""What is added to the niceness of workers for tests that only compute."""

SHOWN_S = 0.5
"""How long the fixtures of a test may take without being named among the slowest."""


class Group(NamedTuple):
    """Tests that run in one process, one after another."""

    name: Hashable
    is_busy: bool = False
    """They compute, and wait for nothing."""
    is_alone: bool = False
    """Their process runs nothing else: what they start lasts as long as the process."""


def by_file(item: pytest.Item) -> Group:
    return Group(item.path)


class ForkedWorkers:
    """A plugin of pytest that runs the collected tests in this many processes."""

    def __init__(
        self,
        workers: int,
        group_of: Callable[[pytest.Item], Group] = by_file,
        *,
        busy_workers: int = 1,
        beside: Callable[[Path], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`beside` gets the folder of the run, and lasts from before the first process is forked until all have ended."""
        self._beside = beside
        self._workers = workers
        self._busy_workers = busy_workers
        self._group_of = group_of

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests; if a worker died, some have not run, so this is no run whose failures are tried again."""
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        grouped = [(group, list(items)) for group, items in itertools.groupby(session.items, key=self._group_of)]
        groups = [items for _, items in grouped]
        numbers = range(len(grouped))
        alone = [_queue([number]) for number in numbers if grouped[number][0].is_alone]
        shared = [number for number in numbers if not grouped[number][0].is_alone]
        waiting = _queue(number for number in shared if not grouped[number][0].is_busy)
        busy = _queue(number for number in shared if grouped[number][0].is_busy)
        queues: list[tuple[int, Sequence[int]]] = [(0, (queue,)) for queue in alone]
        queues += [(0, (waiting, busy))] * self._workers
        if any(group.is_busy for group, _ in grouped):
            queues += [(GIVE_WAY, (busy,))] * self._busy_workers
        folder: Path = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        with self._beside(folder):
            died = _run(session.config, folder, groups, queues)
        if died:
            raise session.Interrupted(f"processes died in {', '.join(died)}")
        return True


def _run(
    config: pytest.Config, folder: Path, groups: list[list[pytest.Item]], queues: list[tuple[int, Sequence[int]]]
) -> list[str]:
    """Fork a process for each niceness and its queues; return the tests in which processes died."""
    gc.collect()
    gc.freeze()  # a collection in a worker would copy all pages
    running: dict[connection.Connection, str] = {}
    processes = []
    for number, (niceness, own) in enumerate(queues):
        reader, writer = FORK.Pipe(duplex=False)
        os.environ |= {"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": str(len(queues))}
        args = (config, _take_items(groups, own), writer, folder / f"gw{number}", niceness)
        process = FORK.Process(target=_work, args=(*args, [*running, reader]))
        process.start()
        writer.close()
        processes.append(process)
        running[reader] = ""
    for queue in {queue for _, own in queues for queue in own}:
        os.close(queue)
    try:
        died = _receive(config, running)
    finally:
        for reader in running:  # if this is interrupted, workers end at their next report
            reader.close()
    for process in processes:
        process.join()
    return died


def _queue(numbers: Iterable[int]) -> int:
    """Return a pipe from which each number is read by one process; it must have room for all."""
    queue, fill = os.pipe()
    os.write(fill, b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in numbers))
    os.close(fill)
    return queue


def _take_items(groups: list[list[pytest.Item]], queues: Sequence[int]) -> Iterator[pytest.Item]:
    """Yield the tests of the next group that no worker has taken, until there is none in any of these queues."""
    for queue in queues:
        while number := os.read(queue, NUMBER_BYTES):
            yield from groups[int.from_bytes(number, "big")]


def _receive(config: pytest.Config, running: dict[connection.Connection, str]) -> list[str]:
    """Report all tests; return those in which workers died."""
    died = []
    while running:
        for reader in connection.wait(list(running)):
            assert isinstance(reader, connection.Connection)
            try:
                name, values = pickle.loads(reader.recv_bytes())
            except EOFError:
                died.append(running.pop(reader) or "no test")
                continue
            if name == "end":
                del running[reader]
            elif name == "report":
                report = config.hook.pytest_report_from_serializable(config=config, data=values)
                config.hook.pytest_runtest_logreport(report=report)
            else:
                running[reader] = values[0]
                config.hook.pytest_runtest_logstart(nodeid=values[0], location=values[1])
    return died


class _Sender:
    """A plugin of pytest that sends what a worker reports."""

    def __init__(self, config: pytest.Config, writer: connection.Connection) -> None:
        self._config = config
        self._writer = writer

    def send(self, name: str, values: object) -> None:
        self._writer.send_bytes(pickle.dumps((name, values)))

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.send("start", (nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send what is printed: not that the fixtures of a test were set up without any trouble, which is most reports."""
        if report.when != "call" and report.passed and report.duration < SHOWN_S:
            return
        values = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.send("report", values)


def _work(
    config: pytest.Config,
    items: Iterable[pytest.Item],
    writer: connection.Connection,
    folder: Path,
    niceness: int,
    readers: Iterable[connection.Connection],
) -> None:
    """Run these tests in this process, with files of its own for what they print and for their temporary files."""
    os.nice(niceness)
    for reader in readers:  # only the process that reads may have them open, so that others notice its end
        reader.close()
    config.pluginmanager.unregister(name="terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    sender = _Sender(config, writer)
    config.pluginmanager.register(sender)
    # The next file is taken before the last test of a file runs: then pytest knows which fixtures are still needed.
    try:
        for item, following in itertools.pairwise(itertools.chain(items, [None])):
            assert item is not None
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    finally:  # also if the process that reads the reports has ended
        config._ensure_unconfigure()
    sender.send("end", None)
