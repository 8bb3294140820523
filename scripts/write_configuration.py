"""Write docs/configuration.md from the settings tables. Run this script after changing a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from matchpod.settings.fleets import AGONES_FLEET, PROCESS_FLEET, SIMULATOR_COMMAND, STATIC_SERVER
from matchpod.settings.rules import PLACEHOLDERS
from matchpod.settings.table import Setting
from matchpod.settings.values import REGION, SERVICE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"

EXAMPLE = """\
host = "0.0.0.0"
public_url = "https://matches.example.net"
log_format = "json"
raw_log_days = 14
extra_cvars = ["my_plugin_mode"]

[[regions]]
code = "sandbox"
name = "Sandbox"
location = "nowhere"
speed = 30

[regions.fleet]
kind = "process"
ports = "27100-27199"

[[regions]]
code = "eu-central"
name = "Central Europe"
location = "Frankfurt"

[regions.fleet]
kind = "process"
host = "0.0.0.0"
public_ip = "203.0.113.7"
ports = "27015-27024"
install_dir = "/srv/cs2"
instances_dir = "/srv/cs2-servers"
addons = ["metamod", "MatchZy"]
command = [
    "{game}/bin/linuxsteamrt64/cs2", "-dedicated", "-usercon",
    "-ip", "{ip}", "-port", "{port}",
    "+game_type", "{game_type}", "+game_mode", "{game_mode}",
    "+exec", "{cfg}", "+map", "{map}",
]

[[regions]]
code = "us-east"
name = "US East"
location = "Ashburn"

[regions.fleet]
kind = "static"
servers = [
    { address = "198.51.100.4:27015", rcon_password = "first server's password" },
    { address = "198.51.100.5:27015", rcon_password = "second server's password" },
]

[[regions]]
code = "asia"
name = "Asia"
location = "Singapore"

[regions.fleet]
kind = "agones"
fleet = "cs2"
namespace = "games"
kubeconfig = "/etc/matchpod/singapore.yaml"
secret_file = "/etc/matchpod/singapore.secret"
"""


def write_page() -> str:
    """Return the whole page."""
    return "\n\n".join([_HEAD, _environment(), _FILE, _example(), *_region_tables(), _faults()]) + "\n"


_HEAD = """\
# Configuration

<!-- Written by scripts/write_configuration.py from the tables in src/matchpod/settings. -->

All settings are optional: by default the service listens on 127.0.0.1:8080, keeps its data in `./var`, and has one
region, `sandbox`, whose servers are simulated. A value in the environment overrides the value in the file, which
overrides the default. An empty variable counts as not set."""

_FILE = """\
## File

The file is [TOML](https://toml.io). It contains the settings above, under the key in the second column, and the
regions, which can only be set here. If the file has regions, the `sandbox` region exists only if it is one of them."""


def _environment() -> str:
    head = "## Environment\n\n| variable | key in the file | default | allowed | meaning |\n|---|---|---|---|---|"
    rows = [
        f"| `{setting.variable}` | {f'`{setting.key}`' if setting.in_file else '–'} | {_default(setting)} "
        f"| {_cell(setting.rule.allowed)} | {_cell(setting.meaning)} |"
        for setting in SERVICE
    ]
    return "\n".join([head, *rows])


def _example() -> str:
    return f"A complete example:\n\n```toml\n{EXAMPLE}```"


def _region_tables() -> list[str]:
    placeholders = ", ".join(f"`{{{name}}}`" for name in PLACEHOLDERS)
    simulator = " ".join(SIMULATOR_COMMAND)
    return [
        _keys("### `[[regions]]`", REGION),
        _keys('### `[regions.fleet]` with `kind = "process"`', PROCESS_FLEET),
        f"Placeholders in `command`: {placeholders}. `{{python}}` is the service's Python interpreter, `{{ip}}` is "
        "`host`, `{tv_port}` its port of `tv_ports`, `{game}` the folder `game` of the server's own folder, `{cfg}` "
        "the name of the file with its secrets in `cfg_dir` or in its own folder, `{players}` the ids of the expected "
        "players, `{speed}` its region's speed, `{server_id}` the id of the match's server. All servers have their "
        "RCON password in the environment variable `MATCHPOD_RCON_PASSWORD`; `{rcon_password}` on a command line is "
        "visible to all users of the machine. The default command, which starts a simulated server, is:",
        f"```\n{simulator}\n```",
        '### `[regions.fleet]` with `kind = "static"`\n\n'
        "`servers` is a list of one or more tables. The servers are already running; each runs one match at a time.",
        _keys("", STATIC_SERVER),
        _keys('### `[regions.fleet]` with `kind = "agones"`', AGONES_FLEET),
    ]


def _keys(title: str, settings: Iterable[Setting]) -> str:
    head = "| key | default | allowed | meaning |\n|---|---|---|---|"
    rows = [
        f"| `{setting.key}` | {_default(setting)} | {_cell(setting.rule.allowed)} | {_cell(setting.meaning)} |"
        for setting in settings
    ]
    return "\n".join([f"{title}\n\n{head}" if title else head, *rows])


def _faults() -> str:
    return """\
## Invalid settings

The service does not start with an invalid setting. It reports all problems at once, one per line:

```
MATCHPOD_LOG_FORMAT is "xml"; it must be human or json.
MATCHPOD_PROT is not a known setting; did you mean MATCHPOD_PORT?
regions[1].fleet.prots in var/matchpod.toml is not a known key; did you mean ports?
```

Error messages never contain secrets. The settings file may contain secrets, so make it readable only by the user of the
service."""


def _default(setting: Setting) -> str:
    if setting.is_required:
        return "required"
    return f"`{setting.default}`" if setting.default is not None else _cell(setting.fallback)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(page: Path) -> int:
    """Write the page. A page that is up to date stays the same."""
    page.write_text(write_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(PAGE))
