"""ARCHITECTURE.md names every room, every path on it exists, and it stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "src", *sorted((ROOT / "packages").glob("*/src")))
BASES = (ROOT, ROOT / "src" / "matchpod", *SOURCES)
"""Where the paths on the pages begin."""
MAX_LINES = 250
"""Lines of the page: ten minutes of reading."""

_LINK = re.compile(r"\]\((?!https?://)([^)#]+)[^)]*\)")
_PATH = re.compile(r"`([\w-][\w.-]*/[\w./-]*|\w+\.(?:py|md|html|css|toml))`")
"""A path in backticks: with a slash that is not its first character, or with the name of a file only."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named_paths(text: str) -> set[str]:
    """Return all targets of links and all paths in backticks."""
    return {*_LINK.findall(text), *_PATH.findall(text)}


def found_at(path: str) -> list[Path]:
    """Return where a path of a page is; a file name alone may be in any folder of the source."""
    if "/" not in path:
        files = [*ROOT.glob(path), *(file for source in SOURCES for file in source.rglob(path))]
        return [file.resolve() for file in files]
    return [(base / path).resolve() for base in BASES if (base / path).exists()]


def source_folders() -> set[Path]:
    """Return every folder of the source that has a file, except the top folders of packages."""
    files = (file for source in SOURCES for file in source.rglob("*") if file.is_file())
    return {file.parent for file in files if "__pycache__" not in file.parts and file.parent.parent not in SOURCES}


def named_places(text: str) -> set[Path]:
    """Return all files and folders that a page names; those at the top of the service also by a word in backticks."""
    tops = {ROOT / "src" / "matchpod" / word for word in re.findall(r"`(\w+)`", text)}
    return {*tops, *(place for path in named_paths(text) for place in found_at(path))}


def test_every_folder_of_the_source_is_named() -> None:
    assert sorted(source_folders() - named_places(page("ARCHITECTURE.md"))) == []


def test_every_package_is_named() -> None:
    packages = {source.parent for source in SOURCES[1:]}
    assert packages
    assert sorted(packages - named_places(page("ARCHITECTURE.md"))) == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_every_path_on_the_page_exists(name: str) -> None:
    assert sorted(path for path in named_paths(page(name)) if not found_at(path)) == []


def test_page_is_short() -> None:
    assert len(page("ARCHITECTURE.md").splitlines()) <= MAX_LINES


def test_paths_are_found_in_links_and_backticks_and_urls_are_not() -> None:
    text = "See [a](docs/adr/README.md#x), [b](https://example.org/c.md), `core/match`, `ports.py`, `/docs`, `a.b`, `x / y`."
    assert named_paths(text) == {"docs/adr/README.md", "core/match", "ports.py"}


def test_path_that_does_not_exist_is_not_found() -> None:
    assert found_at("core/matches") == found_at("no_such_module.py") == []
    assert found_at("core/match") == [ROOT / "src" / "matchpod" / "core" / "match"]
