"""sample(): labelings with the probabilities of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import inf
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fginfer.approximate import NOTHING
from fginfer.beliefs import SLICE, beliefs, runs
from fginfer.condition import Conditioned
from fginfer.core import clock
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import Interrupted, ModelError, SettingsError, SolverError
from fginfer.gibbs import BLOCK_MEMORY, blocks_of
from fginfer.graph import FactorGraph
from fginfer.lower import summable
from fginfer.names import Names
from fginfer.options import check_number, check_settings, check_whole
from fginfer.solve import _model, solve
from fginfer.solver import check_seconds

__all__ = ["Samples", "sample"]

Labels = NDArray[np.int32]
Way = Literal["exact", "gibbs", "perturb"]

WAYS: tuple[Way, ...] = ("exact", "gibbs", "perturb")
BURN_IN = 50  # sweeps before the first sample of a chain (chosen)
APART = 3  # sweeps between two samples (chosen)
STEPS = 300  # iterations of the solve of a perturbed model (chosen)
ROWS = 1000  # exact samples that are drawn at a time (chosen)


@dataclass(frozen=True)
class Samples:
    """Labelings, a row each; `exact`: independent draws from the model, else approximations made the way that
    `method` says: "gibbs" are states of a Markov chain, "perturb" the best labelings under random unary scores.

    >>> from fginfer import FactorGraph, sample
    >>> drawn = sample(FactorGraph([2, 3]), 4)
    >>> drawn.labels.shape, drawn.exact, drawn.method
    ((4, 2), True, 'exact')
    """

    labels: Labels
    exact: bool
    method: Way = "exact"
    names: Names | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def named(self) -> list[dict[str | int, str | int]]:
        """Every labeling as a dict of names.

        >>> sample(FactorGraph(variables={"rain": ["no"], "floor": 1}), 1).named()
        [{'rain': 'no', 'floor': 0}]
        """
        names = self.names or Names()
        return [names.named(row) for row in self.labels.tolist()]


def sample(
    graph: FactorGraph | str | PathLike[str],
    n: int,
    seed: int = 0,
    *,
    method: Way | None = None,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    time_limit: float | None = None,
    memory: float = 1 << 30,
) -> Samples:
    """n labelings x with probabilities P(x) = exp(score(x)) / Z, given the evidence if there is any.

    graph       a FactorGraph, or the name of a model file
    n           how many
    method      "exact", "gibbs" or "perturb"; None: exact where elimination fits, else gibbs (perturb,
                where constraints have no tables to sum)
    evidence    variables that are known, as solve takes it
    time_limit  seconds, after which there are fewer than n; after Ctrl-C those drawn are the `found` of the
                KeyboardInterrupt
    memory      bytes for the tables of elimination

    "exact" draws are independent (SolverError where elimination does not fit, as in `marginals`). Else `exact` is
    False. "gibbs" are states of a Markov chain that starts at a good labeling and draws large blocks of variables given
    the rest; such a chain may stay near where it started for long, and where hard constraints part the labelings it may
    never reach some of them. "perturb" adds a Gumbel variable to every unary score and solves (perturb-and-MAP,
    Papandreou and Yuille 2011): such samples are independent and never stuck, but their probabilities are right only
    where no factor joins variables.

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
    if method not in (None, *WAYS):
        raise SettingsError(f"method must be one of {', '.join(WAYS)}, not {method!r}")
    time_limit = check_seconds("time_limit", time_limit)
    end = inf if time_limit is None else clock.now() + time_limit
    whole, _ = _model(graph, None)
    reduced, given = _model(whole, evidence)
    way, drawn = _drawn(reduced, n, np.random.default_rng(seed), method, memory, end)
    rows = list[Labels]()
    try:
        for some in drawn:
            rows.append(some)
            if clock.now() >= end:
                break
    except KeyboardInterrupt:
        if not rows:
            raise
        raise Interrupted(_samples(rows, whole, reduced.n_variables, given, way)) from None
    return _samples(rows, whole, reduced.n_variables, given, way)


