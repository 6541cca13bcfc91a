"""Mixtures of regressions, improved: some components exchanged for others, EM from there, the best ones kept.

A local optimum of EM is seldom wrong everywhere: some components are right, one covers the samples of two others, two
share the samples of one. So a small population of solutions is kept, and every round tries, on each of them,

- a *split*: the component that is missed least goes, the one with the largest errors becomes two, along the
  direction in which its residuals spread (standard form);
- a *crossing* (standard form, few inputs): two components exchange their samples on one side of a hyperplane through a
  place where they meet: curves that cross are easily taken for others that touch;
- components *anew*: a few of those with large errors start again at random, the others stay;
- a *push*: all weights move a little (generalised form, whose optima lie close together).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.core.clock import Late
from fginfer.latent.em import Mixture

Reals = NDArray[np.float64]
POPULATION = 8
TRIALS = 6  # trials of each member, a round
PATIENCE = 15  # rounds without a better solution; then another population, from random starts
CROSSINGS = 6  # more trials, where there are
FEW_INPUTS = 16
PUSHES = (0.1, 0.2, 0.4)  # parts of the weights' root mean square
# Rounds of EM and the change at which they end: enough to tell a good trial from a bad one.
BRIEF = {False: (30, 1e-3), True: (60, 1e-4)}


def improve(
    mixture: Mixture, W: Reals, rng: np.random.Generator, rounds: int, enough: float, late: Late
) -> tuple[Reals, float]:
    """(weights, cost) of the best solution after at most `rounds` rounds, from (starts, K, inputs) weights.

    The cost of the best, `likelihood_costs`, never rises. `enough`: see Mixture.run; `late`: whether time is over.
    """
    steps, tol = BRIEF[mixture.generalized]

    def settled(starts: Reals, steps: int) -> tuple[Reals, Reals]:
        fits = mixture.run(starts, True, steps, own=True, tol=tol, enough=enough, batch=12)
        return fits.weights, fits.costs

    members, costs = _distinct(*settled(W, 2 * steps))
    best, least = members[0], float(costs[0])
    quiet = 0
    exact = enough * mixture.unit * len(mixture.y)
    for _ in range(rounds if mixture.k > 1 else 0):
        if least <= exact or late():
            break
        if quiet < PATIENCE:
            trials, found = settled(np.concatenate([_trials(mixture, member, rng) for member in members]), steps)
            before = costs[0]
            members, costs = _distinct(np.concatenate([members, trials]), np.concatenate([costs, found]))
            quiet = quiet + 1 if costs[0] > before * (1 - 1e-6) else 0
        else:  # they are alike by now, and others may lie elsewhere
            size = float(np.sqrt((best * best).mean())) or 1.0
            members, costs = _distinct(*settled(size * rng.standard_normal(W.shape), 2 * steps))
            quiet = 0
        if costs[0] < least:
            best, least = members[0], float(costs[0])
    return best, least


def _distinct(W: Reals, costs: Reals) -> tuple[Reals, Reals]:
    """The best of them, best first; equal costs are taken for equal solutions."""
    kept: list[int] = []
    for k in np.argsort(costs, kind="stable"):
        if len(kept) < POPULATION and all(costs[k] > 1.001 * costs[j] for j in kept):
            kept.append(int(k))
    return W[kept], costs[kept]


def _trials(mixture: Mixture, W: Reals, rng: np.random.Generator) -> Reals:
    size = float(np.sqrt((W * W).mean()))
    if mixture.generalized:
        pushed = [W + size * push * rng.standard_normal(W.shape) for push in PUSHES]
        blame = np.ones(len(W))
        return np.array(pushed + [_anew(W, blame, 1, size, rng) for _ in range(TRIALS - len(pushed))])
    errors = mixture.errors(W[None])[0]
    chosen, two = errors.argmin(0), np.partition(errors, 1, axis=0)[:2]
    counts = np.maximum(np.bincount(chosen, minlength=len(W)), 1)
    spent = np.asarray(np.bincount(chosen, two[0], len(W)), np.float64)
    # what its absence would cost
    missed = np.asarray(np.bincount(chosen, two[1] - two[0], len(W)), np.float64)
    splits = _splits(mixture, W, chosen, two[0], missed, spent, rng)
    blame = spent / counts
    others = [
        _anew(W, blame, int(rng.integers(2, max(3, len(W) // 2 + 1) + 1)), size, rng)
        for _ in range(TRIALS - len(splits))
    ]
    if mixture.X.shape[1] <= FEW_INPUTS:
        others += [_crossing(mixture, W, chosen, rng) for _ in range(CROSSINGS)]
    return np.array(splits + others)


def _anew(W: Reals, blame: Reals, count: int, size: float, rng: np.random.Generator) -> Reals:
    """Some components, the more likely the larger their mean error, start again."""
    blame = blame + 1e-3 * blame.max() + 1e-300
    who = rng.choice(len(W), min(count, len(W)), replace=False, p=blame / blame.sum())
    out = W.copy()
    out[who] = (size or 1.0) * rng.standard_normal((len(who), W.shape[1]))
    return out


def _crossing(mixture: Mixture, W: Reals, chosen: NDArray[np.intp], rng: np.random.Generator) -> Reals:
    """Two components, drawn at random, with their samples exchanged on one side of a random hyperplane through one of
    the samples at which they differ least."""
    a, b = rng.choice(len(W), 2, replace=False)
    between: Reals = np.asarray(W[a] - W[b], mixture.X.dtype)
    apart = np.abs(mixture.X @ between)
    meeting = rng.choice(np.argpartition(apart, len(apart) // 20)[: len(apart) // 20 + 1])
    normal: Reals = np.asarray(rng.standard_normal(W.shape[1]), mixture.X.dtype)
    beyond = (mixture.X - mixture.X[meeting]) @ normal > 0
    exchanged = np.where(beyond & (chosen == a), b, np.where(beyond & (chosen == b), a, chosen))
    out: Reals = mixture.solve(mixture.hard(exchanged[None]))[0]
    return out


def _splits(
    mixture: Mixture, W: Reals, chosen: NDArray[np.intp], least: Reals, missed: Reals, spent: Reals,
    rng: np.random.Generator,
) -> list[Reals]:  # fmt: skip
    """Half of the trials: pairs drawn from those that promise most."""
    cost = missed[:, None] - spent[None, :]
    np.fill_diagonal(cost, np.inf)
    promising = np.argsort(cost, axis=None, kind="stable")[: min(TRIALS, len(W) * (len(W) - 1))]
    out = []
    for pair in np.sort(rng.choice(len(promising), min(TRIALS // 2, len(promising)), replace=False)):
        gone, split = np.unravel_index(promising[pair], cost.shape)
        rows = chosen == split
        if not rows.any():
            continue
        inputs = mixture.X[rows]
        spread = inputs * np.sqrt(least[rows])[:, None]
        direction = np.linalg.eigh((spread.T @ spread).astype(np.float64))[1][:, -1]
        reach = float(((inputs @ direction) ** 2).mean())
        step = direction * np.sqrt(float(least[rows].mean()) / max(reach, 1e-300))
        trial = W.copy()
        trial[gone], trial[split] = W[split] + step, W[split] - step
        out.append(trial)
    return out
