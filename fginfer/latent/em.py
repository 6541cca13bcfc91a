"""Mixtures of regressions by local search: many starts at once, assignments and weights in turn.

Output i is sum_k z_ik w_k.x_i. In the standard form one z_ik is 1; in the generalised form any pattern is possible. A
*hard* run (alternating minimisation) gives every sample to its best pattern; a *soft* one is the EM algorithm of
Gaussian noise, with a common variance, or (standard form) shares and variances of each component's *own*: a component
that is right then keeps to its samples while the others are still wrong. All starts share the products x_i x_i', so
that a round is a few matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fginfer.blas import on_one_blas_thread
from fginfer.core.clock import Late, never

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
_PRODUCTS = 3e8  # bytes of x_i x_i' that may be kept
_ERRORS = 2e8  # bytes of (starts, patterns, N) errors at a time; three or four such arrays are at work together
_WORK = 2e9  # multiplications of a round, after which the clock is looked at: half a second or so


@dataclass
class Fits:
    """The end of every start: weights (starts, K, inputs), patterns chosen (starts, N), squared errors (starts,), and
    the costs (starts,) that they are compared by: hard runs by their errors, soft ones by `likelihood_costs`."""

    weights: Reals
    chosen: Ints
    errors: Reals
    costs: Reals
    rounds: int

    def best(self) -> tuple[Reals, Ints, float]:
        k = int(np.argmin(self.costs))
        return self.weights[k], self.chosen[k], float(self.errors[k])


def all_patterns(k: int, generalized: bool) -> Reals:
    """The patterns z a sample may have, one a row."""
    if not generalized:
        return np.eye(k)
    return ((np.arange(1 << k)[:, None] >> np.arange(k)) & 1).astype(np.float64)


class Mixture:
    """The data of many local searches. In float32 a round takes a third of the time: good enough to find the basin of a
    solution, where a run in float64 then ends. `late`: whether time is over; runs then end where they are."""

    def __init__(
        self, X: Reals, y: Reals, k: int, generalized: bool, ridge: float = 1e-9, dtype: DTypeLike = np.float64,
        late: Late = never,
    ) -> None:  # fmt: skip
        X, y = X.astype(dtype, copy=False), y.astype(dtype, copy=False)
        self.X, self.y, self.k, self.generalized, self.late = X, y, k, generalized, late
        self.patterns = all_patterns(k, generalized).astype(dtype)
        self.unit = float((y * y).mean()) or 1.0
        n, d = X.shape
        self.relative_ridge = ridge
        # Relative to the inputs' own size: it decides only where a component has too few samples.
        self.ridge = ridge * max(float((X * X).sum()) / max(1, d), 1e-300)
        self._upper = np.triu_indices(d)
        fits = 8.0 * n * len(self._upper[0]) <= _PRODUCTS
        self._products = X[:, self._upper[0]] * X[:, self._upper[1]] if fits else None
        self._outputs = X * y[:, None]
        # entries of components that a sample may have together
        self._pairs = np.triu_indices(k) if generalized else (np.arange(k), np.arange(k))

    # ---- the two steps

    def errors(self, W: Reals) -> Reals:
        """(starts, patterns, N) squared errors: samples last, so that sums over patterns run along them."""
        s, k, d = W.shape
        outputs = (W.reshape(s * k, d) @ self.X.T).reshape(s, k, -1)
        if self.generalized:
            outputs = self.patterns @ outputs
        out: Reals = self.y - outputs
        out *= out
        return out

    def solve(self, shares: Reals) -> Reals:
        """Weights of least squares for (starts, patterns, N) shares of the samples."""
        s, _, n = shares.shape
        k, d = self.k, self.X.shape[1]
        first, second = self._pairs
        # shares of the components, and of their pairs
        own = self.patterns.T @ shares if self.generalized else shares
        joint = (self.patterns[:, first] * self.patterns[:, second]).T @ shares if self.generalized else shares
        grams = self._grams(joint.reshape(-1, n)).reshape(s, len(first), d, d)
        right = own @ self._outputs
        if not self.generalized:
            out: Reals = np.linalg.solve(grams + self.ridge * np.eye(d, dtype=self.X.dtype), right[..., None])[..., 0]
            return out
        full = np.zeros((s, k, d, k, d), self.X.dtype)
        for p, (a, b) in enumerate(zip(first, second, strict=True)):
            full[:, a, :, b, :] = full[:, b, :, a, :] = grams[:, p]
        full = full.reshape(s, k * d, k * d) + self.ridge * np.eye(k * d, dtype=self.X.dtype)
        out = np.linalg.solve(full, right.reshape(s, k * d, 1)).reshape(s, k, d)
        return out

    def _grams(self, weights: Reals) -> Reals:
        """X' diag(row) X for every row of weights."""
        d = self.X.shape[1]
        if self._products is None:
            return np.stack([self.X.T @ (row[:, None] * self.X) for row in weights])
        flat = weights @ self._products
        out = np.empty((len(weights), d, d), self.X.dtype)
        out[:, self._upper[0], self._upper[1]] = flat
        out[:, self._upper[1], self._upper[0]] = flat
        return out

    # ---- runs

    def run(
        self, W: Reals, soft: bool = False, max_rounds: int = 200, *, own: bool = False, tol: float = 1e-8,
        enough: float = 0.0, batch: int = 25,
    ) -> Fits:  # fmt: skip
        """From weights (starts, K, inputs), a batch of starts at a time.

        own : variances of the components' own (soft, standard form). tol : a soft run ends when the variance changes by
        less, relatively. enough : a mean squared error, in units of the outputs', at which all runs end.
        """
        own = own and soft and not self.generalized
        samples, rows = len(self.y), len(self._pairs[0])
        by_memory = _ERRORS / (self.X.itemsize * len(self.patterns) * samples)
        by_work = _WORK / (rows * samples * len(self._upper[0]))
        batch = max(1, min(batch, int(by_memory), int(by_work)))
        parts: list[Fits] = []
        for at in range(0, len(W), batch):
            parts.append(self._run_batch(W[at : at + batch], soft, max_rounds, own, tol, enough))
            if parts[-1].errors.min() <= enough * self.unit * samples or self.late():
                break
        return Fits(
            np.concatenate([p.weights for p in parts]),
            np.concatenate([p.chosen for p in parts]),
            np.concatenate([p.errors for p in parts]),
            np.concatenate([p.costs for p in parts]),
            max(p.rounds for p in parts),
        )

    def _run_batch(self, W: Reals, soft: bool, max_rounds: int, own: bool, tol: float, enough: float) -> Fits:
        W = W.astype(self.X.dtype)
        errors = self.errors(W)
        chosen = errors.argmin(1)
        noise = _Noise(errors, self.X.shape[1], self.unit, own)
        alive = np.arange(len(W))  # starts that still change
        rounds = 0
        while rounds < max_rounds and alive.size:
            rounds += 1
            shares = noise.shares(errors[alive], alive) if soft else self.hard(chosen[alive])
            W[alive] = self.solve(shares)
            errors[alive] = self.errors(W[alive])
            new = errors[alive].argmin(1)
            moving = noise.update(errors[alive], shares, alive, tol) if soft else (new != chosen[alive]).any(1)
            chosen[alive] = new
            if (soft and noise.common.min() <= enough * self.unit) or self.late():
                break
            alive = alive[moving]
        least = errors.min(1).sum(1, dtype=np.float64)
        return Fits(W, chosen, least, likelihood_costs(errors, self.unit) if soft else least, rounds)

    def hard(self, chosen: Ints) -> Reals:
        return np.asarray(chosen[:, None, :] == np.arange(len(self.patterns))[:, None], self.X.dtype)


