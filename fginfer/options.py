"""The settings that methods take: their types, and errors that name what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

from fginfer.errors import SettingsError


class Options(TypedDict, total=False):
    """Options of the methods, for type checkers: the rows of csrc/include/fginfer_methods.def, as a test makes sure."""

    presolve: bool
    memory: float
    rules: Mapping[str, float]
    formulation: Literal["auto", "tables", "binary"]
    variant: Literal["auto", "published"]
    rho: float
    eta: float
    access: Literal["auto", "sorted", "dense"]
    sweep: Literal["auto", "on", "off"]
    search: Literal["auto", "on", "off"]
    damping: float
    precision: Literal["auto", "double", "single"]


_SETTINGS = (  # settings of every method
    "time_limit", "gap", "seed", "threads", "max_iterations", "cutoff", "evidence", "verbose", "warm_start", "callback",
    "trace", "dual", "method",
)  # fmt: skip
# What others call the settings that every method has.
_ELSEWHERE = {
    "timeout": "time_limit", "time": "time_limit", "limit": "time_limit", "tol": "gap", "random_state": "seed",
    "n_jobs": "threads", "n_threads": "threads", "workers": "threads", "max_iter": "max_iterations",
    "iterations": "max_iterations", "init": "warm_start", "start": "warm_start", "progress": "callback",
    "log": "verbose", "initial": "warm_start", "initial_labels": "warm_start", "x0": "warm_start",
    "max_memory": "memory", "max_time": "time_limit", "num_threads": "threads", "upper_bound": "cutoff", "ub": "cutoff",
}  # fmt: skip


def file_named(path: Any, call: str) -> Path:
    """The file that a call is given: by its name, because a number could be an open stream of the caller."""
    if not isinstance(path, str | PathLike):
        raise SettingsError(f"{call} takes the name of a file (a text or a Path), not {type(path).__name__}")
    return Path(path)


_DIRECTIONS = {"minimize", "minimise", "maximize", "maximise", "sense", "direction", "energy", "energies", "costs"}


def unknown_option(name: str, method: str, known: Iterable[str], readers: Sequence[str] = ()) -> SettingsError:
    """The error for an option that a method does not have; names what may have been meant, and who reads it."""
    if name.lower() in _DIRECTIONS:
        return SettingsError(
            f"there is no option {name!r}: scores are always maximised, so give energies or costs with their signs "
            "changed (FactorGraph tables of -energy), and read Result.energy, which is minus the score"
        )
    options = list(known)
    there = f"there are {', '.join(options)}" if options else "it has none"
    close = [_ELSEWHERE[name]] if name in _ELSEWHERE else get_close_matches(name.lower(), [*_SETTINGS, *options], 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    if readers:
        meant = f"; it is an option of {' and '.join(readers)}"
    return SettingsError(f"unknown option {name!r} for method {method}; {there}{meant}")


def is_number(value: Any, whole: bool = False) -> bool:
    """Whether it is a real (or whole) number; True and False are none."""
    if type(value) is int or (type(value) is float and not whole):
        return True  # as nearly always, and sooner known than by asking an abstract class
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    """Whether it is True or False, numpy's among them; a word such as "no" is neither."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")  # without an import of numpy


def check_flag(name: str, value: Any) -> None:
    """SettingsError unless it is True or False."""
    if not is_flag(value):
        raise SettingsError(f"{name} must be True or False, not {value!r}")


def check_flags(**flags: Any) -> None:
    """The same for several, by name."""
    for name, value in flags.items():
        check_flag(name, value)


def check_number(name: str, value: Any, what: str = "a number", least: float | None = None) -> None:
    """SettingsError unless it is a real number (NaN is none) of at least `least`."""
    if not is_number(value) or value != value or (least is not None and value < least):
        raise SettingsError(f"{name} must be {what}, not {value!r}")


def check_whole(name: str, value: Any, least: int | None = None, bits: int | None = None) -> None:
    """SettingsError unless it is a whole number: of at least `least`, below 2^`bits`."""
    if not is_number(value, whole=True) or (least is not None and value < least):
        what = "a whole number" if least is None else f"a whole number of at least {least}"
        raise SettingsError(f"{name} must be {what}, not {value!r}")
    if bits is not None and value >= 1 << bits:
        raise SettingsError(f"{name} must be below 2^{bits}, not {value!r}")


def check_count(name: str, value: Any) -> None:
    """SettingsError unless it is a whole number that the core can hold."""
    check_whole(name, value, bits=31)
    if value < -(2**31):
        raise SettingsError(f"{name} must be at least -2^31, not {value!r}")


def check_settings(gap: Any, seed: Any, threads: Any, max_iterations: Any, cutoff: Any) -> None:
    """Types of what every method takes; ranges are the core's to judge."""
    check_number("gap", gap)
    check_whole("seed", seed)
    if not 0 <= seed < 2**64:
        raise SettingsError(f"seed must be from 0 to 2^64-1, not {seed}")
    check_whole("threads", threads)
    if max_iterations is not None:
        check_whole("max_iterations", max_iterations, least=0, bits=63)
    if cutoff is not None:
        check_number("cutoff", cutoff)
