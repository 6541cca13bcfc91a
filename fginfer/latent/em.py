"""Mixtures of regressions by local search: many starts at once, assignments and weights in turn.

Output i is sum_k z_ik w_k.x_i. In the standard form one z_ik is 1; in the generalised form any pattern is possible. A
*hard* run (alternating minimisation) gives every sample to its best pattern; a *soft* one is the EM algorithm of
Gaussian noise with a common variance. All starts share the products x_i x_i', so that a round is a few matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
_PRODUCTS = 3e8  # bytes of x_i x_i' that may be kept


@dataclass
class Fits:
    """The end of every start: weights (starts, K, inputs), patterns chosen (starts, N), squared errors (starts,)."""

    weights: Reals
    chosen: Ints
    errors: Reals
    rounds: int

    def best(self) -> tuple[Reals, Ints, float]:
        k = int(np.argmin(self.errors))
        return self.weights[k], self.chosen[k], float(self.errors[k])


def all_patterns(k: int, generalized: bool) -> Reals:
    """The patterns z a sample may have, one a row."""
    if not generalized:
        return np.eye(k)
    return ((np.arange(1 << k)[:, None] >> np.arange(k)) & 1).astype(np.float64)


class Mixture:
    """The data of many local searches."""

    def __init__(self, X: Reals, y: Reals, k: int, generalized: bool, ridge: float = 1e-9) -> None:
        self.X, self.y, self.k, self.generalized = X, y, k, generalized
        self.patterns = all_patterns(k, generalized)
        n, d = X.shape
        # Relative to the inputs' own size: it decides only where a component has too few samples.
        self.ridge = ridge * max(float((X * X).sum()) / max(1, d), 1e-300)
        self._upper = np.triu_indices(d)
        fits = 8.0 * n * len(self._upper[0]) <= _PRODUCTS
        self._products = X[:, self._upper[0]] * X[:, self._upper[1]] if fits else None
        self._outputs = X * y[:, None]

    # ---- the two steps

    def errors(self, W: Reals) -> Reals:
        """(starts, N, patterns) squared errors."""
        outputs = np.einsum("nd,skd->snk", self.X, W, optimize=True) @ self.patterns.T
        out: Reals = (self.y[:, None] - outputs) ** 2
        return out

    def solve(self, shares: Reals) -> Reals:
        """Weights of least squares for (starts, N, patterns) shares of the samples."""
        s, n, _ = shares.shape
        k, d = self.k, self.X.shape[1]
        first, second = np.triu_indices(k) if self.generalized else (np.arange(k), np.arange(k))
        joint = shares @ (self.patterns[:, first] * self.patterns[:, second])  # of the pairs of components
        grams = self._grams(joint.transpose(0, 2, 1).reshape(-1, n)).reshape(s, len(first), d, d)
        right = (shares @ self.patterns).transpose(0, 2, 1) @ self._outputs
        ridge = self.ridge * np.eye(d)
        if not self.generalized:
            out: Reals = np.linalg.solve(grams + ridge, right[..., None])[..., 0]
            return out
        full = np.zeros((s, k, d, k, d))
        for p, (a, b) in enumerate(zip(first, second, strict=True)):
            full[:, a, :, b, :] = full[:, b, :, a, :] = grams[:, p]
        full = full.reshape(s, k * d, k * d) + self.ridge * np.eye(k * d)
        out = np.linalg.solve(full, right.reshape(s, k * d, 1)).reshape(s, k, d)
        return out

    def _grams(self, weights: Reals) -> Reals:
        """X' diag(row) X for every row of weights."""
        d = self.X.shape[1]
        if self._products is None:
            return np.stack([self.X.T @ (row[:, None] * self.X) for row in weights])
        flat = weights @ self._products
        out = np.empty((len(weights), d, d))
        out[:, self._upper[0], self._upper[1]] = flat
        out[:, self._upper[1], self._upper[0]] = flat
        return out

    # ---- runs

    def run(self, W: Reals, soft: bool = False, max_rounds: int = 200, batch: int = 25) -> Fits:
        """From weights (starts, K, inputs), a batch of starts at a time."""
        parts = [self._run_batch(W[at : at + batch], soft, max_rounds) for at in range(0, len(W), batch)]
        return Fits(
            np.concatenate([p.weights for p in parts]),
            np.concatenate([p.chosen for p in parts]),
            np.concatenate([p.errors for p in parts]),
            max(p.rounds for p in parts),
        )

    def _run_batch(self, W: Reals, soft: bool, max_rounds: int) -> Fits:
        W = W.copy()
        errors = self.errors(W)
        chosen = errors.argmin(2)
        variance = errors.min(2).mean(1)
        alive = np.arange(len(W))  # starts that still change
        rounds = 0
        while rounds < max_rounds and alive.size:
            rounds += 1
            shares = self._shares(errors[alive], chosen[alive], variance[alive], soft)
            W[alive] = self.solve(shares)
            errors[alive] = self.errors(W[alive])
            new = errors[alive].argmin(2)
            if soft:
                spread = (shares * errors[alive]).sum(2).mean(1)
                moving = np.abs(spread - variance[alive]) > 1e-8 * variance[alive]
                variance[alive] = spread
            else:
                moving = (new != chosen[alive]).any(1)
            chosen[alive] = new
            alive = alive[moving]
        return Fits(W, chosen, errors.min(2).sum(1), rounds)

    def _shares(self, errors: Reals, chosen: Ints, variance: Reals, soft: bool) -> Reals:
        if not soft:
            return np.asarray(chosen[:, :, None] == np.arange(len(self.patterns)), np.float64)
        floor = 1e-12 * float((self.y * self.y).mean()) + 1e-300
        logs = -errors / (2 * np.maximum(variance, floor))[:, None, None]
        logs -= logs.max(2, keepdims=True)
        np.exp(logs, out=logs)
        out: Reals = logs / logs.sum(2, keepdims=True)
        return out


