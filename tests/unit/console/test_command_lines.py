"""Command lines that people copy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from matchpod.console.command_lines import curl_line, verify_line
from matchpod.service.access.webhook_signature import new_secret, sign


def test_line_computes_the_signature_of_the_service(tmp_path: Path) -> None:
    secret, body = new_secret(bytes(range(32))), b'{"a": "\xc3\xa9\'"}\n'
    (tmp_path / "callback-body.json").write_bytes(body)
    line = verify_line("msg_1", "1790000000")
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, env={**os.environ, "SECRET": secret}, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == sign(secret, "msg_1", 1_790_000_000, body)


def test_addresses_are_quoted_for_the_shell() -> None:
    assert curl_line("http://x/a?b=1&c=2") == "curl -s 'http://x/a?b=1&c=2' -H \"Authorization: Bearer $KEY\""
