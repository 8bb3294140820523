"""The word check reports the words we avoid, with line and suggestion, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import check_words


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create an empty repository."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_plain_text_has_no_faults(checkout: Path) -> None:
    write(
        checkout, "docs/page.md", "The caller reads their result. The process renews its lease. There are no moretti.\n"
    )
    write(checkout, "src/module.py", "history = this.whose(then)  # sheds the heap\n")
    assert check_words.find_faults(checkout) == []


@pytest.mark.parametrize("word", check_words.SUGGESTIONS)
def test_avoided_word_is_reported_with_its_line_and_a_suggestion(checkout: Path, word: str) -> None:
    write(checkout, "docs/page.md", f"first line\nhere is {word}, used\n")
    assert check_words.find_faults(checkout) == [f"docs/page.md:2 {word!r}: write {check_words.SUGGESTIONS[word]}"]


@pytest.mark.parametrize(
    "text", ['key = "nobody"', "token = 'somebody'", "the field `he`", "GrenadeKind.HE", "no more than 3"]
)
def test_word_that_is_data_or_plain_english_is_allowed(checkout: Path, text: str) -> None:
    write(checkout, "src/module.py", f"{text}\n")
    assert check_words.find_faults(checkout) == []


@pytest.mark.parametrize("exception", check_words.EXCEPTIONS)
def test_exception_allows_its_line_only(checkout: Path, exception: tuple[str, str, str]) -> None:
    path, part, _ = exception
    write(checkout, path, f"({part})\nsays he\n")
    assert [fault.split()[0] for fault in check_words.find_faults(checkout)] == [f"{path}:2"]


@pytest.mark.parametrize("path", ["uv.lock", "docs/example.log", "tests/golden/result.json", "scripts/check_words.py"])
def test_skipped_files_are_not_checked(checkout: Path, path: str) -> None:
    write(checkout, path, "whoever\n")
    assert check_words.find_faults(checkout) == []


def test_faults_are_printed_and_exit_code_is_1(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkout, "page.md", "He left.\n")
    assert check_words.main(checkout) == 1
    assert capsys.readouterr().out.splitlines() == [
        "page.md:1 'He': write they, them or their for people, it or its for programs",
        "words: 1 faults",
    ]
