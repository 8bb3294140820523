"""A match in the trace of its caller: its spans at a collector, and the header of its callback."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import Json, RunningService, default_regions, short_match, wait_until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def spans_at(receiver: CallbackReceiver) -> list[Json]:
    requests = [one.json["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in receiver.at("/v1/traces")]
    return list(itertools.chain(*requests))


def test_spans_survive_a_restart_and_belong_to_the_trace_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CallbackReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url(""))
        with RunningService(tmp_path, regions=default_regions()) as service:
            body = {"region": "sandbox", "gameType": "cs2", "gameSettings": short_match()}
            headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            created = service.call(
                "POST", "/api/v1/matches", body | {"callbackUrl": receiver.url("/traced")}, headers=headers
            )
            service.wait_for_status(created.json["serverId"], "running")
            assert service.terminate()[0] == 0
            service.start()
            (callback,) = receiver.wait_for("/traced")
            names = ["match create", "match start", "match play", "match", "match callback"]
            wait_until(lambda: len([one for one in spans_at(receiver) if one["traceId"] == TRACE]) == 5, "all spans")
            found = {one["name"]: one for one in spans_at(receiver) if one["traceId"] == TRACE}
            assert sorted(found) == sorted(names)
            match = found.pop("match")
            assert match["parentSpanId"] == SPAN
            assert {one["parentSpanId"] for one in found.values()} == {match["spanId"]}
            assert found["match start"]["endTimeUnixNano"] == found["match play"]["startTimeUnixNano"]
            assert match["endTimeUnixNano"] == found["match play"]["endTimeUnixNano"]
            assert callback.headers["traceparent"] == f"00-{TRACE}-{found['match callback']['spanId']}-01"
