"""Parse console text into commands with their arguments.

`;` and line ends separate commands; a line end does so even inside quotes. Quotes cannot be escaped. `//` outside
quotes starts a comment up to the end of the line; NUL ends the text. Outside quotes, each of the characters `{}()':` is
a separate argument, so a URL must be quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_STATEMENT_BYTES = 511
"""Maximum length of a command in bytes. The engine's buffer has 512 bytes, including the terminator. Longer commands
are skipped."""

_WHITESPACE = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that separate arguments: space and ASCII control characters, but no other whitespace."""
_SINGLE = frozenset("{}()':")
_SPECIAL = frozenset(';"\n\0/')


@dataclass(frozen=True, slots=True)
class ConsoleStatement:
    """One command: its name, its arguments, and the raw text after the name."""

    name: str
    args: list[str]
    rest: str
    """The raw text after the name, without surrounding whitespace."""
    is_too_long: bool = False

    @property
    def value(self) -> str:
        """The text after the name as a single value, for variables and chat.

        If it starts with a quote, the quoted text only.
        """
        if not self.rest.startswith('"'):
            return self.rest
        return self.rest[1:].partition('"')[0]


def statements(text: str) -> Iterator[ConsoleStatement]:
    """Yield the commands of a text in order, without empty ones."""
    for line in _lines(text):
        words = _words(line)
        if words:
            (name, end), *others = words
            is_too_long = len(line.strip(_WHITESPACE).encode("utf-8", "replace")) > MAX_STATEMENT_BYTES
            yield ConsoleStatement(name, [word for word, _ in others], line[end:].strip(_WHITESPACE), is_too_long)


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
    """Split a line into words. Return each word with its end position."""
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
            while character not in _SINGLE and end < length and line[end] > " " and line[end] not in "\"{}()':":
                end += 1
            word, index = line[index:end], end
        words.append((word, index))
    return words
