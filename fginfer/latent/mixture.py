"""MixedRegression: outputs that come from one of several regressions, or from the sum of several."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from fginfer.blas import on_one_blas_thread
from fginfer.core import clock
from fginfer.errors import DataError, SettingsError
from fginfer.latent.em import Mixture, all_patterns, held_out_likelihood, normalised
from fginfer.latent.exchange import improve
from fginfer.latent.greedy import GreedyRun, GreedySettings, LassoPoint, run_greedy
from fginfer.latent.losses import MixtureLoss
from fginfer.latent.mixture_starts import round_components, span_starts
from fginfer.latent.settings import (
    LARGEST,
    SMALLEST,
    check_choice,
    check_flag,
    check_moderate,
    check_number,
    check_run,
    check_size,
)
from fginfer.learn.data.inputs import seed_of, threads_of
from fginfer.learn.kernel import factorise
from fginfer.options import is_number

Reals = NDArray[np.float64]
KERNELS = ("linear", "poly", "rbf")
EXACT = 1e-20  # mean squared error, relative to the outputs': all samples are explained
ENOUGH = {"float32": 1e-9, "float64": 1e-20}  # the same as the brief search can tell
KERNEL_SAMPLES = 20_000  # their kernel matrix takes 3.2 GB, and there are two for a while
MOST_ERRORS = 1 << 27  # samples times patterns of a generalised mixture: a gigabyte, and four at a time
MOST_PATTERNS = 12  # components of a generalised mixture: all 2^K patterns are tried for every sample


class MixedRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """y = sum_k z_k f_k(x) + noise, z of zeros and ones: K regressions, and which of them made each sample.

    In the standard form exactly one z_k is 1; with ``generalized=True`` any of them may be. Minimises, over nonnegative
    coefficients c of all 2^N assignments z of the samples (Yen et al., "MixLasso", 2018),

        min over f of sum_i (y_i - sum_k z_ik f_k(x_i))^2 / 2N + tau/2 sum_k |f_k|^2 / c_k   +   lam sum_k c_k

    greedily, one assignment a round. After every round the solution is rounded to K components (generalised: the
    largest coefficients; standard: the most frequent patterns of assignments); further starts are solutions within the
    span of the lasso's weights. All are refined by the EM algorithm, the best few improved by exchanging components,
    and the likeliest under Gaussian noise is kept. As in any mixture, the components come in no particular order.

    Parameters
    ----------
    n_components : K, or "held-out": the K up to `max_components` under which held-out samples are most likely, given
        Gaussian noise (the smallest one within .01 nats a sample).
    kernel : "linear"; "poly", (gamma x.x' + coef0)^degree; "rbf", exp(-gamma |x - x'|^2); or a function of two arrays
        that gives a symmetric positive semidefinite matrix. gamma=None is one over the number of inputs, which means a
        length in the unit of X: give gamma, or standardise X. Where K components can pass through all samples (a narrow
        "rbf") nothing tells which belong together, and a warning says so.
    fit_intercept : add a constant input, as large as the others (their root mean square; kernels: the mean of the
        diagonal joins the kernel), so that nothing depends on the unit of the inputs. Columns of their own units count
        as they are, as in every ridge regression: standardise them.
    tau, lam, penalty : lam=None is penalty^2 times the smallest lam at which all coefficients are 0. Only tau * lam
        matters for the fit. `penalty` may be a tuple: all are tried.
    n_atoms : rounds of the greedy search. n_starts, tabu_steps : local searches for each atom.
    refine : "soft": EM with Gaussian noise, then hard assignments; "hard": the latter only.
    ridge : in the refinement, relative to the mean square of the inputs.
    n_span : starts within the span of the lasso's weights, for each penalty.
    exchanges : rounds at most in which components are exchanged (split, started anew) where that is likelier; 0
        and n_span=0 leave the published algorithm.
    n_init : repeats of the search with other random starts.

    After `fit`: ``coef_`` (K, inputs; linear kernel), ``intercept_`` (K,), ``dual_coef_``, ``basis_``, ``constant_``
    (other kernels: f_k(x) = sum_b dual_coef_kb (kernel(basis_b, x) + constant_)), ``assignments_`` (rows, K) zeros and
    ones, ``shares_`` (how often each component is present), ``error_`` (root mean squared, each sample by its best
    component), ``trace_`` (a list of LassoPoint), ``gap_``, ``status_``, ``n_iter_``.

    >>> rng = np.random.default_rng(0)
    >>> X, which = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    >>> W = np.array([[1.0, 2.0, 0.0], [-1.0, 0.0, 3.0]])
    >>> model = MixedRegression(n_components=2).fit(X, (X * W[which]).sum(1))
    >>> np.round(np.abs(model.coef_[np.argsort(model.coef_[:, 0])]), 6).tolist()
    [[1.0, 0.0, 3.0], [1.0, 2.0, 0.0]]
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        generalized: bool = False,
        kernel: str | Callable[[Reals, Reals], Any] = "linear",
        degree: int = 3,
        gamma: float | None = None,
        coef0: float = 1.0,
        fit_intercept: bool = False,
        tau: float = 1.0,
        lam: float | None = None,
        penalty: float | tuple[float, ...] = (0.3, 0.1),
        n_atoms: int = 15,
        n_starts: int = 20,
        tabu_steps: int = 0,
        n_span: int = 10,
        exchanges: int = 12,
        n_init: int = 1,
        refine: str = "soft",
        ridge: float = 1e-9,
        inner: str = "newton",
        max_components: int = 8,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[LassoPoint], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.generalized = generalized
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tau = tau
        self.lam = lam
        self.penalty = penalty
        self.n_atoms = n_atoms
        self.n_starts = n_starts
        self.tabu_steps = tabu_steps
        self.n_span = n_span
        self.exchanges = exchanges
        self.n_init = n_init
        self.refine = refine
        self.ridge = ridge
        self.inner = inner
        self.max_components = max_components
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    # ---- fitting

    @on_one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Finds components and assignments; all input is checked before."""
        self._check_settings()
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, np.float64)
        check_size("X", X)
        check_size("y", y)
        k: Any = self.n_components
        if k != "held-out" and k > len(X):
            raise SettingsError(f"n_components is {k}, but there are only {len(X)} samples")
        if self.generalized and k != "held-out" and len(X) << k > MOST_ERRORS:
            most = MOST_ERRORS >> k
            raise DataError(f"a generalised mixture of {k} components takes up to {most} samples, not {len(X)}")
        settings = self._settings()
        features = self._learn_features(X)
        if k == "held-out":
            k = self._choose_components(features, y, settings)
        best = self._search(features, y, int(k), settings, self.exchanges)
        self.assignments_, errors = self._nearest(features, y, best.weights)
        self.shares_ = self.assignments_.mean(0)
        self.error_ = float(np.sqrt(errors.mean()))
        self.n_components_ = int(k)
        self.trace_, self.status_ = best.trace, best.status
        self.gap_, self.n_iter_ = best.trace[-1].gap, max(1, len(best.trace) - 1)
        self._keep(best.weights)
        self._tell_of_interpolation(features, y)
        return self

    def _tell_of_interpolation(self, features: Reals, y: Reals) -> None:
        parameters = self.n_components_ * features.shape[1]
        if self.n_components_ > 1 and y.any() and parameters >= len(y) and self.error_ < 1e-4 * np.sqrt((y * y).mean()):
            warnings.warn(
                f"{self.n_components_} components with {features.shape[1]} parameters each pass through all {len(y)} "
                "samples: which samples belong together is not determined, and rounding decides it (a unit of X may "
                "change it); use fewer components, fewer inputs, a smoother kernel or a larger ridge",
                stacklevel=4,
            )

    def _check_settings(self) -> None:
        k: Any = self.n_components
        if k != "held-out" and not (is_number(k, whole=True) and k >= 1):
            raise SettingsError(f"n_components must be a positive whole number or 'held-out', not {k!r}")
        if self.generalized and k != "held-out" and k > MOST_PATTERNS:
            raise SettingsError(f"a generalised mixture has at most {MOST_PATTERNS} components, not {k}")
        if not callable(self.kernel):
            check_choice(self, "kernel", KERNELS)
        check_moderate(self, "tau", "ridge")
        for name in ("lam", "gamma"):
            check_number(self, name, none=True)
        check_number(self, "time_limit", none=True, least=0)
        check_number(self, "coef0", least=0)
        for name in ("tabu_steps", "n_span", "exchanges"):
            check_number(self, name, whole=True, least=0)
        for name in ("degree", "n_atoms", "n_starts", "n_init", "max_components"):
            check_number(self, name, whole=True, least=1)
        penalties = self._penalties()
        if not penalties or not all(is_number(value) and SMALLEST < value < LARGEST for value in penalties):
            raise SettingsError(
                f"penalty must be a number between {SMALLEST} and {LARGEST} or a tuple of them, not {self.penalty!r}"
            )
        check_choice(self, "refine", ("soft", "hard"))
        check_choice(self, "inner", ("newton", "proximal"))
        check_flag(self, "generalized")
        check_flag(self, "fit_intercept")
        check_run(self)

    def _penalties(self) -> tuple[Any, ...]:
        return tuple(self.penalty) if isinstance(self.penalty, (tuple, list)) else (self.penalty,)

    def _settings(self) -> GreedySettings:
        return GreedySettings(
            lam=self.lam,
            max_iter=self.n_atoms,
            tol=1e-6,
            n_starts=self.n_starts,
            tabu_steps=self.tabu_steps,
            atoms_per_round=1,
            inner=self.inner,
            threads=threads_of(self.n_jobs),
            seed=seed_of(self.random_state),
            deadline=np.inf if self.time_limit is None else clock.now() + self.time_limit,
        )

    def _search(self, X: Reals, y: Reals, k: int, settings: GreedySettings, exchanges: int) -> _Best:
        """Every penalty, and every repeat; ends early where all samples are explained."""
        mixture = Mixture(X, y, k, self.generalized, self.ridge, late=settings.late)
        best: _Best | None = None
        for repeat in range(self.n_init):
            if best is not None and (best.error <= EXACT * mixture.unit * len(y) or mixture.late()):
                break
            found = self._search_once(mixture, replace(settings, seed=settings.seed + repeat), exchanges)
            if best is None or found.error < best.error:
                best = found
        assert best is not None
        return best

    def _search_once(self, mixture: Mixture, settings: GreedySettings, exchanges: int) -> _Best:
        rng = np.random.default_rng([settings.seed, mixture.k])
        brief, unit = normalised(mixture)
        starts: list[Reals] = []
        run: GreedyRun | None = None
        for penalty in self._penalties() if self.lam is None else (1.0,):
            if run is not None and mixture.late():
                break
            loss = _Watched(mixture.X, mixture.y, self.tau)
            run = run_greedy(loss, self._watch(loss, replace(settings, penalty=penalty), mixture.k, starts))
            starts.extend(span_starts(brief, loss.weights(run.c) / unit, self.n_span, rng) * unit)
        assert run is not None
        W = np.array(starts)
        if self.refine == "soft":
            found, _ = improve(brief, W / unit, rng, exchanges, ENOUGH[brief.X.dtype.name], mixture.late)
            W = mixture.run(found[None].astype(np.float64) * unit, soft=True).weights
        weights, _, error = mixture.run(W, soft=False).best()
        return _Best(weights, error, run.trace, run.status)

    def _watch(self, loss: _Watched, settings: GreedySettings, k: int, starts: list[Reals]) -> GreedySettings:
        """Settings under which every round leaves a start, and the user's callback is called."""

        def look(point: LassoPoint) -> Any:
            starts.append(round_components(loss, loss.last, k, self.generalized, settings.seed))
            return self.callback(point) if self.callback is not None else False

        return replace(settings, callback=look)

    def _choose_components(self, X: Reals, y: Reals, settings: GreedySettings) -> int:
        held, kept = np.split(np.random.default_rng(settings.seed).permutation(len(X)), [max(1, len(X) // 5)])
        most = min(self.max_components, len(kept))
        if self.generalized:
            most = min(most, MOST_PATTERNS, max(1, int(np.log2(MOST_ERRORS / len(X)))))
        scores: list[float] = []
        for k in range(1, most + 1):
            if scores and settings.late():
                break
            weights = self._search(X[kept], y[kept], k, settings, self.exchanges // 4).weights[None]
            known, new = (Mixture(X[rows], y[rows], k, self.generalized).errors(weights)[0] for rows in (kept, held))
            scores.append(held_out_likelihood(known, new, float((y * y).mean())))
        return 1 + int(np.flatnonzero(np.array(scores) >= max(scores) - 0.01)[0])

    # ---- features of the kernel

    def _learn_features(self, X: Reals) -> Reals:
        """Inputs whose products are the kernel: X itself, or a factor of the kernel matrix."""
        self.basis_, self._triangle, self.constant_ = X[:0], np.zeros((0, 0)), 0.0
        if not callable(self.kernel) and self.kernel == "linear":
            self.constant_ = float(np.sqrt((X * X).mean())) or 1.0 if self.fit_intercept else 0.0
            return self._features(X)
        if len(X) > KERNEL_SAMPLES:
            raise DataError(f"a kernel takes up to {KERNEL_SAMPLES} samples, not {len(X)}; give features of X instead")
        gram = self._kernel_values(X, X)
        if self.fit_intercept:
            self.constant_ = float(gram.diagonal().mean())
            gram = gram + self.constant_
        if not np.allclose(gram, gram.T, rtol=0, atol=1e-8 * np.abs(gram).max()):
            raise DataError("the kernel is not symmetric: kernel(a, b) and kernel(b, a).T differ")
        check_size("the kernel", gram)
        factor, order = factorise(gram)
        if factor.shape[1] == 0:
            raise DataError("the kernel is 0 for all samples")
        chosen = order[: factor.shape[1]]
        self.basis_, self._triangle = X[chosen], factor[chosen]
        return factor

    def _features(self, X: Reals) -> Reals:
        if not callable(self.kernel) and self.kernel == "linear":
            return np.column_stack([X, np.full(len(X), self.constant_)]) if self.fit_intercept else X
        out: Reals = solve_triangular(self._triangle, self._kernel_values(self.basis_, X), lower=True).T
        return out

    def _kernel_values(self, a: Reals, b: Reals) -> Reals:
        if callable(self.kernel):
            values = np.asarray(self.kernel(a, b), np.float64)
        elif self.kernel == "poly":
            values = polynomial_kernel(a, b, self.degree, self.gamma, self.coef0)
        elif self.kernel == "rbf":
            values = rbf_kernel(a, b, self.gamma)
        else:
            values = linear_kernel(a, b)
        if values.shape != (len(a), len(b)) or not np.isfinite(values).all():
            raise DataError(f"the kernel must give finite values in the shape {(len(a), len(b))}")
        out: Reals = values + self.constant_
        return out

    def _keep(self, weights: Reals) -> None:
        self._weights = weights
        if not callable(self.kernel) and self.kernel == "linear":
            self.coef_ = weights[:, : self.n_features_in_]
            self.intercept_ = self.constant_ * weights[:, -1] if self.fit_intercept else np.zeros(len(weights))
        else:  # f_k = sum over the basis of dual_coef_ * (kernel(basis, .) + constant_)
            self.dual_coef_ = solve_triangular(self._triangle, weights.T, trans="T", lower=True).T

    # ---- use

    def predict_components(self, X: Any) -> Reals:
        """(rows, K): what each component gives."""
        check_is_fitted(self, "_weights")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        out: Reals = self._features(X) @ self._weights.T
        return out

    def predict(self, X: Any) -> Reals:
        """The mean over components, as often as each was present in the training samples. Which component made a new
        sample cannot be told from x alone; see `predict_best`."""
        out: Reals = self.predict_components(X) @ self.shares_
        return out

    def assign(self, X: Any, y: Any) -> NDArray[np.uint8]:
        """(rows, K) zeros and ones: which components explain each (x, y) best."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        check_is_fitted(self, "_weights")
        return self._nearest(self._features(X), np.asarray(y, np.float64), self._weights)[0]

    def _nearest(self, features: Reals, y: Reals, weights: Reals) -> tuple[NDArray[np.uint8], Reals]:
        """(rows, K) patterns that explain the samples best, and their squared errors."""
        patterns = all_patterns(len(weights), self.generalized)
        outputs = features @ weights.T
        chosen, errors = np.empty(len(y), np.intp), np.empty(len(y))
        rows = max(1, (1 << 22) // len(patterns))  # at a time: 32 MB of errors
        for at in range(0, len(y), rows):
            part = slice(at, at + rows)
            apart = (y[part, None] - outputs[part] @ patterns.T) ** 2
            chosen[part], errors[part] = apart.argmin(1), apart.min(1)
        return patterns[chosen].astype(np.uint8), errors

    def predict_best(self, X: Any, y: Any) -> Reals:
        """What the components that explain each (x, y) best give there."""
        out: Reals = (self.assign(X, y) * self.predict_components(X)).sum(1)
        return out


@dataclass
class _Best:
    weights: Reals
    error: float
    trace: list[LassoPoint]
    status: str


class _Watched(MixtureLoss):
    """Remembers the coefficients of the round, for the rounding."""

    def __init__(self, X: Reals, y: Reals, tau: float) -> None:
        super().__init__(X, y, tau)
        self.last: Reals = np.zeros(0)

    def residual(self, c: Reals) -> Reals:
        self.last = c
        return super().residual(c)
