"""The rules that the files of this package are written by: Python 3.9, the standard library only."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import matchpod_gameserver

FILES = sorted(Path(matchpod_gameserver.__file__).parent.glob("*.py"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def tree(request: pytest.FixtureRequest) -> ast.Module:
    file: Path = request.param
    return ast.parse(file.read_text("utf-8"), feature_version=(3, 9))


def test_newer_syntax_would_be_noticed() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass\n", feature_version=(3, 9))


def test_annotations_are_not_evaluated_so_newer_types_in_them_are_harmless(tree: ast.Module) -> None:
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def test_unions_of_types_are_used_in_annotations_only(tree: ast.Module) -> None:
    annotations = [
        part
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]
    inside = {id(node) for annotation in annotations for node in ast.walk(annotation)}
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
    outside = [node for node in unions if id(node) not in inside and not _is_number(node.right)]
    assert [ast.unparse(node) for node in outside] == []


def _is_number(node: ast.expr) -> bool:
    """True for a number, or a constant of a module such as `os.O_EXCL`."""
    if isinstance(node, ast.Attribute):
        return node.attr.isupper()
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="this Python does not list its standard library")
def test_files_import_the_standard_library_and_each_other_only(tree: ast.Module) -> None:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1
    assert modules <= sys.stdlib_module_names
    assert "matchpod" not in modules
