"""Run the command: read the arguments, wait for the SDK, and start the game; or derive a password."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from .game import ENDING, TIMING, GameProcess, Timing
from .log import FatalError, log, retry
from .options import (
    DERIVE,
    HELP,
    LOG_FORMAT_VARIABLE,
    UsageError,
    expand_command,
    parse_arguments,
    parse_derive_arguments,
)
from .password import bootstrap_password, read_password, read_secret, write_cfg, write_password
from .sdk import choose_port, read_gameserver


def run() -> None:
    """Entry point of `matchpod-gameserver`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str], timing: Timing = TIMING) -> int:
    """Run the command with the arguments after its name; return the exit code."""
    if "--help" in (arguments[:1] if arguments[:1] != [DERIVE] else arguments[1:2]):
        os.write(1, HELP.encode())
        return 0
    log.format = os.environ.get(LOG_FORMAT_VARIABLE, "")  # until the options have been read
    try:
        if arguments[:1] == [DERIVE]:
            return _derive(arguments[1:])
        return _run(arguments, timing)
    except FatalError as exc:
        log("ERROR", str(exc))
        return 2 if isinstance(exc, UsageError) else 1


def _derive(arguments: Sequence[str]) -> int:
    options = parse_derive_arguments(arguments, os.environ)
    log.format = options.log_format
    write_password(options.out, bootstrap_password(read_secret(options.secret_file), options.name))
    log("INFO", "RCON password written", name=options.name, file=options.out)
    return 0


def _run(arguments: Sequence[str], timing: Timing) -> int:
    for number in ENDING:
        signal.signal(number, lambda *_: sys.exit(0))
    cfg = ""
    try:
        options, template = parse_arguments(arguments, os.environ)
        log.format = options.log_format
        # Before anything else, so that a missing file is reported at once.
        secret = b"" if options.password_file else read_secret(options.secret_file)
        password = read_password(options.password_file) if options.password_file else ""
        server = retry(lambda: read_gameserver(timing.request_s), "the Agones SDK", options.sdk_timeout, timing.retry_s)
        port, password = choose_port(server, options.port_name), password or bootstrap_password(secret, server.name)
        if options.cfg_dir:
            cfg = write_cfg(options.cfg_dir, server.name, password)
        values = {"port": str(port), "ip": options.ip, "name": server.name, "cfg": os.path.basename(cfg)}
        address = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.ip, options.ip), port)
        return GameProcess(options, address, password, timing).run(expand_command(template, values))
    finally:
        with suppress(OSError):
            os.unlink(cfg)
