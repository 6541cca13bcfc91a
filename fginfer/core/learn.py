"""The learning core (csrc/include/fginfer_learn.h): its enums, and a handle on a learner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Vector = Mapping[str, NDArray[Any]]  # the fields of fgi_learn_vector


class Kind(IntEnum):
    """What an answer is."""

    LABELS = lib.FGI_LEARN_LABELS
    CHOICES = lib.FGI_LEARN_CHOICES
    SETS = lib.FGI_LEARN_SETS


class Edges(IntEnum):
    """Which tokens are neighbours; of label sets, which labels."""

    NONE = lib.FGI_EDGES_NONE
    CHAIN = lib.FGI_EDGES_CHAIN
    LIST = lib.FGI_EDGES_LIST


class Update(IntEnum):
    """What a pass does with an answer."""

    BCFW = lib.FGI_LEARN_BCFW
    DCD = lib.FGI_LEARN_DCD
    PERCEPTRON = lib.FGI_LEARN_PERCEPTRON
    MIRA = lib.FGI_LEARN_MIRA
    SSG = lib.FGI_LEARN_SSG


class Mean(IntEnum):
    """Averages of the iterates; see fgi_learn_mean."""

    NONE = lib.FGI_MEAN_NONE
    USUAL = lib.FGI_MEAN_USUAL
    UNIFORM = lib.FGI_MEAN_UNIFORM
    SUFFIX = lib.FGI_MEAN_SUFFIX


class PassSettings(NamedTuple):
    """fgi_learn_settings."""

    method: Update
    C: float
    averaging: Mean
    max_answers: int
    batch: int
    threshold: float
    brute_force: bool = False
    predefined: bool = False


class State(NamedTuple):
    """fgi_learn_state: counters and sums."""

    steps: int
    oracle_calls: int
    entries_touched: int
    squared_norm: float
    dual_loss: float
    gap_estimate: float
    dual_square: float
    working_set: int


_DTYPES = {"int32_t": np.int32, "int64_t": np.int64, "double": np.float64}


@cache
def _fields(struct: str) -> dict[str, Any]:
    """name -> None for a number, the type of its entries for an array."""
    fields = ffi.typeof(struct).fields
    return {name: _DTYPES[f.type.item.cname] if f.type.kind == "pointer" else None for name, f in fields}


def filled(struct: str, values: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """A C struct with these fields, and the arrays it points to: they must live as long as it is used."""
    out, keep = ffi.new(f"{struct} *"), []
    fields = _fields(struct)
    for name, value in values.items():
        if fields[name] is None:
            setattr(out, name, value)
            continue
        if value is not None:
            keep.append(np.ascontiguousarray(value, fields[name]))
        setattr(out, name, pointer(None if value is None else keep[-1]))
    return out, keep


class LearnerHandle:
    """A learner of the core. It trusts sizes: who calls checks them."""

    def __init__(self, data: Mapping[str, Any], threads: int) -> None:
        """data: the fields of fgi_learn_data; what is left out is 0 or NULL."""
        self._spec, self._keep = filled("fgi_learn_data", data)
        self.n_examples = int(self._spec.n_examples)
        out, error = ffi.new("fgi_learner **"), new_error()
        check(lib.fgi_learn_create(self._spec, threads, out, error), error)
        self.handle = ffi.gc(out[0], lib.fgi_learn_free)
        self.dimension = int(lib.fgi_learn_dimension(self.handle))
        self.decodes = bool(lib.fgi_learn_decodes(self.handle))
        self.n_unary = 0 if self._spec.kind == Kind.CHOICES else int(self._spec.n_features * self._spec.n_labels)
        size = self.dimension - self.n_unary if self._spec.sparse else self.dimension
        self.dense_weights = self._vector(lib.fgi_learn_weights(self.handle), size)  # sparse: the unary ones are rows
        self.dense_averages = self._vector(lib.fgi_learn_averages(self.handle), size)

    def _vector(self, start: Any, n: int) -> Reals:
        """A view of memory that the learner owns: never hand it out without copying."""
        if start == ffi.NULL:
            return np.zeros(0)
        view: Reals = np.frombuffer(ffi.buffer(start, max(n, 1) * 8), np.float64)[:n]
        return view

    @property
    def state(self) -> State:
        state = ffi.new("fgi_learn_state *")
        lib.fgi_learn_get_state(self.handle, state)
        return State(*(getattr(state, name) for name in State._fields))

    def set_state(self, **values: float) -> None:
        """Sets numbers of the core's state by their names."""
        state, _ = filled("fgi_learn_state", {**self.state._asdict(), **values})
        lib.fgi_learn_set_state(self.handle, state)

    def count(self, calls: int = 0) -> int:
        """Counts calls of oracles outside the core; how many there have been in all."""
        return int(lib.fgi_learn_count(self.handle, calls))

    @property
    def gaps(self) -> Reals:
        return self._vector(lib.fgi_learn_gaps(self.handle), self.n_examples)

    @property
    def center(self) -> Reals:
        """gdmm's proximal point, empty where there is none: a view, as the weights."""
        return self._vector(lib.fgi_learn_center(self.handle), self.dimension)

    def refresh(self, C: float) -> None:
        """Recomputes sums that drift by rounding, for this C."""
        lib.fgi_learn_refresh(self.handle, C)

    def rows(self) -> tuple[Longs, Ints, Reals, Reals]:
        """Where the row of each feature of a sparse learner begins; labels, weights and averages."""
        n = int(lib.fgi_learn_rows_size(self.handle))
        out = np.zeros(self._spec.n_features + 1, np.int64), np.zeros(n, np.int32), np.zeros(n), np.zeros(n)
        lib.fgi_learn_rows_export(self.handle, *(pointer(a) for a in out))
        return out

    def set_rows(self, begin: Longs, labels: Ints, weights: Reals, averages: Reals) -> None:
        """The reverse of :meth:`rows`, on a fresh learner."""
        error = new_error()
        arrays = (begin, labels, weights, averages)
        check(lib.fgi_learn_rows_import(self.handle, *(pointer(a) for a in arrays), error), error)

    def best_answers(self, weights: Vector, loss: float, examples: Ints) -> tuple[Ints, Longs, Reals]:
        """(labels of all answers, where each ends, their values)."""
        room, n = lib.fgi_learn_answer_size(self.handle, pointer(examples), len(examples)), len(examples)
        labels, end, value, error = np.zeros(room, np.int32), np.zeros(n, np.int64), np.zeros(n), new_error()
        given, _keep = filled("fgi_learn_vector", weights)
        rc = lib.fgi_learn_decode(
            self.handle, given, loss, pointer(examples), n, pointer(labels), pointer(end), pointer(value),
            error,
        )  # fmt: skip
        check(rc, error)
        return labels, end, value

    def hinges_of(self, weights: Vector, labels: Ints, end: Longs, examples: Ints) -> Reals:
        """How far the scores of these labels, plus their loss, are above the truth's, for each example."""
        out, error = np.zeros(len(examples)), new_error()
        given, _keep = filled("fgi_learn_vector", weights)
        rc = lib.fgi_learn_hinges(
            self.handle, given, pointer(examples), len(examples), pointer(labels), pointer(end),
            pointer(out), error,
        )  # fmt: skip
        check(rc, error)
        return out

    def add_psi_of(self, labels: Ints, end: Longs, weight: float, plane: Reals | None, examples: Ints) -> float:
        """Adds features of the truth less those of these labels to a plane, and gives back their loss."""
        loss, error = ffi.new("double *"), new_error()
        rc = lib.fgi_learn_add_psi(
            self.handle, pointer(examples), len(examples), pointer(labels), pointer(end), weight, pointer(plane), loss,
            error,
        )  # fmt: skip
        check(rc, error)
        return float(loss[0])

    def score_of(self, weights: Vector, example: int, answer: Ints) -> tuple[float, float]:
        """Score and loss of an answer to one example."""
        score, loss, error = ffi.new("double *"), ffi.new("double *"), new_error()
        given, _keep = filled("fgi_learn_vector", weights)
        rc = lib.fgi_learn_score(self.handle, given, example, pointer(answer), len(answer), score, loss, error)
        check(rc, error)
        return float(score[0]), float(loss[0])

    def fill_token_scores(self, weights: Vector, example: int, loss: float, out: Reals) -> None:
        """Writes the scores of every token and label, plus the loss, into `out`."""
        (given, _keep), error = filled("fgi_learn_vector", weights), new_error()
        check(lib.fgi_learn_token_scores(self.handle, given, example, loss, pointer(out), error), error)

    def run_pass(self, settings: PassSettings, order: Ints, start: int, deadline: float, cached: bool = False) -> int:
        """Works through order[start:] until `deadline` (clock.now); returns where it stopped."""
        following, error = ffi.new("int64_t *", start), new_error()
        call = lib.fgi_learn_cached_pass if cached else lib.fgi_learn_pass
        given, _ = filled("fgi_learn_settings", settings._asdict())
        check(call(self.handle, given, pointer(order), len(order), following, deadline, error), error)
        return int(following[0])

    def offer(self, settings: PassSettings, example: int, answer: Ints) -> None:
        """One update with an answer found elsewhere."""
        answer, error = np.ascontiguousarray(answer, np.int32), new_error()
        given, _ = filled("fgi_learn_settings", settings._asdict())
        check(lib.fgi_learn_offer(self.handle, given, example, pointer(answer), len(answer), error), error)

    def working_sets(self) -> dict[str, NDArray[Any]]:
        """The answers kept for each example, as arrays."""
        n, m = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.fgi_learn_export_size(self.handle, n, m)
        out = {
            "example": np.zeros(n[0], np.int32), "length": np.zeros(n[0], np.int32), "alpha": np.zeros(n[0]),
            "loss": np.zeros(n[0]), "labels": np.zeros(m[0], np.int32), "gaps": np.zeros(self.n_examples),
            "block_loss": np.zeros(self.n_examples),
        }  # fmt: skip
        lib.fgi_learn_export(self.handle, *(pointer(a) for a in out.values()))
        return out

    def set_working_sets(self, arrays: Iterable[NDArray[Any]]) -> None:
        """As working_sets() gives them, in that order."""
        given, error = list(arrays), new_error()
        check(lib.fgi_learn_import(self.handle, len(given[0]), *(pointer(a) for a in given), error), error)

    @property
    def center_state(self) -> tuple[float, int]:
        """How far the weights are from the proximal point, and since how many passes it stands."""
        distance, passes = ffi.new("double *"), ffi.new("int32_t *")
        lib.fgi_learn_center_state(self.handle, distance, passes)
        return float(distance[0]), int(passes[0])

    @center_state.setter
    def center_state(self, state: tuple[float, int]) -> None:
        lib.fgi_learn_set_center_state(self.handle, *state)
