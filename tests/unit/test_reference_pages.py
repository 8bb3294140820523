"""The pages about errors and console variables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from matchpod.core.errors import ErrorCode, MatchpodError
from matchpod.core.rulings import RULING_DAYS
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.cvars import FORBIDDEN_NAMES, FORBIDDEN_PREFIXES, is_never_allowed, read_custom_cvars
from matchpod.web.errors import ErrorBody
from matchpod.web.openapi.error_guide import ADVICE, meaning_of
from matchpod.web.routes import ENDPOINTS
from scripts import write_reference


def all_errors(error: type[MatchpodError] = MatchpodError) -> set[type[MatchpodError]]:
    return {error, *(found for below in error.__subclasses__() for found in all_errors(below))}


def test_page_is_written_from_the_code() -> None:
    for name in write_reference.PAGES:
        page = (write_reference.DOCS / name).read_text(encoding="utf-8")
        assert page == write_reference.PAGES[name](), "run python -m scripts.write_reference"


def test_pages_are_written(tmp_path: Path) -> None:
    assert write_reference.main(tmp_path) == 0
    assert {file.name for file in tmp_path.iterdir()} == set(write_reference.PAGES)


def test_every_code_is_explained_with_the_status_of_all_its_errors() -> None:
    explained = {error.code: error.status for error in ADVICE}
    assert set(explained) == set(ErrorCode)
    assert list(explained.values()) == sorted(explained.values())
    for error in all_errors():
        assert explained[error.code] == error.status
    assert f"more than {RULING_DAYS} days" in meaning_of(ErrorCode.RULING_TOO_LATE)
    documented = {error.code for endpoint in ENDPOINTS for error in endpoint.all_errors}
    # The router or the connection answers with these before an endpoint is known.
    undocumented = {ErrorCode.METHOD_NOT_ALLOWED, ErrorCode.HEADERS_TOO_LARGE, ErrorCode.NOT_IMPLEMENTED}
    assert set(ErrorCode) - documented == undocumented


def test_example_of_an_error_has_the_fields_of_the_body() -> None:
    ((example,),) = [re.findall(r"```json\n(.*?)```", write_reference.errors_page(), re.DOTALL)]
    body = msgspec.json.decode(example, type=ErrorBody)
    assert (body.error, body.status_code) == (ErrorCode.INVALID_PARAMS, 400)
    assert set(msgspec.json.decode(example)) == set(ErrorBody.__struct_encode_fields__) - {"retryAfter"}


def test_page_of_console_variables_lists_each_name_once() -> None:
    page = write_reference.cvars_page()
    example, *listed = re.findall(r"```\n(.*?)```", page, re.DOTALL)
    assert sorted(name for block in listed for name in block.split()) == sorted(CVAR_NAMES)
    reading = read_custom_cvars(example)
    assert (len(reading.settings), reading.faults) == (3, ())


def test_forbidden_names_on_the_page_are_never_allowed() -> None:
    page = write_reference.cvars_page()
    for name in (*FORBIDDEN_NAMES, *FORBIDDEN_PREFIXES):
        assert f"`{name}`" in page
    assert all(map(is_never_allowed, FORBIDDEN_NAMES))
    assert all(is_never_allowed(f"{prefix}x") for prefix in FORBIDDEN_PREFIXES)