def _samples(rows: list[Labels], graph: FactorGraph, n_free: int, given: Conditioned | None, way: Way) -> Samples:
    """Rows for all variables, without auxiliary ones and with the evidence."""
    own = [row[:n_free] for some in rows for row in some]
    whole = own if given is None else [given.expand(row) for row in own]
    labels = np.array(whole, np.int32).reshape(len(whole), graph.n_variables)
    return Samples(labels, way == "exact", way, graph.shared_names())


def _drawn(
    graph: FactorGraph, n: int, rng: np.random.Generator, method: Way | None, memory: float, end: float
) -> tuple[Way, Iterator[Labels]]:
    """How samples are made, and some of them at a time."""
    if method == "perturb":
        return method, islice(_perturbed(graph, rng, end), n)
    if method is None and graph.rules and not graph.lowered().one_to_one:
        return "perturb", islice(_perturbed(graph, rng, end), n)
    whole = summable(graph)
    model = whole.snapshot()
    if method != "gibbs":
        try:
            found = beliefs(model, memory, False)
        except SolverError:
            if method == "exact":
                raise
        else:
            return "exact", _independent(found, model, n, rng)
    return "gibbs", islice(_chain(whole, model, rng, end), n)


def _independent(found: Beliefs, model: Model, n: int, rng: np.random.Generator) -> Iterator[Labels]:
    """Independent draws: the labels of a cut set first, where there is one, then the rest given these."""
    held, weights = [], []
    for labels in runs(found, model, both=False):
        held.append(labels)
        weights.append(found.value)
    top = max(weights)
    if top == -inf:
        raise ModelError(NOTHING)
    if len(held) == 1:
        for first in range(0, n, ROWS):
            yield found.sample(min(ROWS, n - first), int(rng.integers(2**63)))[0]
        return
    p = np.exp(np.array(weights) - top)
    counts = rng.multinomial(n, p / p.sum())
    out = []
    for labels, count in zip(held, counts.tolist(), strict=True):
        if count:
            found.hold(labels)
            while not found.run(SLICE, both=False):
                pass
            out.append(found.sample(count, int(rng.integers(2**63)))[0])
    yield rng.permutation(np.concatenate([np.zeros((0, model.n_variables), np.int32), *out]))


def _start(graph: FactorGraph, end: float) -> Labels:
    """A labeling with a good score."""
    left = None if end == inf else max(0.0, end - clock.now())
    start = solve(graph, gap=inf, time_limit=left, trace=False, dual=False)
    if start.labels is None:
        if start.status == "infeasible":
            raise ModelError(NOTHING)
        raise SolverError("no labeling was found that the samples could start from")
    return start.labels.astype(np.int32)


def _chain(graph: FactorGraph, model: Model, rng: np.random.Generator, end: float) -> Iterator[Labels]:
    """A chain of block Gibbs sampling, every APART-th state of it; it ends when the time is over."""
    labels = _start(graph, end)
    blocks = blocks_of(graph, model, rng, BLOCK_MEMORY)
    sweep = 0
    while True:
        for block in blocks:
            labels = block.draw(labels, int(rng.integers(2**63)))
            if clock.now() >= end:
                return
        sweep += 1
        if sweep > BURN_IN and (sweep - BURN_IN) % APART == 0:
            yield labels[None, :].copy()


def _perturbed(graph: FactorGraph, rng: np.random.Generator, end: float) -> Iterator[Labels]:
    """The best labelings under independent Gumbel perturbations of all unary scores."""
    moved = graph.copy()
    moved.cutoff = -inf
    unary = np.concatenate([np.zeros(0), *(graph.unary(v) for v in range(graph.n_variables))])
    while True:
        moved.set_unaries(unary + rng.gumbel(size=len(unary)))
        left = None if end == inf else max(0.0, end - clock.now())
        best = solve(moved, time_limit=left, max_iterations=STEPS, trace=False, dual=False)
        if best.labels is None:
            if best.status == "infeasible":
                raise ModelError(NOTHING)
            if clock.now() >= end:
                return
            raise SolverError("no labeling of a perturbed model was found")
        yield best.labels.astype(np.int32)[None, :]
