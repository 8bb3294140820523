"""The examples of the API description: every request and response has some, and all follow their schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec
import pytest

from matchpod.core.model import MatchType
from matchpod.web.openapi.examples import MIN_SHARED_LINES, SAME, with_repeats, without_repeats
from matchpod.web.openapi.openapi import describe, describe_internal
from matchpod.web.routes import ENDPOINTS
from scripts.record_examples import FILE, shortened

DOCUMENTS = {"callers": describe, "internal": describe_internal}
RECORD = "Run `python -m scripts.record_examples` and review the difference."


class Place(NamedTuple):
    """Where a document has or should have examples."""

    operation: str
    where: str
    content: dict[str, Any]


@cache
def document(name: str) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(DOCUMENTS[name](ENDPOINTS, "1.2.3"))
    return decoded


def places(name: str) -> Iterator[Place]:
    """Yield all bodies of requests, responses and callbacks."""
    found = document(name)
    for methods in (*found["paths"].values(), *found.get("webhooks", {}).values()):
        for operation in methods.values():
            bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for where, body in bodies.items():
                for content in body.get("content", {}).values():
                    yield Place(operation["operationId"], where, content)


def examples_of(name: str, place: Place) -> dict[str, Any]:
    """Return the examples of one body, by label."""
    stored = document(name)["components"]["examples"]
    refs = {label: example["$ref"] for label, example in place.content.get("examples", {}).items()}
    return {label: stored[ref.removeprefix("#/components/examples/")]["value"] for label, ref in refs.items()}


def validator(name: str, schema: object) -> Any:
    """Return a validator that also checks formats and resolves references into the document."""
    return _validator(name, json.dumps(schema, sort_keys=True))


@cache
def _validator(name: str, schema: str) -> Any:
    whole = {"components": document(name)["components"], "allOf": [json.loads(schema)]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_request_and_response_has_an_example(name: str) -> None:
    missing = [f"{place.operation} {place.where}" for place in places(name) if not place.content.get("examples")]
    assert not missing, RECORD


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_example_follows_its_schema(name: str) -> None:
    faults = []
    for place in places(name):
        check = validator(name, place.content["schema"])
        for label, value in examples_of(name, place).items():
            faults += [
                f"{place.operation} {place.where} {label}: {error.instance_path} {error.message[:200]}"
                for error in check.iter_errors(value)
            ]
    assert not faults, "\n".join([*faults, RECORD])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_required_parameter_has_a_valid_example(name: str) -> None:
    for methods in document(name)["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["required"]:
                    validator(name, parameter["schema"]).validate(parameter["example"])


def test_results_of_both_shapes_are_examples() -> None:
    for operation, where in (("getMatchByExternalId", "200"), ("matchOver", "request")):
        (place,) = [one for one in places("callers") if (one.operation, one.where) == (operation, where)]
        results = [value["result"] for value in examples_of("callers", place).values() if value["result"]]
        assert {result["gameMode"] for result in results} >= {MatchType.COMPETITIVE, MatchType.DEATHMATCH}


def test_examples_have_no_secrets_and_no_local_addresses() -> None:
    text = FILE.read_text("utf-8")
    assert not re.findall(r"mk_live_[\w-]{43}|whsec_", text)
    assert not re.findall(r"http://(?!127\.0\.0\.1:8080)[\w.]+", text)
    passwords = re.findall(r'"rconPassword": "([^"]*)"', text)
    assert passwords
    assert set(passwords) == {"example-rcon-password"}


# --- formats ------------------------------------------------------------------------------------------------------

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z")


def without_one_time(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a copy of the value for each time in it, with text instead of the time, and the path of the time."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        if isinstance(item, str) and TIME.fullmatch(item):
            changed: list[tuple[str, Any]] = [("", "some time ago")]
        else:
            changed = list(without_one_time(item))
        for path, other in changed:
            copy = value.copy()
            copy[key] = other
            yield f"{key}.{path}", copy


def test_every_time_in_a_response_has_the_format_of_a_time() -> None:
    seen = 0
    for place in places("callers"):
        if place.where == "request" and not place.operation.startswith("match"):
            continue  # a request may have other forms of dates
        check = validator("callers", place.content["schema"])
        for label, value in examples_of("callers", place).items():
            for path, changed in without_one_time(value):
                seen += 1
                assert not check.is_valid(changed), (place.operation, place.where, label, path)
    assert seen > 50


def test_large_value_is_stored_once() -> None:
    large = {str(number): number for number in range(MIN_SHARED_LINES)}
    answers = {"first": [{"result": large}], "again": large, "both": {"one": {"a": large}, "two": {"a": large}}}
    stored = without_repeats(answers)
    assert stored["first"] == [{"result": large}]
    assert stored["again"] == {SAME: "first/0/result"}
    assert stored["both"]["two"] == {SAME: "both/one"}
    assert with_repeats(stored, stored) == answers


def test_file_has_no_large_value_twice() -> None:
    stored = json.loads(FILE.read_text("utf-8"))
    assert without_repeats(with_repeats(stored, stored)) == stored


# --- the script ---------------------------------------------------------------------------------------------------


def test_lists_are_shortened_but_a_timeline_keeps_each_type() -> None:
    players = [{"name": name, "weapons": [{"kills": 1}] * 3} for name in "abc"]
    assert shortened({"players": players, "ids": ["1", "2", "3"]}) == {
        "players": [{"name": name, "weapons": [{"kills": 1}] * 2} for name in "ab"],
        "ids": ["1", "2", "3"],
    }
    items = [{"seq": seq, "type": kind} for seq, kind in enumerate(("kill", "kill", "chat", "assist"), start=1)]
    assert [item["seq"] for item in shortened(items)] == [1, 3, 4]
