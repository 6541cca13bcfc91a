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
from fginfer.extreme.settings import INTERCEPTS, check_real, check_settings, trains_by_label
from fginfer.extreme.solvers import ExtremePoint
from fginfer.learn.data.inputs import seed_of, threads_of
from fginfer.log import logger

# For rows of unit length; other rows scale them (see `grid`).
C_GRID = {"ppd-sparse": (0.2, 0.4, 1.0), "pd-sparse": (0.3, 1.0, 3.0)}
LAMBDA_GRID = (0.0, 0.01, 0.03, 0.05, 0.1)
PATIENCE = 2  # passes without a better held-out P@1 after which pd-sparse stops
# ppd-sparse trains a label to its end before the next, so it is stopped by the gap at which a label is done: tried from
# the loosest of these multiples of tol on, until held-out P@1 no longer rises.
STOPS = (10.0, 10.0**0.5, 1.0)


def grid(rows: Lines, solver: str) -> tuple[list[float], list[float]]:
    """(values of C, of lambda) that fit the scale of the rows: with rows s times as long, the same problem has C / s^2
    and lambda / s."""
    assert rows.value is not None
    squares = float(np.sum(np.asarray(rows.value, np.float64) ** 2)) / max(1, rows.n)
    scale = np.sqrt(squares) if squares > 0.0 else 1.0
    return [float(c / scale**2) for c in C_GRID[solver]], [float(x / scale) for x in LAMBDA_GRID]


