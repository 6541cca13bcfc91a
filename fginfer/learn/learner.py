"""Learner: the learning core behind numpy arrays, with what it does not check itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.learn import Kind, LearnerHandle, Vector
from fginfer.errors import DataError
from fginfer.learn.data.examples import Encoded, Ints, Longs, Reals
from fginfer.learn.row_weights import RowWeights, Weights

_ROW_PARTS = {"row_label": np.int32, "row_weights": np.float64, "row_averages": np.float64}


@dataclass(frozen=True)
class Decoded:
    """Answers to several examples, one after the other; answer k is labels[end[k-1]:end[k]]."""

    labels: Ints
    end: Longs
    value: Reals
    slack: Any = 0.0  # how far the answers may be from the best ones

    def split(self) -> list[Ints]:
        return np.split(self.labels[: self.end[-1]], self.end[:-1]) if len(self.end) else []


class Learner(LearnerHandle):
    """Weights, working sets and decoders for one data set. Not thread-safe: one learner, one thread at a time.

    sparse: tokens with labels only; the weights of features are kept by rows that are made when first touched."""

    def __init__(self, data: Encoded, threads: int = 1, sparse: bool = False) -> None:
        super().__init__({**fields_of(data), "sparse": sparse}, threads)
        self.data, self.sparse = data, sparse
        self.threads = threads
        self.everything = np.arange(data.n_examples, dtype=np.int32)

    @property
    def weights(self) -> Any:
        """The iterate: a view of it, or (sparse) a copy."""
        return self.blend(lambda w, _: w) if self.sparse else self.dense_weights

    @property
    def averages(self) -> Any:
        """The sum from which averages are made."""
        return self.blend(lambda _, sums: sums) if self.sparse else self.dense_averages

    def blend(self, make: Callable[[Any, Any], Any]) -> Any:
        """New weights from the iterate and the sums, number by number."""
        if not self.sparse:
            return make(self.dense_weights.copy(), self.dense_averages)
        begin, label, unary, sums = self.rows()
        mixed = make(np.concatenate([unary, self.dense_weights]), np.concatenate([sums, self.dense_averages]))
        return RowWeights(begin, label, mixed, self.data.n_labels)

    def _checked(self, weights: Any) -> Vector:
        """Weights as the core reads them: it trusts their number."""
        vector = weights if isinstance(weights, RowWeights) else np.ascontiguousarray(weights, np.float64)
        if vector.shape != (self.dimension,):
            raise DataError(f"there are {self.dimension} weights, the vector has the shape {vector.shape}")
        if not isinstance(vector, RowWeights):
            return {"dense": vector, "pairs": vector[self.n_unary :]}
        if vector.n_labels != self.data.n_labels:
            raise DataError(f"there are {self.data.n_labels} labels, the weights are for {vector.n_labels}")
        values = vector.values[: len(vector.label)]
        return {
            "begin": vector.begin[:-1], "end": vector.begin[1:], "label": vector.label, "value": values,
            "pairs": vector.pairs,
        }  # fmt: skip

    def _examples(self, examples: Ints | None) -> Ints:
        return self.everything if examples is None else np.ascontiguousarray(examples, np.int32)

    def decode(self, weights: Weights, loss: float = 0.0, examples: Ints | None = None) -> Decoded:
        """The best answers under <w, phi> + loss * (loss of the answer)."""
        return Decoded(*self.best_answers(self._checked(weights), loss, self._examples(examples)))

    def hinges(self, weights: Weights, answers: Decoded, examples: Ints | None = None) -> Reals:
        """loss - <w, psi> of the given answers."""
        return self.hinges_of(self._checked(weights), answers.labels, answers.end, self._examples(examples))

    def add_psi(self, answers: Decoded, weight: float, plane: Reals | None, examples: Ints | None = None) -> float:
        """plane += weight * sum of psi; returns weight * sum of the losses."""
        return self.add_psi_of(answers.labels, answers.end, weight, plane, self._examples(examples))

    def score(self, weights: Weights, example: int, answer: Ints) -> tuple[float, float]:
        """(<w, phi(answer)>, loss of the answer)."""
        return self.score_of(self._checked(weights), example, np.ascontiguousarray(answer, np.int32))

    def token_scores(self, weights: Weights, example: int, loss: float = 0.0) -> Reals:
        """Scores of the tokens' labels (candidates packed to the left) or alternatives, to decode outside the core."""
        data, first, last = self.data, self.data.token_begin[example], self.data.token_begin[example + 1]
        if data.kind == Kind.CHOICES:
            assert data.choice_begin is not None
            out = np.zeros(int(data.choice_begin[last] - data.choice_begin[first]))
        else:
            out = np.zeros((int(last - first), data.n_labels))
        self.fill_token_scores(self._checked(weights), example, loss, out)
        return out

    def export(self) -> dict[str, NDArray[Any]]:
        """Weights, sums, counters and working sets: all that a resumed run needs."""
        s = self.state
        rows: dict[str, Any] = dict(zip(("row_begin", *_ROW_PARTS), self.rows(), strict=True)) if self.sparse else {}
        return {
            **self.working_sets(),
            **rows,
            "counters": np.array([s.steps, s.oracle_calls, s.entries_touched], np.int64),
            "sums": np.array([s.squared_norm, s.dual_loss, s.gap_estimate, s.dual_square]),
            "weights": self.dense_weights.copy(),
            "averages": self.dense_averages.copy(),
        }

    def export_center(self) -> dict[str, NDArray[Any]]:
        """The proximal point of gdmm."""
        return {"center": self.center.copy(), "center_state": np.array(self.center_state)}

    def restore_center(self, saved: dict[str, NDArray[Any]]) -> None:
        """Takes the proximal center of a checkpoint."""
        center = self.center
        center[:] = fits("center", saved["center"], len(center))
        distance, passes = (float(x) for x in fits("center_state", saved["center_state"], 2))
        self.center_state = distance, int(passes)

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """The reverse of :meth:`export`, on a fresh learner."""
        count, n = len(saved["example"]), self.data.n_examples
        sizes = {
            "example": count, "length": count, "alpha": count, "loss": count, "labels": saved["length"].sum(),
            "gaps": n, "block_loss": n,
        }  # fmt: skip
        self.set_working_sets(fits(name, saved[name], size) for name, size in sizes.items())
        steps, calls, touched = (int(x) for x in saved["counters"])
        norm, loss, gap, square = (float(x) for x in saved["sums"])
        self.set_state(
            steps=steps, oracle_calls=calls, entries_touched=touched, squared_norm=norm, dual_loss=loss,
            gap_estimate=gap, dual_square=square,
        )  # fmt: skip
        if self.sparse:
            size, begin = len(saved["row_label"]), fits("row_begin", saved["row_begin"], self.data.rows.shape[1] + 1)
            if begin.dtype != np.int64 or begin[0] != 0 or begin[-1] != size or (np.diff(begin) < 0).any():
                raise DataError("row_begin does not fit the data")
            labels, weights, averages = (fits(name, saved[name], size, kind) for name, kind in _ROW_PARTS.items())
            self.set_rows(begin, labels, weights, averages)
        self.dense_weights[:] = fits("weights", saved["weights"], len(self.dense_weights))
        self.dense_averages[:] = fits("averages", saved["averages"], len(self.dense_averages))