def restarts(
    X: Reals, y: Reals, k: int, *, generalized: bool = False, n_init: int = 100, soft: bool = True, seed: int = 0,
    ridge: float = 1e-9, start: str = "weights",
) -> Fits:  # fmt: skip
    """The baselines: EM (soft) or alternating minimisation (hard) from `n_init` random starts.

    start : "weights" draws W ~ N(0, 1), "samples" gives every sample to a random component first.
    """
    rng = np.random.default_rng(seed)
    mixture = Mixture(X, y, k, generalized, ridge)
    if start == "weights":
        W = rng.standard_normal((n_init, k, X.shape[1]))
    else:
        drawn = rng.integers(0, len(mixture.patterns), (n_init, len(X)))
        W = np.concatenate([mixture.solve((d[None, :, None] == np.arange(len(mixture.patterns))) * 1.0) for d in drawn])
    return mixture.run(W, soft)


def held_out_likelihood(known: Reals, held: Reals, unit: float) -> float:
    """Mean log-likelihood of held-out samples, from (N, patterns) squared errors: shares of the patterns and the
    variance of the noise are those most likely for the known samples. More components than there are only cost."""
    shares = np.full(known.shape[1], 1.0 / known.shape[1])
    floor = 1e-12 * unit + 1e-300
    variance = max(float(known.min(1).mean()), floor)
    for _ in range(50):
        logs = np.log(shares) - known / (2 * variance)
        parts = np.exp(logs - logs.max(1, keepdims=True))
        parts /= parts.sum(1, keepdims=True)
        shares = np.maximum(parts.mean(0), 1e-12)
        variance = max(float((parts * known).sum(1).mean()), floor)
    logs = np.log(shares) - held / (2 * variance)
    top = logs.max(1)
    likelihood = top + np.log(np.exp(logs - top[:, None]).sum(1)) - 0.5 * np.log(variance)
    return float(likelihood.mean())