class ExtremeClassifierCV(ExtremeClassifier):
    """An ExtremeClassifier that chooses C and lam on a held-out part of the rows, then trains on all of them.

    Parameters
    ----------
    Cs, lams : values to try (default: a grid that fits the scale of the rows).
    held_out : share of the rows.
    intercepts : of ppd-sparse: further values of `intercept` to try, at the best C and lambda.
    refine : with the default grid, lambda is searched at the middle C first, then C at the best lambda: fewer fits.
    early_stopping : training ends where held-out P@1 no longer rises, in the tries and in the final training: pd-sparse
        after so many passes, ppd-sparse at the loosest gap of a label that is good enough (10, 3 or 1 times `tol`).

    Notes
    -----
    Of a time limit the tries get half (one that is cut short counts with what it has), the final training the rest.
    The other parameters are those of ExtremeClassifier. After `fit`: ``C_``, ``lam_``, ``intercept_chosen_``,
    ``tol_`` (the gap of every label that was trained to), ``results_`` (a dict a try: C, lam, intercept, tol, p@1, p@3,
    p@5, weights, passes), and everything ExtremeClassifier has.

    >>> from fginfer.extreme import ExtremeClassifierCV
    >>> X = np.eye(4)[np.arange(80) % 4]
    >>> model = ExtremeClassifierCV(lams=[0.0, 0.01], random_state=0).fit(X, np.arange(80) % 4)
    >>> model.predict(X[:4]).tolist(), len(model.results_) > 1
    ([0, 1, 2, 3], True)
    """

    def __init__(
        self,
        solver: str = "ppd-sparse",
        Cs: Sequence[float] | None = None,
        lams: Sequence[float] | None = None,
        held_out: float = 0.15,
        intercepts: Sequence[str] | None = None,
        refine: bool = True,
        early_stopping: bool = True,
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
        self.intercepts = intercepts
        self.refine = refine
        self.early_stopping = early_stopping

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """X, y: as in ExtremeClassifier. groups: one a row; rows of a group are held out together or not at all, as
        where new groups will be asked for (packages of other sources, pages of other sites)."""
        begin = clock.now()
        check_real("held_out", self.held_out, 0.0, True)
        if not self.held_out < 1.0:
            raise SettingsError(f"held_out must lie between 0 and 1, not {self.held_out!r}")
        check_settings(self)
        for name in self.intercepts or ():
            if name not in INTERCEPTS:
                raise SettingsError(f"intercepts must be among {', '.join(INTERCEPTS)}, not {name!r}")
        given = _values("Cs", self.Cs, True), _values("lams", self.lams, False)
        rows, labels, classes = self._training_rows(X, y)
        train, test = self._split(rows.n, groups)
        self._parts = [(select(rows, p), select(labels, p)) for p in (train, test)]
        self._limit = None if self.time_limit is None else begin + 0.5 * float(self.time_limit)
        cs, lams = (own or default for own, default in zip(given, grid(rows, self.solver), strict=True))
        self.results_: list[dict[str, Any]] = []
        self.tol_ = float(self.tol)
        try:
            self._search(classes, cs, lams)
        finally:
            del self._parts
        chosen = self._best()
        self.C_, self.lam_, self.intercept_chosen_ = chosen["C"], chosen["lam"], chosen["intercept"]
        given_settings = {name: getattr(self, name) for name in ("max_iter", "tol", "intercept")}
        try:
            if not trains_by_label(self) and self.early_stopping:
                self.max_iter = chosen["passes"]
            self.tol, self.intercept = self.tol_, self.intercept_chosen_
            self._fit_lines(rows, labels, classes, begin)
        finally:
            for name, value in given_settings.items():
                setattr(self, name, value)
        return self

    def _search(self, classes: NDArray[Any], cs: list[float], lams: list[float]) -> None:
        """Fills results_; the tries share the time equally."""
        others = [name for name in self.intercepts or () if name != self.intercept]
        refined = self.refine and self.Cs is None
        left = (len(cs) + len(lams) - 1 if refined else len(cs) * len(lams)) + len(others)
        middle, centre = cs[len(cs) // 2], lams[len(lams) // 2]
        early: dict[str, Any] | None = None
        if trains_by_label(self) and self.early_stopping:
            early = self._stop_early(classes, middle, centre, left)
        first = [(middle, lam) for lam in lams] if refined else [(c, lam) for c in cs for lam in lams]
        for c, lam in first:
            if early is not None and (c, lam) == (middle, centre):
                self.results_.append(early)
            else:
                self._try(classes, c, lam, left)
            left -= 1
        if refined:
            lam = self._best()["lam"]
            for c in cs:
                if c != middle:
                    self._try(classes, c, lam, left)
                    left -= 1
        best = self._best()
        for name in others:
            self._try(classes, best["C"], best["lam"], left, name)
            left -= 1

    def _stop_early(self, classes: NDArray[Any], c: float, lam: float, left: int) -> dict[str, Any]:
        """Finds the gap at which ppd-sparse may stop; the result with that one, a try like others."""
        best: dict[str, Any] | None = None
        for at, factor in enumerate(STOPS):
            self.tol_ = float(self.tol) * factor
            self._try(classes, c, lam, left + len(STOPS) - 1 - at)
            now = self.results_.pop()
            if best is not None and now["p@1"] <= best["p@1"]:
                break
            best = now
        assert best is not None
        self.tol_ = best["tol"]
        return best

    def _share(self, tries: int) -> float | None:
        """Seconds of the next of so many tries: together they may take half of the time limit, the model the rest."""
        return None if self._limit is None else max(0.0, self._limit - clock.now()) / tries

    def _strength(self) -> tuple[float, float]:
        return float(self.C_), float(self.lam_)

    def _split(self, n: int, groups: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        held, rng = round(self.held_out * n), np.random.default_rng(seed_of(self.random_state))
        if not 0 < held < n:
            raise DataError(f"{n} rows are too few to hold some of them out")
        if groups is None:
            order = rng.permutation(n)
            return np.sort(order[held:]), np.sort(order[:held])
        names = np.asarray(groups)
        if names.shape != (n,):
            raise DataError(f"groups must have one entry for each of {n} rows, not the shape {names.shape}")
        _, group = np.unique(names, return_inverse=True)
        sizes = np.bincount(group)
        if len(sizes) < 2:
            raise DataError("all rows are of one group: none can be held out")
        order = rng.permutation(len(sizes))
        many = int(np.searchsorted(np.cumsum(sizes[order]), held)) + 1
        out = np.isin(group, order[: min(many, len(sizes) - 1)])
        return np.flatnonzero(~out), np.flatnonzero(out)

    def _best(self) -> dict[str, Any]:
        """The best mean of P@1, P@3 and P@5; ties to fewer weights."""
        return max(self.results_, key=lambda r: (r["mean"], -r["weights"]))

    def _try(self, classes: NDArray[Any], c: float, lam: float, left: int, intercept: str | None = None) -> None:
        """One of `left` tries."""
        (rows, labels), (held_rows, held_labels) = self._parts
        if not trains_by_label(self):  # rows of the part that have no label are no help
            full = np.flatnonzero(np.diff(labels.begin) > 0)
            rows, labels = select(rows, full), select(labels, full)
        settings = self.get_params()
        for name in ("Cs", "lams", "intercepts", "held_out", "refine", "early_stopping", "verbose"):
            settings.pop(name)
        settings.update(
            time_limit=self._share(left), tol=self.tol_, intercept=intercept or self.intercept, C=c, lam=lam
        )  # fmt: skip
        watch = _Watch(held_rows, held_labels, threads_of(self.n_jobs))
        inner = ExtremeClassifier(**settings)
        inner.multilabel_ = self.multilabel_
        if not trains_by_label(self) and self.early_stopping:
            inner.callback = watch
        inner._fit_data(training_data(rows, labels, trains_by_label(self)), classes, clock.now())
        answers, _ = inner.model_.topk(held_rows, 5, threads_of(self.n_jobs))
        result: dict[str, Any] = {"C": c, "lam": lam, "intercept": inner.intercept, "tol": inner.tol}
        result.update(metrics.report(held_labels, answers))
        result["mean"] = float(np.mean([v for k, v in result.items() if k.startswith("p@")]))
        result["weights"] = inner.model_.weights.nnz
        result["passes"] = watch.best_pass or inner.n_iter_
        self.results_.append(result)
        logger.info(
            f"C {c:.4g}, lambda {lam:.4g}, intercept {inner.intercept}, gap {inner.tol:.2g}: held-out P@1 "
            f"{100 * result['p@1']:.2f} %, {result['weights']} weights"
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
