"""The greedy algorithm of both estimators: find the steepest atoms, solve for all coefficients, drop zeros, repeat."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.latent import AtomProblem
from fginfer.latent.atom import relax, relaxation_bound
from fginfer.latent.coefficients import SOLVERS
from fginfer.latent.losses import AtomLoss
from fginfer.learn.run.trainer import relative_gap

# Dimensions of the relaxation's unit vectors. Any number gives a bound; with this one it is nearly that of all of them,
# at a cost that grows with N and not with N^1.5 (decision 0016).
CERTIFY_RANK = 32
logger = logging.getLogger("fginfer")
Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]


class LassoPoint(NamedTuple):
    """One round. `bound` is a certified lower bound on the objective's minimum, so `gap` (relative) is certified, too;
    `estimate` is the gap as it would be if the best atom found were the best there is."""

    iteration: int
    atoms: int
    objective: float
    bound: float
    gap: float
    estimate: float
    seconds: float


@dataclass
class GreedySettings:
    """Settings of the minimisation over atoms, one after the other."""

    lam: float | None = None  # None: penalty^2 times the smallest lambda at which every coefficient is zero
    penalty: float = 0.03
    size_power: float = 0.0
    max_iter: int = 60
    tol: float = 1e-3
    n_starts: int = 40
    atoms_per_round: int = 20
    tabu_steps: int = 0
    max_atoms: int = 400
    inner: str = "newton"
    start: Bits | None = None  # (k, n) atoms to join in the first round; the minimum is the same with or without
    certify: bool = True
    threads: int = 1
    seed: int = 0
    deadline: float = float("inf")
    callback: Callable[[LassoPoint], Any] | None = None

    def late(self) -> bool:
        return clock.now() >= self.deadline


@dataclass
class GreedyRun:
    """Where a run stands; `atoms` (k, n) and `c` belong together."""

    lam: float = 0.0
    c: Reals = field(default_factory=lambda: np.zeros(0))
    status: str = "iteration_limit"
    trace: list[LassoPoint] = field(default_factory=list)


def size_weights(n: int, power: float) -> Reals:
    """lambda of an atom with 0 .. n ones, over lambda: (ones / n)^power."""
    out: Reals = (np.arange(n + 1) / n) ** power
    return out


def run_greedy(loss: AtomLoss, settings: GreedySettings) -> GreedyRun:
    """Minimises f(c) + sum_k lambda_k c_k over all 2^n atoms, lambda_k = lambda (ones_k / n)^size_power."""
    begin = clock.now()
    run = GreedyRun()
    weights = size_weights(loss.n, settings.size_power)
    scale = None if settings.size_power == 0 else np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)
    unit = 1.0 / (2 * loss.n**2 * loss.tau)  # the unit of |F'z|^2, to be compared with lambda
    residual = loss.residual(run.c)
    objective = loss.value(run.c)
    for iteration in range(settings.max_iter + 1):
        factor = loss.factor(residual)
        found, values = _search(factor, scale, settings, iteration, loss.atoms)
        steepest = max(float(values[0]) * unit, 1e-300)
        if iteration == 0:
            run.lam = settings.penalty**2 * steepest if settings.lam is None else settings.lam
        _note(run, loss, factor, residual, objective, steepest, settings, iteration, clock.now() - begin)
        if settings.callback is not None and settings.callback(run.trace[-1]):
            run.status = "stopped"
            break
        new = _new_atoms(found, values * unit, run.lam, loss.atoms, settings.atoms_per_round)
        if run.trace[-1].estimate <= settings.tol or len(new) == 0:
            run.status = "converged"
            break
        if settings.late():
            run.status = "time_limit"
            break
        if iteration == settings.max_iter or len(run.c) + len(new) > settings.max_atoms:
            break
        if iteration == 0 and settings.start is not None:
            new = _distinct(np.concatenate([settings.start, new]))
        loss.add(new)
        run.c = np.concatenate([run.c, np.zeros(len(new))])
        lam = run.lam * weights[loss.atoms.sum(1, dtype=np.int64)]
        run.c, objective = SOLVERS[settings.inner](loss, run.c, lam, late=settings.late)
        used = run.c > 0
        loss.keep(used)
        run.c = run.c[used]
        residual = loss.residual(run.c)
    if settings.certify and not settings.late():
        _certify(run, loss, residual, objective, settings)
    return run


def _search(
    factor: Reals, scale: Reals | None, settings: GreedySettings, iteration: int, known: Bits
) -> tuple[Bits, Reals]:
    """Local maxima from the half-spaces of random directions, best first. Those directions follow the residual's own
    large ones, which random bits do not."""
    rng = np.random.default_rng([settings.seed, iteration])
    starts = (factor @ rng.standard_normal((factor.shape[1], settings.n_starts)) > 0).T
    bits = np.ascontiguousarray(np.concatenate([starts.astype(np.uint8), known]))
    problem = AtomProblem(factor, scale, settings.threads, settings.deadline)
    values = problem.search(bits, tabu_steps=settings.tabu_steps, candidates=128, seed=settings.seed + iteration)
    order = np.argsort(-values, kind="stable")
    return bits[order], values[order]


def _new_atoms(found: Bits, slopes: Reals, lam: float, known: Bits, most: int) -> Bits:
    """The steepest atoms that are not there yet and would rise above zero."""
    seen = {z.tobytes() for z in known}
    new: list[Bits] = []
    for z, slope in zip(found, slopes, strict=True):
        if len(new) == most or slope <= lam * (1 + 1e-9):
            break
        if z.tobytes() not in seen:
            seen.add(z.tobytes())
            new.append(z)
    return np.array(new, np.uint8).reshape(len(new), found.shape[1])


def _distinct(atoms: Bits) -> Bits:
    """Each once, in the order given, none empty."""
    _, first = np.unique(atoms, axis=0, return_index=True)
    rows = atoms[np.sort(first)]
    out: Bits = rows[rows.any(1)]
    return out


def _lower_bound(loss: AtomLoss, residual: Reals, steepest: float, lam: float) -> float:
    """Dual value, given that no atom is steeper than `steepest`."""
    return loss.dual_value(residual, float(np.sqrt(lam / steepest)) if steepest > 0 else np.inf)


def _note(
    run: GreedyRun, loss: AtomLoss, factor: Reals, residual: Reals, objective: float, steepest: float,
    settings: GreedySettings, iteration: int, seconds: float,
) -> None:  # fmt: skip
    unit = 1.0 / (2 * loss.n**2 * loss.tau)
    limit = largest_slope(np.inf, _spectral(factor), loss.n, settings.size_power) * unit
    before = run.trace[-1].bound if run.trace else 0.0
    bound = min(objective, max(before, _lower_bound(loss, residual, limit, run.lam)))
    estimate = relative_gap(objective, _lower_bound(loss, residual, steepest, run.lam))
    point = LassoPoint(iteration, len(run.c), objective, bound, relative_gap(objective, bound), estimate, seconds)
    run.trace.append(point)
    logger.debug("%5d  %4d atoms  objective %.6g  estimated gap %.1e", iteration, len(run.c), objective, estimate)


def _certify(run: GreedyRun, loss: AtomLoss, residual: Reals, objective: float, settings: GreedySettings) -> None:
    """The last point once more, with the bound of the semidefinite relaxation."""
    factor = loss.factor(residual)
    problem = AtomProblem(factor, deadline=settings.deadline)
    relax(problem, min(CERTIFY_RANK, loss.n + 1), settings.seed, 1e-4, settings.late)
    upper = relaxation_bound(factor, problem.mix_dual())
    unit = 1.0 / (2 * loss.n**2 * loss.tau)
    limit = largest_slope(upper, _spectral(factor), loss.n, settings.size_power) * unit
    last = run.trace[-1]
    bound = min(objective, max(last.bound, _lower_bound(loss, residual, limit, run.lam)))
    run.trace[-1] = last._replace(bound=bound, gap=relative_gap(objective, bound))


def _spectral(factor: Reals) -> float:
    """The largest eigenvalue of F'F, with room for rounding."""
    gram = factor.T @ factor if factor.shape[1] <= len(factor) else factor @ factor.T
    top = len(gram) - 1
    value = float(scipy.linalg.eigvalsh(gram, subset_by_index=[top, top])[0])
    return max(0.0, value) * (1 + 1e-14 * sum(factor.shape))


def largest_slope(upper: float, spectral: float, n: int, power: float) -> float:
    """max over z of |F'z|^2 (n / ones)^power is at most this, given |F'z|^2 <= min(upper, spectral * ones).

    The second grows no slower than the scale falls (power <= 1), so the worst number of ones is where both meet.
    """
    if spectral == 0 or upper == 0:
        return 0.0
    ones = min(float(n), max(1.0, upper / spectral))
    return float(min(upper, spectral * ones) * (n / ones) ** power)
