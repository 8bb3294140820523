"""How does the game's console cut text into commands? An emulation to try our commands against.

As the engine does it: `;` and line ends part commands (a line end even inside quotes), a quote toggles, there are no
escapes, `//` outside quotes comments out the rest of the line, NUL ends the text, and the characters `{}()':` are
arguments of their own when they stand outside quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

BREAKS = frozenset("{}()':")


def tokenize(text: str) -> list[list[str]]:
    """The commands of a text, each as its arguments; empty commands are nothing."""
    commands = [_arguments(command) for command in _commands(text.split("\0", 1)[0])]
    return [command for command in commands if command]


def _commands(text: str) -> Iterator[str]:
    command: list[str] = []
    is_quoted = is_comment = False
    for index, character in enumerate(text):
        if character == "\n" or (character == ";" and not is_quoted and not is_comment):
            yield "".join(command)
            command = []
            is_quoted = is_comment = False
        elif not is_comment:
            if character == '"':
                is_quoted = not is_quoted
            is_comment = not is_quoted and text.startswith("//", index)
            if not is_comment:
                command.append(character)
    yield "".join(command)


def _arguments(command: str) -> list[str]:
    arguments: list[str] = []
    index = 0
    while index < len(command):
        character = command[index]
        if character <= " ":
            index += 1
        elif character == '"':
            end = command.find('"', index + 1)
            end = len(command) if end < 0 else end
            arguments.append(command[index + 1 : end])
            index = end + 1
        elif character in BREAKS:
            arguments.append(character)
            index += 1
        else:
            end = index
            while end < len(command) and command[end] > " " and command[end] != '"' and command[end] not in BREAKS:
                end += 1
            arguments.append(command[index:end])
            index = end
    return arguments
