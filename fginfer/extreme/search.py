"""ExtremeClassifierCV: C, lambda and when to stop, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.extreme import Lines
from fginfer.errors import DataError, SettingsError
from fginfer.extreme import metrics
from fginfer.extreme.data import select, training_data
from fginfer.extreme.estimator import ExtremeClassifier
from fginfer.extreme.settings import check_real, check_settings
from fginfer.extreme.solvers import ExtremePoint
from fginfer.learn.data.inputs import seed_of, threads_of
from fginfer.log import logger

# For rows of unit length; other rows scale them (see `grid`).
C_GRID = {"ppd-sparse": (0.2, 0.4, 1.0), "pd-sparse": (0.3, 1.0, 3.0)}
LAMBDA_GRID = (0.0, 0.01, 0.03, 0.05, 0.1)
PATIENCE = 2  # passes without a better held-out P@1 after which pd-sparse stops


def grid(rows: Lines, solver: str) -> tuple[list[float], list[float]]:
    """(values of C, of lambda) that fit the scale of the rows: with rows s times as long, the same problem has C / s^2
    and lambda / s."""
    assert rows.value is not None
    squares = float(np.sum(np.asarray(rows.value, np.float64) ** 2)) / max(1, rows.n)
    scale = np.sqrt(squares) if squares > 0.0 else 1.0
    return [c / scale**2 for c in C_GRID[solver]], [x / scale for x in LAMBDA_GRID]


class ExtremeClassifierCV(ExtremeClassifier):
    """An ExtremeClassifier that chooses C and lam on a held-out part of the rows, then trains on all of them.

    Cs, lams : values to try (default: a grid that fits the scale of the rows). held_out : share of the rows.
    refine : with the default grid, lambda is searched at the middle C first, then C at the best lambda: fewer fits.
    pd-sparse also stops where held-out P@1 no longer rises; the final training runs for as many passes. Of a time limit
    the tries get half (one that is cut short counts with what it has), the final training the rest.
    The other parameters are those of ExtremeClassifier. After `fit`: ``C_``, ``lam_``, ``results_`` (a dict a try: C,
    lam, p@1, p@3, p@5, weights, passes), and everything ExtremeClassifier has.
    """

    def __init__(
        self,
        solver: str = "ppd-sparse",
        Cs: Sequence[float] | None = None,
        lams: Sequence[float] | None = None,
        held_out: float = 0.15,
        refine: bool = True,
        loss: str = "squared_hinge",
        intercept: str = "shifted",
        positive_weight: float = 1.0,
        unit_rows: bool = True,
        tol: float = 0.03,
        max_iter: int = 50,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        scheduler: Any = None,
        prune: float = 0.0,
        classes: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            solver=solver, loss=loss, intercept=intercept, positive_weight=positive_weight, unit_rows=unit_rows,
            tol=tol, max_iter=max_iter, time_limit=time_limit, n_jobs=n_jobs, scheduler=scheduler, prune=prune,
            classes=classes, random_state=random_state, verbose=verbose, solver_options=solver_options,
        )  # fmt: skip
        self.Cs = Cs
        self.lams = lams
        self.held_out = held_out
        self.refine = refine

    def fit(self, X: Any, y: Any) -> Self:
        begin = clock.now()
        check_real("held_out", self.held_out, 0.0, True)
        if not self.held_out < 1.0:
            raise SettingsError(f"held_out must lie between 0 and 1, not {self.held_out!r}")
        check_settings(self)
        given = _values("Cs", self.Cs, True), _values("lams", self.lams, False)
        rows, labels, classes = self._training_rows(X, y)
        train, test = self._split(rows.n)
        parts = [(select(rows, p), select(labels, p)) for p in (train, test)]
        cs, lams = (own or default for own, default in zip(given, grid(rows, self.solver), strict=True))
        self.results_: list[dict[str, Any]] = []
        if self.refine and self.Cs is None:
            middle = cs[len(cs) // 2]
            left = len(lams) + len(cs) - 1
            for lam in lams:
                self._try(parts, classes, middle, lam, self._share(begin, left))
                left -= 1
            best = self._best()["lam"]
            for c in cs:
                if c != middle:
                    self._try(parts, classes, c, best, self._share(begin, left))
                    left -= 1
        else:
            left = len(cs) * len(lams)
            for c in cs:
                for lam in lams:
                    self._try(parts, classes, c, lam, self._share(begin, left))
                    left -= 1
        chosen = self._best()
        self.C_, self.lam_ = chosen["C"], chosen["lam"]
        old = self.max_iter
        try:
            if self.solver == "pd-sparse":
                self.max_iter = chosen["passes"]
            self._fit_lines(rows, labels, classes, begin)
        finally:
            self.max_iter = old
        return self

    def _share(self, begin: float, tries: int) -> float | None:
        """Seconds of the next of so many tries: together they may take half of the time limit, the model the rest."""
        if self.time_limit is None:
            return None
        return max(0.0, begin + 0.5 * float(self.time_limit) - clock.now()) / tries

    def _strength(self) -> tuple[float, float]:
        return float(self.C_), float(self.lam_)

    def _split(self, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
        held = round(self.held_out * n)
        if not 0 < held < n:
            raise DataError(f"{n} rows are too few to hold some of them out")
        order = np.random.default_rng(seed_of(self.random_state)).permutation(n)
        return np.sort(order[held:]), np.sort(order[:held])

    def _best(self) -> dict[str, Any]:
        """The best mean of P@1, P@3 and P@5; ties to fewer weights."""
        return max(self.results_, key=lambda r: (r["mean"], -r["weights"]))

    def _try(self, parts: Any, classes: NDArray[Any], c: float, lam: float, seconds: float | None) -> None:
        (rows, labels), (held_rows, held_labels) = parts
        if self.solver == "pd-sparse":  # rows of the part that have no label are no help
            full = np.flatnonzero(np.diff(labels.begin) > 0)
            rows, labels = select(rows, full), select(labels, full)
        settings = self.get_params()
        for name in ("Cs", "lams", "held_out", "refine", "verbose"):
            settings.pop(name)
        watch = _Watch(held_rows, held_labels, threads_of(self.n_jobs))
        inner = ExtremeClassifier(**{**settings, "time_limit": seconds}, C=c, lam=lam)
        inner.multilabel_ = self.multilabel_
        if self.solver == "pd-sparse":
            inner.callback = watch
        inner._fit_data(training_data(rows, labels, self.solver == "ppd-sparse"), classes, clock.now())
        answers, _ = inner.model_.topk(held_rows, 5, threads_of(self.n_jobs))
        result: dict[str, Any] = {"C": c, "lam": lam, **metrics.report(held_labels, answers)}
        result["mean"] = float(np.mean([v for k, v in result.items() if k.startswith("p@")]))
        result["weights"] = inner.model_.weights.nnz
        result["passes"] = watch.best_pass or inner.n_iter_
        self.results_.append(result)
        logger.info(
            f"C {c:.4g}, lambda {lam:.4g}: held-out P@1 {100 * result['p@1']:.2f} %, {result['weights']} weights"
        )


def _values(name: str, given: Any, strict: bool) -> list[float]:
    """Values to try, checked; empty: none were given."""
    if given is None:
        return []
    values = list(given)
    if not values:
        raise SettingsError(f"{name} must name at least one value, or be None")
    for value in values:
        check_real(name, value, 0.0, strict)
    return [float(value) for value in values]


class _Watch:
    """Held-out P@1 after every pass of pd-sparse."""

    def __init__(self, rows: Lines, labels: Lines, threads: int) -> None:
        self._rows, self._labels, self._threads = rows, labels, threads
        self.watch = self  # the solver sets `model`, a function that gives the weights of the moment
        self.model: Any = None
        self.best, self.best_pass = -1.0, 0

    def __call__(self, point: ExtremePoint) -> bool:
        answers, _ = self.model().topk(self._rows, 1, self._threads)
        now = metrics.precision_at(self._labels, answers, 1)
        if now > self.best:
            self.best, self.best_pass = now, point.passes
        return point.passes >= self.best_pass + PATIENCE
