"""What a layer computes, on checked scores: values of losses with a row of gradients an item, and maps with their way
back. Nothing here knows how scores came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.nn.maps import Labels, Memory, Report, by_elimination, by_method, chunks, do_all
from fginfer.nn.plan import Plan, make_plan
from fginfer.nn.scores import Moments, Rows, Scores, rows_of_labels, rows_of_moments
from fginfer.nn.sparse import adjoint, sparsemap
from fginfer.nn.structure import Reals, Structure
from fginfer.nn.sums import marginals

Keys = Sequence[int | None]
NOISES = ("gumbel", "normal", "none")
EASY_STATES = 1 << 16  # joint states of one item up to which elimination is quicker than a solve (chosen: 1 ms)
MOST_SUMMED = 1 << 24  # joint states of one item whose marginals are summed (chosen: some tenths of a second)


@dataclass
class Work:
    """The structure, how to solve, and what is remembered from call to call."""

    structure: Structure
    method: str | None
    threads: int
    tolerance: float
    max_iterations: int
    settings: dict[str, Any]
    report: Report = field(default_factory=Report)
    labels_memory: Memory = field(default_factory=Memory)
    sparse_memory: Memory = field(default_factory=Memory)
    _plan: Plan | None = None
    _planned: bool = False

    def plan(self) -> Plan | None:
        if not self._planned:
            self._plan, self._planned = make_plan(self.structure), True
        return self._plan

    # -- best labelings ----------------------------------------------------------------------------------------

    def best(self, scores: Scores, keys: Keys) -> Labels:
        plan = self.plan() if self.method in (None, "elimination") else None
        if plan is not None and plan.states > EASY_STATES and self.method is None:
            plan = None  # a method looks at less
        if plan is None and self.method == "elimination":
            raise SolverError("elimination would need a table that is too large; leave the method to the layer")
        if plan is not None:
            labels, self.report = by_elimination(scores, plan, self.threads)
            return labels
        method = self.method
        labels, self.report = by_method(scores, method, self.threads, self.labels_memory, keys, self.settings)
        return labels

    # -- losses ------------------------------------------------------------------------------------------------

    def hinge(self, scores: Scores, truth: Labels, keys: Keys, cost: Any) -> tuple[Reals, Rows]:
        """max over y of score(y) + cost(y), less the score of the truth: a subgradient is the difference of two."""
        added = scores
        price = _cost(self.structure, cost)
        if price.any():
            unaries = scores.unaries + np.repeat(price, self.structure.cards)
            at = self.structure.label_begin[:-1] + truth
            np.put_along_axis(unaries, at, np.take_along_axis(scores.unaries, at, 1), 1)
            added = scores.with_unaries(unaries)
        found = self.best(added, keys)
        true = _true_scores(added, truth)
        values = added.at(found) - true
        worse = values < 0  # a limit ended the solve before it was as good as the truth
        found, values = np.where(worse[:, None], truth, found), np.where(worse, 0.0, values)
        return values, rows_of_labels(scores, found).plus(rows_of_labels(scores, truth), -1.0)

    def perturbed_loss(self, scores: Scores, truth: Labels, keys: Keys, **noise: Any) -> tuple[Reals, Rows]:
        """The Fenchel-Young loss of perturbed maxima: their mean, less the score of the truth."""
        samples, drawn = noise["samples"], _noise(scores, **noise)
        true = _true_scores(scores, truth)
        values, rows = -true, rows_of_labels(scores, truth)
        rows = rows.plus(rows, -2.0)
        for k in range(samples):
            moved = scores.with_unaries(scores.unaries + drawn[k])
            found = self.best(moved, keys)
            values = values + moved.at(found) / samples
            rows = rows.plus(rows_of_labels(scores, found), 1 / samples)
        return values, rows

    def sparse_loss(self, scores: Scores, truth: Labels, keys: Keys) -> tuple[Reals, Rows]:
        """The Fenchel-Young loss of SparseMAP; 0 where the truth is its answer."""
        values, found = self._sparse(scores, keys)
        true = _true_scores(scores, truth) - self.structure.n_variables / 2
        rows = rows_of_moments(scores, found).plus(rows_of_labels(scores, truth), -1.0)
        return np.maximum(values - true, 0.0), rows

    def crf_loss(self, scores: Scores, truth: Labels) -> tuple[Reals, Rows]:
        """-log P(truth)."""
        log_z, found = self.marginals(scores)
        rows = rows_of_moments(scores, found).plus(rows_of_labels(scores, truth), -1.0)
        return log_z - _true_scores(scores, truth), rows

    # -- marginals ---------------------------------------------------------------------------------------------

    def marginals(self, scores: Scores) -> tuple[Reals, Moments]:
        plan = self.sum_plan()
        jobs = [partial(_marginals, part, plan) for part in chunks(scores, plan.states)]
        found = do_all(jobs, self.threads)
        log_z = np.concatenate([z for z, _ in found]) if found else np.zeros(0)
        if np.isneginf(log_z).any():
            raise ModelError(f"item {int(np.argmax(np.isneginf(log_z)))}: no labeling is allowed")
        s, parts = self.structure, [m for _, m in found]
        self.report = Report(scores.batch, scores.batch, "elimination")
        empty = np.zeros((0, s.n_labels)), np.zeros((0, int(s.state_begin[-1])))
        labels = np.concatenate([empty[0], *(m.labels for m in parts)])
        return log_z, Moments(labels, np.concatenate([empty[1], *(m.states for m in parts)]))

    def sum_plan(self) -> Plan:
        plan = self.plan()
        if plan is None or plan.states > MOST_SUMMED:
            raise SolverError(
                "log Z would need tables that are too large: the structure has too many cycles for elimination; "
                "sparsemap and the perturbed loss have no such limit"
            )
        return plan

    # -- maps with a way back ----------------------------------------------------------------------------------

    def _sparse(self, scores: Scores, keys: Keys) -> tuple[Reals, Moments]:
        settings = self.tolerance, self.max_iterations, self.threads
        values, found, self.report = sparsemap(scores, *settings, self.sparse_memory, keys)
        return values, found

    def sparsemap(self, scores: Scores, keys: Keys) -> Moments:
        return self._sparse(scores, keys)[1]

    def sparsemap_back(self, scores: Scores, found: Moments, gradient: Reals) -> Rows:
        return rows_of_moments(scores, adjoint(self.structure, found, gradient, self.threads))

    def interpolated(self, scores: Scores, keys: Keys, **noise: Any) -> tuple[Reals, NDArray[np.int32]]:
        """The mean indicator of the best labelings under noise, and those labelings (batch, samples, variables)."""
        drawn, count = _noise(scores, **noise), noise["samples"]
        found = [self.best(scores.with_unaries(scores.unaries + z), keys) for z in drawn]
        mean = np.zeros_like(scores.unaries)
        for labels in found:
            at = self.structure.label_begin[:-1] + labels
            np.put_along_axis(mean, at, np.take_along_axis(mean, at, 1) + 1 / count, 1)
        return mean, np.stack(found, 1)

    def interpolated_back(
        self, scores: Scores, labels: NDArray[np.int32], gradient: Reals, keys: Keys, strength: float, **noise: Any
    ) -> Rows:
        """(y(theta) - y(theta - strength * gradient)) / strength, for each sample with the noise it had."""
        drawn, count = _noise(scores, **noise), noise["samples"]
        total: Rows | None = None
        for k, z in enumerate(drawn):
            moved = scores.with_unaries(scores.unaries + z - strength * gradient)
            rows = rows_of_labels(scores, labels[:, k]).plus(rows_of_labels(scores, self.best(moved, keys)), -1.0)
            total = rows if total is None else total.plus(rows, 1.0)
        assert total is not None
        return total.plus(total, 1 / (strength * count) - 1)


def _marginals(scores: Scores, plan: Plan, stop: Event) -> tuple[Reals, Moments]:
    if stop.is_set():
        raise KeyboardInterrupt
    return marginals(scores, plan)


def _cost(s: Structure, cost: Any) -> Reals:
    price = np.asarray(cost, np.float64)
    if price.shape not in ((), (s.n_variables,)) or not np.isfinite(price).all() or (price < 0).any():
        raise SettingsError("cost is what a wrong label costs: a number >= 0, or one for each variable")
    return np.broadcast_to(price, (s.n_variables,))


def _true_scores(scores: Scores, truth: Labels) -> Reals:
    with np.errstate(invalid="ignore"):
        true = scores.at(truth)
    if not np.isfinite(true).all():
        raise ModelError(f"item {int(np.argmin(np.isfinite(true)))}: the scores forbid the true labels")
    return true


def _noise(scores: Scores, *, samples: int, sigma: float, noise: str, seed: int) -> list[Reals]:
    """Noise for unaries, one array a sample. It depends on the seed alone."""
    if noise == "none" or sigma == 0:
        return [np.zeros_like(scores.unaries)] * samples
    rng = np.random.default_rng(seed)
    drawn = rng.gumbel if noise == "gumbel" else rng.normal
    return [sigma * drawn(size=scores.unaries.shape) for _ in range(samples)]
