"""Read the stored examples of the API description, which `scripts` has recorded from a real service.

If several responses contain the same value, such as the result of a match, the value is stored once, and the other
responses refer to it by its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from matchpod.core.errors import MatchpodError
from matchpod.web.endpoint import Endpoint

FILE: Final = "examples.json"
SAME: Final = "$same"
"""The only key of an object that stands for a value elsewhere in the file. Its value is the path of that value."""
MIN_SHARED_LINES: Final = 10
"""Minimum number of lines of a repeated value that is stored only once. A shorter value is easier to read where it is
used."""

_AT: Final = "#/components/examples/"

Values = Mapping[str, Any]
"""Example values (JSON) by label."""


class OperationExamples(msgspec.Struct, frozen=True):
    """The examples of an operation: parameters, request bodies, and responses by status."""

    parameters: Mapping[str, str] = {}
    request: Values = {}
    responses: Mapping[str, Values] = {}


class Examples(msgspec.Struct, frozen=True):
    """All examples: by operation, by callback, and one per error code."""

    operations: Mapping[str, OperationExamples]
    webhooks: Mapping[str, Values]
    errors: Values

    def parameter(self, endpoint: Endpoint, name: str) -> str | None:
        """Return the value that the parameter had in the request of the recorded example; None if there is none."""
        return self._of(endpoint).parameters.get(name)

    def request(self, endpoint: Endpoint) -> dict[str, object]:
        """Return references to the examples of the request body, by label."""
        return _refs(f"{_name(endpoint)}-request", self._of(endpoint).request)

    def response(self, endpoint: Endpoint, status: int, errors: Iterable[type[MatchpodError]]) -> dict[str, object]:
        """Return references to the examples of a response; if it has none, to those of the errors with this status."""
        own = self._of(endpoint).responses.get(str(status), {})
        if own:
            return _refs(f"{_name(endpoint)}-{status}", own)
        return {error.code: {"$ref": f"{_AT}error-{error.code}"} for error in errors}

    def webhook(self, name: str) -> dict[str, object]:
        """Return references to the examples of a callback, by label."""
        return _refs(name, self.webhooks.get(name, {}))

    def components(self) -> dict[str, dict[str, object]]:
        """Return all examples by name. References contain these names."""
        named: dict[str, Values] = {f"error-{code}": value for code, value in self.errors.items()}
        for name, operation in self.operations.items():
            named.update({f"{name}-request-{label}": value for label, value in operation.request.items()})
            for status, values in operation.responses.items():
                named.update({f"{name}-{status}-{label}": value for label, value in values.items()})
        for name, values in self.webhooks.items():
            named.update({f"{name}-{label}": value for label, value in values.items()})
        return {name: {"value": value} for name, value in named.items()}

    def _of(self, endpoint: Endpoint) -> OperationExamples:
        return self.operations.get(_name(endpoint), OperationExamples())


def _name(endpoint: Endpoint) -> str:
    return endpoint.alias_of or endpoint.name


def _refs(prefix: str, values: Values) -> dict[str, object]:
    return {label: {"$ref": f"{_AT}{prefix}-{label}"} for label in values}


@cache
def read_examples() -> Examples:
    stored = msgspec.json.decode((resources.files(__package__) / "assets" / FILE).read_bytes())
    return msgspec.convert(with_repeats(stored, stored), Examples)


def with_repeats(value: Any, stored: Any) -> Any:
    """Return a value of the file with all references in it replaced with the values that they stand for."""
    if isinstance(value, list):
        return [with_repeats(item, stored) for item in value]
    if not isinstance(value, dict):
        return value
    if SAME in value:
        found = stored
        for key in value[SAME].split("/"):
            found = found[int(key)] if isinstance(found, list) else found[key]
        return with_repeats(found, stored)
    return {key: with_repeats(item, stored) for key, item in value.items()}


def without_repeats(value: Any, path: str = "", seen: dict[str, str] | None = None) -> Any:
    """Return a value as it is stored: a large part that occurs again is replaced with a reference to its first path."""
    seen = {} if seen is None else seen
    if not isinstance(value, dict | list):
        return value
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    if text.count("\n") + 1 >= MIN_SHARED_LINES and seen.setdefault(text, path) != path:
        return {SAME: seen[text]}
    if isinstance(value, list):
        return [without_repeats(item, f"{path}/{index}", seen) for index, item in enumerate(value)]
    return {key: without_repeats(item, f"{path}/{key}" if path else key, seen) for key, item in value.items()}
