"""What a server logs of the texts that its console says: some the text, all the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import ConsoleChat, RconCommand
from tests.corpus.real_logs import INFERNO


@pytest.mark.parametrize(("name", "commands", "texts"), [(INFERNO, 41, 0), ("cs2-http-posts.txt", 1, 1)])
def test_server_may_log_the_command_but_not_the_text(corpus: Path, name: str, commands: int, texts: int) -> None:
    reader = LineReader()
    lines = [reader.read(raw)[1] for raw in (corpus / name).read_bytes().split(b"\n")]
    assert sum(isinstance(line, RconCommand) and line.command.startswith("say ") for line in lines) == commands
    assert sum(isinstance(line, ConsoleChat) for line in lines) == texts
