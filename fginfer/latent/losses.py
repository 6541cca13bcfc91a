"""f(c) of the two models: rows that are sums of features, and outputs that are sums of regressions.

With z_k the atoms and A the residual at the best weights, df/dc_k = -|F'z_k|^2 / (2 N^2 tau), where F = A for features
and F = diag(residual) X for regressions; so the steepest atom is the best z for F (Yen et al., "Latent Feature Lasso",
2017; Yen et al., "MixLasso", 2018).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]


class AtomLoss(Protocol):
    """What the greedy algorithm asks of a model; see FeatureLoss."""

    n: int
    tau: float
    atoms: Bits  # (k, n)

    def value(self, c: Reals) -> float: ...
    def derivatives(self, c: Reals) -> tuple[Reals, Reals]: ...
    def add(self, atoms: Bits) -> None: ...
    def keep(self, which: NDArray[np.bool_]) -> None: ...
    def weights(self, c: Reals) -> Reals: ...
    def residual(self, c: Reals) -> Reals: ...
    def factor(self, residual: Reals) -> Reals: ...
    def dual_value(self, residual: Reals, largest_scale: float) -> float: ...


def dual_value(target: Reals, residual: Reals, largest_scale: float) -> float:
    """The dual objective (s <X, A> - s^2 |A|^2 / 2) / N at the best s <= largest_scale: a lower bound, where s A is
    dual feasible."""
    square = float((residual * residual).sum())
    inner = float((target * residual).sum())
    s = min(largest_scale, inner / square) if square > 0 else 0.0
    return max(0.0, (s * inner - s * s * square / 2) / len(target))


class FeatureLoss:
    """f(c) = min over W of |X - Z W|^2 / 2N + tau/2 sum_k |W_k|^2 / c_k, from k x k matrices only.

    With S = diag(sqrt(c)) and L = N tau I + S Z'Z S: f = (|X|^2 - tr(L^-1 S Z'XX'Z S)) / 2N. `centred` adds a constant
    row to every row without a price: X and all columns of Z are then what is left of them beside their means, so that
    a column and its complement say the same.
    """

    def __init__(self, X: Reals, tau: float, centred: bool = False) -> None:
        self.X, self.tau, self.n, self.centred = X - X.mean(0) if centred else X, tau, len(X), centred
        self.square = float((self.X * self.X).sum())
        self.atoms: Bits = np.zeros((0, self.n), np.uint8)
        self._gram = np.zeros((0, 0))  # Z'Z
        self._inner = np.zeros((0, X.shape[1]))  # Z'X
        self._outer = np.zeros((0, 0))  # Z'X X'Z

    def add(self, atoms: Bits) -> None:
        """Only the new rows and columns of the cached products are computed."""
        old, new = self._columns(self.atoms), self._columns(atoms)
        cross, inner = old @ new.T, new @ self.X
        self._gram = np.block([[self._gram, cross], [cross.T, new @ new.T]])
        cross = self._inner @ inner.T
        self._outer = np.block([[self._outer, cross], [cross.T, inner @ inner.T]])
        self._inner = np.concatenate([self._inner, inner])
        self.atoms = np.concatenate([self.atoms, atoms])

    def _columns(self, atoms: Bits) -> Reals:
        out = atoms.astype(np.float64)
        return out - out.mean(1, keepdims=True) if self.centred else out

    def keep(self, which: NDArray[np.bool_]) -> None:
        self.atoms, self._inner = self.atoms[which], self._inner[which]
        self._gram, self._outer = self._gram[np.ix_(which, which)], self._outer[np.ix_(which, which)]

    def _system(self, c: Reals) -> tuple[Reals, Any]:
        s = np.sqrt(c)
        matrix = s[:, None] * self._gram * s
        matrix[np.diag_indices(len(c))] += self.n * self.tau
        return s, cho_factor(matrix, lower=True, check_finite=False)

    def value(self, c: Reals) -> float:
        if len(c) == 0:
            return self.square / (2 * self.n)
        s, system = self._system(c)
        explained = np.trace(cho_solve(system, s[:, None] * self._outer * s, check_finite=False))
        return (self.square - float(explained)) / (2 * self.n)

    def derivatives(self, c: Reals) -> tuple[Reals, Reals]:
        s, system = self._system(c)
        solved = cho_solve(system, s[:, None] * self._gram, check_finite=False)  # L^-1 S Z'Z
        passed = self._gram - (self._gram * s) @ solved  # Z'PZ with P = (I + Z diag(c) Z' / N tau)^-1
        left = np.eye(len(c)) - solved.T * s  # Z'A = left Z'X
        moments = left @ self._outer @ left.T  # (Z'A)(Z'A)'
        gradient = -moments.diagonal() / (2 * self.n**2 * self.tau)
        hessian = passed * moments / (self.n**3 * self.tau**2)
        return gradient, (hessian + hessian.T) / 2

    def weights(self, c: Reals) -> Reals:
        """W at c (all > 0)."""
        if len(c) == 0:
            return self._inner
        s, system = self._system(c)
        out: Reals = s[:, None] * cho_solve(system, s[:, None] * self._inner, check_finite=False)
        return out

    def residual(self, c: Reals) -> Reals:
        out: Reals = self.X - self._columns(self.atoms).T @ self.weights(c)
        return out

    def factor(self, residual: Reals) -> Reals:
        return residual

    def dual_value(self, residual: Reals, largest_scale: float) -> float:
        return dual_value(self.X, residual, largest_scale)


class MixtureLoss:
    """f(c) = min over W of sum_i (y_i - sum_k z_ik w_k.x_i)^2 / 2N + tau/2 sum_k |w_k|^2 / c_k.

    The residual alpha solves (I + Q o M / (N tau)) alpha = y, with Q = XX' and M = Z' diag(c) Z: an N x N system, or
    one with a row for each atom and input, whichever is smaller. With U_k = z_k o Q(z_k o alpha), the Hessian is
    U' (I + Q o M / (N tau))^-1 U / (N^3 tau^2).
    """

    def __init__(self, X: Reals, y: Reals, tau: float) -> None:
        self.X, self.y, self.tau, self.n = X, y, tau, len(X)
        self.atoms: Bits = np.zeros((0, self.n), np.uint8)
        d = X.shape[1]
        self.inner = np.zeros((0, d))  # X'(z_k o y)
        self._grams = np.zeros((0, 0, d, d))  # X' diag(z_k o z_l) X by k and l; none where N x N is less
        self._last: tuple[bytes, _ByInputs | _BySamples] | None = None

    def add(self, atoms: Bits) -> None:
        """Only the new products are computed."""
        self.atoms = np.concatenate([self.atoms, atoms])
        self.inner = np.concatenate([self.inner, (atoms * self.y) @ self.X])
        self._last = None
        k, d, known = len(self.atoms), self.X.shape[1], len(self._grams)
        if k * d > self.n:
            self._grams = self._grams[:0, :0]
            return
        grams = np.empty((k, k, d, d))
        grams[:known, :known] = self._grams
        for a in range(known, k):
            for b in range(a + 1):
                rows = self.X[(self.atoms[a] & self.atoms[b]) == 1]
                grams[a, b] = grams[b, a] = rows.T @ rows
        self._grams = grams

    def keep(self, which: NDArray[np.bool_]) -> None:
        self.atoms, self.inner = self.atoms[which], self.inner[which]
        if len(self._grams):
            self._grams = self._grams[np.ix_(which, which)]
        self._last = None

    def _solved(self, c: Reals) -> _ByInputs | _BySamples:
        """The system at c. The last one is kept: value and derivatives ask for the same."""
        key = c.tobytes()
        if self._last is None or self._last[0] != key:
            by = _ByInputs(self, c, self._grams) if len(self._grams) else _BySamples(self, c)
            self._last = key, by
        return self._last[1]

    def residual(self, c: Reals) -> Reals:
        return self._solved(c).residual() if len(c) else self.y.copy()

    def value(self, c: Reals) -> float:
        return (self._solved(c).rest() if len(c) else float(self.y @ self.y)) / (2 * self.n)

    def derivatives(self, c: Reals) -> tuple[Reals, Reals]:
        system = self._solved(c)
        moments = system.moments()
        gradient = -(moments * moments).sum(1) / (2 * self.n**2 * self.tau)
        hessian = system.curvature(moments) / (self.n**3 * self.tau**2)
        return gradient, (hessian + hessian.T) / 2

    def weights(self, c: Reals) -> Reals:
        """(atoms, inputs): w_k = c_k X'(z_k o alpha) / (N tau)."""
        return c[:, None] * self._solved(c).moments() / (self.n * self.tau) if len(c) else self.inner

    def factor(self, residual: Reals) -> Reals:
        return residual[:, None] * self.X

    def dual_value(self, residual: Reals, largest_scale: float) -> float:
        return dual_value(self.y, residual, largest_scale)


