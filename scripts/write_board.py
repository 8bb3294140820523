"""Write the file of the Grafana board in the chart. Run this script after changing `scripts/board_panels.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from scripts.board_panels import ROWS, Panel

ROOT: Final = Path(__file__).resolve().parents[1]
BOARD: Final = ROOT / "deploy" / "chart" / "matchpod" / "files" / "dashboards" / "matchpod.json"

Json = dict[str, Any]

_SOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
_SELECTED: Final = 'job=~"$job", instance=~"$instance"'
_IN_REGION: Final = f'{_SELECTED}, region=~"$region"'
_COLUMNS: Final = 24
"""Width of a board in grid units."""
_GREEN, _ORANGE, _RED = "green", "orange", "red"


def board() -> Json:
    """Return the board in the JSON format that Grafana imports."""
    return {
        "uid": "matchpod",
        "title": "Matchpod",
        "description": "Matches, servers, callbacks and processes of Matchpod. Each panel says what to do.",
        "tags": ["matchpod", "cs2"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": [_restarts()]},
        "templating": {"list": _variables()},
        "links": [],
        "panels": _panels(),
    }


def text() -> str:
    """Return the text of the board's file."""
    return json.dumps(board(), indent=2, ensure_ascii=False) + "\n"


def _restarts() -> Json:
    expr = "changes(process_start_time_seconds{%s}[1m]) > 0"
    return {
        "name": "Restarts",
        "enable": True,
        "iconColor": "purple",
        "datasource": _SOURCE,
        "expr": _select(expr),
        "titleFormat": "restarted",
        "textFormat": "{{instance}}",
        "step": "60s",
    }


def _variables() -> list[Json]:
    def labels(name: str, label: str, query: str) -> Json:
        return {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": f"variable-{name}"},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            "options": [],
        }

    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "multi": False,
        "includeAll": False,
        "current": {},
        "options": [],
    }
    return [
        source,
        labels("job", "Installation", "label_values(matchpod_build_info, job)"),
        labels("instance", "Process", 'label_values(matchpod_build_info{job=~"$job"}, instance)'),
        labels("region", "Region", 'label_values(matchpod_servers{job=~"$job"}, region)'),
    ]


def _panels() -> list[Json]:
    panels: list[Json] = []
    top = 0
    last_id = 0
    for row in ROWS:
        last_id += 1
        heading: Json = {
            "id": last_id,
            "type": "row",
            "title": row.title,
            "collapsed": row.is_collapsed,
            "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": top},
            "panels": [],
        }
        panels.append(heading)
        top += 1
        left = 0
        for number_in_row, panel in enumerate(row.panels):
            if left + panel.width > _COLUMNS:
                left, top = 0, top + row.panels[number_in_row - 1].height
            last_id += 1
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            (heading["panels"] if row.is_collapsed else panels).append(_panel(panel, last_id, place))
            left += panel.width
        top += row.panels[-1].height
    return panels


def _panel(panel: Panel, panel_id: int, place: Json) -> Json:
    """Return the JSON of a panel, without values that are Grafana's defaults.

    All its queries use the panel's data source.
    """
    defaults: Json = {"unit": panel.unit, "min": 0}
    is_colored = panel.limits != (None, None)
    if is_colored or panel.kind == "stat":
        defaults["thresholds"] = _thresholds(panel)
    if panel.kind == "stat":
        options: Json = {
            "colorMode": "background" if is_colored else "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "name" if len(panel.queries) == 1 and panel.queries[0][1] else "value",
        }
        defaults["color"] = {"mode": "thresholds"}
    else:
        defaults["color"] = {"mode": "palette-classic"}
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 25 if panel.is_stacked else 8,
            "showPoints": "never",
        }
        if panel.is_stacked:
            defaults["custom"]["stacking"] = {"group": "A", "mode": "normal"}
        if is_colored:
            defaults["custom"]["thresholdsStyle"] = {"mode": "dashed"}
        options = {
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": panel_id,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.advice,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [_target(*query, ref_id=chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
    }


def _thresholds(panel: Panel) -> Json:
    colored = [(limit, color) for limit, color in zip(panel.limits, (_ORANGE, _RED), strict=True) if limit is not None]
    steps: list[Json] = [{"color": _GREEN, "value": None}]
    steps += [{"color": color, "value": limit} for limit, color in dict(colored).items()]
    return {"mode": "absolute", "steps": steps}


def _target(query: str, legend: str, *, ref_id: str) -> Json:
    return {
        "refId": ref_id,
        "editorMode": "code",
        "expr": _select(query),
        "legendFormat": legend,
        "range": True,
    }


def _select(query: str) -> str:
    return query.replace("%s", _SELECTED).replace("%r", _IN_REGION)


def main() -> int:
    """Write the file of the board."""
    BOARD.parent.mkdir(parents=True, exist_ok=True)
    BOARD.write_text(text(), encoding="utf-8")
    print(BOARD.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
