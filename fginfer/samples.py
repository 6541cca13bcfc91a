"""sample(): labelings with the probabilities of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from fginfer.approximate import NOTHING
from fginfer.beliefs import SLICE, beliefs, runs
from fginfer.blocks import forest_blocks
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.options import check_number, check_settings, check_whole
from fginfer.solve import _model, solve

__all__ = ["Samples", "sample"]

Labels = NDArray[np.int32]

BURN_IN = 50  # sweeps before the first sample of a chain (chosen)
APART = 3  # sweeps between two samples (chosen)


@dataclass(frozen=True)
class Samples:
    """Labelings, a row each; `exact`: independent draws from the model, else the states of a Markov chain.

    >>> from fginfer import FactorGraph, sample
    >>> drawn = sample(FactorGraph([2, 3]), 4)
    >>> drawn.labels.shape, drawn.exact
    ((4, 2), True)
    """

    labels: Labels
    exact: bool

    def __len__(self) -> int:
        return len(self.labels)


def sample(
    graph: FactorGraph | str | PathLike[str],
    n: int,
    seed: int = 0,
    *,
    evidence: Mapping[int, int] | str | PathLike[str] | None = None,
    memory: float = 1 << 30,
) -> Samples:
    """n labelings x with probabilities P(x) = exp(score(x)) / Z, given the evidence if there is any.

    Where elimination fits (as in `marginals`), they are independent and exact. Else `exact` is False: they are states
    of a Markov chain that starts at a good labeling and draws large blocks without cycles given the rest (Gibbs
    sampling by blocks); such a chain may stay near where it started for long, and where hard constraints part the
    labelings it may never reach some of them.

    >>> from fginfer import FactorGraph, sample
    >>> graph = FactorGraph([2, 2])
    >>> factor = graph.add_factor([0, 1], [[0.0, float("-inf")], [float("-inf"), 0.0]])
    >>> labels = sample(graph, 100).labels
    >>> bool((labels[:, 0] == labels[:, 1]).all())
    True
    """
    check_whole("n", n)
    if n < 0:
        raise SettingsError(f"n must be 0 samples or more, not {n}")
    check_settings(0.0, seed, 1, None, None)
    check_number("memory", memory, "a positive number of bytes")
    if memory <= 0:
        raise SettingsError(f"memory must be a positive number of bytes, not {memory!r}")
    reduced, given = _model(graph, evidence)
    model, rng = reduced.snapshot(), np.random.default_rng(seed)
    try:
        labels, exact = _draw(model, n, rng, memory), True
    except SolverError:
        labels, exact = _chain(reduced, model, n, rng), False
    if given is not None:
        labels = np.array([given.expand(row) for row in labels], np.int32).reshape(n, -1)
    return Samples(labels, exact)


def _draw(model: Model, n: int, rng: np.random.Generator, memory: float) -> Labels:
    """Independent draws: the labels of a cut set first, where there is one, then the rest given these."""
    found = beliefs(model, memory, False)
    held, weights = [], []
    for labels in runs(found, model, both=False):
        held.append(labels)
        weights.append(found.value)
    top = max(weights)
    if top == -inf:
        raise ModelError(NOTHING)
    p = np.exp(np.array(weights) - top)
    counts = rng.multinomial(n, p / p.sum())
    out = []
    for labels, count in zip(held, counts.tolist(), strict=True):
        if count:
            if len(held) > 1:
                found.hold(labels)
                while not found.run(SLICE, both=False):
                    pass
            out.append(found.sample(count, int(rng.integers(2**63)))[0])
    drawn = np.concatenate([np.zeros((0, model.n_variables), np.int32), *out])
    return rng.permutation(drawn) if len(held) > 1 else drawn


def _chain(graph: FactorGraph, model: Model, n: int, rng: np.random.Generator) -> Labels:
    """A chain of block Gibbs sampling, every APART-th state of it."""
    start = solve(graph, gap=inf, trace=False, dual=False)
    if start.labels is None:
        if start.status == "infeasible":
            raise ModelError(NOTHING)
        raise SolverError("no labeling was found that the samples could start from")
    blocks = [Beliefs(model, False, held=held) for held in forest_blocks(graph, rng)]
    labels, out = start.labels.astype(np.int32), np.zeros((n, model.n_variables), np.int32)
    for sweep in range(BURN_IN + APART * n if n else 0):
        for block in blocks:
            block.hold(labels[block.cut])
            while not block.run(SLICE, both=False):
                pass
            labels = block.sample(1, int(rng.integers(2**63)))[0][0]
        if sweep >= BURN_IN and (sweep - BURN_IN) % APART == APART - 1:
            out[(sweep - BURN_IN) // APART] = labels
    return out
