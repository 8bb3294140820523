"""Write the pages about errors, console variables, metrics and actions. Run it after changing their definitions."""

from __future__ import annotations

import sys
import textwrap
from itertools import groupby
from pathlib import Path

from matchpod.core.match.actions import ACTIONS
from matchpod.core.requests.json_fields import MAX_FAULTS
from matchpod.core.requests.request_table import MAX_CVAR_BYTES, MAX_CVAR_LINES
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.cvars import FORBIDDEN_NAMES, FORBIDDEN_PREFIXES
from matchpod.service.telemetry.metrics import (
    ConnectionMetrics,
    DatabaseMetrics,
    DiskMetrics,
    HttpMetrics,
    Metrics,
    ProcessMetrics,
)
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web.openapi.error_guide import ADVICE, meaning_of

DOCS = Path(__file__).resolve().parents[1] / "docs"

_WIDTH = 120

_ERRORS = """\
# Errors of the API

<!-- Written by scripts/write_reference.py from src/matchpod/web/openapi/error_guide.py. -->

Every error has the same body:

```json
{
  "statusCode": 400,
  "error": "INVALID_PARAMS",
  "message": "gameSettings.maxRounds must be at least 1",
  "details": [{"path": "gameSettings.maxRounds", "message": "must be at least 1"}],
  "requestId": "req_0000000000000009"
}
```

- `error` is the code, for programs. The table below lists all codes, and so does the schema `ErrorCode` in
  `/openapi.json`. New codes may be added: handle an unknown code according to its status.
- `message` is one sentence for people. Its text may change, so programs should use the code.
- `details` lists all faults of the request: the `path` of the field, and the rule that it breaks. If there are more
  than %d, the others are only counted, in a last item without a path. The field is left out if it would be empty.
- `retryAfter` is the number of seconds after which the same request may succeed, also in the header `Retry-After`. Only
  `ACTION_NOT_POSSIBLE` has this field, if the time is known.
- `requestId` identifies the request in the log of the service. It is also in the header `X-Request-Id`.

| code | status | when | what to do |
|---|---|---|---|
"""

_ACTIONS_BEGIN = """\
<!-- Written by scripts/write_reference.py from src/matchpod/core/match/actions.py. -->

| `type` | fields | what it does | it is done when |
|---|---|---|---|
"""
_ACTIONS_END = "\n<!-- The end of what is written by scripts/write_reference.py. -->\n"

_CVARS = """\
# Console variables that a match may set

<!-- Written by scripts/write_reference.py from src/matchpod/cs2/cvar_names.py and cvars.py. -->

The field `customCvars` of `gameSettings` sets console variables of the match's server, one per line:

```
mp_overtime_enable 1
mp_t_default_primary "weapon_ak47"
mp_c4timer 40 // seconds
```

- A value is written as it is or in double quotes: at most 128 characters, of letters, digits, space and
  `_ . , : + # @ / -`, without `//`. An empty value is `""`.
- Empty lines are skipped, and so are comments, which begin with `//`.
- The text has at most {lines} lines and {size} bytes.
- Names must be spelled as in the list below. A line with another name is rejected, and `details` names the line and the
  reason.
- Variables of the simulator, such as `sim_scenario`, are allowed in regions with simulated servers only.
- The operator can allow more names with [`MATCHPOD_EXTRA_CVARS`](configuration.md).

{forbidden}

The {count} names below are those of a stock CS2 server of February 2026 that affect play.
"""


_METRICS = """\
# Metrics and traces

<!-- Written by scripts/write_reference.py, the table from src/matchpod/service/telemetry/metrics.py. -->

`/metrics` returns the metrics of one process in the text format of Prometheus. Let Prometheus scrape every replica
directly, not through a load balancer; every 15 s is enough. [connections.md](connections.md) explains which port serves
`/metrics`.
[Traces](#traces) are at the end of this page.

```yaml
scrape_configs:
  - job_name: matchpod
    static_configs:
      - targets: ["127.0.0.1:8080"]
```

- Series whose label values are known in advance exist from the start, at 0, so `rate` and `increase` include the first
  event. Other series appear when they are needed: request statuses other than success and our own errors, codes of the
  Kubernetes API other than success, reasons of faults.
- Gauges are updated every 5 s; the gauges of the process, and the age of a watch, are updated when the metrics are
  read.
- A metric has at most 256 series, or 1024 if one of its labels is the route. Further label values are counted as
  `other`.
- Metrics with `agones` or `kubernetes` in their name have series only in regions of kind `agones`.

**Several replicas.** A series with the label `scope` is about something that all replicas share: it was counted in the
database (`database`), or in the fleet or cluster (`fleet`). Every replica reports the same number, so use `max`. All
other series are about one process, so use `sum`:

| question | query |
|---|---|
| running servers, by region | `max by (region) (matchpod_servers{status="running"})` |
| all servers that are not released | `sum(max by (region, status) (matchpod_servers))` |
| waiting callbacks | `max(matchpod_callbacks_waiting)` |
| matches driven, all replicas | `sum(matchpod_matches_followed)` |
| matches that ended in an hour, by outcome | `sum by (outcome) (increase(matchpod_matches_ended_total[1h]))` |
| time in which 95 % start | `histogram_quantile(0.95, sum by (le) (rate(matchpod_bring_up_seconds_bucket[1h])))` |

"""


