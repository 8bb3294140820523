"""Ids in log lines: those of the task that logs, and of no other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from matchpod.service.telemetry.log_context import begin_work, log_fields

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADER = f"00-{TRACE}-b7ad6b7169203331-01"


async def logged() -> Mapping[str, str]:
    return log_fields()


def test_only_the_task_that_began_the_work_has_its_ids() -> None:
    async def main() -> None:
        assert log_fields() == {}
        begin_work(request_id="req_1", traceparent=HEADER)
        assert log_fields() == await logged() == {"request_id": "req_1", "trace_id": TRACE}
        assert await asyncio.create_task(logged()) == {}
        assert await asyncio.to_thread(log_fields) == {}
        begin_work(traceparent="00-invalid")
        assert log_fields() == {}

    asyncio.run(main())
    assert log_fields() == {}


def test_callbacks_of_the_loop_have_no_ids() -> None:
    async def main() -> None:
        begin_work(request_id="req_1")
        found: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: found.set_result(log_fields()))
        assert await found == {}

    asyncio.run(main())


def test_work_does_not_keep_its_task_alive() -> None:
    async def main() -> None:
        async def request() -> asyncio.Task[Mapping[str, str]]:
            begin_work(request_id="req_1")
            return asyncio.create_task(later())

        async def later() -> Mapping[str, str]:
            await started.wait()
            return log_fields()

        started = asyncio.Event()
        left = await asyncio.create_task(request())
        started.set()
        assert await left == {}

    asyncio.run(main())
