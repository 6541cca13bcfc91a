"""The settings that methods take: their types, and errors that name what does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, TypedDict

from fginfer.errors import SettingsError


class Options(TypedDict, total=False):
    """Options of the methods, for type checkers; docs/start/options.md says what each does."""

    presolve: bool  # auto
    memory: float  # auto: bytes that elimination may use
    rho: float  # gdmm, ad3
    eta: float  # gdmm
    damping: float  # bp
    formulation: Literal["auto", "tables", "binary"]  # gdmm
    access: Literal["auto", "sorted", "dense"]  # gdmm
    sweep: Literal["auto", "on", "off"]  # gdmm
    search: Literal["auto", "on", "off"]  # gdmm
    precision: Literal["auto", "double", "single"]  # trws
    algorithm: int  # the old name of formulation


_SETTINGS = (  # of every method
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


def unknown_option(name: str, method: str, known: Iterable[str]) -> SettingsError:
    """The error for an option that a method does not have; names what may have been meant."""
    options = list(known)
    there = f"there are {', '.join(options)}" if options else "it has none"
    close = [_ELSEWHERE[name]] if name in _ELSEWHERE else get_close_matches(name.lower(), [*_SETTINGS, *options], 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return SettingsError(f"unknown option {name!r} for method {method}; {there}{meant}")


def is_number(value: Any, whole: bool = False) -> bool:
    """Whether it is a real (or whole) number; True and False are none."""
    if type(value) is int or (type(value) is float and not whole):
        return True  # as nearly always, and sooner known than by asking an abstract class
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def check_number(name: str, value: Any, what: str = "a number") -> None:
    """SettingsError unless it is a real number (NaN is none)."""
    if not is_number(value) or value != value:
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
        check_whole("max_iterations", max_iterations)
    if cutoff is not None:
        check_number("cutoff", cutoff)
