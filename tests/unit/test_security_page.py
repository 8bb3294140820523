"""The settings, commands and limits on the pages about security, limits, proxies and secrets exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from matchpod.app.first_run import KEY_FILE
from matchpod.app.serving import OPS_PER_ADDRESS, PROBES_PER_ADDRESS
from matchpod.cli import create_app
from matchpod.core.secrets import is_secret_name
from matchpod.service.access.failed_logins import REPORTS_PER_MINUTE
from matchpod.service.access.organizations import CACHE_MS
from matchpod.service.callbacks.queue_dispatcher import MAX_PER_HOST
from matchpod.service.fair_turns import CHANGES, MAX_WAIT_S, MAX_WAITING, OF_KEY, OF_KEY_SHARED
from matchpod.service.ingest import budget
from matchpod.service.ingest.budget import BURST_BYTES, BYTES_PER_S, MAX_AT_ONCE
from matchpod.service.ingest.posts import MAX_BODY_BYTES, MAX_REPORT_BYTES, TOKEN_HEADER
from matchpod.service.ingest.urls import ANTICHEAT_PATH, LOGS_PATH, SHOTS_PATH
from matchpod.service.streams.readers import MAX_READERS
from matchpod.settings.values import SERVICE
from matchpod.web.event_streams import CHECK_S, HEARTBEAT_S
from matchpod.web.handlers.ops import METRICS_PER_S
from matchpod.web.http.admission import MAX_PIPELINED
from matchpod.web.http.connections import MAX_UNREAD_BYTES
from matchpod.web.services import METRICS_WAIT_S

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("security.md", "limits.md", "proxies.md", "secrets.md"))
TEXT = " ".join(PAGE.split())
COMMANDS = sorted({line.strip() for line in re.findall(r"^ *matchpod .*", PAGE, re.MULTILINE)})


def test_settings_on_the_page_exist() -> None:
    named = set(re.findall(r"MATCHPOD_[A-Z_]+", PAGE))
    assert named
    assert named <= {setting.variable for setting in SERVICE}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_on_the_page_has_known_options(command: str, tmp_path: Path) -> None:
    # On an empty data folder its subject is unknown, which is reported in a sentence; a wrong option would be too, but
    # with the usage of the command.
    done = CliRunner().invoke(
        create_app(shlex.split(command)[1]), shlex.split(command)[1:], env={"MATCHPOD_DATA_DIR": str(tmp_path)}
    )
    assert done.exit_code in (0, 2), done.output
    assert "Usage" not in done.stderr


def test_page_has_commands() -> None:
    assert len(COMMANDS) > 8


@pytest.mark.parametrize(
    "name",
    ["pass", "pwd", "secret", "webhook", "auth", "steamaccount", "header_value", "apikey", "_key", "token", "_pw"],
)
def test_names_of_secrets_on_the_page_are_redacted(name: str) -> None:
    assert f"`{name}`" in TEXT
    assert is_secret_name(f"a_{name.upper()}")


def test_limits_on_the_page_are_those_of_the_code() -> None:
    for text in (
        f"{BYTES_PER_S // 1024} KiB per second after a burst of {BURST_BYTES // 1024**2} MiB, {MAX_AT_ONCE} posts at once",
        f"{MAX_BODY_BYTES // 1024**2} MiB per log post, {MAX_REPORT_BYTES // 1024} KiB per report",
        f"the post waits up to {budget.MAX_WAIT_S:g} s, then gets 429",
        f"{MAX_PER_HOST:,} attempts at once to one host of an organization",
        f"{MAX_READERS:,} of all organizations",
        f"a comment every {HEARTBEAT_S:g} s",
        f"accept a revoked key for {CACHE_MS // 1000} more seconds",
        f"streams end within {CACHE_MS // 1000 + CHECK_S:g} seconds",
        f"{MAX_PIPELINED + 1} pipelined requests on a connection",
        f"{MAX_UNREAD_BYTES // 1024**2} MiB of unsent bytes over all connections",
        f"served {METRICS_PER_S} times per second, to all clients together",
        f"the request waits up to {METRICS_WAIT_S:g} s, then 429",
        f"{OPS_PER_ADDRESS} connections per address, one request at a time; {PROBES_PER_ADDRESS} connections for probes",
        f"{OF_KEY} requests that read and {OF_KEY * CHANGES} that change something in progress ({OF_KEY_SHARED} and "
        f"{OF_KEY_SHARED * CHANGES} with PostgreSQL), and {MAX_WAITING:,} of each kind waiting, in turns with others | | 429; "
        f"503 after {MAX_WAIT_S:g} s of waiting",
        f"{REPORTS_PER_MINUTE} entries about failed log-ins per minute",
        f"`{TOKEN_HEADER}`",
        f"`{KEY_FILE}`",
    ):
        assert text in TEXT
    for path in (LOGS_PATH, SHOTS_PATH, ANTICHEAT_PATH):
        assert f"`{path.removesuffix('{token}')}`" in TEXT
    defaults = {setting.variable: setting.default for setting in SERVICE}
    for variable, text in (
        ("MATCHPOD_MAX_CONNECTIONS_PER_ADDRESS", "1,024 per address"),
        ("MATCHPOD_MAX_BODY_BYTES", "bodies of 256 KiB"),
        ("MATCHPOD_MAX_FAILED_LOGINS", "60 failed log-ins per minute"),
        ("MATCHPOD_MAX_LIVE_MATCHES", "1,000 matches that have not ended"),
        ("MATCHPOD_MAX_CREATIONS_PER_MINUTE", "600 new matches per minute"),
        ("MATCHPOD_MAX_STREAMS", "1,000 open streams"),
        ("MATCHPOD_MAX_MATCH_LOG_MB", "256 MB of log"),
        ("MATCHPOD_MIN_FREE_DISK_MB", "512 MiB of free disk"),
    ):
        number = int(str(defaults[variable]))
        assert text in TEXT
        assert int(text.split()[0 if text[0].isdigit() else 2].replace(",", "")) in (number, number // 1024)
