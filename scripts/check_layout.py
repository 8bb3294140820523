"""Check the layout rules of the source. Print each fault with its location, and exit with 1 if there are faults.

The rules are about docstrings, names, functions, mirrored tests, imports of the packages, and paths of a machine. Style
is checked by ruff, all other imports by import-linter. A long module is a warning, not a fault.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LONG_MODULE_LINES = 600
"""Number of lines above which a module gets a warning. The advice is at most 400 lines. This is not a fault: a module
is split because it has two subjects, not because of its length."""

MAX_FUNCTION_LINES = 40
"""Maximum number of lines of a function without its docstring: one screen, so that it can be read without scrolling."""

MAX_POSITIONAL = 4
"""Maximum number of positional parameters, without `self` and `cls`. Calls with more of them are hard to read, so
further parameters must be keyword-only."""

MAX_HEAD_LINES = 8
"""Maximum number of lines of a module docstring. Longer docstrings are not read in full."""

VAGUE_NAMES = frozenset({"utils", "helpers", "manager", "base", "data", "info"})
"""Module names that fit any content, and so attract unrelated code."""

MIRRORED_PACKAGES = {
    "src/matchpod/core": "tests/unit/core",
    "src/matchpod/cs2": "tests/unit/cs2",
    "packages/cs2-protocol/src/cs2_protocol": "packages/cs2-protocol/protocol_tests",
}
"""Pure packages and the folders of their tests. As every module can be tested alone, each must have its own test
module."""

WITHOUT_OWN_TESTS = {
    "src/matchpod/core/model.py": "value types; covered by every test that builds a match",
    "src/matchpod/core/events.py": "declarations without code",
    "src/matchpod/core/effects.py": "declarations without code",
    "src/matchpod/core/errors.py": "declarations; the texts of invalid fields are covered by test_faults.py",
    "src/matchpod/core/stats/player_round.py": "declarations without code",
    "src/matchpod/cs2/cvar_names.py": "a list of names",
    "packages/cs2-protocol/src/cs2_protocol/game.py": "value types; covered by every test of lines",
}

OUTSIDE_PACKAGES = frozenset({"matchpod", "tests", "scripts"})
"""Packages that code below `packages` must not import, not even in tests, so that it can be used without this
checkout."""

STANDING_ALONE = ("matchpod.web.http",)
"""Packages below `src` that must not import anything else of this project, so that other projects could use them."""

MACHINE_PATHS = tuple(f"/{folder}/".encode() for folder in ("work", "root"))
"""Folders that exist on a single machine only. No file may refer to a path in them."""


def find_warnings(root: Path) -> list[str]:
    """Return a warning for each long module of the checkout at `root`."""
    sizes = {path: len(module.read_bytes().removesuffix(b"\n").split(b"\n")) for path, module in source_modules(root)}
    return [
        f"{path}:1 module is {lines} lines; does it have two subjects?"
        for path, lines in sizes.items()
        if lines > LONG_MODULE_LINES
    ]


def find_faults(root: Path) -> list[str]:
    """Return all faults of the checkout at `root`."""
    faults = [fault for path, module in source_modules(root) for fault in module_faults(module, path)]
    faults += class_name_faults(root)
    faults += mirror_faults(root)
    faults += package_import_faults(root)
    faults += standing_alone_faults(root)
    faults += machine_path_faults(root, repository_files(root))
    return faults


def source_modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the modules of all packages, with their paths in the checkout."""
    sources = (root / "src", *sorted((root / "packages").glob("*/src")))
    for module in sorted(module for source in sources for module in source.rglob("*.py")):
        yield module.relative_to(root).as_posix(), module


def module_faults(module: Path, path: str) -> Iterator[str]:
    """Yield faults of one module: name, docstring and functions."""
    for name in (*Path(path).parts[2:-1], module.stem):
        if name in VAGUE_NAMES:
            yield f"{path}:1 {name} is too vague; choose a name that describes the content"
    text = module.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as exc:
        yield f"{path}:{exc.lineno} does not parse: {exc.msg}"
        return
    yield from docstring_faults(tree, path)
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from function_faults(node, path)


