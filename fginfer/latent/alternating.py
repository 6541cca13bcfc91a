"""Rows as sums of given features, features of given rows, and the two in turn; BP-means, which is just that."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fginfer.blas import on_one_blas_thread
from fginfer.core.clock import Late, never
from fginfer.errors import DataError, SettingsError
from fginfer.latent.settings import check_number, check_size
from fginfer.learn.data.inputs import seed_of

Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]
EXACT = 12  # features: up to here all 2^K patterns are tried


def least_squares(Z: Bits, X: Reals) -> Reals:
    """W of min |X - ZW|^2; the smallest one where it is not unique."""
    return np.asarray(np.linalg.lstsq(Z.astype(np.float64), X, rcond=None)[0], np.float64)


def squared_error(X: Reals, Z: Bits, W: Reals) -> float:
    rest = X - Z.astype(np.float64) @ W
    return float((rest * rest).sum())


def flip_rows(XW: Reals, WW: Reals, Z: Bits, max_passes: int = 100, late: Late = never) -> Bits:
    """Flips single bits of every row, in turn, while they lower |x - W'z|^2 (XW = X W', WW = W W')."""
    Z = Z.copy()
    pull = XW - Z @ WW  # W (x - W'z), a row each
    own = WW.diagonal()
    least = 1e-12 * max(float(own.max(initial=0.0)), 1e-300)
    for _ in range(max_passes):
        changed = False
        for k in range(len(WW)):
            if late():
                return Z
            sign = 1.0 - 2.0 * Z[:, k]
            flips = np.flatnonzero(2 * sign * pull[:, k] - own[k] > least)
            if flips.size:
                pull[flips] -= sign[flips, None] * WW[k]
                Z[flips, k] ^= 1
                changed = True
        if not changed:
            break
    return Z


def assign(X: Reals, W: Reals, start: Bits | None = None, late: Late = never) -> Bits:
    """Which features each row has: min over z of |x - W'z|^2, exactly for up to 12 features; beyond, by flips from
    several starts. When it is late, rows that were not come to stay as in `start`."""
    k = len(W)
    if k == 0:
        return np.zeros((len(X), 0), np.uint8)
    XW, WW = X @ W.T, W @ W.T
    if k <= EXACT:
        return _assign_exactly(XW, WW, np.zeros((len(X), k), np.uint8) if start is None else start, late)
    rounded = np.linalg.lstsq(W.T, X.T, rcond=None)[0].T > 0.5
    starts = [rounded.astype(np.uint8), np.zeros((len(X), k), np.uint8), *([] if start is None else [start])]
    best, least = None, None
    for z in starts:
        z = flip_rows(XW, WW, z, late=late)
        error = np.einsum("ij,ij->i", z @ WW, z) - 2 * np.einsum("ij,ij->i", XW, z)
        if best is None or least is None:
            best, least = z, error
        else:
            better = error < least
            best[better], least[better] = z[better], error[better]
    assert best is not None
    return best


