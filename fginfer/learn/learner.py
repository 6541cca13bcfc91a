"""Learner: the learning core (csrc/include/fginfer_learn.h) behind numpy arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import DataError
from fginfer.learn.data.examples import Encoded, Ints, Longs, Reals

METHODS = {"bcfw": 0, "dcd": 1, "perceptron": 2, "mira": 3, "ssg": 4}


@dataclass(frozen=True)
class Answers:
    """Answers to several examples, one after the other; answer k is labels[end[k-1]:end[k]]."""

    labels: Ints
    end: Longs
    value: Reals
    slack: Any = 0.0  # how far the answers may be from the best ones

    def split(self) -> list[Ints]:
        return np.split(self.labels[: self.end[-1]], self.end[:-1]) if len(self.end) else []


class Learner:
    """Weights, working sets and decoders for one data set. Not thread-safe: one learner, one thread at a time."""

    def __init__(self, data: Encoded, threads: int = 1) -> None:
        self.data = data
        self.threads = threads
        self._spec, self._keep = _specify(data)
        out, error = ffi.new("fgi_learner **"), new_error()
        check(lib.fgi_learn_create(self._spec, threads, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_learn_free)
        self.dimension = int(lib.fgi_learn_dimension(self._handle))
        self.decodes = bool(lib.fgi_learn_decodes(self._handle))
        self.weights = self._vector(lib.fgi_learn_weights(self._handle))
        self.averages = self._vector(lib.fgi_learn_averages(self._handle))
        self.everything = np.arange(data.n_examples, dtype=np.int32)

    def _vector(self, start: Any) -> Reals:
        """A view of memory that the learner owns: never hand it out without copying."""
        buffer = ffi.buffer(start, max(self.dimension, 1) * 8)
        view: Reals = np.frombuffer(buffer, np.float64)[: self.dimension]
        return view

    @property
    def state(self) -> Any:
        state = ffi.new("fgi_learn_state *")
        lib.fgi_learn_get_state(self._handle, state)
        return state

    def set_state(self, **values: float) -> None:
        state = self.state
        for name, value in values.items():
            setattr(state, name, value)
        lib.fgi_learn_set_state(self._handle, state)

    def count(self, calls: int = 0) -> int:
        """Counts calls of oracles outside the core; how many there have been in all."""
        return int(lib.fgi_learn_count(self._handle, calls))

    @property
    def gaps(self) -> Reals:
        start = lib.fgi_learn_gaps(self._handle)
        view: Reals = np.frombuffer(ffi.buffer(start, self.data.n_examples * 8), np.float64)
        return view

    def refresh(self, C: float) -> None:
        lib.fgi_learn_refresh(self._handle, C)

    def _checked(self, weights: Any) -> Reals:
        """Weights as the core reads them: it trusts their number."""
        vector: Reals = np.ascontiguousarray(weights, np.float64)
        if vector.shape != (self.dimension,):
            raise DataError(f"there are {self.dimension} weights, the vector has the shape {vector.shape}")
        return vector

    def decode(self, weights: Reals, loss: float = 0.0, examples: Ints | None = None) -> Answers:
        """The best answers under <w, phi> + loss * (loss of the answer)."""
        examples = self.everything if examples is None else np.ascontiguousarray(examples, np.int32)
        room = lib.fgi_learn_answer_size(self._handle, pointer(examples), len(examples))
        labels, end = np.zeros(room, np.int32), np.zeros(len(examples), np.int64)
        value, error = np.zeros(len(examples)), new_error()
        weights = self._checked(weights)
        check(
            lib.fgi_learn_decode(
                self._handle, pointer(weights), loss, pointer(examples), len(examples), pointer(labels), pointer(end),
                pointer(value), error,
            ),
            error,
        )  # fmt: skip
        return Answers(labels, end, value)

    def hinges(self, weights: Reals, answers: Answers, examples: Ints | None = None) -> Reals:
        """loss - <w, psi> of the given answers."""
        weights = self._checked(weights)
        examples = self.everything if examples is None else np.ascontiguousarray(examples, np.int32)
        out, error = np.zeros(len(examples)), new_error()
        check(
            lib.fgi_learn_hinges(
                self._handle, pointer(weights), pointer(examples), len(examples), pointer(answers.labels),
                pointer(answers.end), pointer(out), error,
            ),
            error,
        )  # fmt: skip
        return out

    def add_psi(self, answers: Answers, weight: float, plane: Reals | None, examples: Ints | None = None) -> float:
        """plane += weight * sum of psi; returns weight * sum of the losses."""
        examples = self.everything if examples is None else np.ascontiguousarray(examples, np.int32)
        loss, error = ffi.new("double *"), new_error()
        check(
            lib.fgi_learn_add_psi(
                self._handle, pointer(examples), len(examples), pointer(answers.labels), pointer(answers.end), weight,
                pointer(plane), loss, error,
            ),
            error,
        )  # fmt: skip
        return float(loss[0])

    def score(self, weights: Reals, example: int, answer: Ints) -> tuple[float, float]:
        """(<w, phi(answer)>, loss of the answer)."""
        weights = self._checked(weights)
        score, loss, error = ffi.new("double *"), ffi.new("double *"), new_error()
        answer = np.ascontiguousarray(answer, np.int32)
        check(
            lib.fgi_learn_score(
                self._handle, pointer(weights), example, pointer(answer), len(answer), score, loss, error
            ),
            error,
        )
        return float(score[0]), float(loss[0])

    def token_scores(self, weights: Reals, example: int, loss: float = 0.0) -> Reals:
        """Scores of the tokens' labels (candidates packed to the left) or alternatives, to decode outside the core."""
        weights = self._checked(weights)
        data, first, last = self.data, self.data.token_begin[example], self.data.token_begin[example + 1]
        if data.kind == 1:
            assert data.choice_begin is not None
            size = int(data.choice_begin[last] - data.choice_begin[first])
        else:
            size = int(last - first) * data.n_labels
        out, error = np.zeros(size), new_error()
        check(lib.fgi_learn_token_scores(self._handle, pointer(weights), example, loss, pointer(out), error), error)
        return out if data.kind == 1 else out.reshape(-1, data.n_labels)

    def settings(
        self, method: str, C: float, averaging: bool, max_answers: int, batch: int, threshold: float,
        brute_force: bool = False,
    ) -> Any:  # fmt: skip
        s = ffi.new("fgi_learn_settings *")
        s.method, s.C, s.averaging, s.max_answers, s.batch, s.threshold, s.brute_force = (
            METHODS[method], C, averaging, max_answers, batch, threshold, brute_force,
        )  # fmt: skip
        return s

    def run_pass(self, settings: Any, order: Ints, start: int, deadline: float, cached: bool = False) -> int:
        """Works through order[start:] until `deadline` (fgi_clock); returns where it stopped."""
        following, error = ffi.new("int64_t *", start), new_error()
        call = lib.fgi_learn_cached_pass if cached else lib.fgi_learn_pass
        check(call(self._handle, settings, pointer(order), len(order), following, deadline, error), error)
        return int(following[0])

    def offer(self, settings: Any, example: int, answer: Ints) -> None:
        error = new_error()
        answer = np.ascontiguousarray(answer, np.int32)
        check(lib.fgi_learn_offer(self._handle, settings, example, pointer(answer), len(answer), error), error)

    def export(self) -> dict[str, NDArray[Any]]:
        """Weights, sums, counters and working sets: all that a resumed run needs."""
        n, m = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.fgi_learn_export_size(self._handle, n, m)
        out = {
            "example": np.zeros(n[0], np.int32), "length": np.zeros(n[0], np.int32), "alpha": np.zeros(n[0]),
            "loss": np.zeros(n[0]), "labels": np.zeros(m[0], np.int32), "gaps": np.zeros(self.data.n_examples),
            "block_loss": np.zeros(self.data.n_examples),
        }  # fmt: skip
        lib.fgi_learn_export(self._handle, *(pointer(a) for a in out.values()))
        s = self.state
        out["counters"] = np.array([s.steps, s.oracle_calls, s.entries_touched], np.int64)
        out["sums"] = np.array([s.squared_norm, s.dual_loss, s.gap_estimate, s.dual_square])
        out["weights"], out["averages"] = self.weights.copy(), self.averages.copy()
        return out

    def _center(self) -> Reals:
        start = lib.fgi_learn_center(self._handle)
        return np.zeros(0) if start == ffi.NULL else self._vector(start)

    def export_center(self) -> dict[str, NDArray[Any]]:
        """The proximal point of gdmm."""
        distance, passes = ffi.new("double *"), ffi.new("int32_t *")
        lib.fgi_learn_center_state(self._handle, distance, passes)
        return {"center": self._center().copy(), "center_state": np.array([distance[0], passes[0]])}

    def restore_center(self, saved: dict[str, NDArray[Any]]) -> None:
        center = self._center()
        center[:] = fits("center", saved["center"], len(center))
        distance, passes = (float(x) for x in fits("center_state", saved["center_state"], 2))
        lib.fgi_learn_set_center_state(self._handle, distance, int(passes))

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """The reverse of :meth:`export`, on a fresh learner."""
        count, n = len(saved["example"]), self.data.n_examples
        sizes = {
            "example": count, "length": count, "alpha": count, "loss": count, "labels": saved["length"].sum(),
            "gaps": n, "block_loss": n,
        }  # fmt: skip
        arrays = [fits(name, saved[name], size) for name, size in sizes.items()]
        error = new_error()
        check(lib.fgi_learn_import(self._handle, len(arrays[0]), *(pointer(a) for a in arrays), error), error)
        steps, calls, touched = (int(x) for x in saved["counters"])
        norm, loss, gap, square = (float(x) for x in saved["sums"])
        self.set_state(
            steps=steps, oracle_calls=calls, entries_touched=touched, squared_norm=norm, dual_loss=loss,
            gap_estimate=gap, dual_square=square,
        )  # fmt: skip
        self.weights[:] = fits("weights", saved["weights"], self.dimension)
        self.averages[:] = fits("averages", saved["averages"], self.dimension)


