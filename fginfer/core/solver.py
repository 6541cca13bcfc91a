"""NativeSolver: a solver of the C core, its settings, and the names of methods and statuses as the header has them."""

from __future__ import annotations

import warnings
from functools import cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.options import unknown_option

# Why a solver stopped: fgi_status, by its number.
STATUSES: tuple[str, ...] = tuple(
    name
    for _, name in sorted(
        {
            lib.FGI_RUNNING: "running",
            lib.FGI_OPTIMAL: "optimal",
            lib.FGI_GAP_REACHED: "gap_reached",
            lib.FGI_CONVERGED: "converged",
            lib.FGI_TIME_LIMIT: "time_limit",
            lib.FGI_ITERATION_LIMIT: "iteration_limit",
            lib.FGI_INTERRUPTED: "interrupted",
            lib.FGI_INFEASIBLE: "infeasible",
        }.items()
    )
)


def relative_gap(score: float, bound: float, unit: float) -> float:
    """max(0, bound - score) / max(|score|, unit), 0/0 being 0; inf while either is missing."""
    return float(lib.fgi_relative_gap(score, bound, unit))


def proof_tolerance(score: float, unit: float) -> float:
    """How far a bound may lie above a score and still prove it the best."""
    return float(lib.fgi_proof_tolerance(score, unit))


def is_proof(bound: float, score: float, cutoff: float, unit: float) -> bool:
    """Is nothing better than a score above the cutoff (to its tolerance), or, without one, nothing above the cutoff?"""
    return bound - score <= proof_tolerance(score, unit) if score > cutoff else bound <= cutoff


# fgi_event
EVENT = np.dtype([("seconds", np.float64), ("score", np.float64), ("bound", np.float64), ("iteration", np.int64)])

STATISTICS = (
    "primal_infeasibility",
    "dual_infeasibility",
    "rho",
    "active_per_factor",
    "oracle_calls",
    "entries_touched",
    "seconds_oracle",
    "seconds_update",
    "seconds_bound",
    "seconds_decode",
    "memory",
    "explored",
    "sweeps",
    "scans",
    "sweep_entries",
    "closed_forms",
    "local_operations",
    "search_operations",
)

_MOST_METHODS = 64
# Options with names for their values.
_CHOICES: dict[str, dict[str, int]] = {
    "formulation": {
        "auto": lib.FGI_FORMULATION_AUTO,
        "tables": lib.FGI_FORMULATION_TABLES,
        "binary": lib.FGI_FORMULATION_BINARY,
    },
    "access": {"auto": lib.FGI_ACCESS_AUTO, "sorted": lib.FGI_ACCESS_SORTED, "dense": lib.FGI_ACCESS_DENSE},
    "sweep": {"auto": lib.FGI_CHOOSE, "on": lib.FGI_ON, "off": lib.FGI_OFF},
    "search": {"auto": lib.FGI_CHOOSE, "on": lib.FGI_ON, "off": lib.FGI_OFF},
    "precision": {"auto": 0, "double": 1, "single": 2},
}
_ACCESS = {lib.FGI_ACCESS_SORTED: "sorted", lib.FGI_ACCESS_DENSE: "dense"}
_FINDERS = {
    lib.FGI_FOUND_OUTSIDE: "offer",
    lib.FGI_FOUND_BY_SWEEP: "sweep",
    lib.FGI_FOUND_BY_ROUNDING: "rounding",
    lib.FGI_FOUND_BY_LOCAL: "local search",
    lib.FGI_FOUND_BY_SEARCH: "search",
}
_ALGORITHMS = {0: "auto", 8: "tables", 9: "binary"}  # what version 0.1 called formulations
# What each method takes besides the settings of all; methods without a line take nothing.
_OPTIONS = {
    "gdmm": ("access", "eta", "formulation", "rho", "search", "sweep"),
    "trws": ("precision",),
    "bp": ("damping",),
    "ad3": ("rho",),
}


@cache
def native_methods() -> dict[str, int]:
    """Methods of the C core and their numbers."""
    names = {code: lib.fgi_method_name(code) for code in range(_MOST_METHODS)}
    return {ffi.string(name).decode(): code for code, name in names.items() if name != ffi.NULL}


def native_settings(
    method: str,
    *,
    threads: int = 1,
    seed: int = 0,
    gap: float = 1e-6,
    cutoff: float = -inf,
    max_iterations: int | None = None,
    start_time: float = -1.0,
    options: dict[str, Any] | None = None,
) -> Any:
    """An fgi_settings struct; SettingsError for options that there are not, and values that do not fit."""
    c = ffi.new("fgi_settings *", lib.fgi_settings_default())
    c.method = native_methods()[method]
    try:
        c.threads, c.seed, c.gap, c.cutoff, c.start_time = threads, seed, gap, cutoff, start_time
        c.max_iterations = -1 if max_iterations is None else max_iterations
        for name, value in _without_old_names(options or {}).items():
            known = _OPTIONS.get(method, ())
            if name not in known:
                raise unknown_option(name, method, known)
            setattr(c, name, _number(name, value))
    except (TypeError, OverflowError) as error:
        raise SettingsError(f"a setting is out of range: {error}") from None
    return c


def _without_old_names(options: dict[str, Any]) -> dict[str, Any]:
    if "algorithm" not in options:
        return options
    given = options["algorithm"]
    if given not in _ALGORITHMS:
        raise SettingsError(f"algorithm is now called formulation: {', '.join(_CHOICES['formulation'])}")
    new = _ALGORITHMS[given]
    warnings.warn(f"algorithm={given} is now called formulation={new!r}", DeprecationWarning, stacklevel=2)
    return {**{k: v for k, v in options.items() if k != "algorithm"}, "formulation": new}