def _assign_exactly(XW: Reals, WW: Reals, start: Bits, late: Late) -> Bits:
    """By all patterns z: |x - W'z|^2 = |x|^2 - 2 z.Wx + z'WW'z."""
    k = len(WW)
    patterns = ((np.arange(1 << k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
    offsets = np.einsum("pk,pk->p", patterns @ WW, patterns)
    out = start.copy()
    rows = max(1, (1 << 22) // (1 << k))  # at a time: 32 MB of distances
    for at in range(0, len(XW), rows):
        if late():
            break
        out[at : at + rows] = patterns[np.argmin(offsets - 2 * XW[at : at + rows] @ patterns.T, axis=1)]
    return out


def refine(X: Reals, Z: Bits, max_rounds: int = 100, late: Late = never) -> tuple[Bits, Reals]:
    """Features and rows in turn until no row changes, or it is late. The error never rises."""
    W = least_squares(Z, X)
    error = squared_error(X, Z, W)
    for _ in range(max_rounds):
        if late():
            break
        new = assign(X, W, start=Z, late=late)
        if (new == Z).all():
            break
        weights = least_squares(new, X)
        reached = squared_error(X, new, weights)
        if reached >= error * (1 - 1e-12):
            break
        Z, W, error = new, weights, reached
    return Z, W


class BinaryFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What estimators have in common whose rows are sums of the features in ``components_``."""

    components_: Reals

    def transform(self, X: Any) -> Reals:
        """Which features each row has: zeros and ones, a column for each of ``components_``."""
        check_is_fitted(self, "components_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return assign(X, self.components_).astype(np.float64)

    def inverse_transform(self, Z: Any) -> Reals:
        """Rows from features: Z @ components_."""
        check_is_fitted(self, "components_")
        Z = np.asarray(Z.toarray() if sp.issparse(Z) else Z, np.float64)
        if Z.ndim != 2 or Z.shape[1] != len(self.components_):
            raise DataError(f"expected rows of {len(self.components_)} features, not the shape {Z.shape}")
        if not np.isfinite(Z).all():
            raise DataError("the features have entries that are NaN or infinite")
        out: Reals = Z @ self.components_
        return out

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class BPMeans(BinaryFeatures):
    """BP-means (Broderick, Kulis, Jordan, "MAD-Bayes", 2013): latent features by alternating minimisation.

    Rows choose their features one flip at a time, features are least squares; while there are fewer than
    `n_components`, the row that is explained worst becomes a feature. A local method: the best of `n_init` random
    orders and starts. Here to be compared with :class:`LatentFeatureLasso`.

    >>> rng = np.random.default_rng(0)
    >>> Z, W = rng.integers(0, 2, (60, 3)), rng.standard_normal((3, 10))
    >>> model = BPMeans(n_components=3, random_state=0).fit(Z @ W)
    >>> model.assignments_.shape, bool(model.error_ < 0.4 * (Z @ W).std())
    ((60, 3), True)
    """

    def __init__(self, n_components: int = 10, n_init: int = 10, max_iter: int = 100, random_state: Any = None) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    @on_one_blas_thread
    def fit(self, X: Any, y: Any = None) -> Self:
        """Sets ``components_`` (K, features), ``assignments_`` (rows, K), ``error_`` (root mean squared) and
        ``n_iter_``, the number of starts."""
        for name in ("n_components", "n_init", "max_iter"):
            check_number(self, name, whole=True, least=1)
        rng = np.random.default_rng(seed_of(self.random_state))
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        check_size("X", X)
        if self.n_components > len(X):
            raise SettingsError(f"n_components is {self.n_components}, but there are only {len(X)} rows")
        best: tuple[float, Bits, Reals] | None = None
        for _ in range(self.n_init):
            Z, W = self._run(X, rng)
            error = squared_error(X, Z, W)
            if best is None or error < best[0]:
                best = error, Z, W
        assert best is not None
        squared, self.assignments_, self.components_ = best
        self.error_ = float(np.sqrt(squared / X.size))
        self.n_iter_ = self.n_init
        return self

    def _run(self, X: Reals, rng: np.random.Generator) -> tuple[Bits, Reals]:
        Z = np.zeros((len(X), 0), np.uint8)
        W = np.zeros((0, X.shape[1]))
        while len(W) < self.n_components:
            rest = X - Z @ W
            weight = (rest * rest).sum(1)
            total = weight.sum()
            row = int(rng.choice(len(X), p=weight / total if total > 0 else None))  # as k-means++ does
            W = np.concatenate([W, rest[row : row + 1]])
            Z = np.concatenate([Z, np.zeros((len(X), 1), np.uint8)], axis=1)
            Z = flip_rows(X @ W.T, W @ W.T, Z)
            W = least_squares(Z, X)
        return refine(X, Z, self.max_iter)
