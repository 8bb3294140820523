"""Does the source keep its layout rules? Prints every fault with its place; exit 1 when there is one.

Sizes, module heads, names, mirrored tests, machine paths. Style is ruff's business, imports are import-linter's.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_MODULE_LINES = 400
"""A module answers one question; past this it answers two."""

MAX_FUNCTION_LINES = 40
"""One screen: a function is read without scrolling. Counted from `def` to the end, without its docstring."""

MAX_POSITIONAL = 4
"""Past four, a call no longer says which value is which: the rest is keyword-only. `self` and `cls` do not count."""

MAX_HEAD_LINES = 8
"""A module head is read in full only while it is short."""

VAGUE_NAMES = frozenset({"utils", "helpers", "manager", "base", "data", "info"})
"""Names that fit any content, so they collect all of it."""

MIRRORED_PACKAGES = ("core", "cs2")
"""Pure packages: every module can be tested alone, so every module has its own test module."""

WITHOUT_OWN_TESTS = {
    "core/model.py": "nouns; tried by every test that builds a match",
    "core/events.py": "declarations without code",
    "core/effects.py": "declarations without code",
    "core/errors.py": "declarations without code",
    "cs2/cvar_names.py": "a list of names",
}

MACHINE_PATHS = tuple(f"/{folder}/".encode() for folder in ("work", "root"))
"""Places that exist on one machine only; a file that names one is wrong everywhere else."""


def find_faults(root: Path) -> list[str]:
    """Every fault of the checkout at `root`."""
    package = root / "src" / "matchpod"
    modules = sorted(package.rglob("*.py"))
    faults = [fault for module in modules for fault in module_faults(module, module.relative_to(root).as_posix())]
    faults += mirror_faults(root, package)
    faults += machine_path_faults(root, repository_files(root))
    return faults


def module_faults(module: Path, shown: str) -> Iterator[str]:
    """Faults of one module: its name, its size, its head and its functions."""
    for name in (*Path(shown).parts[2:-1], module.stem):
        if name in VAGUE_NAMES:
            yield f"{shown}:1 {name} says nothing about its content; name the question it answers"
    text = module.read_text(encoding="utf-8")
    lines = len(text.removesuffix("\n").split("\n"))
    if lines > MAX_MODULE_LINES:
        yield f"{shown}:1 module is {lines} lines, at most {MAX_MODULE_LINES}"
    try:
        tree = ast.parse(text)
    except SyntaxError as exc:
        yield f"{shown}:{exc.lineno} does not parse: {exc.msg}"
        return
    yield from head_faults(tree, shown)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from function_faults(node, shown)


def head_faults(tree: ast.Module, shown: str) -> Iterator[str]:
    """The head: a docstring of one to eight lines."""
    head = ast.get_docstring(tree)
    if not head:
        yield f"{shown}:1 module has no docstring that says which question it answers"
    elif (lines := len(head.splitlines())) > MAX_HEAD_LINES:
        yield f"{shown}:1 module docstring is {lines} lines, at most {MAX_HEAD_LINES}"


def function_faults(node: ast.FunctionDef | ast.AsyncFunctionDef, shown: str) -> Iterator[str]:
    """A function's length and its positional parameters."""
    lines = _line_count(node) - (_line_count(node.body[0]) if ast.get_docstring(node) is not None else 0)
    if lines > MAX_FUNCTION_LINES:
        yield f"{shown}:{node.lineno} {node.name} is {lines} lines, at most {MAX_FUNCTION_LINES}"
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    positional = len(names) - (names[:1] in (["self"], ["cls"]))
    if positional > MAX_POSITIONAL:
        yield f"{shown}:{node.lineno} {node.name} has {positional} positional parameters, at most {MAX_POSITIONAL}"


def mirror_faults(root: Path, package: Path) -> Iterator[str]:
    """Modules of the pure packages without a test module at the mirrored path."""
    for module in sorted(path for name in MIRRORED_PACKAGES for path in (package / name).rglob("*.py")):
        inside = module.relative_to(package)
        if module.name == "__init__.py" or inside.as_posix() in WITHOUT_OWN_TESTS:
            continue
        test = Path("tests/unit") / inside.parent / f"test_{module.name}"
        if not (root / test).is_file():
            yield f"{module.relative_to(root).as_posix()}:1 has no test module {test.as_posix()}"


def repository_files(root: Path) -> list[Path]:
    """Every file that is tracked, or would be: what git does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, check=False, capture_output=True)
    if answer.returncode != 0:
        raise SystemExit(f"git cannot list the files of {root}: {answer.stderr.decode().strip()}")
    return [root / name.decode() for name in sorted(set(answer.stdout.split(b"\0"))) if name]


def machine_path_faults(root: Path, files: list[Path]) -> Iterator[str]:
    """Lines that name a folder of one machine."""
    for file in files:
        if not file.is_file():  # deleted but not yet committed, or a link to nowhere
            continue
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            for word in MACHINE_PATHS:
                if word in line:
                    yield f"{file.relative_to(root).as_posix()}:{number} names the machine path {word.decode()}"


def main(root: Path) -> int:
    """Print the faults of the checkout."""
    faults = find_faults(root)
    for fault in faults:
        print(fault)
    print(f"layout: {len(faults)} faults" if faults else "layout: all rules kept")
    return 1 if faults else 0


def _line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
