"""The table of methods, options and counters as the core has it (csrc/include/fginfer_methods.def)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

from fginfer.core.door import ffi, lib


@dataclass(frozen=True)
class MethodRow:
    """A method: what it is, and when to use it. number: that of the core; -1: it is written in Python."""

    name: str
    number: int
    text: str
    use: str


@dataclass(frozen=True)
class OptionRow:
    """An option and the methods that read it. A number is at least `least` and less than `below`."""

    name: str
    methods: tuple[str, ...]
    kind: str  # "number", "choice", "flag", or "numbers" (by name)
    standard: float
    least: float
    below: float
    choices: tuple[str, ...]
    text: str

    @property
    def default(self) -> Any:
        """What the option is where nobody gives it."""
        if self.kind == "number":
            return int(self.standard) if self.standard == int(self.standard) else self.standard
        return {"choice": "auto", "flag": bool(self.standard), "numbers": {}}[self.kind]

    @property
    def values(self) -> str:
        """What may be given, in words."""
        if self.kind == "number":
            return "a number" if self.below == inf or self.below == self.least else f"{self.least:g} to {self.below:g}"
        return {"choice": ", ".join(self.choices), "flag": "True, False", "numbers": "a dict of numbers"}[self.kind]


@dataclass(frozen=True)
class CounterRow:
    """A number in the statistics of a result, and the methods that count it; none stands for all."""

    name: str
    methods: tuple[str, ...]
    text: str


_KINDS = {
    lib.FGI_OPTION_NUMBER: "number",
    lib.FGI_OPTION_CHOICE: "choice",
    lib.FGI_OPTION_FLAG: "flag",
    lib.FGI_OPTION_NUMBERS: "numbers",
}


def _all(get: Callable[[int], Any]) -> Iterator[Any]:
    i = 0
    while (row := get(i)) != ffi.NULL:
        yield row
        i += 1


def _text(value: Any) -> str:
    return str(ffi.string(value).decode())


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_text(value).split())


@cache
def method_rows() -> tuple[MethodRow, ...]:
    """Every method, in the order of the table."""
    return tuple(MethodRow(_text(r.name), r.number, _text(r.text), _text(r.use)) for r in _all(lib.fgi_method_get))


@cache
def option_rows() -> tuple[OptionRow, ...]:
    """Every option of every method, in the order of the table."""
    return tuple(map(_option, _all(lib.fgi_option_get)))


def _option(r: Any) -> OptionRow:
    numbers = float(r.standard), float(r.least), float(r.below)
    return OptionRow(_text(r.name), _words(r.methods), _KINDS[r.kind], *numbers, _words(r.choices), _text(r.text))


@cache
def counter_rows() -> tuple[CounterRow, ...]:
    """Every counter, in the order of the table."""
    return tuple(CounterRow(_text(r.name), _words(r.methods), _text(r.text)) for r in _all(lib.fgi_counter_get))


def options_of(method: str) -> dict[str, OptionRow]:
    """The options that a method reads, by name."""
    return {row.name: row for row in option_rows() if method in row.methods}


def readers_of(option: str) -> tuple[str, ...]:
    """The methods that read an option; none where there is no such option."""
    return next((row.methods for row in option_rows() if row.name == option), ())
