"""Coefficients of a given set of atoms: min over c >= 0 of f(c) + lambda.c, f smooth and convex.

Two solvers. `newton` takes projected Newton steps with the exact Hessian, a dozen or so to full accuracy; `proximal` is
the update of the published algorithm (Yen et al. 2017), c <- [c - (grad + lambda) / (gamma |A|)]_+, kept to compare.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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


def newton(loss: Loss, c: Reals, lam: Reals, tol: float = 1e-6, max_steps: int = 60) -> tuple[Reals, float]:
    """(c, f(c) + lambda.c). The value never rises above that at the c given."""
    value = loss.value(c) + float(lam @ c)
    for _ in range(max_steps):
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
    """Coefficients at zero that want to be negative stay; the others take a Newton step, shortened until it falls."""
    free = (c > 0) | (slope < 0)
    curvature = hessian[np.ix_(free, free)]
    ridge = 1e-10 * max(float(np.trace(curvature)) / max(1, int(free.sum())), 1e-300)
    direction = np.zeros_like(c)
    direction[free] = -np.linalg.solve(curvature + ridge * np.eye(len(curvature)), slope[free])
    # A coefficient that the full step would carry below zero pulls the others along the wrong way: it is taken to zero,
    # and the rest solved again. Twice is enough in practice; the line search answers for the rest.
    for _ in range(2):
        gone = free & (c + direction <= 0)
        if not gone.any() or gone.sum() == free.sum():
            break
        rest = free & ~gone
        direction[gone] = -c[gone]
        right = slope[rest] + hessian[np.ix_(rest, gone)] @ direction[gone]
        direction[rest] = -np.linalg.solve(hessian[np.ix_(rest, rest)] + ridge * np.eye(int(rest.sum())), right)
    length = 1.0
    for _ in range(30):
        trial = np.maximum(c + length * direction, 0.0)
        expected = float(slope @ (trial - c))
        reached = loss.value(trial) + float(lam @ trial)
        if expected < 0 and reached <= value + 1e-4 * expected:
            return trial, reached
        length /= 2
    trial = np.maximum(c - slope / max(float(hessian.diagonal().sum()), 1e-300), 0.0)  # a plain gradient step
    reached = loss.value(trial) + float(lam @ trial)
    return (trial, reached) if reached < value else None


def proximal(loss: Loss, c: Reals, lam: Reals, tol: float = 1e-6, max_steps: int = 2000) -> tuple[Reals, float]:
    """As `newton`, by the published update; gamma |A| is the trace of the Hessian, doubled while a step rises."""
    value = loss.value(c) + float(lam @ c)
    step_bound = 0.0
    for _ in range(max_steps):
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