def normalised(mixture: Mixture) -> tuple[Mixture, float]:
    """The same problem with inputs and outputs of size 1, and the unit of its weights. It is in single precision where
    the inputs are well conditioned: normal equations square the condition number, and there are only seven digits."""
    X, y = mixture.X, mixture.y
    inputs, outputs = (max(float(np.sqrt((v * v).mean())), 1e-150) if v.any() else 1.0 for v in (X, y))
    lengths = np.linalg.norm(X, axis=0)
    used = X[:, lengths > 0] / lengths[lengths > 0]
    triangle = np.linalg.qr(used, mode="r") if len(X) > used.shape[1] else used  # a matrix of the same singular values
    values = np.linalg.svd(triangle, compute_uv=False) if lengths.any() else np.ones(1)
    single = (
        len(values) <= len(X) and lengths.all() and lengths.max() < 100 * lengths.min() and values[0] < 100 * values[-1]
    )
    ridge = max(1e-7, mixture.relative_ridge) if single else mixture.relative_ridge
    kind = np.float32 if single else np.float64
    made = Mixture(X / inputs, y / outputs, mixture.k, mixture.generalized, ridge, kind, mixture.late)
    return made, outputs / inputs


def likelihood_costs(errors: Reals, unit: float) -> Reals:
    """(starts,) from (starts, patterns, N) squared errors: N times the variance of noise under which patterns that no
    sample takes for each other would be as likely, so a squared error, where there is little noise.

    Where components cross, each sample's least error prefers curves that keep apart to the true ones: of six draws of
    four noisy polynomials a wrong solution had less error than the true one in five, but was likelier in two only.
    """
    variance = np.maximum(errors.min(1).mean(1), 1e-30 * unit)
    for _ in range(5):  # to within a few percent, of which the likelihood is off by the square
        logs = errors / (-2 * variance)[:, None, None]
        top = logs.max(1)
        logs -= top[:, None]
        parts = np.exp(logs, out=logs)
        total = parts.sum(1)
        likelihood = (top + np.log(total)).mean(1, dtype=np.float64) - 0.5 * np.log(variance)
        variance = np.maximum((np.einsum("spn,spn->sn", parts, errors) / total).mean(1), 1e-30 * unit)
    out: Reals = errors.shape[2] * np.exp(-2 * likelihood - 1)
    return out


