"""A match in the trace of its caller: its spans at a collector, and the header of its callback."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import Json, RunningService, default_regions, short_match, wait_until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def create(service: RunningService, callback_url: str, traceparent: str) -> str:
    body = {"region": "sandbox", "gameType": "cs2", "gameSettings": short_match(), "callbackUrl": callback_url}
    response = service.call("POST", "/api/v1/matches", body, headers={"traceparent": traceparent})
    assert response.status == 201, response.raw
    return str(response.json["serverId"])


def spans_at(receiver: CallbackReceiver) -> list[Json]:
    requests = [one.json["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in receiver.at("/v1/traces")]
    return list(itertools.chain(*requests))


def test_spans_survive_a_restart_and_belong_to_the_trace_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CallbackReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url(""))
        with RunningService(tmp_path, regions=default_regions()) as service:
            server_id = create(service, receiver.url("/traced"), f"00-{TRACE}-{SPAN}-01")
            service.wait_for_status(server_id, "running")
            assert service.terminate()[0] == 0
            service.start()
            create(service, receiver.url("/unsampled"), f"00-{'1' * 32}-{SPAN}-00")
            create(service, receiver.url("/invalid"), "not a trace")
            (callback,) = receiver.wait_for("/traced")
            (unsampled,) = receiver.wait_for("/unsampled")
            (invalid,) = receiver.wait_for("/invalid")
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
            assert unsampled.headers["traceparent"].startswith(f"00-{'1' * 32}-")
            assert unsampled.headers["traceparent"].endswith("-00")
            assert not [one for one in spans_at(receiver) if one["traceId"] == "1" * 32]
            own = invalid.headers["traceparent"].split("-")[1]
            wait_until(lambda: [one for one in spans_at(receiver) if one["traceId"] == own], "its own trace")
