"""The four packages: names, versions, dependencies and commands, without building them (see e2e/test_wheels.py)."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "cs2-protocol": ROOT / "packages/cs2-protocol",
    "cs2-simulator": ROOT / "packages/cs2-simulator",
    "matchpod-gameserver": ROOT / "packages/matchpod-gameserver",
    "matchpod": ROOT,
}
"""The folder of each package, in the order in which they can be installed one by one."""

IMPORT = re.compile(
    r"^\s*(?:from ([a-z]\w*(?:\.\w+)*) import |import ([a-z]\w*(?:\.\w+)*)(?: as \w+)?\s*(?:#.*)?$)", re.M
)


def project(name: str) -> Any:
    return tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]


def source(name: str) -> Path:
    return FOLDERS[name] / "src" / name.replace("-", "_")


def required(name: str) -> set[str]:
    """Return the names of all packages that one depends on, with its extras."""
    about = project(name)
    extras = about.get("optional-dependencies", {}).values()
    specifiers = [*about["dependencies"], *(one for extra in extras for one in extra)]
    return {re.split(r"[<>=!~;\[ ]", one)[0] for one in specifiers}


@pytest.fixture(params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_name_is_that_of_the_folder_and_versions_are_equal(name: str) -> None:
    assert project(name)["name"] == name
    assert project(name)["version"] == project("matchpod")["version"]


def test_our_packages_depend_on_the_same_version_of_those_before_them(name: str) -> None:
    version, before = project("matchpod")["version"], list(FOLDERS)[: list(FOLDERS).index(name)]
    ours = [one for one in project(name)["dependencies"] if re.split("[<>=]", one)[0] in FOLDERS]
    assert set(ours) <= {f"{other}=={version}" for other in before}


def test_every_import_is_a_dependency_and_the_other_way_round(name: str) -> None:
    text = "\n".join(file.read_text("utf-8") for file in source(name).rglob("*.py"))
    modules = {(module or plain).partition(".")[0] for module, plain in IMPORT.findall(text)}
    modules |= set(re.findall(r'"-m", "(\w+)"', text))  # run as a program
    used = modules - sys.stdlib_module_names - {source(name).name}
    if "msgspec.yaml." in text:
        used.add("pyyaml")  # imported by msgspec
    assert {module.replace("_", "-") for module in used} == required(name)


def test_only_the_entry_point_of_images_supports_old_pythons(name: str) -> None:
    assert project(name)["requires-python"] == (">=3.9" if name == "matchpod-gameserver" else ">=3.11")


def test_commands_exist(name: str) -> None:
    commands = project(name).get("scripts", {})
    assert set(commands) == (set() if name == "cs2-protocol" else {name})
    for target in commands.values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function))


def test_licence_readme_and_types_are_part_of_the_package(name: str) -> None:
    about, folder = project(name), FOLDERS[name]
    assert (about["license"], about["license-files"], about["readme"]) == ("MIT", ["LICENSE"], "README.md")
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (folder / "README.md").read_text().startswith("# ")
    assert (source(name) / "py.typed").is_file()


INSTALL = re.compile(r"\b(?:pip3? install|pipx (?:install|run)|uv pip install|uv tool install|uv add|uvx)\b([^`\n]*)")
OTHER_SOURCES = re.compile(r"--(?:find-links|extra-index-url)\b")
PAGES = ("*.md", "src/**/*.py", "scripts/**/*", "docs/**/*", "deploy/**/*", "packages/**/*", ".github/**/*", ".ci/*")


def unpublished_installs(text: str) -> list[str]:
    """Return the install commands that look for one of our packages by its name at a package index."""
    joined = text.replace("\\\n", " ")
    commands = [found[0] for found in INSTALL.finditer(joined) if set(FOLDERS) & set(map(_package, found[1].split()))]
    return commands + OTHER_SOURCES.findall(joined)


def _package(argument: str) -> str:
    return re.split(r"[\[=<>~!@;,)]", argument.strip("'\"."))[0].lower().replace("_", "-")


@pytest.mark.parametrize(
    "command",
    [
        "pip install matchpod",
        "/opt/matchpod/bin/pip install --upgrade \\\n  'matchpod[postgres]==0.3.0'",
        "Use `uv pip install cs2_protocol`.",
        "uvx matchpod serve",
        "pip install --find-links dist x",
    ],
)
def test_install_command_by_the_name_of_a_package_is_found(command: str) -> None:
    assert unpublished_installs(command)


@pytest.mark.parametrize(
    "command",
    ["pip install dist/matchpod-*.whl", "/opt/matchpod/bin/pip install -r x", "`pip install uv` and start matchpod"],
)
def test_install_command_by_a_path_or_of_another_package_is_allowed(command: str) -> None:
    assert not unpublished_installs(command)


def test_no_page_script_or_workflow_installs_our_packages_by_name() -> None:
    """Our names are not registered at the public index: anyone could publish a package there that would be installed."""
    files = {ROOT / "Makefile", *(file for pattern in PAGES for file in ROOT.glob(pattern) if file.is_file())}
    texts = {file: file.read_text("utf-8", errors="replace") for file in files if "__pycache__" not in file.parts}
    found = {str(file.relative_to(ROOT)): unpublished_installs(text) for file, text in texts.items()}
    assert {file: commands for file, commands in found.items() if commands} == {}
