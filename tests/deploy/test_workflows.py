"""The workflows and what keeps their actions current fit the schemas of GitHub."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]

from scripts.deploy_tools import COMPOSE_SCHEMA
from tests.deploy.tools import find_wheel

GITHUB = Path(__file__).resolve().parents[2] / ".github"


@pytest.mark.parametrize("file", sorted(GITHUB.rglob("*.yml")), ids=lambda file: file.name)
def test_file_fits_its_schema(file: Path) -> None:
    name = "github-workflows" if file.parent.name == "workflows" else file.stem
    with zipfile.ZipFile(find_wheel(COMPOSE_SCHEMA)) as wheel:
        schema = json.loads(wheel.read(f"check_jsonschema/builtin_schemas/vendor/{name}.json"))
    # YAML 1.1 reads the key `on` as true.
    content = {"on" if key is True else key: value for key, value in yaml.safe_load(file.read_text()).items()}
    validator = jsonschema_rs.validator_for(schema)
    assert list(map(str, validator.iter_errors(content))) == []
    assert not validator.is_valid({**content, "unknown": 1})
