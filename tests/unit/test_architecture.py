"""The tree in ARCHITECTURE.md matches the source."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDENT = 2


def described_modules(page: str) -> dict[str, str]:
    """Return the modules in the page's fenced `tree` block, by path, with their descriptions."""
    block = page.split("```tree\n", 1)[1].split("```", 1)[0]
    folders: list[str] = []
    modules: dict[str, str] = {}
    for line in block.splitlines():
        name, _, meaning = line.strip().partition(" ")
        depth = (len(line) - len(line.lstrip())) // INDENT
        folders[depth:] = [name]
        if name.endswith(".py"):
            modules["".join(folders)] = meaning.strip()
    return modules


def source_modules() -> set[str]:
    """Return every module of the package except `__init__`."""
    files = (ROOT / "src" / "matchpod").rglob("*.py")
    return {file.relative_to(ROOT).as_posix() for file in files if file.name != "__init__.py"}


def test_tree_in_the_page_matches_the_source() -> None:
    described = set(described_modules((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    actual = source_modules()
    faults = [
        *(f"in the source, not in ARCHITECTURE.md: {path}" for path in sorted(actual - described)),
        *(f"in ARCHITECTURE.md, not in the source: {path}" for path in sorted(described - actual)),
    ]
    assert not faults, "\n" + "\n".join(faults)


def test_every_module_in_the_tree_has_a_description() -> None:
    modules = described_modules((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert [path for path, meaning in modules.items() if not meaning] == []


def test_tree_is_read_by_indentation() -> None:
    page = "# Page\n```tree\nsrc/\n  a.py   first\n  b/     a folder\n    c.py second\n  d.py\n```\nrest.py\n"
    assert described_modules(page) == {"src/a.py": "first", "src/b/c.py": "second", "src/d.py": ""}
