"""Keep the text of a secret out of logs, error messages and debuggers."""

from __future__ import annotations


class Secret:
    """A text that is not printed in logs, error messages and debuggers by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text of the secret. Callers must neither store nor log it."""
        return self._text

    def __repr__(self) -> str:
        return "<secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be copied or pickled")
