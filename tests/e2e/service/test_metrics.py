"""The metrics of a sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import RunningService, default_regions, short_match, wait_until

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
