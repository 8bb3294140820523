"""How does the console cut text into commands? Statements of one command each, with their arguments and the raw rest.

`;` and line ends part statements, a line end even inside quotes; a quote toggles and cannot be escaped; `//` outside
quotes comments out the rest of its line; NUL ends the text. Outside quotes the characters `{}()':` are arguments of
their own, which is why an address must be quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_STATEMENT_BYTES = 511
"""The engine's buffer for one command has 512 bytes with its end; a longer command is skipped whole."""

_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""What parts words: other blanks of Unicode do not."""
_BREAKS = frozenset("{}()':")
_SPECIAL = frozenset(';"\n\0/')


@dataclass(frozen=True, slots=True)
class Statement:
    """One command: its name, its arguments, and what stands behind the name."""

    name: str
    args: list[str]
    rest: str
    """Untouched, without the blanks around it."""
    is_too_long: bool = False

    @property
    def value(self) -> str:
        """The rest as one value, as variables and chat take it: blanks belong to it, quotes around it do not."""
        if not self.rest.startswith('"'):
            return self.rest
        return self.rest[1:].partition('"')[0]


def statements(text: str) -> Iterator[Statement]:
    """The commands of a text in their order; empty ones are nothing."""
    for line in _lines(text):
        words = _words(line)
        if words:
            (name, end), *others = words
            is_too_long = len(line.strip(_BLANKS).encode("utf-8", "replace")) > MAX_STATEMENT_BYTES
            yield Statement(name, [word for word, _ in others], line[end:].strip(_BLANKS), is_too_long)


def _lines(text: str) -> Iterator[str]:
    if _SPECIAL.isdisjoint(text):
        yield text
        return
    line: list[str] = []
    is_quoted = is_comment = False
    for index, character in enumerate(text):
        if character == "\0":
            break
        if character == "\n" or (character == ";" and not is_quoted and not is_comment):
            yield "".join(line)
            line = []
            is_quoted = is_comment = False
        elif not is_comment:
            if character == '"':
                is_quoted = not is_quoted
            is_comment = not is_quoted and text.startswith("//", index)
            if not is_comment:
                line.append(character)
    yield "".join(line)


def _words(line: str) -> list[tuple[str, int]]:
    """The arguments of a line, each with where it ends."""
    words: list[tuple[str, int]] = []
    index, length = 0, len(line)
    while index < length:
        character = line[index]
        if character <= " ":
            index += 1
            continue
        if character == '"':
            end = line.find('"', index + 1)
            end = length if end < 0 else end
            word, index = line[index + 1 : end], min(end + 1, length)
        else:
            end = index + 1
            while character not in _BREAKS and end < length and line[end] > " " and line[end] not in "\"{}()':":
                end += 1
            word, index = line[index:end], end
        words.append((word, index))
    return words
