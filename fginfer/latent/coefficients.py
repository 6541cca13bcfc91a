"""Coefficients of a given set of atoms: min over c >= 0 of f(c) + lambda.c, f smooth and convex.

Two solvers. `newton` takes projected Newton steps with the exact Hessian, a dozen or so to full accuracy; `proximal` is
the update of the published algorithm (Yen et al. 2017), c <- [c - (grad + lambda) / (gamma |A|)]_+, kept to compare.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fginfer.core.clock import Late, never

Reals = NDArray[np.float64]


class Loss(Protocol):
    """f(c) on the present atoms."""

    def value(self, c: Reals) -> float: ...

    def derivatives(self, c: Reals) -> tuple[Reals, Reals]:
        """Gradient and Hessian."""
        ...


def violation(c: Reals, gradient: Reals, lam: Reals) -> float:
    """How far from optimal, in units of lambda: 0 where the gradient balances the penalty, or c = 0 and it is less."""
    slope = gradient + lam
    return float(np.max(np.where(c > 0, np.abs(slope), -slope) / lam, initial=0.0))


def newton(
    loss: Loss, c: Reals, lam: Reals, tol: float = 1e-6, max_steps: int = 60, late: Late = never
) -> tuple[Reals, float]:
    """(c, f(c) + lambda.c). The value never rises above that at the c given."""
    value = loss.value(c) + float(lam @ c)
    for _ in range(max_steps):
        if late():
            break
        gradient, hessian = loss.derivatives(c)
        if violation(c, gradient, lam) <= tol:
            break
        stepped = _newton_step(loss, c, value, gradient + lam, hessian, lam)
        if stepped is None:  # no step falls any more: rounding is all that is left
            break
        c, value = stepped
    return c, value


def _newton_step(
    loss: Loss, c: Reals, value: float, slope: Reals, hessian: Reals, lam: Reals
) -> tuple[Reals, float] | None:
    """Towards the minimum of the quadratic model over c >= 0, as far as the value falls."""
    direction = _minimise_model(c, slope, hessian) - c
    expected = float(slope @ direction)
    length = 1.0
    for _ in range(30 if expected < 0 else 0):
        trial = c + length * direction  # between two points that are >= 0; exact zeros at full length
        reached = loss.value(trial) + float(lam @ trial)
        if reached <= value + 1e-4 * length * expected:
            return trial, reached
        length /= 2
    trial = np.maximum(c - slope / max(float(np.trace(hessian)), 1e-300), 0.0)  # a plain gradient step
    reached = loss.value(trial) + float(lam @ trial)
    return (trial, reached) if reached < value else None


def _minimise_model(c: Reals, slope: Reals, hessian: Reals) -> Reals:
    """argmin over x >= 0 of slope.(x - c) + (x - c)'H(x - c) / 2, by block pivoting (Portugal, Judice, Vicente 1994):
    guess which x are positive, solve for them, exchange those that came out on the wrong side. Ends early with the
    last guess, cut off at zero: it is a direction for a line search."""
    k = len(c)
    matrix = hessian + 1e-10 * max(float(np.trace(hessian)) / k, 1e-300) * np.eye(k)
    linear = slope - matrix @ c
    free = (c > 0) | (slope < 0)
    x = np.zeros(k)
    fewest, patience = k + 1, 3
    for _ in range(4 * k + 10):
        x[:] = 0.0
        x[free] = -np.linalg.solve(matrix[np.ix_(free, free)], linear[free])
        dual = matrix @ x + linear
        wrong = np.where(free, x < 0, dual < -1e-9 * np.abs(linear))
        count = int(wrong.sum())
        if count == 0:
            break
        if count < fewest:
            fewest, patience = count, 3
        elif patience > 0:
            patience -= 1
        else:  # exchanging all of them has gone in circles: one at a time cannot
            wrong[: int(np.flatnonzero(wrong)[-1])] = False
        free ^= wrong
    return np.maximum(x, 0.0)


def proximal(
    loss: Loss, c: Reals, lam: Reals, tol: float = 1e-6, max_steps: int = 2000, late: Late = never
) -> tuple[Reals, float]:
    """As `newton`, by the published update; gamma |A| is the trace of the Hessian, doubled while a step rises."""
    value = loss.value(c) + float(lam @ c)
    step_bound = 0.0
    for _ in range(max_steps):
        if late():
            break
        gradient, hessian = loss.derivatives(c)
        if violation(c, gradient, lam) <= tol:
            break
        step_bound = max(step_bound / 2, float(hessian.diagonal().max()) * len(c), 1e-300)
        for _ in range(60):
            trial = np.maximum(c - (gradient + lam) / step_bound, 0.0)
            reached = loss.value(trial) + float(lam @ trial)
            if reached <= value:
                break
            step_bound *= 2
        else:
            break
        if reached >= value:
            break
        c, value = trial, reached
    return c, value


SOLVERS = {"newton": newton, "proximal": proximal}
