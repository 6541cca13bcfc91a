"""The methods of this build by name: solvers of the C core, and engines written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from textwrap import wrap
from typing import Any

from fginfer.apart import ApartEngine
from fginfer.conflicts.engine import LearningEngine
from fginfer.core.rows import method_rows, option_rows
from fginfer.core.solver import native_methods
from fginfer.engine import Engine, NativeEngine, Settings, check_settings
from fginfer.errors import SettingsError
from fginfer.graph import FactorGraph
from fginfer.plugins import added

# Name -> module and class of an engine written in Python (see fginfer.engine.Engine); a module may be absent.
_PYTHON = {"auto": ("fginfer.portfolio.auto", "AutoEngine")}

_WITHOUT_BOUNDS = ("icm", "bp", "search")  # but for the sum of the largest scores of all tables


@cache
def python_methods() -> dict[str, Any]:
    """Methods written in Python and what makes their engines."""
    return {
        name: getattr(import_module(module), attribute)
        for name, (module, attribute) in _PYTHON.items()
        if find_spec(module) is not None
    }


def available_methods() -> tuple[str, ...]:
    """The names that solve(method=...) takes, the default first; those that other packages add are the last.

    >>> available_methods()[0]
    'auto'
    """
    return (*own_methods(), *(name for name in added("methods") if name not in own_methods()))


def own_methods() -> tuple[str, ...]:
    """The names that need no other package, the default first."""
    names = [*python_methods(), *native_methods()]
    return (default_method(), *(name for name in names if name != default_method()))


def default_method() -> str:
    """auto where there is one."""
    return "auto" if "auto" in python_methods() else "icm"


def check_method(name: object) -> None:
    """SettingsError if there is no method of that name."""
    names = available_methods()
    if name not in names:
        meant = did_you_mean(str(name), names)
        raise SettingsError(f"there is no method {name!r}; this build has {', '.join(names)}{meant}")


def check_proving(name: str, call: str) -> None:
    """SettingsError for a method that cannot prove an answer to be the best, as `call` needs it, or is none."""
    check_method(name)
    if name in _WITHOUT_BOUNDS:
        raise SettingsError(f"{call} needs a method that proves its answers, and {name} has no bounds; leave it out")


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The end of a message about a name that is none: the one that is nearest to it, if one is near."""
    close = get_close_matches(name.lower(), names, 1)
    return f"; did you mean {close[0]}?" if close else ""


def explained(width: int = 80) -> str:
    """Every method and every option, a paragraph each, for people: what `fginfer solve --help` ends with."""
    lines = ["methods:"]
    for row in method_rows():
        lines += _paragraph(row.name, f"{row.text} ({row.use})", width)
    lines += ["", "options of methods (--option NAME=VALUE):"]
    for option in option_rows():
        said = f"{', '.join(option.methods)}: {option.text} ({option.values}; default {option.default})"
        lines += _paragraph(option.name, said, width)
    return "\n".join(lines)


def _paragraph(name: str, text: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent=f"  {name:<12} ", subsequent_indent=" " * 15)


def make_engine(graph: FactorGraph, settings: Settings) -> NativeEngine | Engine:
    """The engine for settings.method; SettingsError if there is none of that name.

    Constraints that the graph still has stay apart from the tables that the method works on.
    """
    if graph.rules:
        return ApartEngine(graph, settings, make_engine)
    learning = LearningEngine.made(graph, settings) if settings.method == "clauses" else None
    if learning is not None:
        return learning
    if settings.method in native_methods():
        return NativeEngine(graph.snapshot(), settings)
    check_method(settings.method)
    make = python_methods().get(settings.method) or added("methods")[settings.method]
    check_settings(settings)
    engine: Engine = make(graph, settings)
    return engine
