"""What is a console variable set to? The values of one server, above those of its mode and the game's defaults.

Three layers, looked up from the top: what was set here, what the mode's config says since the last map load, what the
game is born with. The lower two are shared by all servers of a process. The game cuts a value to its bounds without a
word and reads what is no number as 0; only the simulator's own `sim_` variables refuse, in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from matchpod.simulator.mode_configs import MODE_CONFIGS, mode_of
from matchpod.simulator.sim_settings import sim_fault
from matchpod.simulator.variable_table import VARIABLES, Variable

_SPELLINGS = MappingProxyType({name.lower(): name for name in VARIABLES})

_MODE_VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        mode: MappingProxyType({name: VARIABLES[name].read(value) for name, value in config.items()})
        for mode, config in MODE_CONFIGS.items()
    }
)
_NO_MODE: Mapping[str, str] = MappingProxyType({})


class Variables:
    """The console variables of one server. Names are read without regard to case."""

    __slots__ = ("_asked", "_changed", "_mode", "observers")

    def __init__(self) -> None:
        self._changed: dict[str, str] = {}
        self._mode = _NO_MODE
        self._asked: dict[str, str] = {}
        """What was looked up since the last change: the game asks for the same few names all the time."""
        self.observers: list[Callable[[str], None]] = []
        """Called with the name of a variable after `set` changed it; a mode's config changes silently."""

    def knows(self, name: str) -> bool:
        """True when the console takes the name; variables for the game's developers exist and are not taken."""
        variable = _find(name)
        return variable is not None and not variable.is_hidden

    def text(self, name: str) -> str:
        """The present value as the server prints it: `true`, `24`, `1.920000`; empty when there is no such variable."""
        value = self._asked.get(name)
        return self._look_up(name) if value is None else value

    def _look_up(self, name: str) -> str:
        variable = _find(name)
        if variable is None:
            return ""
        value = self._changed.get(variable.name)
        if value is None:
            value = self._mode.get(variable.name, variable.default)
        self._asked[name] = value
        return value

    def number(self, name: str) -> float:
        """The value as a number; 0 when it is none."""
        return _as_number(self.text(name))

    def whole(self, name: str) -> int:
        """The value as a whole number, its fraction cut off."""
        return int(_as_number(self.text(name)))

    def is_on(self, name: str) -> bool:
        """True for every value but 0 and false."""
        return _as_number(self.text(name)) != 0

    def set(self, name: str, value: str) -> str | None:
        """Set a variable; None when it is done, else why not, in words, and the old value stays."""
        variable = _find(name)
        if variable is None or variable.is_hidden:
            return f"{name} is not a console variable"
        fault = sim_fault(variable.name, value)
        if fault is not None:
            return fault
        after = variable.read(value)
        if after != self.text(variable.name):
            self._changed[variable.name] = after
            self._asked.clear()
            for observer in tuple(self.observers):
                observer(variable.name)
        return None

    def shown(self, name: str) -> str:
        """The answer to a variable's bare name: `mp_maxrounds = 24`."""
        variable = _find(name)
        return f"{variable.name if variable else name} = {self.text(name)}"

    def load_mode(self) -> None:
        """Take over the config of the present game type and mode, as every map load does; what it names is reset."""
        self._mode = _MODE_VALUES[self.mode_name]
        for name in self._mode:
            self._changed.pop(name, None)
        self._asked.clear()

    @property
    def mode_name(self) -> str:
        """The mode that `game_type` and `game_mode` stand for, as `Game Over` names it."""
        return mode_of(self.whole("game_type"), self.whole("game_mode"))


def _find(name: str) -> Variable | None:
    variable = VARIABLES.get(name)
    if variable is None:
        variable = VARIABLES.get(_SPELLINGS.get(name.lower(), ""))
    return variable


def _as_number(text: str) -> float:
    if text == "true":
        return 1.0
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
