"""NativeSolver: a solver of the C core, its settings, and the names of methods and statuses as the header has them."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model
from fginfer.core.rows import OptionRow, counter_rows, method_rows, options_of, readers_of
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

_ACCESS = {lib.FGI_ACCESS_SORTED: "sorted", lib.FGI_ACCESS_DENSE: "dense"}
_FINDERS = {
    lib.FGI_FOUND_OUTSIDE: "offer",
    lib.FGI_FOUND_BY_SWEEP: "sweep",
    lib.FGI_FOUND_BY_ROUNDING: "rounding",
    lib.FGI_FOUND_BY_LOCAL: "local search",
    lib.FGI_FOUND_BY_SEARCH: "search",
}


@cache
def native_methods() -> dict[str, int]:
    """Methods of the C core and their numbers."""
    return {row.name: row.number for row in method_rows() if row.number >= 0}


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
        for name, value in (options or {}).items():
            known = options_of(method)
            if name not in known:
                raise unknown_option(name, method, known, readers_of(name))
            setattr(c, name, _number(known[name], value))
    except (TypeError, OverflowError) as error:
        raise SettingsError(f"a setting is out of range: {error}") from None
    return c


def _number(option: OptionRow, value: Any) -> Any:
    """The number of a named choice; other values as they are."""
    choices = option.choices
    if isinstance(value, bool) and "on" in choices:  # False is 0, which means "auto"
        value = "on" if value else "off"
    if not isinstance(value, str):
        return value
    if value not in choices:
        possible = f"one of {', '.join(choices)}" if choices else "a number"
        raise SettingsError(f"{option.name} must be {possible}, not {value!r}")
    return choices.index(value)


@cache
def _counted() -> tuple[str, ...]:
    return tuple(row.name for row in counter_rows())


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

    # -- a part of a larger model ------------------------------------------------------------------------------

    def move_unary(self, variables: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
        """New unary scores of some variables, one after the other: what runs find from now on is of these."""
        error = new_error()
        given = len(variables), pointer(variables), pointer(scores)
        check(lib.fgi_solver_move_unary(self._handle, *given, error), error)
        lib.fgi_solver_info(self._handle, self.info)

    def beliefs(self, variables: NDArray[np.int32]) -> NDArray[np.float64]:
        """Scores of the labels of some variables as the messages have moved them, one variable after the other."""
        error, out = new_error(), np.zeros(int(self.model.cards[variables].sum(dtype=np.int64)))
        check(lib.fgi_solver_beliefs(self._handle, len(variables), pointer(variables), pointer(out), error), error)
        return out

    @property
    def state_size(self) -> int:
        """Numbers of a state; -1: the method has none."""
        return int(lib.fgi_solver_state_size(self._handle))

    def state(self) -> NDArray[np.float64]:
        """The dual state as the method holds it."""
        error, out = new_error(), np.empty(max(0, self.state_size))
        check(lib.fgi_solver_state(self._handle, pointer(out), error), error)
        lib.fgi_solver_info(self._handle, self.info)
        return out

    def set_state(self, state: NDArray[np.float64]) -> None:
        """Goes on from the state of a solver of the same model."""
        if state.shape != (self.state_size,):
            raise SettingsError(f"a state of {self.state_size} numbers is needed, not of the shape {state.shape}")
        error = new_error()
        check(lib.fgi_solver_set_state(self._handle, pointer(np.ascontiguousarray(state, np.float64)), error), error)
        lib.fgi_solver_info(self._handle, self.info)

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

    @property
    def speaks(self) -> bool:
        """Whether the method says its steps, to those who want a proof."""
        return bool(lib.fgi_solver_speaks(self._handle))

    def speak(self, lead: float, quantum: float, reach: float) -> bool:
        """From here on every step is said, for a proof (docs/proofs.md); False if the method says none."""
        error = new_error()
        rc = lib.fgi_solver_speak(self._handle, lead, quantum, reach, error)
        if rc == lib.FGI_UNSUPPORTED:
            return False
        check(rc, error)
        return True

    def hush(self) -> float:
        """What is open is closed by the bound that is known, so far above the best score; -1: that cannot be said.

        The solver may not run any more."""
        return float(lib.fgi_solver_hush(self._handle))

    def spoken(self) -> bytes | None:
        """The steps since the last call; None: memory has ended the proof, or a number that does not fit."""
        n = int(lib.fgi_solver_spoken(self._handle))
        if n < 0:
            return None
        out = np.empty(n, np.uint8)
        if n:
            lib.fgi_solver_take_spoken(self._handle, pointer(out))
        return out.tobytes()

    def events(self, begin: int = 0) -> NDArray[Any]:
        """The trace from event number `begin` on, as an array of EVENT."""
        new = np.empty(lib.fgi_solver_trace(self._handle, 0, 0, ffi.NULL) - begin, EVENT)
        lib.fgi_solver_trace(self._handle, begin, len(new), ffi.cast("fgi_event *", new.ctypes.data))
        return new

    def statistics(self) -> dict[str, float]:
        return {name: getattr(self.info, name) for name in _counted()}
