"""ExtremeClassifier: multiclass and multilabel classification with very many labels, as scikit-learn does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fginfer.archives import DAMAGE
from fginfer.core import clock
from fginfer.core.extreme import ExtremeData, Floats, Lines
from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.extreme import metrics
from fginfer.extreme.data import (
    is_column,
    is_indicator,
    is_listed,
    is_zero_one_table,
    labels_of,
    plain_labels,
    rows_of,
    training_data,
    truth_of,
    unit_rows,
)
from fginfer.extreme.fitting import Fitted, fit_pd, fit_ppd
from fginfer.extreme.model import SparseModel
from fginfer.extreme.settings import check_settings, trains_by_label
from fginfer.extreme.solvers import ExtremePoint
from fginfer.learn.data.inputs import seed_of, threads_of
from fginfer.learn.files.storage import plain
from fginfer.options import check_whole

LARGEST = 1 << 28  # scores that decision_function makes at once


class ExtremeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier for tens of thousands of labels and features; memory and time follow the non-zeros.

    Parameters
    ----------
    solver : "ppd-sparse" trains every label by itself against all rows (Yen et al., 2017), on threads, processes or a
        cluster; "pd-sparse" (Yen et al., 2016) all together, by a ranking loss for classes and clean sets.
    C : weight of the loss. lam : of the l1 term; larger ones give fewer weights. For rows of unit length 0 to 0.1.
    loss : of ppd-sparse: "squared_hinge" or "hinge".
    intercept : of ppd-sparse: "shifted" is learned, regularised towards -1, where rows that share nothing with a label
        cost nothing; "learned" is regularised towards 0, as in the paper; "fixed" stays at -1; "none" at 0.
    positive_weight : of ppd-sparse: factor on C for rows that have the label.
    unit_rows : rows are scaled to unit length, in training and prediction.
    tol : relative duality gap (ppd-sparse: of every label). max_iter : passes (ppd-sparse: searches a label).
    time_limit : seconds of `fit`. Labels that ppd-sparse did not come to have no weights; ``n_trained_`` tells.
    n_jobs : threads (or processes) for training and prediction. The result does not depend on it.
    scheduler : of ppd-sparse: None (threads), "processes" (joblib), the address of a Dask scheduler, or a Client.
    prune : weights of at most this size are dropped after training; see :meth:`prune_on`.
    classes : all labels there are, if y may not show them all; ascending.
    checkpoint : a file; ppd-sparse adds finished labels to it as they come, pd-sparse saves its state every
        `checkpoint_interval` seconds. An existing one is continued.
    callback : called with a point of the trace (ppd-sparse: at the end); a true return value ends training.
    verbose : 1 shows the log. solver_options : see :mod:`fginfer.extreme.settings`.

    After `fit`: ``classes_``, ``model_`` (a SparseModel: weights by feature, ``model_.bias``), ``trace_`` (a list of
    ExtremePoint with k_A and k_W), ``status_``, ``primal_``, ``dual_``, ``gap_``, ``n_trained_``, ``positives_`` (rows
    of every label), ``label_info_`` (ppd-sparse: a record array with the gap and size of every label, by label number).

    >>> from fginfer.extreme import ExtremeClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]
    >>> model = ExtremeClassifier(lam=0.0).fit(X, [["red"], ["blue"], ["red", "warm"]])
    >>> model.predict_topk([[1.0, 0.0]], k=2)[0].tolist()
    [['red', 'warm']]
    """

    def __init__(
        self,
        solver: str = "ppd-sparse",
        C: float = 0.4,
        lam: float = 0.03,
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
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        callback: Callable[[ExtremePoint], Any] | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.solver = solver
        self.C = C
        self.lam = lam
        self.loss = loss
        self.intercept = intercept
        self.positive_weight = positive_weight
        self.unit_rows = unit_rows
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.scheduler = scheduler
        self.prune = prune
        self.classes = classes
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.callback = callback
        self.verbose = verbose
        self.solver_options = solver_options

    # ---- training

    def fit(self, X: Any, y: Any) -> Self:
        """X: sparse or dense rows. y: a class a row, a list of labels a row, or a 0/1 matrix (rows, labels).

        Ctrl-C raises KeyboardInterrupt, after which the model has what was learned until then.
        """
        begin = clock.now()
        check_settings(self)
        rows, labels, classes = self._training_rows(X, y)
        self._fit_lines(rows, labels, classes, begin)
        return self

    def _training_rows(self, X: Any, y: Any) -> tuple[Lines, Lines, NDArray[Any]]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        rows, y = self._rows(X, fitting=True), plain_labels(y)
        if is_zero_one_table(y):
            y = np.asarray(y)
        self.multilabel_ = (is_indicator(y) and not is_column(y)) or is_listed(y)
        self.listed_, self.dense_ = is_listed(y), not sp.issparse(y)
        if not self.multilabel_:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        given = None if self.classes is None else np.asarray(self.classes)
        if given is not None and not np.array_equal(given, np.unique(given)):
            raise SettingsError("classes must be ascending and different")
        labels, classes = labels_of(y, given)
        if labels.n != rows.n:
            raise DataError(f"X has {rows.n} rows, y has labels of {labels.n}")
        if len(classes) < 2 and not self.multilabel_:
            raise DataError(f"y has one class only: {classes[0]!r}; a classifier needs at least 2 classes")
        if len(classes) < 1:
            raise DataError("there is no label in y")
        return rows, labels, classes

    def _rows(self, X: Any, fitting: bool = False) -> Lines:
        if not isinstance(X, Lines):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=fitting)
        lines = rows_of(X)
        return unit_rows(lines) if self.unit_rows else lines

    def _labelled(self, X: Any, y: Any) -> tuple[Lines, Lines]:
        """Rows to compare the model with, and their labels."""
        rows, truth = self._rows(X), truth_of(y, self.classes_)
        if rows.n != truth.n:
            raise DataError(f"X has {rows.n} rows, y has labels of {truth.n}")
        return rows, truth

    def _strength(self) -> tuple[float, float]:
        """(C, lambda) to train with."""
        return float(self.C), float(self.lam)

    def _fit_lines(self, rows: Lines, labels: Lines, classes: NDArray[Any], begin: float) -> None:
        data = training_data(rows, labels, trains_by_label(self))
        self._fit_data(data, classes, begin)

    def _fit_data(self, data: ExtremeData, classes: NDArray[Any], begin: float) -> None:
        fit: Callable[..., Fitted] = fit_ppd if trains_by_label(self) else fit_pd
        found = fit(self, data, classes, seed_of(self.random_state), threads_of(self.n_jobs), begin)
        self.classes_, self.n_features_in_ = classes, data.rows.width
        self.positives_ = data.labels.counts()
        self.n_rows_ = data.rows.n
        self.status_, self.trace_, self.n_trained_ = found.status, found.trace, found.trained
        self.label_info_ = found.info
        last = self.trace_[-1]
        self.primal_, self.dual_, self.gap_ = last.primal, last.dual, last.gap
        self.n_iter_ = max(1, last.passes)
        self.model_ = found.model.pruned(self.prune) if self.prune > 0.0 else found.model
        self.threshold_ = self._count_matching_threshold(data) if self.multilabel_ else 0.0
        goes_on = f" and in {self.checkpoint}, from which another fit goes on" if self.checkpoint is not None else ""
        found.raise_what_ended_it(f"{self.n_trained_} of {len(classes)} labels are trained, and in the model{goes_on}")

    def _count_matching_threshold(self, data: ExtremeData) -> float:
        """Scores are made to rank; with this threshold as many labels are given as the (first) training rows have."""
        n = min(data.rows.n, 2000)
        some = Lines(data.rows.begin[: n + 1], data.rows.index, data.rows.value, data.rows.width)
        wanted = int(data.labels.begin[n])
        _, scores = self.model_.topk(some, 4 * -(-wanted // n) + 4, threads_of(self.n_jobs))
        ranked = np.sort(scores.ravel())[::-1]
        if wanted < len(ranked):
            return float(ranked[wanted])
        return float(np.nextafter(ranked[-1], -np.inf))  # all of them are wanted, the last one, too

    def partial_retrain(self, X: Any, y: Any, labels: Sequence[Any]) -> Self:
        """Trains only these labels again, on X and y, and puts them into the model (ppd-sparse).

        Ctrl-C raises KeyboardInterrupt, lost workers a SolverError: labels that were not reached are as before.
        """
        check_is_fitted(self, "model_")
        check_settings(self)
        if not trains_by_label(self):
            raise SettingsError("pd-sparse trains all labels together; ppd-sparse can retrain some of them")
        rows = self._rows(X)
        lines, _ = labels_of(y, self.classes_)
        chosen, _ = labels_of([list(labels)], self.classes_)
        data = training_data(rows, lines, True)
        found = fit_ppd(
            self, data, self.classes_, seed_of(self.random_state), threads_of(self.n_jobs), clock.now(), chosen.index
        )
        parts = [c for c in found.columns if len(c.labels)]
        self.model_ = self.model_.with_columns(parts)
        if self.prune > 0.0:
            self.model_ = self.model_.pruned(self.prune)
        if self.label_info_ is not None and len(self.label_info_):
            info = np.array(self.label_info_)
            for c in parts:
                info[c.labels] = c.info
            self.label_info_ = info
        found.raise_what_ended_it(f"{found.trained} of {chosen.nnz} labels are trained again, the others as before")
        return self

    def prune_on(self, X: Any, y: Any, loss: float = 0.001) -> Self:
        """Drops the smallest weights, as many as cost at most `loss` of the mean of P@1, P@3 and P@5 on these rows."""
        check_is_fitted(self, "model_")
        rows, truth = self._labelled(X, y)
        at = [k for k in (1, 3, 5) if k <= len(self.classes_)]

        def quality(model: SparseModel) -> float:
            answers, _ = model.topk(rows, at[-1], threads_of(self.n_jobs))
            return float(np.mean([metrics.precision_at(truth, answers, k) for k in at]))

        value = self.model_.weights.value
        assert value is not None
        best, chosen = quality(self.model_), self.model_
        for share in (0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95) if len(value) else ():
            size = float(np.quantile(np.abs(value), share))
            pruned = self.model_.pruned(size)
            if quality(pruned) < best - loss:
                break
            chosen = pruned
        self.model_ = chosen
        return self

    # ---- prediction

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[Any], Floats]:
        """(labels, scores), each (rows, k), best first; ties go to the label that comes first in ``classes_``."""
        check_is_fitted(self, "model_")
        check_whole("k", k, 1)
        numbers, scores = self.model_.topk(self._rows(X), int(k), threads_of(self.n_jobs))
        return self.classes_[numbers], scores

    def predict(self, X: Any) -> Any:
        """The best class of every row; multilabel: all labels that score above ``threshold_``, in the
        form of the training labels."""
        check_is_fitted(self, "model_")
        rows, threads = self._rows(X), threads_of(self.n_jobs)
        if not self.multilabel_:
            return self.classes_[self.model_.topk(rows, 1, threads)[0][:, 0]]
        found = self.model_.above(rows, self.threshold_, threads)
        if self.listed_:
            return [
                self.classes_[found.index[a:b]].tolist() for a, b in zip(found.begin, found.begin[1:], strict=False)
            ]
        ones = np.ones(found.nnz, np.int64)
        matrix = sp.csr_matrix((ones, found.index, found.begin), shape=(rows.n, len(self.classes_)))
        return matrix.toarray() if self.dense_ else matrix

    def decision_function(self, X: Any, labels: Sequence[Any] | None = None) -> NDArray[Any]:
        """(rows, labels) scores of chosen labels (default: of all). Two classes: the second minus the first."""
        check_is_fitted(self, "model_")
        rows, threads = self._rows(X), threads_of(self.n_jobs)
        if labels is not None:
            chosen = labels_of(np.asarray(labels), self.classes_)[0].index
            return self.model_.scores(rows, chosen, threads)
        if rows.n * len(self.classes_) > LARGEST:
            raise SettingsError(
                f"{rows.n} rows and {len(self.classes_)} labels are too many scores: choose `labels` or predict_topk"
            )
        scores = self.model_.scores(rows, np.arange(len(self.classes_)), threads)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 and not self.multilabel_ else scores

    def evaluate(self, X: Any, y: Any, at: tuple[int, ...] = (1, 3, 5)) -> dict[str, float]:
        """P@k, nDCG@k, propensity-scored P@k, micro- and macro-F1 on labelled rows; labels that no training row had
        count as missed."""
        check_is_fitted(self, "model_")
        (rows, truth), threads = self._labelled(X, y), threads_of(self.n_jobs)
        if not at:
            raise SettingsError("`at` must name at least one k")
        answers, _ = self.model_.topk(rows, max(at), threads)
        positives = np.concatenate([self.positives_, np.zeros(truth.width - len(self.classes_), np.int64)])
        propensity = metrics.propensities(positives, self.n_rows_)
        out = metrics.report(truth, answers, propensity, at)
        if self.multilabel_:
            said = self.model_.above(rows, self.threshold_, threads)
        else:
            said = Lines(np.arange(rows.n + 1), np.ascontiguousarray(answers[:, 0]), None, len(self.classes_))
        return {**out, **metrics.f1_scores(truth, said)}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of the best class; multilabel: P@1."""
        check_is_fitted(self, "model_")
        if not self.multilabel_:
            return float(super().score(X, y, sample_weight))
        rows, truth = self._labelled(X, y)
        return metrics.precision_at(truth, self.model_.topk(rows, 1, threads_of(self.n_jobs))[0], 1)

    # ---- what was learned

    @property
    def coef_(self) -> sp.csr_matrix:
        """(labels, features), sparse."""
        check_is_fitted(self, "model_")
        w = self.model_.weights.check("the weights")  # those of a mapped file were not looked at before
        return sp.csr_matrix((w.value, w.index, w.begin), shape=(w.n, w.width)).T.tocsr()

    @property
    def intercept_(self) -> Floats:
        check_is_fitted(self, "model_")
        return self.model_.bias

    # ---- files

    _KEPT = (
        "multilabel",
        "listed",
        "dense",
        "threshold",
        "status",
        "primal",
        "dual",
        "gap",
        "n_trained",
        "n_rows",
        "n_iter",
    )

    def save(self, path: str | os.PathLike[str], extra: dict[str, Any] | None = None) -> None:
        """Writes the fitted model, without pickle; `extra` is kept in its header."""
        check_is_fitted(self, "model_")
        parameters = {}
        for name, value in self.get_params().items():
            if name not in ("callback", "scheduler", "classes", "checkpoint", "random_state"):
                parameters[name] = plain(value)
        kept = {name: plain(getattr(self, f"{name}_")) for name in self._KEPT}
        header = {"parameters": parameters, "kept": kept, "positives": self.positives_.tolist(), **(extra or {})}
        SparseModel(self.model_.weights, self.model_.bias, self.classes_, header, self.model_.order).save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Maps a model written by :meth:`save` into memory. Loading never runs code from the file."""
        model = SparseModel.load(path)
        try:
            known = set(cls._get_param_names())
            out = cls(**{k: v for k, v in model.header["parameters"].items() if k in known})
            check_settings(out)
            for name in cls._KEPT:
                setattr(out, f"{name}_", model.header["kept"][name])
            out.positives_ = np.array(model.header["positives"], np.int64)
        except DAMAGE as error:
            raise FormatError(f"not a model of {cls.__name__} ({error})", str(path)) from None
        if out.positives_.shape != (model.n_labels,):
            raise FormatError("damaged: counts of other labels", str(path))
        out.model_, out.classes_, out.n_features_in_ = model, model.classes, model.n_features
        out.trace_, out.label_info_ = [], None
        return out

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:  # plain arrays: handles of the core do not pickle
            m = state.pop("model_")
            arrays = [np.array(a) for a in (m.weights.begin, m.weights.index, m.weights.value, m.bias, m.order)]
            state["_packed"] = (arrays, m.n_labels)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop("_packed", None)
        super().__setstate__(state)
        if packed is not None:
            (begin, index, value, bias, order), width = packed
            self.model_ = SparseModel(Lines(begin, index, value, width), bias, self.classes_, {}, order)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Multilabel data in scikit-learn's sense have rows without a label, which pd-sparse cannot take.
        tags.classifier_tags.multi_label = trains_by_label(self)
        return tags