_TRACES = """
## Traces

A caller who creates a match with the header `traceparent` ([W3C Trace Context](https://www.w3.org/TR/trace-context/))
finds the match in the caller's own trace. The header is stored with the match, so it survives restarts, and every
callback of the match has a `traceparent` of the same trace. An invalid header is ignored, as the standard requires.
`tracestate` is not passed on.

With `OTEL_EXPORTER_OTLP_ENDPOINT` the service also sends spans to a collector of OpenTelemetry, as OTLP over HTTP with
JSON:

```sh
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 matchpod serve
```

| span | from | until |
|---|---|---|
| `match` | the match is created | the match has ended; the other spans are parts of this one |
| `match create` | the request arrives | the match is stored |
| `match start` | the match is created | its server is running, or the match has ended without one |
| `match play` | its server is running | the match has ended |
| `match callback` | an attempt to deliver its callback begins | the attempt ends; its `traceparent` names this span |

Spans have the attributes `matchpod.server_id`, `matchpod.region`, `matchpod.org_id` and `matchpod.outcome`. Spans of
callbacks have `matchpod.server_id`, `matchpod.callback_id`, `matchpod.attempt`, `http.request.method`, `server.address`
and, after a response, `http.response.status_code`. A span is sent when its step has ended; `match` and `match play` are
sent when the server is released. If the caller's `traceparent` is not sampled, no spans are sent. A match without a
`traceparent` gets a trace of its own.

| variable | meaning |
|---|---|
| `OTEL_EXPORTER_OTLP_ENDPOINT` | URL of the collector; `/v1/traces` is appended |
| `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | URL of the collector for traces only; nothing is appended |
| `OTEL_EXPORTER_OTLP_HEADERS` | additional headers, such as `x-key=secret` |
| `OTEL_EXPORTER_OTLP_CERTIFICATE` | file with the authorities that may sign the certificate of the collector, in PEM |
| `OTEL_EXPORTER_OTLP_TIMEOUT` | time limit of a request in milliseconds; the default is 10000 |
| `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | name and attributes of the service; the default name is `matchpod` |
| `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | no spans are sent |

Matches never wait for the collector. If a variable is wrong, or the collector cannot be reached, the service logs one
warning and buffers up to 2048 spans; `matchpod_spans_total` counts the dropped spans. Redirects are not followed: if
the collector responds with a redirect, the spans of that request are dropped. gRPC is not supported. Other variables
that begin with `OTEL_` have no effect; a warning at the start names them (`variables of OpenTelemetry ignored`). Each
variable `OTEL_EXPORTER_OTLP_…` also exists for traces only, as `OTEL_EXPORTER_OTLP_TRACES_…`.
[proxies.md](proxies.md#clusters-and-spans-through-a-proxy) explains how spans are sent through a proxy.
"""


def metrics_page() -> str:
    """Return the text of docs/metrics.md."""
    registry = Registry()
    for group in (Metrics, DatabaseMetrics, ProcessMetrics, DiskMetrics, ConnectionMetrics, HttpMetrics):
        group(registry)
    rows = [
        f"| `{row.name}` | {row.kind} | {' '.join(f'`{label}`' for label in row.all_labels)} | {row.text} |\n"
        for row in sorted(registry.all(), key=lambda row: row.name)
    ]
    return _METRICS + "| metric | type | labels | meaning |\n|---|---|---|---|\n" + "".join(rows) + _TRACES


def errors_page() -> str:
    """Return the text of docs/errors.md."""
    rows = [
        f"| `{error.code}` | {error.status} | {meaning_of(error.code)} | {advice} |\n"
        for error, advice in ADVICE.items()
    ]
    return _ERRORS % MAX_FAULTS + "".join(rows)


def actions_page() -> str:
    """Return docs/actions.md with its table of actions."""
    before, _, rest = (DOCS / "actions.md").read_text(encoding="utf-8").partition(_ACTIONS_BEGIN)
    _, _, after = rest.partition(_ACTIONS_END)
    rows = []
    for action_type, rule in ACTIONS.items():
        fields = "<br>".join(f"`{field.name}`: {field.text}" for field in rule.fields)
        rows.append(f"| `{action_type}` | {fields} | {rule.text} | {rule.done} |\n")
    return f"{before}{_ACTIONS_BEGIN}{''.join(rows)}{_ACTIONS_END}{after}"


def cvars_page() -> str:
    """Return the text of docs/custom-cvars.md."""
    head = _CVARS.format(
        lines=MAX_CVAR_LINES,
        size=MAX_CVAR_BYTES,
        forbidden=_wrapped(
            f"No match may set {_listed(FORBIDDEN_NAMES)}, nor a name that begins with {_listed(FORBIDDEN_PREFIXES)}, "
            "not even if the operator lists it: such names give access to the server, its secrets, its logs or its "
            "plugins."
        ),
        count=len(CVAR_NAMES),
    )
    groups = groupby(sorted(CVAR_NAMES), key=lambda name: name.partition("_")[0])
    return head + "".join(_group(prefix, " ".join(names)) for prefix, names in groups)


def _listed(names: tuple[str, ...]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} or {last}"


def _wrapped(line: str) -> str:
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _group(prefix: str, names: str) -> str:
    return f"\n## `{prefix}_`\n\n```\n{_wrapped(names)}\n```\n"


PAGES = {
    "errors.md": errors_page,
    "actions.md": actions_page,
    "custom-cvars.md": cvars_page,
    "metrics.md": metrics_page,
}


def main(folder: Path) -> int:
    """Write the pages. A page that is up to date stays the same."""
    for name, write in PAGES.items():
        (folder / name).write_text(write(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(DOCS))