class _Noise:
    """Variances (and shares) of the components, for many starts at once."""

    # A variance is never below this share of the common one: a component may not shrink onto the few samples that its
    # weights pass through by chance. It is also drawn towards the common one as by two samples an input.
    LEAST = 1e-3

    def __init__(self, errors: Reals, inputs: int, unit: float, own: bool) -> None:
        self.common = errors.min(1).mean(1)
        self.own = np.repeat(self.common[:, None], errors.shape[1], axis=1) if own else None
        self.present = np.full(errors.shape[:2], 1.0 / errors.shape[1], errors.dtype)
        self.weight = 2.0 * inputs
        # Shares of less variance than this are 0 or 1, however precise the numbers are.
        self.floor = unit * (1e-12 if errors.dtype == np.float64 else 1e-10) + 1e-300

    def shares(self, errors: Reals, alive: NDArray[np.intp]) -> Reals:
        """(starts, patterns, N): how likely each pattern is for each sample."""
        if self.own is None:
            logs: Reals = errors / (-2 * np.maximum(self.common[alive], self.floor))[:, None, None]
        else:
            variance = np.maximum(self.own[alive], np.maximum(self.LEAST * self.common[alive], self.floor)[:, None])
            logs = errors / (-2 * variance)[:, :, None]
            logs += (np.log(self.present[alive]) - 0.5 * np.log(variance))[:, :, None]
        logs -= logs.max(1, keepdims=True)
        np.exp(logs, out=logs)
        logs /= logs.sum(1, keepdims=True)
        return logs

    def update(self, errors: Reals, shares: Reals, alive: NDArray[np.intp], tol: float) -> NDArray[np.bool_]:
        """Takes the variances of the new errors; which starts still change."""
        parts = np.einsum("spn,spn->sp", shares, errors)
        common = parts.sum(1) / errors.shape[2]
        if self.own is not None:
            counts = shares.sum(2)
            self.own[alive] = (parts + self.weight * common[:, None]) / (counts + self.weight)
            self.present[alive] = (counts + 1) / (errors.shape[2] + counts.shape[1])
        moving: NDArray[np.bool_] = np.abs(common - self.common[alive]) > tol * self.common[alive]
        self.common[alive] = common
        return moving


@on_one_blas_thread
def restarts(
    X: Reals, y: Reals, k: int, *, generalized: bool = False, n_init: int = 100, soft: bool = True, seed: int = 0,
    ridge: float = 1e-9, start: str = "weights", own: bool = False, dtype: DTypeLike = np.float64, tol: float = 1e-8,
) -> Fits:  # fmt: skip
    """The baselines: EM (soft) or alternating minimisation (hard) from `n_init` random starts.

    start : "weights" draws W ~ N(0, 1), "samples" gives every sample to a random component first. own : variances of
    the components' own. dtype : float32 ends in float64 from the best start, which is then the only one given. Ends
    early when all samples are explained.
    """
    rng = np.random.default_rng(seed)
    mixture = Mixture(X, y, k, generalized, max(ridge, 1e-7) if dtype == np.float32 else ridge, dtype)
    if start == "weights":
        W = rng.standard_normal((n_init, k, X.shape[1]))
    else:
        drawn = rng.integers(0, len(mixture.patterns), (n_init, len(X)))
        W = np.concatenate([mixture.solve(mixture.hard(d[None])) for d in drawn])
    if dtype != np.float32:
        return mixture.run(W, soft, own=own, tol=tol, enough=1e-20)
    best = mixture.run(W, soft, own=own, tol=tol, enough=1e-9).best()[0]
    return Mixture(X, y, k, generalized, ridge).run(best[None], soft, own=own)


def held_out_likelihood(known: Reals, held: Reals, unit: float) -> float:
    """Mean log-likelihood of held-out samples, from (patterns, N) squared errors: shares of the patterns and the
    variance of the noise are those most likely for the known samples. More components than there are only cost."""
    shares = np.full(known.shape[0], 1.0 / known.shape[0])
    floor = 1e-12 * unit + 1e-300
    variance = max(float(known.min(0).mean()), floor)
    for _ in range(50):
        logs = np.log(shares)[:, None] - known / (2 * variance)
        parts = np.exp(logs - logs.max(0))
        parts /= parts.sum(0)
        shares = np.maximum(parts.mean(1), 1e-12)
        variance = max(float((parts * known).sum(0).mean()), floor)
    logs = np.log(shares)[:, None] - held / (2 * variance)
    top = logs.max(0)
    likelihood = top + np.log(np.exp(logs - top).sum(0)) - 0.5 * np.log(variance)
    return float(likelihood.mean())
