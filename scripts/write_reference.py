"""Write docs/errors.md and docs/custom-cvars.md from the source. Run it after changing what they list."""

from __future__ import annotations

import sys
import textwrap
from itertools import groupby
from pathlib import Path

from matchpod.core.requests.json_fields import MAX_FAULTS
from matchpod.core.requests.request_table import MAX_CVAR_BYTES, MAX_CVAR_LINES
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.cvars import FORBIDDEN_NAMES, FORBIDDEN_PREFIXES
from matchpod.web.openapi.error_guide import ERROR_GUIDE

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

- `error` is the code, for programs. The codes are below, and in `/openapi.json` as the schema `ErrorCode`. New ones may
  be added: treat a code that you do not know as its status says.
- `message` is one sentence for people. Programs use the code: the text may change.
- `details` lists all faults of the request at once, of a body at most %d: the `path` of the field, and the rule that
  it breaks. It is left out if there is nothing to list.
- `requestId` identifies the request in the log of the service. It is also in the header `X-Request-Id`.

| code | status | when | what to do |
|---|---|---|---|
"""

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
- Names are spelled as below. A line with another name is rejected, and `details` names the line and the reason.
- Variables of the simulator, such as `sim_scenario`, are allowed in regions with simulated servers only.
- The operator can allow more names with [`MATCHPOD_EXTRA_CVARS`](configuration.md).

{forbidden}

The {count} names below are those of a stock CS2 server of February 2026 that affect play.
"""


def errors_page() -> str:
    """Return docs/errors.md."""
    rows = [f"| `{code}` | {one.error.status} | {one.meaning} | {one.advice} |\n" for code, one in ERROR_GUIDE.items()]
    return _ERRORS % MAX_FAULTS + "".join(rows)


def cvars_page() -> str:
    """Return docs/custom-cvars.md."""
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


PAGES = {"errors.md": errors_page, "custom-cvars.md": cvars_page}


def main(folder: Path) -> int:
    """Write the pages; up-to-date pages are unchanged."""
    for name, write in PAGES.items():
        (folder / name).write_text(write(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(DOCS))
