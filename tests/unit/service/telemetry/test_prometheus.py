"""Recording metrics, and their output in the Prometheus text format."""

from __future__ import annotations

import math

import pytest

from matchpod.service.telemetry.prometheus import MAX_SERIES, RENDER_S, Registry, RenderedMetrics


def test_counters_gauges_and_histograms_use_the_prometheus_text_format() -> None:
    metrics = Registry()
    matches = metrics.counter("matches_total", "Matches that ended.", ("region", "reason"))
    matches.inc("eu", "match_over")
    matches.inc("eu", "match_over", amount=2)
    metrics.gauge("servers", "Servers now.").set(3.5)
    waits = metrics.histogram("wait_seconds", "How long.", buckets=(0.5, 1))
    for seconds in (0.5, 0.75, 7):
        waits.observe(seconds)
    assert metrics.text() == (
        "# HELP matches_total Matches that ended.\n"
        "# TYPE matches_total counter\n"
        'matches_total{region="eu",reason="match_over"} 3\n'
        "# HELP servers Servers now.\n"
        "# TYPE servers gauge\n"
        "servers 3.5\n"
        "# HELP wait_seconds How long.\n"
        "# TYPE wait_seconds histogram\n"
        'wait_seconds_bucket{le="0.5"} 1\n'
        'wait_seconds_bucket{le="1"} 2\n'
        'wait_seconds_bucket{le="+Inf"} 3\n'
        "wait_seconds_sum 8.25\n"
        "wait_seconds_count 3\n"
    )


def test_labels_of_a_histogram_precede_the_bound() -> None:
    metrics = Registry()
    metrics.histogram("wait_seconds", "x", ("region",), buckets=(1,)).observe(2, "eu")
    assert 'wait_seconds_bucket{region="eu",le="1"} 0\n' in metrics.text()
    assert 'wait_seconds_count{region="eu"} 1\n' in metrics.text()


def test_series_of_known_label_values_are_preset_to_zero() -> None:
    metrics = Registry()
    counter = metrics.counter("a_total", "x", ("region", "outcome"))
    counter.inc("eu", "lost", amount=3)
    counter.preset(("eu", "us"), ("won", "lost"))
    histogram = metrics.histogram("b_seconds", "x", ("region",), buckets=(1,))
    histogram.preset(("eu",))
    assert [line.rpartition("}")[2] for line in counter.lines() if "region" in line] == [" 3", " 0", " 0", " 0"]
    assert 'b_seconds_count{region="eu"} 0\n' in metrics.text()


def test_fixed_labels_are_in_every_series() -> None:
    metrics = Registry()
    gauge = metrics.gauge("servers", "x", ("region",), fixed={"scope": "database"})
    gauge.set(1, "eu")
    gauge.replace({("us",): 2})
    assert metrics.text().splitlines()[2:] == ['servers{scope="database",region="us"} 2']


def test_what_is_read_when_needed_is_updated_before_rendering() -> None:
    metrics = Registry()
    seconds = metrics.counter("cpu_seconds_total", "x")
    totals = iter((1.5, 2.5))
    metrics.before_rendering(lambda: seconds.set_total(next(totals)))
    assert [metrics.text().splitlines()[-1] for _ in range(2)] == ["cpu_seconds_total 1.5", "cpu_seconds_total 2.5"]


def test_label_values_and_help_cannot_break_a_line() -> None:
    metrics = Registry()
    metrics.counter("a_total", 'back\\slash\nand "quotes"', ("path",)).inc('a"b\\c\nd\re\ud800')
    assert metrics.text() == (
        '# HELP a_total back\\\\slash\\nand "quotes"\n# TYPE a_total counter\na_total{path="a\\"b\\\\c\\nd e?"} 1\n'
    )


def test_label_sets_beyond_the_limit_are_counted_as_other() -> None:
    metrics = Registry()
    counter = metrics.counter("a_total", "x", ("path",))
    for number in range(MAX_SERIES + 10):
        counter.inc(str(number))
    counter.inc("0")
    assert counter.value("0") == 2
    assert counter.value("other") == 11
    assert metrics.text().count("\na_total{") == MAX_SERIES


def test_gauge_can_be_changed_and_replaced() -> None:
    gauge = Registry().gauge("servers", "x", ("region",))
    gauge.add(2, "eu")
    gauge.add(-1, "eu")
    gauge.set(5, "us")
    assert (gauge.value("eu"), gauge.value("us")) == (1, 5)
    gauge.replace({("us",): 4})
    assert (gauge.value("eu"), gauge.value("us")) == (0, 4)
    assert [line for line in gauge.lines() if "eu" in line] == []


def test_histogram_counts_its_observations() -> None:
    histogram = Registry().histogram("wait_seconds", "x", ("region",))
    assert histogram.count("eu") == 0
    histogram.observe(math.inf, "eu")
    assert histogram.count("eu") == 1
    assert 'wait_seconds_sum{region="eu"} +Inf' in list(histogram.lines())


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (-2.0, "-2"), (0.1, "0.1"), (1e20, "1e+20"), (math.nan, "NaN"), (-math.inf, "-Inf")],
)
def test_numbers_are_written_in_their_shortest_exact_form(number: float, shown: str) -> None:
    gauge = Registry().gauge("a", "x")
    gauge.set(number)
    assert list(gauge.lines())[-1] == f"a {shown}"


def test_invalid_metrics_and_values_are_rejected() -> None:
    metrics = Registry()
    counter = metrics.counter("a_total", "x", ("region",))
    with pytest.raises(ValueError, match="has the labels"):
        counter.inc()
    with pytest.raises(ValueError, match="cannot change by"):
        counter.inc("eu", amount=-1)
    with pytest.raises(ValueError, match="already"):
        metrics.gauge("a_total", "x")
    with pytest.raises(ValueError, match="invalid metric name"):
        metrics.gauge("a b", "x")
    with pytest.raises(ValueError, match="invalid label name"):
        metrics.gauge("b", "x", ("le",))
    with pytest.raises(ValueError, match="must be increasing"):
        metrics.histogram("c", "x", buckets=(2, 1))
    with pytest.raises(ValueError, match="NaN"):
        metrics.histogram("d", "x").observe(math.nan)


def test_text_is_rendered_at_most_once_per_second() -> None:
    now_s = 100.0
    metrics = Registry()
    counter = metrics.counter("matches_total", "Matches.")
    rendered = RenderedMetrics(metrics, lambda: now_s)
    first = rendered.body()
    assert first == metrics.text().encode()
    counter.inc()
    now_s += RENDER_S - 0.01
    assert rendered.body() is first
    now_s += 0.01
    assert rendered.body() == metrics.text().encode() != first
