"""LatentFeatureLasso: rows that are sums of latent features, by a convex estimator over all binary columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from fginfer.blas import on_one_blas_thread
from fginfer.core import clock
from fginfer.core.latent import AtomProblem
from fginfer.errors import DataError, SettingsError
from fginfer.latent.alternating import BinaryFeatures, assign, least_squares, refine, squared_error
from fginfer.latent.coefficients import SOLVERS
from fginfer.latent.greedy import GreedyRun, GreedySettings, LassoPoint, run_greedy
from fginfer.latent.losses import FeatureLoss
from fginfer.latent.mend import mend, without_constant
from fginfer.latent.settings import check_choice, check_flag, check_moderate, check_number, check_run, check_size
from fginfer.latent.starts import ica_columns
from fginfer.learn.data.inputs import seed_of, threads_of
from fginfer.options import is_number

Reals = NDArray[np.float64]
Bits = NDArray[np.uint8]


class _Fit(NamedTuple):
    """One value of size_power. `stable`: the search converged, and refinement left its columns alone."""

    error: float
    Z: Bits
    W: Reals
    c: Reals
    run: GreedyRun
    power: float
    stable: bool


class LatentFeatureLasso(BinaryFeatures):
    """X = Z W + noise with Z of zeros and ones: which features does each row have, and what are they?

    Minimises, over nonnegative coefficients c of *all* 2^N binary columns z (Yen et al., "Latent Feature Lasso", 2017),

        min over W of |X - Z W|^2 / 2N + tau/2 sum_k |W_k|^2 / c_k   +   lam sum_k (|z_k|_1 / N)^size_power c_k

    greedily: the steepest columns are found by a binary search oracle, the coefficients of those at hand by Newton's
    method, zeros are dropped. Only the product tau * lam changes Z W (it is a group lasso with penalty
    sqrt(2 tau lam) sum_k |W_k|). The K columns of largest c_k |W_k|^2 are kept, W refitted by least squares.

    Parameters
    ----------
    n_components : K; "lam": every column that the penalty leaves with at least `min_share` of the largest |W_k|;
        "held-out": the K whose features predict one half of the inputs of held-out rows best from the other half.
    tau, lam : see above; lam=None is penalty^2 times the smallest lam at which every coefficient is zero.
    penalty : as a fraction; .03 recovers all features of the published synthetic data, .001 fits noise.
    size_power : 0 is the published norm, which tells features apart if about half of the rows have each; 1 prefers rare
        features (the penalty is then the Frobenius norm of z_k W_k'), which is needed where one row in five has each.
        "auto" takes the first if it converges to columns that refinement leaves alone, else the best at K of it, the
        second, and the second with a constant row, where a column and its complement say the same: features that four
        rows in five have are found as what one row in five lacks.
    rank : "auto" reduces X to the singular vectors above the noise first (Gavish, Donoho 2014), a number to so many,
        None not at all. Errors and refinement are always those of the whole X.
    inner : "newton" or "proximal" (the published updates): the solver for the coefficients.
    start : None; "ica": independent components, each split in two (finds features of half of the rows, and needs a
        number of components); or (rows, any number) zeros and ones. These columns join in the first round; the
        minimum is the same with and without, but where the search ends is not: wrong columns lead astray (features
        that one row in five has: all 35 of Syn3 were found in two of two draws without a start, in none with "ica").
    refine : alternate between Z and W at the end, while the error falls; where the search had not converged, columns
        that explain least are exchanged, too.
    tol : the greedy search ends at this relative gap (with the best atom found; the certified one is in ``trace_``).
    n_starts, tabu_steps : local searches for the next atoms in every round, and tabu steps of each.
    max_iter, time_limit : of rounds and seconds. n_jobs: threads; they do not change the result.
    callback : called with a LassoPoint after every round; a true return value ends the search.

    After `fit`: ``components_`` (K, features), ``assignments_`` (rows, K), ``coefficients_`` (c of the kept columns),
    ``error_`` (root mean squared), ``n_components_``, ``lam_``, ``size_power_``, ``rank_``, ``trace_`` (a list of
    LassoPoint), ``gap_`` (certified), ``status_`` (converged, iteration_limit, time_limit, stopped), ``n_iter_``.

    >>> rng = np.random.default_rng(0)
    >>> Z, W = rng.integers(0, 2, (100, 4)), rng.standard_normal((4, 30))
    >>> model = LatentFeatureLasso(n_components=4).fit(Z @ W)
    >>> bool(model.error_ < 1e-10)
    True
    >>> np.allclose(model.inverse_transform(model.transform(Z @ W)), Z @ W)
    True
    """

    def __init__(
        self,
        n_components: int | str = "held-out",
        *,
        tau: float = 1.0,
        lam: float | None = None,
        penalty: float = 0.03,
        size_power: float | str = "auto",
        rank: int | str | None = "auto",
        inner: str = "newton",
        start: Any = None,
        refine: bool = True,
        tol: float = 1e-3,
        n_starts: int = 40,
        tabu_steps: int = 0,
        max_iter: int = 60,
        max_components: int = 50,
        min_share: float = 0.1,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[LassoPoint], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.tau = tau
        self.lam = lam
        self.penalty = penalty
        self.size_power = size_power
        self.rank = rank
        self.inner = inner
        self.start = start
        self.refine = refine
        self.tol = tol
        self.n_starts = n_starts
        self.tabu_steps = tabu_steps
        self.max_iter = max_iter
        self.max_components = max_components
        self.min_share = min_share
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    @on_one_blas_thread
    def fit(self, X: Any, y: Any = None) -> Self:
        """Finds the features; y is not looked at."""
        settings = self._check_settings()
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        check_size("X", X)
        wanted = self.n_components
        if not isinstance(wanted, str) and wanted > len(X):
            raise SettingsError(f"n_components is {wanted}, but there are only {len(X)} rows")
        if wanted == "held-out":
            wanted = self._choose_components(X, settings)
        settings = replace(settings, start=self._start_columns(X, wanted, settings))
        reduced = reduce_rank(X, self.rank)
        self.rank_ = reduced.shape[1]
        auto = ((0.0, False), (1.0, False), (1.0, True))
        ways = auto if self.size_power == "auto" else ((float(self.size_power), False),)
        best: _Fit | None = None
        for power, centred in ways:
            fit = self._fit_once(X, reduced, replace(settings, size_power=power), wanted, centred)
            if best is None or fit.error < best.error:
                best = fit
            if best.stable or settings.late():
                break
        assert best is not None
        if self.refine and not best.stable:
            Z, W = mend(X, best.Z, seed=settings.seed, threads=settings.threads, late=settings.late)
            best = best._replace(Z=Z, W=W, error=squared_error(X, Z, W))
        run = best.run
        self.assignments_, self.components_, self.coefficients_ = best.Z, best.W, best.c
        self.error_ = float(np.sqrt(best.error / X.size))
        self.n_components_, self.lam_, self.size_power_ = len(best.W), run.lam, best.power
        self.trace_, self.status_, self.n_iter_ = run.trace, run.status, max(1, len(run.trace) - 1)
        self.gap_ = run.trace[-1].gap
        return self

    def _check_settings(self) -> GreedySettings:
        k: Any = self.n_components
        power: Any = self.size_power
        rank: Any = self.rank
        if not (is_number(k, whole=True) and k >= 1) and k not in ("lam", "held-out"):
            raise SettingsError(f"n_components must be a positive whole number, 'lam' or 'held-out', not {k!r}")
        check_moderate(self, "tau", "penalty")
        check_number(self, "min_share")
        check_number(self, "lam", none=True)
        check_number(self, "time_limit", none=True, least=0)
        check_number(self, "tol", least=0)
        check_number(self, "tabu_steps", whole=True, least=0)
        for name in ("n_starts", "max_iter", "max_components"):
            check_number(self, name, whole=True, least=1)
        if power != "auto" and not (is_number(power) and 0 <= power <= 1):
            raise SettingsError(f"size_power must be 'auto' or a number from 0 to 1, not {self.size_power!r}")
        if rank not in (None, "auto") and not (is_number(rank, whole=True) and rank >= 1):
            raise SettingsError(f"rank must be 'auto', None or a positive whole number, not {self.rank!r}")
        check_choice(self, "inner", SOLVERS)
        check_flag(self, "refine")
        if isinstance(self.start, str) and (self.start != "ica" or k == "lam"):
            raise SettingsError(
                f"start must be None, 'ica' (with n_components a number or 'held-out') or columns, not {self.start!r}"
            )
        check_run(self)
        return GreedySettings(
            lam=self.lam,
            penalty=self.penalty,
            max_iter=self.max_iter,
            tol=self.tol,
            n_starts=self.n_starts,
            tabu_steps=self.tabu_steps,
            inner=self.inner,
            threads=threads_of(self.n_jobs),
            seed=seed_of(self.random_state),
            deadline=np.inf if self.time_limit is None else clock.now() + self.time_limit,
            callback=self.callback,
        )

    def _start_columns(self, X: Reals, wanted: int | str, settings: GreedySettings) -> Bits | None:
        """The columns of `start` as rows, or None."""
        if self.start is None:
            return None
        if isinstance(self.start, str):
            found = ica_columns(reduce_rank(X, self.rank), int(wanted), settings.seed, settings.late)
            return np.ascontiguousarray(found.T)
        Z = np.asarray(self.start.toarray() if sp.issparse(self.start) else self.start)
        if Z.ndim != 2 or len(Z) != len(X) or Z.dtype.kind not in "buif" or not np.isin(Z, (0, 1)).all():
            raise DataError(f"start must be {len(X)} rows of zeros and ones, not an array of the shape {Z.shape}")
        return np.ascontiguousarray(Z.T, np.uint8)

    def _fit_once(
        self, X: Reals, reduced: Reals, settings: GreedySettings, wanted: int | str, centred: bool = False
    ) -> _Fit:
        if not isinstance(wanted, str):  # with many more atoms the relaxation is not tight, and will not become so
            settings = replace(settings, max_atoms=10 * wanted + 150)
        loss, run, order = self._atoms(reduced, settings, centred)
        if wanted == "lam":
            lengths = np.linalg.norm(loss.weights(run.c), axis=1)
            wanted = int((lengths >= self.min_share * lengths.max(initial=0.0)).sum()) or 1
        Z = loss.atoms[order[: int(wanted)]].T
        c = np.concatenate([run.c[order], np.zeros(int(wanted))])[: int(wanted)]
        Z = _complete(X, Z, int(wanted), settings)
        if centred:
            Z = without_constant(X, Z)
        refined, W = refine(X, Z, late=settings.late) if self.refine else (Z, least_squares(Z, X))
        stable = run.status == "converged" and bool((refined == Z).all())
        return _Fit(squared_error(X, refined, W), refined, W, c, run, settings.size_power, stable)

    def _atoms(
        self, reduced: Reals, settings: GreedySettings, centred: bool = False
    ) -> tuple[FeatureLoss, GreedyRun, NDArray[np.intp]]:
        """All atoms of the lasso, and their order: largest c_k |W_k|^2 first."""
        loss = FeatureLoss(reduced, self.tau, centred)
        run = run_greedy(loss, settings)
        score = run.c * (loss.weights(run.c) ** 2).sum(1)
        return loss, run, np.argsort(-score, kind="stable")

    def _choose_components(self, X: Reals, settings: GreedySettings) -> int:
        """One row in five is held out. Its features are read from one half of the inputs; the error on the other half
        is what more features can make worse. The smallest K whose error is within 1 % of the least."""
        rng = np.random.default_rng(settings.seed)
        rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
        held, kept = np.split(rows, [max(1, len(X) // 5)])
        seen, hidden = np.split(columns, [max(1, X.shape[1] // 2)])
        if X.shape[1] < 2 or len(kept) < 2:
            return 1
        power = 0.0 if self.size_power == "auto" else float(self.size_power)
        errors = []
        settings = replace(settings, size_power=power, certify=False, callback=None)
        loss, _, order = self._atoms(reduce_rank(X[kept], self.rank), settings)
        for k in range(1, min(len(order), self.max_components, len(kept)) + 1):
            if settings.late():
                break
            Z = loss.atoms[order[:k]].T
            Z, W = refine(X[kept], Z, 3, settings.late) if self.refine else (Z, least_squares(Z, X[kept]))
            read = assign(X[np.ix_(held, seen)], W[:, seen])
            errors.append(squared_error(X[np.ix_(held, hidden)], read, W[:, hidden]))
        if not errors:
            return 1
        exact = 1e-20 * float((X * X).sum())  # where there is no noise, errors are those of rounding
        return 1 + int(np.flatnonzero(np.array(errors) <= 1.01 * min(errors) + exact)[0])


def reduce_rank(X: Reals, rank: int | str | None) -> Reals:
    """X in coordinates of its leading right singular vectors: all of them lose nothing, fewer leave out noise."""
    # X V has the same columns as U S, and V is that of a small triangle
    triangle = np.linalg.qr(X, mode="r") if len(X) > X.shape[1] else X
    _, values, right = np.linalg.svd(triangle, full_matrices=False)
    numerical = int((values > max(X.shape) * 2.3e-16 * values[0]).sum()) or 1
    if rank is None:
        kept = numerical
    elif rank == "auto":
        beta = min(X.shape) / max(X.shape)
        # Gavish and Donoho 2014, the cubic fit of their optimal threshold for unknown noise.
        threshold = (0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43) * float(np.median(values))
        kept = min(numerical, int((values > threshold).sum()) or 1)
    else:
        kept = min(int(rank), numerical)
    out: Reals = X @ right[:kept].T
    return out


def _complete(X: Reals, Z: Bits, wanted: int, settings: GreedySettings) -> Bits:
    """Adds the best atom of what is left, one at a time, where the lasso has given fewer than were asked for."""
    while Z.shape[1] < wanted:
        rest = X - Z @ least_squares(Z, X) if Z.shape[1] else X
        rng = np.random.default_rng([settings.seed, Z.shape[1]])
        halves = (rest @ rng.standard_normal((X.shape[1], settings.n_starts)) > 0).T
        starts = np.ascontiguousarray(halves, np.uint8)
        if settings.late():
            missing = wanted - Z.shape[1]
            return np.column_stack([Z, np.resize(starts, (missing, len(X))).T])
        problem = AtomProblem(np.ascontiguousarray(rest), threads=settings.threads, deadline=settings.deadline)
        values = problem.search(starts)
        Z = np.column_stack([Z, starts[int(np.argmax(values))]])
    return Z