def fits(name: str, array: NDArray[Any], size: Any, dtype: Any = None) -> NDArray[Any]:
    """An array from a checkpoint, which the core would trust to have this size (and, if it holds sizes, no negative
    ones)."""
    if array.shape != (size,) or (array.dtype.kind == "i" and (array < 0).any()):
        raise DataError(f"{name} does not fit the data")
    if dtype is not None and array.dtype != dtype:
        raise DataError(f"{name} does not hold {np.dtype(dtype)}")
    return np.ascontiguousarray(array)


def _specify(data: Encoded) -> tuple[Any, list[Any]]:
    """The C description of the data, and the arrays it points to."""
    spec = ffi.new("fgi_learn_data *")
    keep: list[Any] = []

    def put(name: str, array: NDArray[Any] | None, dtype: Any) -> None:
        if array is not None:
            array = np.ascontiguousarray(array, dtype)
            keep.append(array)
        setattr(spec, name, pointer(array))

    spec.kind, spec.edges, spec.projective = data.kind, data.edges, data.projective
    spec.n_examples, spec.n_features, spec.n_labels = data.n_examples, data.rows.shape[1], data.n_labels
    spec.n_edge_features = data.n_edge_features
    put("token_begin", data.token_begin, np.int64)
    put("row_begin", data.rows.indptr, np.int64)
    put("feature", data.rows.indices, np.int32)
    put("value", None if len(data.rows.data) and (data.rows.data == 1).all() else data.rows.data, np.float64)
    put("truth", data.truth, np.int32)
    put("truth_begin", data.truth_begin, np.int64)
    put("choice_begin", data.choice_begin, np.int64)
    put("choice", data.choice, np.int32)
    put("edge_begin", data.edge_begin, np.int64)
    put("edge_u", data.edge_u, np.int32)
    put("edge_v", data.edge_v, np.int32)
    if data.edge_rows is not None:
        put("edge_row", data.edge_rows.indptr, np.int64)
        put("edge_feature", data.edge_rows.indices, np.int32)
        put("edge_value", data.edge_rows.data, np.float64)
    put("token_weight", data.token_weight, np.float64)
    put("cost", data.cost, np.float64)
    return spec, keep
