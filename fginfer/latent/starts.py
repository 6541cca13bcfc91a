"""Columns to start from: independent components, each split in two."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from fginfer.core.clock import Late, never
from fginfer.latent.alternating import least_squares, squared_error

Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]


class _TimeOver(Exception):
    pass


def ica_columns(X: Reals, k: int, seed: int = 0, late: Late = never) -> Bits:
    """(rows, at most k) zeros and ones by FastICA (cube) and two-means on each component.

    Finds features that rows have independently and about half of the time; rare ones it mistakes. Fewer columns than k
    where X has not so many directions, none where all rows are equal or it is late.
    """
    centred = X - X.mean(0)
    values = np.linalg.svd(centred, compute_uv=False)
    k = min(k, int((values > 1e-10 * max(float(np.abs(X).max()), 1e-300) * np.sqrt(X.size)).sum()))
    none = np.zeros((len(X), 0), np.uint8)
    if k == 0:
        return none

    def cube(x: Reals) -> tuple[Reals, Reals]:
        if late():
            raise _TimeOver
        square = x * x
        return square * x, 3 * square.mean(axis=-1)

    def halves(component: Reals) -> Bits:
        if late():
            raise _TimeOver
        return np.asarray(KMeans(2, n_init=3, random_state=seed).fit_predict(component[:, None]), np.uint8)

    with warnings.catch_warnings():  # a start need not have converged, and two rows need not be two clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica = FastICA(k, fun=cube, random_state=seed, max_iter=500, tol=1e-3, whiten="unit-variance")
        try:
            Z = np.stack([halves(component) for component in ica.fit_transform(X).T], axis=1)
        except _TimeOver:
            return none
    error = squared_error(X, Z, least_squares(Z, X))
    for j in range(k):  # which of the two is "on": the one that explains more
        if late():
            break
        other = Z.copy()
        other[:, j] ^= 1
        if (reached := squared_error(X, other, least_squares(other, X))) < error:
            Z, error = other, reached
    return Z
