"""Pages are short and linked, their links lead somewhere, and the changelog begins with the current version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        path
        for folder in ("*.md", "docs/**/*.md", "packages/*/README.md", "deploy/**/*.md")
        for path in ROOT.glob(folder)
    ]
)
REFERENCES = {"configuration", "events", "metrics", "servers", "simulator", "stats"}
"""Pages that list everything there is, and may be long."""
MAX_WORDS = 2_000
MAX_README_LINES = 130
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    text = _CODE.sub("", page.read_text("utf-8"))
    return [f"{path}#{anchor}" for path, anchor in _LINK.findall(text) if not leads_somewhere(page, path, anchor)]


def leads_somewhere(page: Path, path: str, anchor: str) -> bool:
    target = page.parent / path if path else page
    if not anchor or not target.exists():
        return target.exists()
    return anchor in anchors(target.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`, c\n[1](#a-b-c) [2](#a) [3](no.md) [4](page.md#x) [5](https://example.org)\n```\n# x\n```\n"
    )
    assert broken_links(page) == ["#a", "no.md#", "page.md#x"]


def test_every_page_is_reached_from_the_readme() -> None:
    reached, new = set[Path](), {ROOT / "README.md"}
    while new:
        reached |= new
        links = {page.parent / path for page in new for path, _ in _LINK.findall(page.read_text("utf-8")) if path}
        new = {link.resolve() for link in links if link.suffix == ".md"} - reached
    assert [page for page in PAGES if page not in reached] == []


def test_pages_are_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MAX_README_LINES
    words = {page: len(page.read_text("utf-8").split()) for page in PAGES if ROOT / "docs" in page.parents}
    assert [page for page, count in words.items() if count > MAX_WORDS and page.stem not in REFERENCES] == []


def test_newest_release_in_the_changelog_is_the_version_of_all_packages() -> None:
    projects = [ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")]
    versions = {tomllib.loads(project.read_text("utf-8"))["project"]["version"] for project in projects}
    releases = re.findall(
        r"^## (\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert len(projects) > 1
    assert versions == {releases[0]}
