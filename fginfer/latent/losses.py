"""f(c) of the two models: rows that are sums of features, and outputs that are sums of regressions.

With z_k the atoms and A the residual at the best weights, df/dc_k = -|F'z_k|^2 / (2 N^2 tau), where F = A for features
and F = diag(residual) X for regressions; so the steepest atom is the best z for F (Yen, Lee, Lin, Huang, Ravikumar,
Dhillon: "Latent Feature Lasso", 2017; Yen, Lee, Zhong, Huang, Ravikumar, Dhillon: "MixLasso", 2018).
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

    With S = diag(sqrt(c)) and L = N tau I + S Z'Z S: f = (|X|^2 - tr(L^-1 S Z'XX'Z S)) / 2N.
    """

    def __init__(self, X: Reals, tau: float) -> None:
        self.X, self.tau, self.n = X, tau, len(X)
        self.square = float((X * X).sum())
        self.atoms: Bits = np.zeros((0, self.n), np.uint8)
        self._gram = np.zeros((0, 0))  # Z'Z
        self._inner = np.zeros((0, X.shape[1]))  # Z'X
        self._outer = np.zeros((0, 0))  # Z'X X'Z

    def add(self, atoms: Bits) -> None:
        """Only the new rows and columns of the cached products are computed."""
        old, new = self.atoms.astype(np.float64), atoms.astype(np.float64)
        cross, inner = old @ new.T, new @ self.X
        self._gram = np.block([[self._gram, cross], [cross.T, new @ new.T]])
        cross = self._inner @ inner.T
        self._outer = np.block([[self._outer, cross], [cross.T, inner @ inner.T]])
        self._inner = np.concatenate([self._inner, inner])
        self.atoms = np.concatenate([self.atoms, atoms])

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
        out: Reals = self.X - self.atoms.T.astype(np.float64) @ self.weights(c)
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
        self._last: tuple[bytes, Any] | None = None

    def add(self, atoms: Bits) -> None:
        self.atoms = np.concatenate([self.atoms, atoms])
        self._last = None

    def keep(self, which: NDArray[np.bool_]) -> None:
        self.atoms = self.atoms[which]
        self._last = None

    def _design(self, c: Reals) -> Reals:
        """sqrt(c_k) z_ik x_i as row i, for the atoms with c_k > 0."""
        used = c > 0
        z = np.sqrt(c[used]) * self.atoms[used].T
        return (z[:, :, None] * self.X[:, None, :]).reshape(self.n, -1)

    def _inverse(self, c: Reals) -> Any:
        """v -> (I + Q o M / (N tau))^-1 v. The last one is kept: value and derivatives ask for the same."""
        key = c.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        scale = self.n * self.tau
        width = int((c > 0).sum()) * self.X.shape[1]
        if width <= self.n:
            E = self._design(c)
            gram = E.T @ E
            gram[np.diag_indices(width)] += scale
            factor = cho_factor(gram, lower=True, check_finite=False)

            def apply(v: Reals) -> Reals:
                out: Reals = v - E @ cho_solve(factor, E.T @ v, check_finite=False)
                return out
        else:
            z = self.atoms.astype(np.float64)
            matrix = (self.X @ self.X.T) * ((z.T * c) @ z) / scale
            matrix[np.diag_indices(self.n)] += 1.0
            factor = cho_factor(matrix, lower=True, check_finite=False)

            def apply(v: Reals) -> Reals:
                out: Reals = cho_solve(factor, v, check_finite=False)
                return out

        self._last = key, apply
        return apply

    def residual(self, c: Reals) -> Reals:
        out: Reals = self._inverse(c)(self.y) if len(c) else self.y.copy()
        return out

    def value(self, c: Reals) -> float:
        return float(self.y @ self.residual(c)) / (2 * self.n)

    def _moments(self, residual: Reals) -> Reals:
        """X'(z_k o alpha), a row for each atom."""
        out: Reals = (self.atoms * residual) @ self.X
        return out

    def derivatives(self, c: Reals) -> tuple[Reals, Reals]:
        apply = self._inverse(c)
        moments = self._moments(apply(self.y))
        gradient = -(moments * moments).sum(1) / (2 * self.n**2 * self.tau)
        pulled = self.atoms.T * (self.X @ moments.T)
        hessian = pulled.T @ apply(pulled) / (self.n**3 * self.tau**2)
        return gradient, (hessian + hessian.T) / 2

    def weights(self, c: Reals) -> Reals:
        """(atoms, inputs): w_k = c_k X'(z_k o alpha) / (N tau)."""
        return c[:, None] * self._moments(self.residual(c)) / (self.n * self.tau)

    def factor(self, residual: Reals) -> Reals:
        return residual[:, None] * self.X

    def dual_value(self, residual: Reals, largest_scale: float) -> float:
        return dual_value(self.y, residual, largest_scale)
