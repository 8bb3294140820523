"""What a process uses of its machine."""

from __future__ import annotations

import os
import resource
import time

from matchpod.adapters.process_usage import read_usage, start_time_s


def test_cpu_time_and_open_files_are_those_of_this_process() -> None:
    before = read_usage()
    deadline_s = time.process_time() + 0.05
    while time.process_time() < deadline_s:
        pass
    reader, writer = os.pipe()
    after = read_usage()
    os.close(reader)
    os.close(writer)
    assert after.cpu_s - before.cpu_s >= 0.05
    assert before.open_files is not None
    assert after.open_files == before.open_files + 2
    assert after.max_files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_memory_is_at_least_that_of_an_interpreter() -> None:
    usage = read_usage()
    assert usage.resident_bytes is not None
    assert usage.virtual_bytes is not None
    assert 5_000_000 < usage.resident_bytes < usage.virtual_bytes


def test_process_started_in_the_past_and_not_before_the_machine() -> None:
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert time.time() - up_s - 5 <= start_time_s() <= time.time()
