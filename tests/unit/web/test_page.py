"""The documentation page, rendered by Node with the parts of the DOM that it uses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

from matchpod.web.openapi.openapi import describe, describe_internal
from matchpod.web.routes import ENDPOINTS

NODE = shutil.which("node")
RENDER = Path(__file__).with_name("render_page.js")
TIMEOUT_S = 120

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed, which renders the page.")


def render(folder: Path, document: bytes, search: str = "") -> dict[str, Any]:
    (folder / "document.json").write_bytes(document)
    script = str(resources.files("matchpod.web.openapi") / "assets" / "docs.js")
    command = [str(NODE), str(RENDER), script, str(folder / "document.json"), search]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return render(tmp_path_factory.mktemp("page"), describe(ENDPOINTS, "1.2.3"))


def test_page_begins_with_what_callers_need(page: dict[str, Any]) -> None:
    assert page["fetched"] == ["/openapi.json"]
    assert page["headings"][:2] == ["Matches and servers", "Callbacks to your callbackUrl"]
    assert page["headings"][-2:] == ["Deprecated", "Schemas"]
    assert page["text"].index("Create a match: choose a region") < page["text"].index("Version 1.2.3")


def test_page_has_every_operation_once_and_every_link_has_a_target(page: dict[str, Any]) -> None:
    document = msgspec.json.decode(describe(ENDPOINTS, "1.2.3"))
    of_paths = [*document["paths"].values(), *document["webhooks"].values()]
    operations = [op["operationId"] for methods in of_paths for op in methods.values()]
    assert sorted(name for name in page["ids"] if not name.startswith("schema-")) == sorted(operations)
    assert {link.removeprefix("#") for link in page["links"]} <= set(page["ids"])


def test_page_shows_the_first_example_of_each_body(page: dict[str, Any]) -> None:
    document = msgspec.json.decode(describe(ENDPOINTS, "1.2.3"))
    examples = document["components"]["examples"]
    shown = [json.loads(text) for text in page["shown"] if text.startswith(("{", "["))]
    commands = [json.loads(body) for text in page["shown"] for body in re.findall(r"-d '(.*)'", text, re.DOTALL)]
    for methods in (*document["paths"].values(), *document["webhooks"].values()):
        for operation in methods.values():
            if operation.get("deprecated"):
                continue
            for body in (operation.get("requestBody", {}), *operation["responses"].values()):
                for content in body.get("content", {}).values():
                    first = next(iter(content["examples"].values()))["$ref"].rsplit("/", 1)[1]
                    value = examples[first]["value"]
                    is_error = "statusCode" in value  # only one error of an operation is shown at first
                    assert is_error or value in (*page["shown"], *shown, *commands), first


def test_values_of_a_field_that_may_be_null_are_listed(page: dict[str, Any]) -> None:
    start = page["text"].index("Why the match was canceled, as in the callback")
    assert "all_players_left" in page["text"][start : start + 300]


def test_requests_are_commands_with_real_ids(page: dict[str, Any]) -> None:
    commands = [shown for shown in page["shown"] if shown.startswith("curl")]
    assert len(commands) > 20
    assert not [command for command in commands if "{" in command.rsplit("\n", 1)[1]]
    (regions,) = [command for command in commands if command.endswith('/api/v1/regions"')]
    assert "Authorization" not in regions
    assert any("-X POST" in command and '"matchType": "competitive"' in command for command in commands)


def test_page_renders_the_internal_document_on_request(tmp_path: Path) -> None:
    page = render(tmp_path, describe_internal(ENDPOINTS, "1.2.3"), "?internal")
    assert page["fetched"] == ["/openapi-internal.json"]
    assert page["headings"] == ["From game servers", "For operators", "Schemas"]
    assert any("<[U:1:" in shown for shown in page["shown"])  # lines of a log
