"""EmbeddingClassifier: many labels over dense features, or over one hidden layer on sparse ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fginfer.archives import DAMAGE
from fginfer.core import clock
from fginfer.core.arrays import begins
from fginfer.core.door import VERSION, cpu_path
from fginfer.core.losses import METHODS
from fginfer.core.search import Floats
from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn.data.inputs import check_flag, check_ranges, check_run_settings, seed_of, threads_of
from fginfer.learn.data.labels import encode_labels, encode_sets, label_array, label_sets, labels_are_listed
from fginfer.learn.embedding.sgd import EmbeddingSgd, Samples, SgdSettings, last_layer_input
from fginfer.learn.files import storage
from fginfer.learn.losses import NAMES
from fginfer.learn.run.checkpoints import Checkpoints
from fginfer.learn.run.loop import LearnPoint, Limits, drive, shown
from fginfer.log import logger, thousands
from fginfer.options import check_whole, is_number
from fginfer.search import SearchIndex
from fginfer.search_questions import check_way

_SAVED = ("n_features_in", "label_lists", "threshold", "status", "n_iter", "objective")
MANY = 2000  # labels from which prediction asks an index
CHUNK = 4_000_000  # scores computed at a time
BY_CODES = {"search": 64, "decomposed": 128}  # labels a search by codes returns (bench inner_products)


class EmbeddingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Scores <row_k, x> of many labels, x the features or a hidden layer of them, trained by stochastic gradients.

    Parameters
    ----------
    task : "multiclass" (y: one label a row) or "multilabel" (y: lists of labels, or a matrix of zeros and ones; rows
        without any label, or with all of them, are not learned from).
    loss : "margin" (smoothed by `mu`), "cross-entropy", "triplet", or "nca" (rows are proxies, scores distances).
    method : how losses and gradients are found. "exact"; "sampled" (the positives and a sample); "search" (the labels
        with the largest scores); "decomposed" (searches in `blocks` of the coordinates, joined by messages).
    queries : labels a search returns, or sample size; None: 64 for "search" by codes, 128 for every block of
        "decomposed" by codes, else a hundredth of the labels, at least 100. candidates : labels that a search by codes
        scores exactly; "auto": as many as `queries`, unless `probes` are given; None: no codes. probes : clusters that
        a search visits in place of codes; neither: exact searches.
    keep : see :class:`fginfer.learn.losses.EmbeddingLoss`.
    hidden : size of a rectified hidden layer, None for a linear model. fit_intercept : a constant feature (not nca).
    eta0 : step size; eta0 / (1 + t) after t epochs, for every sample of a batch.
    batch_size : samples whose gradients are found at the same weights. max_iter : epochs.
    sampled_epochs : "search" and "decomposed" begin with so many epochs by sampling: early scores tell nothing.
    alpha : weight decay, in every batch, of the rows of the labels that its samples have; other rows and the hidden
        layer do not decay, so this is not an l2 term of the objective.
    time_limit : seconds `fit` may take. eval_every : measure the objective (mean exact loss of up to 1000 training
        samples) every so many epochs, 0 only at the end.
    n_jobs, random_state, verbose, callback, checkpoint, checkpoint_interval, warm_start : as in StructuredSVM.

    After `fit`: ``rows_`` (labels, width), ``hidden_`` (features, hidden) or None, ``classes_``, ``objective_``,
    ``status_`` (iteration_limit, time_limit, stopped, interrupted), ``trace_``, ``n_iter_``; ``threshold_`` of
    multilabel models: labels are predicted whose score, less the best score, is not below it; set so that training
    samples get as many labels as they have.

    >>> from fginfer.learn import EmbeddingClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 20
    >>> X = np.eye(20)[y] + 0.1 * rng.standard_normal((200, 20))
    >>> EmbeddingClassifier(max_iter=20, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    run_settings = (
        "task", "loss", "method", "queries", "probes", "candidates", "keep", "blocks", "rounds", "mu", "hidden",
        "fit_intercept", "eta0", "batch_size", "sampled_epochs", "alpha",
    )  # fmt: skip

    kind: ClassVar[str] = "embedding"

    def __init__(
        self,
        task: str = "multiclass",
        loss: str = "margin",
        method: str = "exact",
        mu: float = 1.0,
        queries: int | None = None,
        probes: int | None = None,
        candidates: int | str | None = "auto",
        keep: int | None = None,
        blocks: int = 2,
        rounds: int = 1,
        hidden: int | None = None,
        fit_intercept: bool = True,
        eta0: float = 0.1,
        batch_size: int = 16,
        max_iter: int = 20,
        sampled_epochs: float = 0.5,
        alpha: float = 0.0,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
    ) -> None:
        self.task = task
        self.loss = loss
        self.method = method
        self.mu = mu
        self.queries = queries
        self.probes = probes
        self.candidates = candidates
        self.keep = keep
        self.blocks = blocks
        self.rounds = rounds
        self.hidden = hidden
        self.fit_intercept = fit_intercept
        self.eta0 = eta0
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.sampled_epochs = sampled_epochs
        self.alpha = alpha
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.eval_every = eval_every
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start

    # ---- training

    def fit(self, X: Any, y: Any) -> Self:
        """Trains. Ctrl-C raises KeyboardInterrupt, after which the model has what was learned until then."""
        begin = clock.now()
        self._check_settings()
        seed = seed_of(self.random_state)
        data = self._samples(X, y)
        solver = EmbeddingSgd(data, self._sgd(seed, data.n_labels))
        run = Checkpoints(self, data, solver, None, seed)
        limits = Limits(0.0, self.max_iter, self.time_limit, self.eval_every, self.checkpoint_interval)
        with shown(self.verbose):
            threads = threads_of(self.n_jobs)
            logger.info(
                f"fginfer {VERSION} · sgd · {self.loss}, {self.method} · {cpu_path()} · {threads} threads · seed {seed}"
                " · the objective is minimised"
            )
            sizes = [(len(data), "samples"), (data.n_labels, "labels"), (data.X.shape[1], "features")]
            logger.info(", ".join(f"{thousands(n)} {what}" for n, what in sizes))
            self.status_, self.trace_ = drive(
                solver, limits, self.verbose, self.callback, run.save, run.progress, begin
            )  # fmt: skip
        self.rows_, self.hidden_ = solver.rows, solver.hidden
        last = self.trace_[-1]
        self.n_iter_, self.objective_ = max(1, last.passes), last.primal
        self.threshold_ = self._threshold(solver) if self.task == "multilabel" else None
        self._last_run = run.state() if self.warm_start and self.status_ != "interrupted" else None
        self._index: SearchIndex | None = None
        if self.status_ == "interrupted":
            raise KeyboardInterrupt
        return self

    def _check_settings(self) -> None:
        for name, known in (("task", ("multiclass", "multilabel")), ("loss", NAMES), ("method", tuple(METHODS))):
            if getattr(self, name) not in known:
                raise SettingsError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        rules = (
            ("mu", False, None), ("eta0", False, None), ("batch_size", True, 1), ("blocks", True, 1),
            ("rounds", True, 1), ("sampled_epochs", False, 0), ("alpha", False, 0),
        )  # fmt: skip
        check_ranges(self, rules)
        check_flag(self, "fit_intercept")
        check_run_settings(self)
        for name in ("queries", "probes", "candidates", "hidden"):
            value = getattr(self, name)
            if name == "candidates" and isinstance(value, str) and value == "auto":
                continue
            if value is not None and not (is_number(value, whole=True) and value >= 1):
                raise SettingsError(f"{name} must be None or a positive whole number, not {value!r}")
        if self.keep is not None and not (is_number(self.keep, whole=True) and self.keep >= 0):
            raise SettingsError(f"keep must be None or a whole number, not {self.keep!r}")

    def _sgd(self, seed: int, n_labels: int) -> SgdSettings:
        candidates = self.candidates
        if isinstance(candidates, str):  # codes, unless clusters are asked for
            candidates = 1 if self.probes is None else None
        queries = None if self.queries is None else int(self.queries)
        if queries is not None and queries > n_labels:
            raise SettingsError(f"queries is {queries}, but there are {n_labels} labels only")
        if queries is None and candidates is not None and self.method in BY_CODES:
            queries = min(BY_CODES[self.method], n_labels)
        width = (self.hidden or self.n_features_in_) + (self._has_intercept() or self.loss == "nca")
        if self.method == "decomposed" and self.blocks > width:  # told before the epochs by sampling
            raise SettingsError(f"blocks must be at most {width}, what the last layer sees, not {self.blocks}")
        loss = {
            "loss": self.loss, "mu": float(self.mu), "queries": queries, "probes": self.probes, "keep": self.keep,
            "candidates": candidates,
            "blocks": self.blocks, "rounds": self.rounds, "n_jobs": threads_of(self.n_jobs), "seed": seed,
        }  # fmt: skip
        return SgdSettings(
            float(self.eta0), int(self.batch_size), float(self.sampled_epochs), self.method, self._has_intercept(),
            None if self.hidden is None else int(self.hidden), float(self.alpha), seed, loss,
        )  # fmt: skip

    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept) and self.loss != "nca"

    def _features(self, X: Any, y: Any = "no_validation", fitting: bool = False) -> tuple[Any, Any]:
        """Single precision; dense unless there is a hidden layer."""
        settings: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float32, np.float64], "reset": fitting}
        if fitting and self.task == "multiclass":
            X, y = validate_data(self, X, y, **settings)
        else:
            X = validate_data(self, X, **settings)
        with np.errstate(over="ignore"):
            X = X.astype(np.float32, copy=False)
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise DataError("X holds numbers that are too large for single precision")
        return (X.toarray() if sp.issparse(X) and self.hidden is None else X), y

    def _samples(self, X: Any, y: Any) -> Samples:
        X, y = self._features(X, y, fitting=True)
        n = X.shape[0]
        self.label_lists_ = self.task == "multilabel" and labels_are_listed(y)
        if self.task == "multiclass":
            with warnings.catch_warnings():  # one sample a label is nothing odd here
                warnings.filterwarnings("ignore", "The number of unique classes")
                check_classification_targets(y)
            flat = label_array(y, "y")
            self.classes_ = np.unique(flat)
            labels, begin = encode_labels(flat, self.classes_), np.arange(n + 1, dtype=np.int64)
        else:
            sets, names = label_sets(y, n)
            filled = [s for s in sets if len(s)]
            if not filled:
                raise DataError("no example has a label")
            self.classes_ = np.unique(np.concatenate(filled)) if names is None else names
            labels, begin = encode_sets(sets, self.classes_)
            sizes = np.diff(begin)
            use = np.flatnonzero((sizes > 0) & (sizes < len(self.classes_)))
            X, labels = X[use], labels[np.repeat((sizes > 0) & (sizes < len(self.classes_)), sizes)]
            begin = begins(sizes[use])
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise DataError(f"y has one class only: {only!r}; a classifier needs at least 2 classes")
        if len(begin) < 2:
            raise DataError("every example has all labels: there is nothing to learn")
        return Samples(X, begin, labels.astype(np.int32), len(self.classes_))

    def _threshold(self, solver: EmbeddingSgd) -> float:
        """The relative score from which measured training samples have as many labels as they should."""
        which = solver.sample
        wanted = int((solver.data.begin[which + 1] - solver.data.begin[which]).sum())
        best = np.full(0, -np.inf, np.float32)
        for at in range(0, len(which), max(1, CHUNK // len(self.rows_))):
            part = which[at : at + max(1, CHUNK // len(self.rows_))]
            scores = np.concatenate([best, self._relative(solver.inputs(part)[1]).ravel()])
            best = np.partition(scores, -min(wanted, len(scores)))[-min(wanted, len(scores)) :]
        return float(best.min())

    # ---- prediction

    def embed(self, X: Any) -> Floats:
        """What the last layer sees: the hidden layer's outputs, or the features, and the constant."""
        check_is_fitted(self, "rows_")
        return last_layer_input(self._features(X)[0], self.hidden_, self._has_intercept())

    def _scores(self, x: Floats) -> Floats:
        if self.loss != "nca":
            return x @ self.rows_.T
        products: Floats = 2 * (x @ self.rows_.T) - np.square(self.rows_).sum(1) - np.square(x).sum(1, keepdims=True)
        return products

    def _relative(self, x: Floats) -> Floats:
        """Scores less the best of the row: the losses do not see a shift of all scores, nor may a threshold."""
        scores = self._scores(x)
        out: Floats = scores - scores.max(1, keepdims=True)
        return out

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores, (rows, labels); for two classes the difference."""
        scores = self._scores(self.embed(X))
        two = self.task == "multiclass" and len(self.classes_) == 2
        return scores[:, 1] - scores[:, 0] if two else scores

    def top(
        self, X: Any, k: int = 1, *, probes: int | None = None, candidates: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """(labels, scores) of the k best labels of each row, best first. With thousands of labels a search index finds
        them: exactly, or, with `probes`, among the rows of so many clusters, or, with `candidates`, by codes."""
        x = self.embed(X)
        check_whole("k", k)
        if not 1 <= k <= len(self.classes_):
            raise SettingsError(f"k must lie in 1 .. {len(self.classes_)}, not {k!r}")
        check_way(probes, candidates)
        if len(self.classes_) < MANY or self.loss == "nca":
            scores = self._scores(x).astype(np.float64)
            order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            return self.classes_[order], np.take_along_axis(scores, order, 1)
        if getattr(self, "_index", None) is None:
            self._index = SearchIndex(self.rows_, threads=threads_of(self.n_jobs))
        assert self._index is not None
        found = self._index.search(x, k, probes=probes, candidates=candidates)
        return self.classes_[found.labels], found.values

    def predict(self, X: Any) -> Any:
        """Labels; multilabel: in the form of the training labels, the best, and those within ``threshold_`` of it."""
        if self.task == "multiclass":
            return self.top(X, 1)[0][:, 0]
        x, parts = self.embed(X), []
        for at in range(0, len(x), max(1, CHUNK // len(self.rows_))):
            scores = self._relative(x[at : at + max(1, CHUNK // len(self.rows_))])
            parts.append(sp.csr_matrix(scores >= (self.threshold_ or 0.0)))
        on = sp.vstack(parts).tocsr() if parts else sp.csr_matrix((0, len(self.classes_)))
        if self.label_lists_:
            return [self.classes_[on.indices[a:b]] for a, b in zip(on.indptr[:-1], on.indptr[1:], strict=True)]
        return on.toarray().astype(np.int64)

    def score(self, X: Any, y: Any) -> float:
        """Multiclass: share of right labels. Multilabel: how often the best label is right (precision at 1)."""
        best = self.top(X, 1)[0][:, 0]
        if self.task == "multiclass":
            return float(np.mean(best == label_array(y, "y")))
        sets, names = label_sets(y, len(best))
        known = sets if names is None else [names[s] if len(s) else s for s in sets]
        return float(np.mean([label in s for label, s in zip(best, known, strict=True)]))

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model without pickle. Callbacks are not saved."""
        check_is_fitted(self, "rows_")
        parameters = {k: storage.plain(v) for k, v in self.get_params().items() if k not in ("callback", "checkpoint")}
        header = {"kind": self.kind, "parameters": parameters}
        header |= {name: storage.plain(getattr(self, f"{name}_")) for name in _SAVED}
        arrays = {"rows": self.rows_, "classes": self.classes_}
        if self.hidden_ is not None:
            arrays["hidden"] = self.hidden_
        storage.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a model written by :meth:`save`. Loading never runs code from the file."""
        header, arrays = storage.read(path)
        try:
            return cls.unpack(header, arrays)
        except DAMAGE as error:
            raise FormatError(f"not a model of {cls.__name__} ({error})", str(path)) from None

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The model of what a file holds; a DataError if that does not fit together."""
        if header["kind"] != cls.kind:
            raise DataError(f"its kind is {header['kind']}, not {cls.kind}")
        model = cls(**header["parameters"])
        model._check_settings()
        for name in _SAVED:
            setattr(model, f"{name}_", header[name])
        model.rows_, model.classes_, model.hidden_ = arrays["rows"], arrays["classes"], arrays.get("hidden")
        width = model.n_features_in_ if model.hidden_ is None else model.hidden_.shape[1]
        shapes = [(model.rows_, (len(model.classes_), width + model._has_intercept()))]
        shapes += [] if model.hidden_ is None else [(model.hidden_, (model.n_features_in_, model.hidden))]
        for array, shape in shapes:
            if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
                raise DataError(f"its weights are not {shape} finite numbers")
        model.trace_, model._last_run, model._index = [], None, None
        return model

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_index": None} if "_index" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = self.task == "multilabel"
        tags.non_deterministic = False
        return tags
