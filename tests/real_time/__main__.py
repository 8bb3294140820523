"""Play eight matches at once at the speed of real games for an hour, and print every alarm and fault that was shown.

`--minutes 5` is a short run with fewer rounds. `--database postgres` has two replicas. Exits with 1 if an alarm, a
deadline or a number was false.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.stores import PostgresServer
from tests.real_time.games import LANES
from tests.real_time.session import Session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_time", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="duration in minutes; default: 60")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--report", type=Path, help="a file for the report, which grows meanwhile")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="matchpod-real-time-", dir=os.environ.get("TMPDIR", "/var/tmp")))
    with ExitStack() as stack:
        url = None
        if args.database == "postgres":
            server = PostgresServer(folder / "postgres")
            stack.callback(server.close)
            url = asyncio.run(server.create_store()).url
        replicas = 1 if url is None else 2
        session = Session(
            folder, LANES, minutes=args.minutes, database_url=url, replicas=replicas, report_file=args.report
        )
        try:
            report = session.run()
        finally:  # an hour is too long to be lost
            sys.stdout.write("".join(f"{line}\n" for line in session.report.lines()))
    if report.false_alarms or report.faults:
        sys.stdout.write(f"real time: false alarms or faults; kept: {folder}\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