_MAY_BE_INFINITE = ("bounds", "progress", "gaps")  # entries of a checkpoint: nothing is known yet


def fits(name: str, array: NDArray[Any], size: Any, dtype: Any = None) -> NDArray[Any]:
    """An array from a checkpoint, which the core would trust to have this size (and, if it holds sizes, no negative
    ones)."""
    if array.shape != (size,) or (array.dtype.kind == "i" and (array < 0).any()):
        raise DataError(f"{name} does not fit the data")
    if array.dtype.kind == "f" and (np.isnan if name in _MAY_BE_INFINITE else _not_finite)(array).any():
        raise DataError(f"{name} holds what is no number")  # comparisons in the core would go astray
    if dtype is not None and array.dtype != dtype:
        raise DataError(f"{name} does not hold {np.dtype(dtype)}")
    return np.ascontiguousarray(array)


def fits_rows(name: str, array: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """The same for rows, which must have shape and type of those that are there."""
    if array.shape != rows.shape:
        raise DataError(f"{name} does not fit the data")
    return fits(name, array.ravel(), rows.size, rows.dtype).reshape(rows.shape)


def _not_finite(array: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(array))


def permutation(name: str, array: NDArray[Any], size: int) -> NDArray[Any]:
    """An order of all numbers below `size` from a checkpoint: the core goes by it unseen."""
    found = fits(name, array, size)
    if found.dtype.kind != "i" or not np.array_equal(np.sort(found), np.arange(size)):
        raise DataError(f"{name} does not fit the data")
    return found


def fields_of(data: Encoded) -> dict[str, Any]:
    """The fields of fgi_learn_data. Features that are all 1 are not stored."""
    rows, pairs = data.rows, data.edge_rows
    fields = {
        "kind": data.kind, "edges": data.edges, "projective": data.projective, "n_examples": data.n_examples,
        "n_features": rows.shape[1], "n_labels": data.n_labels, "n_edge_features": data.n_edge_features,
        "token_begin": data.token_begin, "row_begin": rows.indptr, "feature": rows.indices,
        "value": None if len(rows.data) and (rows.data == 1).all() else rows.data, "truth": data.truth,
        "truth_begin": data.truth_begin, "choice_begin": data.choice_begin, "choice": data.choice,
        "edge_begin": data.edge_begin, "edge_u": data.edge_u, "edge_v": data.edge_v,
        "token_weight": data.token_weight, "cost": data.cost,
    }  # fmt: skip
    if pairs is not None:
        fields.update(edge_row=pairs.indptr, edge_feature=pairs.indices, edge_value=pairs.data)
    return fields
