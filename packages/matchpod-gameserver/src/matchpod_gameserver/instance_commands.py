"""Run a game server in a folder of its own without Agones, and remove folders that no server uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from . import instance
from .log import FatalError, log
from .options import REMOVE_INSTANCES, RUN_INSTANCE, InstanceOptions, parse_instance_arguments


def run_instance(arguments: Sequence[str]) -> NoReturn:
    """Create the folder of a server and replace this process with the command, which keeps the folder locked.

    Raise FatalError if that fails.
    """
    options, template = parse_instance_arguments(RUN_INSTANCE, arguments, os.environ)
    log.format = options.log_format
    try:
        if options.report_fd:
            os.set_inheritable(int(options.report_fd), False)  # noqa: FBT003 (positional only)
        _become(options, template)
    except (FatalError, OSError) as exc:
        if options.report_fd:
            number = exc.number if isinstance(exc, instance.InstanceError) else getattr(exc, "errno", 0)
            with suppress(OSError):
                os.write(int(options.report_fd), f"{number or 0} {exc}".encode())
        raise FatalError(str(exc)) from exc


def remove_instances(arguments: Sequence[str]) -> int:
    """Remove the folders that no server uses, and log their names."""
    options, _ = parse_instance_arguments(REMOVE_INSTANCES, arguments, os.environ)
    log.format = options.log_format
    return 0 if remove_unused(options.instances_dir, options.owner, options.name) else 1


def remove_unused(instances_dir: str, owner: str, name: str = "") -> bool:
    """Remove folders that no server uses, and log their names; return False if a warning was logged.

    If a name is given, a running server of that name is logged as a warning too.
    """
    is_done = True
    for folder, state in instance.remove_unused(instances_dir, owner, name).items():
        if state == instance.REMOVED:
            log("INFO", "folder of an ended game server removed", folder=folder)
        elif state != instance.USED or name:  # without a name, running servers are normal
            log("WARN", "folder of a game server not removed", folder=folder, reason=state)
            is_done = False
    return is_done


def _become(options: InstanceOptions, template: Sequence[str]) -> NoReturn:
    text = sys.stdin.buffer.read() if options.cfg else b""
    addons = tuple(filter(None, options.addons.split(",")))
    own = instance.build(
        instance.Plan(
            options.install_dir, options.instances_dir, options.owner, options.name, addons, options.steamclient
        )
    )
    try:
        if options.cfg:
            path = os.path.join(own.cfg_dir, options.cfg)
            with open(path, "xb", opener=lambda new, flags: os.open(new, flags, 0o600)) as file:
                file.write(text)
        command = [argument.replace("{game}", own.game) for argument in template]
        environment = {**os.environ, **own.enter(command)}
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvpe(command[0], command, environment)
    except OSError as exc:
        own.remove()
        raise instance.InstanceError(f"the program cannot be started: {exc}", exc.errno or 0) from exc
