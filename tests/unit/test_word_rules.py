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


def test_every_use_is_reported_in_any_case(checkout: Path) -> None:
    write(checkout, "src/module.py", '"""Whoever sees NOBODY."""\n\n# tells him\n')
    places = [fault.partition(":")[2].partition(":")[0] for fault in check_words.find_faults(checkout)]
    assert places == ["1 'Whoever'", "1 'NOBODY'", "3 'him'"]


@pytest.mark.parametrize(
    "text", ['key = "nobody"', "token = 'somebody'", "the field `he`", "GrenadeKind.HE", "no more than 3"]
)
def test_word_that_is_data_or_plain_english_is_allowed(checkout: Path, text: str) -> None:
    write(checkout, "src/module.py", f"{text}\n")
    assert check_words.find_faults(checkout) == []


@pytest.mark.parametrize("text", ['"nobody came"', "'as he said'", '"he'])
def test_word_inside_a_longer_string_is_reported(checkout: Path, text: str) -> None:
    write(checkout, "src/module.py", f"{text}\n")
    assert len(check_words.find_faults(checkout)) == 1


@pytest.mark.parametrize("exception", check_words.EXCEPTIONS)
def test_exception_allows_its_line_only(checkout: Path, exception: tuple[str, str, str]) -> None:
    path, part, _ = exception
    write(checkout, path, f"({part})\nsays he\n")
    assert [fault.split()[0] for fault in check_words.find_faults(checkout)] == [f"{path}:2"]


def test_exception_matches_an_avoided_word() -> None:
    for exception in check_words.EXCEPTIONS:
        path, part, _ = exception
        lines = (Path(__file__).resolve().parents[2] / path).read_text(encoding="utf-8").split("\n")
        assert any(part in line and list(check_words.words_in(line)) for line in lines)


@pytest.mark.parametrize("path", ["uv.lock", "docs/example.log", "tests/golden/result.json", "scripts/check_words.py"])
def test_skipped_files_are_not_checked(checkout: Path, path: str) -> None:
    write(checkout, path, "whoever\n")
    assert check_words.find_faults(checkout) == []


def test_binary_and_deleted_files_are_not_checked(checkout: Path) -> None:
    write(checkout, "gone.md", "whoever\n")
    subprocess.run(["git", "-C", str(checkout), "add", "gone.md"], check=True)
    (checkout / "gone.md").unlink()
    (checkout / "icon.png").write_bytes(b"\x89PNG he \xff\xfe")
    assert check_words.find_faults(checkout) == []


def test_faults_are_printed_and_exit_code_is_1(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkout, "page.md", "He left.\n")
    assert check_words.main(checkout) == 1
    assert capsys.readouterr().out.splitlines() == [
        "page.md:1 'He': write they, them or their for people, it or its for programs",
        "words: 1 faults",
    ]


def test_clean_checkout_has_exit_code_0(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_words.main(checkout) == 0
    assert capsys.readouterr().out == "words: no faults\n"
