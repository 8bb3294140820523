"""Run the command line: wait for the Agones SDK and start the game, or run one of the other commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from . import instance
from .game import ENDING, TIMING, GameProcess, Timing
from .instance_commands import remove_instances, remove_unused, run_instance
from .log import FatalError, log, retry
from .options import (
    DERIVE,
    HELP,
    LOG_FORMAT_VARIABLE,
    REMOVE_INSTANCES,
    RUN_INSTANCE,
    Options,
    UsageError,
    expand_command,
    parse_arguments,
    parse_derive_arguments,
)
from .password import bootstrap_password, read_password, read_secret, write_cfg, write_password
from .sdk import choose_port, read_gameserver

POD_OWNER = "agones"
"""Owner of the folders of game servers that run in pods (see `Plan.owner`)."""


def run() -> None:
    """Run the command line and exit; the entry point `matchpod-gameserver`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str], timing: Timing = TIMING) -> int:
    """Run the command with these arguments (without the program's name), and return the exit code."""
    commands = {DERIVE: _derive, RUN_INSTANCE: run_instance, REMOVE_INSTANCES: remove_instances}
    command = commands.get(arguments[0]) if arguments else None
    if "--help" in (arguments[1:2] if command else arguments[:1]):
        os.write(1, HELP.encode())
        return 0
    log.format = os.environ.get(LOG_FORMAT_VARIABLE, "")  # the format until the options have been parsed
    try:
        return command(arguments[1:]) if command else _run(arguments, timing)
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
    cfg, own = "", None
    try:
        options, template = parse_arguments(arguments, os.environ)
        log.format = options.log_format
        # Read the password first, so that a missing file is reported at once.
        secret = b"" if options.password_file else read_secret(options.secret_file)
        password = read_password(options.password_file) if options.password_file else ""
        server = retry(lambda: read_gameserver(timing.request_s), "the Agones SDK", options.sdk_timeout, timing.retry_s)
        port, password = choose_port(server, options.port_name), password or bootstrap_password(secret, server.name)
        address = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.ip, options.ip), port)
        game = GameProcess(options, address, password, timing)
        game.begin_health()  # report health first: a folder that is built slowly is not a reason to replace the server
        own = _make_instance(options, server.name)
        cfg_dir = options.cfg_dir or (own.cfg_dir if own else "")
        if cfg_dir:
            cfg = write_cfg(cfg_dir, server.name, password)
        values = {"port": str(port), "ip": options.ip, "name": server.name, "cfg": os.path.basename(cfg)}
        command = expand_command(template, {**values, "game": own.game if own else ""})
        return game.run(command, own.enter(command) if own else {})
    finally:
        with suppress(OSError):
            os.unlink(cfg)
        if own:
            own.remove()


def _make_instance(options: Options, name: str) -> instance.Instance | None:
    if not options.install_dir:
        return None
    remove_unused(options.instances_dir, POD_OWNER)
    addons = tuple(filter(None, options.addons.split(",")))
    own = instance.build(
        instance.Plan(options.install_dir, options.instances_dir, POD_OWNER, name, addons, options.steamclient)
    )
    log("INFO", "folder of the game server created", folder=own.path)
    return own
