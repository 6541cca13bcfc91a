"""Skip-gram in collapsed form by alternating gradient descent, as the loop of fginfer.learn.run drives it.

    sum over x of q_x sum over y of q(y | x) (log sum over y' of exp <u_x, v_y'> - <u_x, v_y>)

(Yan 2018, 3.45). Given the output rows v, the input rows are problems of their own: each takes a step along its own
gradient, whatever its frequency. The output rows take steps scaled by their own frequencies. Both are divided by the
mean squared length of the other side's rows, which is what the curvature grows with."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.search import Floats
from fginfer.core.skipgram import NegativeSampling
from fginfer.errors import DataError, SolverError
from fginfer.learn.embedding.text import Text, meetings
from fginfer.learn.learner import fits, fits_rows
from fginfer.learn.losses import EmbeddingLoss
from fginfer.learn.run.interrupts import look
from fginfer.learn.run.trainer import Measured, Trainer

CHUNK = 256  # input words at a time
SLICE = 2000  # words of the text between two looks at the clock, in the first pass


class SkipGramDescent(Trainer):
    """Pass 1 is negative sampling over the text; then every pass is one step of all input rows and one of all output
    rows."""

    name = "gd"
    measuring = 1.0
    too_large = "the weights are no longer finite numbers: step0 or eta is too large"

    def __init__(
        self, text: Text, size: int, window: int, negatives: int, step0: float, step: float, seed: int,
        loss: dict[str, Any],
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        k = len(text.vocabulary)
        self.text, self.eta, self._loss_settings = text, step, loss
        self.input: Floats = ((rng.random((k, size), dtype=np.float32) - 0.5) / size).astype(np.float32)
        self.output: Floats = np.zeros((k, size), np.float32)
        pairs = meetings(text, window)
        weights = np.asarray(pairs.sum(1)).ravel()
        self.q: NDArray[np.float64] = weights / max(1.0, weights.sum())
        self.given = sp.csr_matrix(sp.diags(1.0 / np.maximum(weights, 1.0)) @ pairs)  # q(y | x)
        self.given.sort_indices()
        self.used = np.flatnonzero(weights > 0)
        expected = text.counts**0.75
        drawn = np.repeat(np.arange(k, dtype=np.int32), np.ceil(1e6 * expected / expected.sum()).astype(int))
        self.start = NegativeSampling(
            text.words, text.sentences, drawn, (self.input, self.output), window, negatives, step0, seed
        )  # fmt: skip
        self.side, self.at, self._calls, self._touched = -1, 0, 0, 0  # side -1: negative sampling
        self._gradient: Floats | None = None
        self._tilt: Floats = np.zeros((size, size), np.float32)
        self._mass: NDArray[np.float64] = np.zeros(k)
        self._seen_moments: tuple[Floats, Floats] | None = None
        self._loss: EmbeddingLoss | None = None

    # ---- one step

    def _evaluate(self, which: NDArray[np.int64]) -> Any:
        """The gradient with respect to the scores of some input words: sparse, or dense if it is exact."""
        x = self.input[which]
        self._calls += len(x)
        if self._loss_settings["method"] == "exact":
            p = x @ self.output.T
            p -= p.max(1, keepdims=True)
            np.exp(p, out=p)
            p /= p.sum(1, keepdims=True)
            rows = self.given[which]
            p[np.repeat(np.arange(len(x)), np.diff(rows.indptr)), rows.indices] -= rows.data
            self._touched += p.size
            return p
        if self._loss is None:
            self._loss = EmbeddingLoss(self.output, "cross-entropy", **self._loss_settings)
        rows = self.given[which]
        begin, labels = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        self._loss.values(np.ascontiguousarray(x), begin, labels, rows.data.astype(np.float64))
        return self._loss.gradient()

    def _rest(self, g: Any) -> Floats:
        """The gradient of the words that no search found, the same for all of them; taken off the others in g, so that
        it holds for all. What is linear in their scores is added by the callers:
        the force that keeps the scores of all these words together."""
        assert self._loss is not None
        rest = self._loss.rest().astype(np.float32)
        g.data -= np.repeat(rest, np.diff(g.indptr))
        return rest[:, None]

    def _chunk(self) -> None:
        which = self.used[self.at : self.at + CHUNK]
        x = self.input[which]
        g = self._evaluate(which)
        dense = self._loss_settings["method"] == "exact"
        if self.side == 0:
            scale = self.eta / self._energy(self.output)
            down = g @ self.output if dense else self._input_gradient(g, x)
            self.input[which] -= np.float32(scale) * down
            return
        if self._gradient is None:
            self._gradient = np.zeros_like(self.output)
        weighted = x * self.q[which, None].astype(np.float32)
        self._gradient += g.T @ weighted if dense else self._output_gradient(g, x, weighted)
        self._mass += g.T @ self.q[which]

    def _energy(self, rows: Floats) -> float:
        """Squared length of a row, in the mean over all and over the text, whichever is larger."""
        squares = np.square(rows).sum(1)
        return max(float(squares.mean()), float(self.q @ squares), 1e-12)

    def _moments(self) -> tuple[Floats, Floats]:
        if self._seen_moments is None:
            self._seen_moments = (self.output.sum(0), self.output.T @ self.output)
        return self._seen_moments

    def _input_gradient(self, g: Any, x: Floats) -> Floats:
        """Words without a search result: rest * sum over all k of (1 + z_k - mean of z) v_k."""
        rest, (total, square) = self._rest(g), self._moments()
        mean = x @ total[:, None] / len(self.output)
        out: Floats = g @ self.output + rest * ((1 - mean) * total + x @ square)
        return out

    def _output_gradient(self, g: Any, x: Floats, weighted: Floats) -> Floats:
        """The same for the other side: linear in v_k, one small matrix for all words."""
        rest, (total, _) = self._rest(g), self._moments()
        mean = x @ total[:, None] / len(self.output)
        moved = rest * weighted
        out: Floats = g.T @ weighted + ((1 - mean) * moved).sum(0)
        self._tilt += moved.T @ x
        self._mass += float(self.q[self.used[self.at : self.at + CHUNK]] @ rest[:, 0])
        return out

    def _end_of_side(self) -> bool:
        self.at = 0
        if self.side == 0:
            self.side = 1
            return False
        assert self._gradient is not None
        self._gradient += self.output @ self._tilt
        # a row's curvature: how often the text, and the model, give the word
        often = 0.5 * (self.q + np.maximum(self.q + self._mass, 0)) + 1e-12
        scale = self.eta / self._energy(self.input)
        self.output -= (scale * self._gradient / often[:, None]).astype(np.float32)
        self._gradient, self.side, self._seen_moments = None, 0, None
        self._tilt[:], self._mass[:] = 0, 0
        if self._loss is not None:
            self._loss.refresh()
        if not (np.isfinite(self.output).all() and np.isfinite(self.input).all()):
            raise SolverError(self.too_large)
        return True

    # ---- what the loop asks for

    def advance(self, deadline: float) -> bool:
        while True:
            if self.side < 0:
                if self.start.advance(SLICE):
                    self.side = 0
                    return True
            else:
                self._chunk()
                self.at += CHUNK
                if self.at >= len(self.used) and self._end_of_side():
                    return True
            if clock.now() >= deadline:
                return False

    def wants_certificate(self, tol: float) -> bool:
        return False

    def measure(self, deadline: float = inf) -> Measured:
        """The objective, exactly."""
        total = 0.0
        for at in range(0, len(self.used), CHUNK):
            look(deadline)
            which = self.used[at : at + CHUNK]
            z = self.input[which] @ self.output.T
            top = z.max(1)
            logs = top + np.log(np.exp(z - top[:, None]).sum(1, dtype=np.float64))
            rows = self.given[which]
            inner = z[np.repeat(np.arange(len(which)), np.diff(rows.indptr)), rows.indices] * rows.data
            total += float(self.q[which] @ logs)
            total -= float(np.repeat(self.q[which], np.diff(rows.indptr)) @ inner)
        return Measured(primal=total, infeasibility=0.0)

    def counters(self) -> tuple[int, int]:
        return self._calls, self._touched + (0 if self._loss is None else self._loss.touched)

    def export(self) -> dict[str, Any]:
        calls, touched = self.counters()
        place = np.array([self.side, self.at, calls, touched, self.start.at], np.int64)
        saved = {"input": self.input.copy(), "output": self.output.copy(), "place": place}
        saved["random"] = np.array([self.start.random], np.uint64)
        if self._gradient is not None:
            saved["gradient"], saved["tilt"] = self._gradient.copy(), self._tilt.copy()
            saved["mass"] = self._mass.copy()
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        self.input[:] = fits_rows("input", saved["input"], self.input)
        self.output[:] = fits_rows("output", saved["output"], self.output)
        side, *rest = saved["place"].tolist()
        self.at, self._calls, self._touched, start = fits("place", np.array(rest, np.int64), 4).tolist()
        if side not in (-1, 0, 1) or self.at > len(self.used) or start > len(self.text.words):
            raise DataError("its place does not fit the data")
        self.side, self.start.at = side, start
        self.start.random = int(fits("random", saved["random"], 1, np.uint64)[0])
        self._gradient, self._seen_moments = None, None
        self._tilt[:], self._mass[:] = 0, 0
        if "gradient" in saved:
            self._gradient = fits_rows("gradient", saved["gradient"], self.output)
            self._tilt[:] = fits_rows("tilt", saved["tilt"], self._tilt)
            self._mass[:] = fits("mass", saved["mass"], len(self._mass), np.float64)
        if self.side == 1 and self.at > 0 and self._gradient is None:
            raise DataError("the gradient of what is behind it is not there")
        self._loss = None