class _BySamples:
    """P = (I + Q o M / (N tau))^-1 as it stands: for few samples."""

    def __init__(self, loss: MixtureLoss, c: Reals) -> None:
        self.loss = loss
        z = loss.atoms.astype(np.float64)
        matrix = (loss.X @ loss.X.T) * ((z.T * c) @ z) / (loss.n * loss.tau)
        matrix[np.diag_indices(loss.n)] += 1.0
        self._factor = cho_factor(matrix, lower=True, check_finite=False)
        self._residual: Reals = cho_solve(self._factor, loss.y, check_finite=False)

    def residual(self) -> Reals:
        """alpha = P y."""
        return self._residual.copy()

    def rest(self) -> float:
        """y.alpha."""
        return float(self.loss.y @ self._residual)

    def moments(self) -> Reals:
        """m_k = X'(z_k o alpha), a row for each atom."""
        out: Reals = (self.loss.atoms * self._residual) @ self.loss.X
        return out

    def curvature(self, moments: Reals) -> Reals:
        """U'PU, where U_k = z_k o X m_k."""
        pulled = self.loss.atoms.T * (self.loss.X @ moments.T)
        out: Reals = pulled.T @ cho_solve(self._factor, pulled, check_finite=False)
        return out


class _ByInputs:
    """The same from products of the inputs alone. With G_kl = X' diag(z_k o z_l) X, S = diag(sqrt(c)) and
    L = N tau I + S G S, P is I - E L^-1 E' for the rows E_i = (sqrt(c_k) z_ik x_i) over k: nothing is as long as N but
    the residual itself."""

    def __init__(self, loss: MixtureLoss, c: Reals, grams: Reals) -> None:
        self.loss, self._grams, self._root = loss, grams, np.sqrt(c)
        k, d = len(c), loss.X.shape[1]
        scaled = (self._root[:, None] * self._root)[:, :, None, None] * grams
        matrix = scaled.transpose(0, 2, 1, 3).reshape(k * d, k * d)
        matrix[np.diag_indices(k * d)] += loss.n * loss.tau
        self._factor = cho_factor(matrix, lower=True, check_finite=False)
        right = self._root[:, None] * loss.inner
        solution = cho_solve(self._factor, right.ravel(), check_finite=False).reshape(k, d)
        self._explained = float((right * solution).sum())
        self._weights: Reals = self._root[:, None] * solution

    def residual(self) -> Reals:
        outputs = self.loss.X @ self._weights.T
        out: Reals = self.loss.y - (self.loss.atoms.T * outputs).sum(1)
        return out

    def rest(self) -> float:
        return float(self.loss.y @ self.loss.y) - self._explained

    def moments(self) -> Reals:
        out: Reals = self.loss.inner - np.einsum("klab,lb->ka", self._grams, self._weights, optimize=True)
        return out

    def curvature(self, moments: Reals) -> Reals:
        k = len(moments)
        pulled = np.matmul(self._grams, moments[:, :, None])[..., 0]  # by l and k: G_lk m_k
        crossed = (self._root[:, None, None] * pulled).transpose(0, 2, 1).reshape(-1, k)
        plain = np.einsum("lka,la->lk", pulled, moments)
        out: Reals = plain - crossed.T @ cho_solve(self._factor, crossed, check_finite=False)
        return out
