"""LP-SparseMAP of a batch: the quadratic program over the local polytope, and the derivative of its answer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from threading import Event

import numpy as np

from fginfer.core.sparsemap import SparseRun
from fginfer.nn.maps import Memory, Report, do_all
from fginfer.nn.scores import Moments, Scores
from fginfer.nn.structure import Reals, Structure

SLICE = 50_000_000  # states looked at between two looks at signals: some 30 ms


def sparsemap(
    scores: Scores,
    tolerance: float,
    most: int,
    threads: int,
    memory: Memory,
    keys: Sequence[int | None],
) -> tuple[Reals, Moments, Report]:
    """Values of the program, and its marginals of labels and states, all zero outside their supports."""
    s, table = scores.structure, scores.states()
    sizes = s.sparse.n_labels, s.sparse.n_states, s.sparse.n_multipliers
    labels, states = np.zeros((scores.batch, sizes[0])), np.zeros((scores.batch, sizes[1]))
    slices = max(1, SLICE // max(1, s.sparse.n_states))

    def one(item: int, stop: Event) -> tuple[SparseRun, bool]:
        run, multipliers, start = SparseRun(), np.zeros(sizes[2]), memory.get(keys[item])
        if start is not None:
            rho, before, prices = start
            run.rho, multipliers = rho, prices.copy()
            states[item] = before
        given = scores.unaries[item], table[item if len(table) > 1 else 0]
        while not run.converged and run.iterations < most:
            if stop.is_set():
                raise KeyboardInterrupt
            steps = min(slices, most - run.iterations)
            s.sparse.solve(*given, tolerance, steps, labels[item], states[item], multipliers, run)
        memory.put(keys[item], (run.rho, states[item].copy(), multipliers))
        return run, start is not None

    done = do_all([partial(one, item) for item in range(scores.batch)], threads)
    slow = [item for item, (run, _) in enumerate(done) if not run.converged]
    if slow:
        text = (
            f"SparseMAP of item {slow[0]} has a residual of {done[slow[0]][0].residual:.1e} after {most} iterations "
            f"({len(slow)} of {scores.batch} items did not converge): is any labeling allowed?"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    report = Report(scores.batch, scores.batch - len(slow), "sparsemap", sum(run.iterations for run, _ in done))
    report.warm = sum(warm for _, warm in done)
    return np.array([run.value for run, _ in done]), Moments(labels, states), report


def adjoint(structure: Structure, found: Moments, gradient: Reals, threads: int) -> Moments:
    """Derivatives of gradient.labels with respect to unaries and states' scores, on the supports found."""
    out = Moments(np.zeros_like(found.labels), np.zeros_like(found.states))

    def one(item: int, stop: Event) -> None:
        rows = found.labels[item], found.states[item], gradient[item]
        structure.sparse.adjoint(*rows, out.labels[item], out.states[item])

    do_all([partial(one, item) for item in range(len(gradient))], threads)
    return out
