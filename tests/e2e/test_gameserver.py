"""`matchpod gameserver`: what it imports, and a game that never stops sending."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from matchpod_gameserver.options import HELP
from matchpod_gameserver.rcon import MAX_BYTES, ask
from tests.lying_server import Lie, LyingServer

TIMEOUT_S = 180.0


@pytest.mark.parametrize("lie", [Lie.EMPTY_PACKETS, Lie.ENDLESS_PARTS, Lie.DRIP])
async def test_game_that_never_stops_sending_is_asked_for_a_limited_time(lie: Lie) -> None:
    async with LyingServer(lie, about="status") as port, asyncio.timeout(20):
        answer = await asyncio.to_thread(ask, ("127.0.0.1", port), "x", "status", 1.0)
        assert len(answer) <= MAX_BYTES


def test_command_runs_without_importing_the_rest() -> None:
    code = (
        "import sys; sys.argv = ['matchpod', 'gameserver', '--help']\n"
        "from matchpod.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "loaded = {name for name in sys.modules if name.startswith('matchpod')}\n"
        "own = {name for name in loaded if name.startswith('matchpod_gameserver')}\n"
        "assert loaded - own == {'matchpod', 'matchpod.__main__'} and own, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout == HELP.replace("matchpod-gameserver", "matchpod gameserver")
