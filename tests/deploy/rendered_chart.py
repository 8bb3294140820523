"""Render the chart with all files in `ci` and the values of the tests, in one process per version of Kubernetes.

helm takes seconds to start where it is emulated, so an enclosing chart has the chart once per file of values, each under
the name of its file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.chart_values import VALUES as MORE_VALUES
from tests.deploy.tools import find_tool

CHART = Path(__file__).resolve().parents[2] / "deploy" / "chart" / "matchpod"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
NAMES = tuple(file.name.removesuffix("-values.yaml") for file in VALUES)
ALL_NAMES = (*NAMES, *MORE_VALUES)
KUBERNETES = ("1.34.0", "1.35.0", "1.36.0")
RENDERED = [pytest.param(version, marks=[pytest.mark.soak] * (version != KUBERNETES[-1])) for version in KUBERNETES]
"""Versions to render for. In `make test` one is enough: no template depends on the version."""
RELEASE = "matchpod"
NAMESPACE = "matchpod"

SAMPLES = {
    "alerts.yaml": """
groups:
  - name: a
    rules:
      - alert: A
        expr: up{job=~".*matchpod.*"} > kube_x{cronjob=~".*matchpod.*-backup"}
        annotations:
          summary: "{{ $labels.job }}"
          runbook_url: https://git.example.net/matchpod/blob/main/docs/runbooks/a.md
""",
    "dashboards/sample.json": '{"title": "{{instance}}"}',
}
"""Alerts and a board in place of the real ones, which have tests of their own."""

Object = dict[str, Any]
load_all = partial(yaml.load_all, Loader=yaml.CSafeLoader)
"""Ten times as fast as `yaml.safe_load_all`."""
_SOURCE = re.compile(r"^# Source: all/charts/([a-z-]+)/templates/", re.MULTILINE)


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    # It ends before it needs to collect garbage, and without that it takes a quarter less CPU time.
    environment = {**os.environ, "GOGC": "off"}
    return subprocess.run([*find_tool("helm"), *words], capture_output=True, text=True, check=False, env=environment)


def write_enclosing_chart(folder: Path) -> Path:
    """Write a chart that contains the chart once per file of values."""
    # The name decides how objects are called, so all are called as in a release of their own.
    values = {name: yaml.safe_load(file.read_text()) for name, file in zip(NAMES, VALUES, strict=True)}
    values |= MORE_VALUES
    dependencies = [{"name": "matchpod", "version": "*", "alias": name} for name in ALL_NAMES]
    enclosing = {"apiVersion": "v2", "name": "all", "version": "1.0.0", "dependencies": dependencies}
    (folder / "charts").mkdir(parents=True)
    copy = folder / "charts" / "matchpod"
    shutil.copytree(CHART, copy)
    (copy / "files" / "dashboards").mkdir(exist_ok=True)
    for name, text in SAMPLES.items():
        (copy / "files" / name).write_text(text)
    (folder / "Chart.yaml").write_text(yaml.safe_dump(enclosing))
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    return folder


@cache
def render(folder: Path, version: str) -> dict[str, list[Object]]:
    """Return the objects of all values, by their names."""
    done = helm("template", RELEASE, str(folder), "--namespace", NAMESPACE, "--kube-version", version)
    assert done.returncode == 0, done.stderr
    objects: dict[str, list[Object]] = {name: [] for name in ALL_NAMES}
    for part in re.split(r"^---$", done.stdout, flags=re.MULTILINE):
        if source := _SOURCE.search(part):
            objects[source[1]] += [one for one in load_all(part) if one]
    return objects


@pytest.fixture(scope="session")
def enclosing_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_enclosing_chart(tmp_path_factory.mktemp("chart") / "all")