def _number(name: str, value: Any) -> Any:
    """The number of a named choice; other values as they are."""
    choices = _CHOICES.get(name, {})
    if isinstance(value, bool) and "on" in choices:  # False is 0, which means "auto"
        value = "on" if value else "off"
    if not isinstance(value, str):
        return value
    if value not in choices:
        possible = f"one of {', '.join(choices)}" if choices else "a number"
        raise SettingsError(f"{name} must be {possible}, not {value!r}")
    return choices[value]


def check_native_settings(settings: Any) -> None:
    """Refuses what every method refuses."""
    error = new_error()
    check(lib.fgi_settings_check(settings, error), error)


class NativeSolver:
    """A solver of the core at work on one model. `info` is its fgi_info, as of the last call that could change it."""

    def __init__(self, model: Model, settings: Any) -> None:
        self.model = model
        self.info = ffi.new("fgi_info *")
        out, error = ffi.new("fgi_solver **"), new_error()
        check(lib.fgi_solver_create(model.handle, settings, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_solver_free)
        lib.fgi_solver_info(self._handle, self.info)

    @property
    def status(self) -> str:
        return STATUSES[int(self.info.status)]

    @property
    def steps(self) -> int:
        """Iterations, and sweeps before them: what limits count."""
        return int(self.info.iterations + self.info.sweeps)

    @property
    def access(self) -> str | None:
        """gdmm: "sorted" or "dense", how its oracles read tables."""
        return _ACCESS.get(int(self.info.access))

    @property
    def found_by(self) -> str | None:
        """What found the best labeling, where a method has several ways: "offer", "sweep", "rounding", "local search",
        "search"."""
        return _FINDERS.get(int(self.info.found_by))

    def run(self, seconds: float, iterations: int) -> None:
        """Works for about so long, or so many iterations (negative: no such limit), whichever ends first."""
        rc = lib.fgi_solver_run(self._handle, seconds, iterations, self.info)
        if rc == lib.FGI_NO_MEMORY:
            raise MemoryError("out of memory")
        if rc != lib.FGI_OK:
            raise SolverError(f"cannot go on with this model (code {rc})")

    def pause_at(self, entries: int) -> None:
        """bnb, edac, dolls and search pause soon after so many entries were touched, at the same place in every run."""
        lib.fgi_solver_pause_at(self._handle, entries)

    def rest(self, rests: bool) -> None:
        """Other work needs the cores, or no longer does: which thread says so, and when, changes no result."""
        lib.fgi_solver_rest(self._handle, rests)

    def offer(self, labels: NDArray[np.int32]) -> None:
        error = new_error()
        check(lib.fgi_solver_offer(self._handle, pointer(labels), error), error, bad_argument=ModelError)
        lib.fgi_solver_info(self._handle, self.info)

    def offer_bound(self, bound: float) -> None:
        lib.fgi_solver_offer_bound(self._handle, bound)
        lib.fgi_solver_info(self._handle, self.info)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        """Starts from messages; False if the method has none, or none of this size."""
        if lib.fgi_solver_message_size(self._handle) != len(messages):
            return False
        error, mu = new_error(), np.ascontiguousarray(messages, np.float64)
        rc = lib.fgi_solver_warm_start(self._handle, pointer(mu), error)
        if rc == lib.FGI_UNSUPPORTED:
            return False
        check(rc, error)
        return True

    def update(self, model: Model) -> bool:
        """Goes on with new numbers; False if the method cannot."""
        error = new_error()
        rc = lib.fgi_solver_update(self._handle, model.handle, error)
        if rc == lib.FGI_UNSUPPORTED:
            return False
        check(rc, error)
        self.model = model
        lib.fgi_solver_info(self._handle, self.info)
        return True

    def labels(self) -> NDArray[np.int32] | None:
        if self.info.score == -inf:
            return None
        labels = np.empty(self.model.n_variables, np.int32)
        lib.fgi_solver_labels(self._handle, pointer(labels))
        return labels

    @property
    def message_size(self) -> int:
        """Numbers that `messages` copies; -1: the method has none."""
        return int(lib.fgi_solver_message_size(self._handle))

    def messages(self) -> NDArray[np.float64] | None:
        size = self.message_size
        if size < 0:
            return None
        mu = np.zeros(size)
        return mu if lib.fgi_solver_messages(self._handle, pointer(mu)) == lib.FGI_OK else None

    def marginals(self) -> NDArray[np.float64] | None:
        """Concatenated over the variables; None if the method has none."""
        if not lib.fgi_solver_marginals(self._handle, ffi.NULL):
            return None
        x = np.zeros(int(self.model.cards.sum(dtype=np.int64)))
        return x if lib.fgi_solver_marginals(self._handle, pointer(x)) else None

    def events(self, begin: int = 0) -> NDArray[Any]:
        """The trace from event number `begin` on, as an array of EVENT."""
        new = np.empty(lib.fgi_solver_trace(self._handle, 0, 0, ffi.NULL) - begin, EVENT)
        lib.fgi_solver_trace(self._handle, begin, len(new), ffi.cast("fgi_event *", new.ctypes.data))
        return new

    def statistics(self) -> dict[str, float]:
        return {name: getattr(self.info, name) for name in STATISTICS}
