"""Write log lines in the formats of the service, and retry with a timeout, logging the progress."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

RETRY_S = 1.0
PROGRESS_S = 10.0  # interval of log lines while a retried action has not succeeded

FORMATS = ("human", "json")

_LOGGER = "matchpod_gameserver"
_BARE = re.compile(r"[^\s\"=\\]+")
_T = TypeVar("_T")


class FatalError(Exception):
    """The game cannot be run. The message is shown to the operator."""


class Log:
    """Writes log lines to standard error, as text or as JSON, like the service."""

    def __init__(self) -> None:
        self.format = FORMATS[0]

    def __call__(self, level: str, message: str, **fields: object) -> None:
        """Write a log line."""
        now_s = time.time()
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now_s))}.{int(now_s % 1 * 1000):03d}Z"
        if self.format == "json":
            plain = {name: value if isinstance(value, (int, float)) else str(value) for name, value in fields.items()}
            line = json.dumps({"time": at, "level": level, "logger": _LOGGER, "message": message, **plain})
        else:
            texts = {name: str(value) for name, value in fields.items()}
            words = [f"{name}={text if _BARE.fullmatch(text) else json.dumps(text)}" for name, text in texts.items()]
            line = "  ".join(filter(None, (f"{at} {level:<5} {message}", " ".join(words))))
        # Do not use `sys.stderr`: another thread may hold its lock when the process exits.
        with suppress(OSError):
            os.write(2, f"{line}\n".encode("utf-8", "replace"))


log = Log()


def retry(attempt: Callable[[], _T], what: str, timeout_s: float, retry_s: float = RETRY_S) -> _T:
    """Call `attempt` until it raises no OSError, and log the progress; raise FatalError after the timeout."""
    began_s, reported_s = time.monotonic(), -PROGRESS_S
    while True:
        try:
            return attempt()
        except OSError as exc:
            waited_s = time.monotonic() - began_s
            if waited_s >= timeout_s:
                raise FatalError(f"waited {timeout_s:g} s for {what}: {exc}") from exc
            if waited_s - reported_s >= PROGRESS_S:
                reported_s = waited_s
                log("INFO", f"waiting for {what}", waited_s=round(waited_s), reason=exc)
        time.sleep(retry_s)
