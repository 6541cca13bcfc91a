"""Columns that are nearly right: which of them stand for their complement, and which explain too little to stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.core.clock import Late, never
from fginfer.core.latent import AtomProblem
from fginfer.latent.alternating import assign, least_squares, refine, squared_error

Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]
STARTS = 10  # local searches for a column in the place of another (chosen)
MORE = 16  # exchanges that are tried beside one for each column (chosen)
ROUNDS = 30  # rounds of refinement after an exchange (chosen)


def without_constant(X: Reals, Z: Bits) -> Bits:
    """Columns of X = 1 a + Z V as columns of X = Z W: with z = 1 - z' a constant a + v appears, so those columns change
    to their complements whose v add up to -a."""
    if Z.shape[1] == 0:
        return Z
    found = np.linalg.lstsq(np.column_stack([np.ones(len(X)), Z]), X, rcond=None)[0]
    flips: Bits = assign(-found[:1], found[1:])
    out: Bits = Z ^ flips
    return out


def explained(X: Reals, Z: Bits) -> float:
    """|X|^2 less the squared error of least squares."""
    left, values, _ = np.linalg.svd(Z.astype(np.float64), full_matrices=False)
    part = left[:, values > 1e-10 * max(float(values.max(initial=0.0)), 1e-300)].T @ X
    return float((part * part).sum())


def complement(X: Reals, Z: Bits, late: Late = never) -> Bits:
    """Columns become their complements one at a time, where that explains more."""
    best = explained(X, Z)
    for k in range(Z.shape[1]):
        if late():
            break
        other = Z.copy()
        other[:, k] ^= 1
        if (reached := explained(X, other)) > best * (1 + 1e-12):
            Z, best = other, reached
    return Z


def mend(X: Reals, Z: Bits, *, seed: int = 0, threads: int = 1, late: Late = never) -> tuple[Bits, Reals]:
    """Exchanges columns that explain little beside the others for the best column of what is left without them, as long
    as the error falls, and at most as often as there are columns and a few more. Where rows are sums of K features and
    K - 2 are found, the last ones are seen only without the columns that stand in their places."""
    Z, W = _complemented(X, *refine(X, Z, late=late), late)
    error, rng = squared_error(X, Z, W), np.random.default_rng([seed, 1])
    tries, waiting = Z.shape[1] + MORE, _weakest(Z, W)
    while waiting and tries > 0 and not late():
        tries -= 1
        others = np.delete(Z, waiting.pop(0), axis=1)
        rest = np.ascontiguousarray(X - others @ least_squares(others, X) if others.shape[1] else X)
        starts = np.ascontiguousarray((rest @ rng.standard_normal((X.shape[1], STARTS)) > 0).T, np.uint8)
        values = AtomProblem(rest, threads=threads).search(starts)
        new, weights = refine(X, np.column_stack([others, starts[int(np.argmax(values))]]), ROUNDS, late)
        if squared_error(X, new, weights) < error * (1 - 1e-6):
            Z, W = _complemented(X, new, weights, late)
            error, waiting = squared_error(X, Z, W), _weakest(Z, W)
    return Z, W


def _complemented(X: Reals, Z: Bits, W: Reals, late: Late) -> tuple[Bits, Reals]:
    """Refined, and after it every column and its complement compared, while that lowers the error."""
    error = squared_error(X, Z, W)
    while not late():
        other = complement(X, Z, late)
        if (other == Z).all():
            break
        other, weights = refine(X, other, late=late)
        if (reached := squared_error(X, other, weights)) >= error:
            break
        Z, W, error = other, weights, reached
    return Z, W


def _weakest(Z: Bits, W: Reals) -> list[int]:
    """The columns, those first without which the error grows least."""
    gram = Z.astype(np.float64).T @ Z
    growth = (W * W).sum(1) / np.maximum(np.linalg.pinv(gram, hermitian=True).diagonal(), 1e-300)
    return [int(k) for k in np.argsort(growth, kind="stable")]
