"""Spans are sent to a collector in batches, and nothing waits for it."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509

from matchpod.adapters.otlp_exporter import MAX_WAITING, OtlpExporter, OtlpOptions, ignored_variables, read_options
from matchpod.app.measurement import compose_spans
from matchpod.ports import Span, SpanKind
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from tests.contract.test_callback_sender import self_signed
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import free_port_range, wait_until

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def span(number: int = 0) -> Span:
    return Span(
        name="match start",
        kind=SpanKind.INTERNAL,
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id=f"{number + 1:016x}",
        parent_id="b7ad6b7169203331",
        start_ms=1_000,
        end_ms=1_250,
        attributes={"matchpod.region": "eu", "matchpod.attempt": 2},
        error="no slot",
    )


@pytest.fixture
def collector() -> Iterator[CallbackReceiver]:
    with CallbackReceiver() as receiver:
        yield receiver


def test_spans_are_sent_as_otlp_json(collector: CallbackReceiver) -> None:
    options = read_options(
        {
            ENDPOINT: collector.url("/"),
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        }
    )
    assert options is not None
    exporter = OtlpExporter(options, version="1.2", batch_s=0.1)
    exporter.export(span())
    (received,) = collector.wait_for("/v1/traces")
    exporter.close()
    assert (received.headers["content-type"], received.headers["x-key"]) == ("application/json", "a b")
    (resource,) = received.json["resourceSpans"]
    assert {one["key"]: one["value"]["stringValue"] for one in resource["resource"]["attributes"]} == {
        "service.name": "matchpod",
        "service.version": "1.2",
        "deployment.environment": "test",
    }
    assert resource["scopeSpans"][0]["spans"] == [
        {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": "0000000000000001",
            "parentSpanId": "b7ad6b7169203331",
            "name": "match start",
            "kind": 1,
            "startTimeUnixNano": "1000000000",
            "endTimeUnixNano": "1250000000",
            "attributes": [
                {"key": "matchpod.region", "value": {"stringValue": "eu"}},
                {"key": "matchpod.attempt", "value": {"intValue": "2"}},
            ],
            "status": {"code": 2, "message": "no slot"},
        }
    ]
    assert (exporter.exported, exporter.dropped) == (1, 0)


def test_what_is_left_is_sent_at_the_end(collector: CallbackReceiver) -> None:
    exporter = OtlpExporter(OtlpOptions(url=collector.url("/")), version="1", batch_s=600)
    exporter.export(span())
    exporter.close()
    assert len(collector.at("/")) == exporter.exported == 1


def test_spans_without_an_answer_are_sent_again_and_rejected_ones_are_not(
    collector: CallbackReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    collector.configure("/", "close", "accept", "fail")
    exporter = OtlpExporter(OtlpOptions(url=collector.url("/")), version="1", batch_s=0.05)
    exporter.export(span())
    wait_until(lambda: exporter.exported == 1, "the second request is accepted")
    exporter.export(span())
    wait_until(lambda: exporter.dropped == 1, "the third is rejected")
    exporter.close()
    assert [one.body for one in collector.at("/")[:2]] == [collector.at("/")[0].body] * 2
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert [vars(one)["reason"] for one in warnings] == ["Remote end closed connection without response", "status 500"]


def test_collector_that_cannot_be_reached_costs_one_warning_and_no_time(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port_range(1)[0]
    exporter = OtlpExporter(OtlpOptions(url=f"http://127.0.0.1:{port}/v1/traces"), version="1", batch_s=0.05)
    began_s = time.process_time()
    for number in range(MAX_WAITING + 10):
        exporter.export(span(number))
    assert time.process_time() - began_s < 2.0
    wait_until(lambda: exporter._failures >= 3, "several requests failed")
    exporter.close()
    assert exporter.exported == 0
    assert exporter.dropped == 10
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert warning.message == "spans not exported"


class Accepting(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer()

    def answer(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Login(Accepting):
    """Redirects like a proxy that wants a log-in, whose page has status 200."""

    def answer(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/login")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        super().answer()


@contextmanager
def serving(handler: type[Accepting], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}).start()
        yield server.server_address[1]
        server.shutdown()


def test_redirect_is_not_an_export(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Login) as port:
        exporter = OtlpExporter(OtlpOptions(url=f"http://127.0.0.1:{port}/v1/traces"), version="1", batch_s=0.05)
        exporter.export(span())
        wait_until(lambda: exporter.dropped == 1, "the spans are dropped")
        exporter.close()
    assert exporter.exported == 0
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert vars(warning)["reason"] == "status 302, a redirect to /login"


@pytest.mark.parametrize("is_trusted", [True, False])
def test_collector_may_have_a_certificate_of_a_private_authority(tmp_path: Path, is_trusted: bool) -> None:
    server_side, _ = self_signed(tmp_path, x509.DNSName("localhost"))
    with serving(Accepting, server_side) as port:
        variables = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "receiver.pem")} if is_trusted else {}
        options = read_options({ENDPOINT: f"https://localhost:{port}", **variables})
        assert options is not None
        exporter = OtlpExporter(options, version="1", batch_s=0.05)
        exporter.export(span())
        wait_until(lambda: bool(exporter.exported or exporter._failures), "the collector has answered")
        exporter.close()
    assert bool(exporter.exported) is is_trusted


@pytest.mark.parametrize(
    ("environment", "ignored"),
    [
        ({ENDPOINT: "http://c", "OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b", "OTHER": ""}, []),
        ({"OTEL_TRACES_SAMPLER": "always_on", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, None),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "otlp"}, None),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, []),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, None),
    ],
)
def test_variables_without_effect_are_named(
    environment: dict[str, str], ignored: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    expected = sorted(environment) if ignored is None else ignored
    assert ignored_variables(environment) == expected
    compose_spans(Metrics(Registry()), {**environment, "OTEL_SDK_DISABLED": "true"})
    named = [vars(one)["variables"] for one in caplog.records if one.message == "variables of OpenTelemetry ignored"]
    assert named == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, None),
        ({ENDPOINT: ""}, None),
        ({ENDPOINT: "http://c:4318"}, "http://c:4318/v1/traces"),
        ({ENDPOINT: "https://c/otel/"}, "https://c/otel/v1/traces"),
        ({ENDPOINT: "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/x"}, "http://d/x"),
        ({ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "true"}, None),
        ({ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_variables_are_those_of_opentelemetry(environment: dict[str, str], url: str | None) -> None:
    options = read_options(environment)
    assert (None if options is None else options.url) == url


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (ENDPOINT, "c:4318", "is not an HTTP URL"),
        (ENDPOINT, "http://c:x", "is not an HTTP URL"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only OTLP over HTTP"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds, not '10s'"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key", "key1=value1"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "is not a file with certificates in PEM"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        read_options({ENDPOINT: "http://c", name: value})
    assert name in str(raised.value)


def test_key_of_a_collector_is_not_shown() -> None:
    assert "secret" not in repr(OtlpOptions(url="http://c", headers={"x-key": "secret"}))
