"""The examples in the README of this package print what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_examples_print_what_the_readme_says() -> None:
    text = README.read_text("utf-8")
    names: dict[str, object] = {}
    differences: list[str] = []
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for block in re.finditer(r"^```pycon\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, block.start()) + 1
        test = parser.get_doctest(block[1], names, README.name, str(README), line)
        runner.run(test, out=differences.append, clear_globs=False)
        names = test.globs  # later blocks use the names of earlier ones
    assert "".join(differences) == ""
    assert runner.tries > 30
