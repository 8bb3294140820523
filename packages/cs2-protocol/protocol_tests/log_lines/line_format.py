"""Format log lines as servers write them."""

from __future__ import annotations

from cs2_protocol.log_clock import format_stamp
from cs2_protocol.log_lines.reader import Line


def format_file_line(ms: int, line: Line) -> str:
    """A line of a log file, with the time in whole seconds and no line end."""
    return f"L {format_stamp(ms, millis=False)}: {line.text()}"


def format_http_line(ms: int, line: Line) -> str:
    """A line of a log post, with the time in milliseconds and no line end."""
    return f"{format_stamp(ms, millis=True)} - {line.text()}"
