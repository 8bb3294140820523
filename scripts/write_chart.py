"""Write the generated parts of the Helm chart. Run this script after changing the chart's values or a setting.

The table of all values is written to the chart's README.md, the settings of the service to values.schema.json. Tables
with the number of replicas are written to that README.md and docs/capacity.md, from the figures in docs/capacity.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from matchpod.settings.fleets import AGONES_FLEET, PROCESS_FLEET
from matchpod.settings.table import Setting
from matchpod.settings.values import SERVICE
from scripts import sizing

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "deploy" / "chart" / "matchpod"
CAPACITY = ROOT / "docs" / "capacity.md"
BEGIN, END = "<!-- values: written by scripts/write_chart.py -->\n", "<!-- end of values -->\n"
SIZES_BEGIN, SIZES_END = "<!-- sizes: written by scripts/write_chart.py -->\n", "<!-- end of sizes -->\n"

SET_BY_CHART: Mapping[str, str] = {
    "config": "`regions`, `settingsFile.existingSecret`",
    "data_dir": "fixed: a folder in the volume",
    "host": "fixed: every interface of the pod",
    "port": "fixed: 8080; `service.port` is that of the Service",
    "ops_port": "fixed: 8081; `service.opsPort` is that of the Service",
    "upload_port": "fixed: 8082 with `demos.enabled`; `service.uploadPort` is that of the Service",
    "upload_url": "the Service, for game servers in this cluster; follows from `log_url` of the region for others",
    "demo_storage": "`demos.storage`",
    "public_url": "`publicUrl`",
    "log_url": "the Service, for game servers in this cluster; `publicUrl` or `log_url` of the region for others",
    "callback_proxy": "`callbackProxy.existingSecret`",
    "database_url": "`database.existingSecret`",
    "secret_key": "`secretKey.existingSecret`",
    "first_key_file": "`firstKey.existingSecret`",
    "stop_grace_s": "`stopGraceSeconds`",
}
"""Settings that are not set in the value `settings`, with the values that set them instead."""

SET_BY_REGION = ("fleet", "namespace", "secret_file", "previous_secret_file", "kubeconfig")
"""Keys of `[regions.fleet]` that cannot be set in a region's `options`, because the chart sets them."""

WIDTH = 120
_NUMBER = re.compile(r"(?:(off) or )?a whole number from (\d+) to (\d+)")
_CHOICE = re.compile(r"(\w+(?:, \w+)*) or (\w+)")
_COMMENT = re.compile(r"(?P<indent> *)# (?:-- )?(?P<text>.*)")
_VALUE = re.compile(r"(?P<indent> *)(?P<key>\w+):(?P<rest>.*)")


def setting_schema(setting: Setting) -> dict[str, object]:
    """Return the JSON schema for a setting in the value `settings`. YAML parses `on` and `off` as true and false."""
    allowed = setting.rule.allowed
    schema: dict[str, object]
    if found := _NUMBER.fullmatch(allowed):
        number: dict[str, object] = {"type": "integer", "minimum": int(found[2]), "maximum": int(found[3])}
        schema = {"anyOf": [number, {"enum": ["off", False]}]} if found[1] else number
    elif allowed == "on or off":
        schema = {"enum": ["on", "off", True, False]}
    elif found := _CHOICE.fullmatch(allowed):
        schema = {"enum": [*found[1].split(", "), found[2]]}
    elif "separated by commas" in allowed:
        schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    else:
        schema = {"type": ["string", "integer"]}
    return {"description": setting.meaning, **schema}


def write_schema(text: str) -> str:
    """Return the schema of the chart's values, completed with the settings of the service and its fleets."""
    schema = json.loads(text)
    schema["properties"]["settings"]["properties"] = {
        setting.key: setting_schema(setting) for setting in SERVICE if setting.key not in SET_BY_CHART
    }
    options = {setting.key: setting for setting in (*PROCESS_FLEET, *AGONES_FLEET) if not setting.is_secret}
    schema["definitions"]["region"]["properties"]["options"]["properties"] = {
        key: {"description": setting.meaning} for key, setting in sorted(options.items()) if key not in SET_BY_REGION
    }
    return _format(schema) + "\n"


def described_values(text: str) -> Iterator[tuple[str, str, object]]:
    """Yield the path, the description and the default of each value in values.yaml."""
    values = yaml.safe_load(text)
    path: list[str] = []
    description: list[str] = []
    for line in text.splitlines():
        if comment := _COMMENT.fullmatch(line):
            description = [comment["text"]] if "# -- " in line else [*description, comment["text"]] * bool(description)
        elif value := _VALUE.fullmatch(line):
            path = [*path[: len(value["indent"]) // 2], value["key"]]
            if description:
                default = values
                for key in path:
                    default = default[key]
                yield ".".join(path), " ".join(description), default
            description = []
        else:
            description = []


def write_readme(text: str, values: str) -> str:
    """Return the chart's README.md, with the tables of the values and of the settings that other values set."""
    rows = [f"| `{path}` | {_default(default)} | {meaning} |" for path, meaning, default in described_values(values)]
    table = ["| value | default | meaning |", "|---|---|---|", *rows]
    others = [f"| `{setting}` | {where} |" for setting, where in SET_BY_CHART.items()]
    others = ["| setting | value |", "|---|---|", *others]
    intro = "Settings that are not below `settings`, because other values set them:"
    return _between(text, BEGIN, "\n".join(["", *table, "", intro, "", *others, "", ""]), END)


def _between(text: str, begin: str, content: str, end: str) -> str:
    """Return `text` with the part between `begin` and `end` replaced."""
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    return head + begin + content + end + tail


def write_capacity(text: str) -> str:
    """Return docs/capacity.md with the rows of its table of examples replaced."""
    figures = sizing.read_figures(text)
    rows = {f"{matches:,}": sizing.example_row(matches, figures) for matches in sizing.EXAMPLES}
    for matches, row in rows.items():
        text, count = re.subn(rf"^\| {matches} \| \d+ \|.*$", row, text, flags=re.MULTILINE)
        assert count == 1, f"docs/capacity.md needs a row for {matches} matches"
    return text


def generated_files() -> dict[Path, str]:
    """Return the content of all generated files."""
    readme, schema, values = (CHART / name for name in ("README.md", "values.schema.json", "values.yaml"))
    capacity = CAPACITY.read_text("utf-8")
    sizes = f"\n{sizing.chart_table(sizing.read_figures(capacity))}\n\n"
    text = _between(readme.read_text("utf-8"), SIZES_BEGIN, sizes, SIZES_END)
    return {
        CAPACITY: write_capacity(capacity),
        readme: write_readme(text, values.read_text("utf-8")),
        schema: write_schema(schema.read_text("utf-8")),
    }


def _format(value: object, indent: str = "", used: int = 0) -> str:
    """Return a value as JSON, on one line if it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + used + len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_format(item, inner, len(key) + 5)}" for key, item in value.items()]
    else:
        parts = [_format(item, inner, 1) for item in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{end}"


def _default(value: object) -> str:
    return "" if value in ("", None) else f"`{json.dumps(value) if not isinstance(value, str) else value}`"


def main() -> int:
    """Write all generated files."""
    for path, text in generated_files().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