def docstring_faults(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield a fault if the module docstring is missing or has more than eight lines."""
    docstring = ast.get_docstring(tree)
    if not docstring:
        yield f"{path}:1 module has no docstring that says what it does"
    elif (lines := len(docstring.splitlines())) > MAX_HEAD_LINES:
        yield f"{path}:1 module docstring is {lines} lines, at most {MAX_HEAD_LINES}"


def function_faults(node: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> Iterator[str]:
    """Yield faults of a function: its length and its positional parameters."""
    lines = _line_count(node) - (_line_count(node.body[0]) if ast.get_docstring(node) is not None else 0)
    if lines > MAX_FUNCTION_LINES:
        yield f"{path}:{node.lineno} {node.name} is {lines} lines, at most {MAX_FUNCTION_LINES}"
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    positional = len(names) - (names[:1] in (["self"], ["cls"]))
    if positional > MAX_POSITIONAL:
        yield f"{path}:{node.lineno} {node.name} has {positional} positional parameters, at most {MAX_POSITIONAL}"


def class_name_faults(root: Path) -> Iterator[str]:
    """Yield the public classes of the service whose name another public class has too, because readers confuse them."""
    modules: dict[str, str] = {}
    for path, module in source_modules(root):
        for line, name in _public_classes(module.read_text(encoding="utf-8")) if path.startswith("src/") else ():
            if modules.setdefault(name, path) != path:
                yield f"{path}:{line} the class {name} has the same name as one in {modules[name]}"


def mirror_faults(root: Path) -> Iterator[str]:
    """Yield the modules of the pure packages that have no test module at the mirrored path."""
    for package, tests in MIRRORED_PACKAGES.items():
        for module in sorted((root / package).rglob("*.py")):
            path = module.relative_to(root).as_posix()
            if module.name == "__init__.py" or path in WITHOUT_OWN_TESTS:
                continue
            test = Path(tests) / module.relative_to(root / package).parent / f"test_{module.name}"
            if not (root / test).is_file():
                yield f"{path}:1 has no test module {test.as_posix()}"


def package_import_faults(root: Path) -> Iterator[str]:
    """Yield the imports below `packages` that refer to `matchpod`, `tests` or `scripts`."""
    for module in sorted((root / "packages").rglob("*.py")):
        path = module.relative_to(root).as_posix()
        for line, name in _imports(module.read_text(encoding="utf-8")):
            if name.partition(".")[0] in OUTSIDE_PACKAGES:
                yield f"{path}:{line} imports {name}, which is not part of a package"


def standing_alone_faults(root: Path) -> Iterator[str]:
    """Yield the imports in a standalone package that refer to modules of this project outside the package."""
    ours = {package.name for sources in (root / "src", *root.glob("packages/*/src")) for package in sources.glob("*")}
    for package in STANDING_ALONE:
        for module in sorted((root / "src" / package.replace(".", "/")).rglob("*.py")):
            for line, name in _imports(module.read_text(encoding="utf-8")):
                if name.partition(".")[0] in ours and not f"{name}.".startswith(f"{package}."):
                    path = module.relative_to(root).as_posix()
                    yield f"{path}:{line} imports {name}, but {package} stands alone"


def repository_files(root: Path) -> list[Path]:
    """Return all files that are tracked by git, and new files that git does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    process = subprocess.run(command, check=False, capture_output=True)
    if process.returncode != 0:
        raise SystemExit(f"git cannot list the files of {root}: {process.stderr.decode().strip()}")
    return [root / name.decode() for name in sorted(set(process.stdout.split(b"\0"))) if name]


def machine_path_faults(root: Path, files: list[Path]) -> Iterator[str]:
    """Yield the lines that contain a path of a single machine."""
    for file in files:
        if not file.is_file():  # deleted but not yet committed, or a broken link
            continue
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            for path in MACHINE_PATHS:
                if path in line:
                    yield f"{file.relative_to(root).as_posix()}:{number} contains the machine path {path.decode()}"


def main(root: Path) -> int:
    """Print the warnings and faults of the checkout. Only faults cause an exit code of 1."""
    faults = find_faults(root)
    for warning in find_warnings(root):
        print(f"warning: {warning}")
    for fault in faults:
        print(fault)
    print(f"layout: {len(faults)} faults" if faults else "layout: no faults")
    return 1 if faults else 0


def _public_classes(text: str) -> Iterator[tuple[int, str]]:
    try:
        nodes = ast.parse(text).body
    except SyntaxError:
        return
    yield from ((node.lineno, node.name) for node in nodes if isinstance(node, ast.ClassDef) and node.name[0] != "_")


def _imports(text: str) -> Iterator[tuple[int, str]]:
    try:
        nodes = list(_statements(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.lineno, node.module


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements below a node. Expressions, which are most nodes of a module, are not visited."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from _statements(child)


def _line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
