"""The metrics of a sandbox, and those of two replicas together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import RunningService, cvars, default_regions, short_match, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
SHORT = re.compile(r"_(bucket|sum|count)$")

Samples = Mapping[str, float]
"""Values by series, as it is written."""


def read_samples(service: RunningService) -> Samples:
    lines = service.call("GET", "/metrics").raw.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def documented() -> dict[str, tuple[str, list[str]]]:
    """Return type and labels of each metric by name."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([`\w ]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (kind, re.findall(r"\w+", labels)) for name, kind, labels in rows}


def test_sandbox_has_every_metric_at_zero_and_counts_a_match(tmp_path: Path) -> None:
    with CallbackReceiver() as receiver, RunningService(tmp_path, regions=default_regions()) as service:
        wait_until(
            lambda: any(one.startswith("matchpod_slots{") for one in read_samples(service)), "gauges are counted"
        )
        text, before = service.call("GET", "/metrics").raw.decode(), read_samples(service)
        assert set(re.findall(r"^# TYPE (\w+) \w+$", text, re.MULTILINE)) == documented().keys()
        found: dict[str, list[str]] = {}
        for series in before:
            name, labels = series.partition("{")[0], re.findall(r'(\w+)="', series)
            name = name if name in documented() else SHORT.sub("", name)
            found[name] = [label for label in labels if label != "le"]
        missing = {name for name in documented() if name not in found}
        # Without a cluster and without a fault there is nothing that their labels could name.
        assert all(re.search("agones|kubernetes|fleet_passwords|fault_reason", name) for name in missing), missing
        assert found == {name: documented()[name][1] for name in found}
        ended = 'matchpod_matches_ended_total{region="sandbox",outcome="match_over"}'
        assert before[ended] == before['matchpod_lease_takeovers_total{region="sandbox"}'] == 0
        created = service.create(short_match(), callbackUrl=receiver.url("/one"))
        receiver.wait_for("/one")
        service.wait_until_released(created["serverId"])
        wait_until(lambda: read_samples(service)["matchpod_callback_delay_seconds_count"] == 1, "the delay is counted")
        after = read_samples(service)
        assert after[ended] == after['matchpod_bring_up_seconds_count{region="sandbox"}'] == 1
        assert after['matchpod_database_calls_total{kind="write",outcome="ok"}'] > 10
        assert after["process_cpu_seconds_total"] > before["process_cpu_seconds_total"] > 0


def test_sums_and_maxima_over_replicas_are_right(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url, regions = create_postgres_schema(request), default_regions()
    one = RunningService(tmp_path / "one", database_url=url, regions=regions, data_dir=tmp_path / "data")
    two = RunningService(tmp_path / "two", database_url=url, regions=regions, data_dir=tmp_path / "data")
    with one:
        two.key = one.key
        with two:
            replicas = (one, two)
            created = [replica.create(short_match(customCvars=cvars(1))) for replica in replicas]
            for server in created:
                one.wait_for_status(server["serverId"], "running")
            running = 'matchpod_servers{scope="database",region="sandbox",status="running"}'
            wait_until(lambda: all(read_samples(replica)[running] == 2 for replica in replicas), "both count all")
            samples = [read_samples(replica) for replica in replicas]
            assert sum(each["matchpod_matches_followed"] for each in samples) == 2
            assert sum(each['matchpod_matches_created_total{region="sandbox"}'] for each in samples) == 2
            shared = [series for series in samples[0] if 'scope="' in series]
            wait_until(
                lambda: _select(read_samples(one), shared) == _select(read_samples(two), shared),
                "every replica reports the same of what they share",
            )
            for server in created:
                assert one.cancel(server["serverId"]).status == 200
            wait_until(lambda: all(_servers(read_samples(replica)) == 0 for replica in replicas), "all are released")
            canceled = 'matchpod_matches_ended_total{region="sandbox",outcome="canceled_by_user"}'
            assert sum(read_samples(replica)[canceled] for replica in replicas) == 2


def _servers(samples: Samples) -> float:
    return sum(number for series, number in samples.items() if series.startswith("matchpod_servers{"))


def _select(samples: Samples, series: list[str]) -> list[float]:
    return [samples[one] for one in series]
