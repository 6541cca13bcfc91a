"""StructuredSVM: max-margin training of chains, graphs, multilabel and multiclass models, as scikit-learn does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, SettingsError
from fginfer.learn import modelfile
from fginfer.learn.data import Encoded, Reals
from fginfer.learn.encode import CHOICE_MODELS, encode
from fginfer.learn.inputs import check_dense_input, check_settings, decode_output, seed_of, threads_of
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import Oracle, decode
from fginfer.learn.solvers import make_oracle, make_solver
from fginfer.learn.trace import LearnPoint, Limits, drive


class StructuredSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Minimises 1/2 |w|^2 + C * sum over examples of the structured hinge loss.

    Parameters
    ----------
    model : "chain", "graph", "multilabel" or "multiclass"; or tokens that choose among their own alternatives:
        "choices" (freely), "matching" (each alternative once), "parse" (projective dependency trees).
        :mod:`fginfer.learn.data` says what X and y look like.
    solver : "bcfw", "gdmm", "fw", "cutting-plane", "ssg", "soft-bcfw" (hinge loss); "dcd" (squared hinge);
        "perceptron", "mira" (no objective, no gap).
    C : weight of the loss. The loss of an answer counts wrong labels, or sums ``loss[truth][answer]``.
    tol : relative duality gap at which training ends. max_iter : passes. time_limit : seconds of training.
    n_jobs : threads of the oracles; the result does not depend on it. batch_size : answers found at the same weights.
    loss : (K, K) cost matrix over ``classes_`` sorted, or None for 0/1.
    pairwise : False leaves out the transition or interaction weights (chain, multilabel).
    oracle : an object with ``answer(learner, weights, example, loss)`` instead of the built-in decoders.
    eval_every : measure objective and gap every so many passes (0: only when it may be done, and at the end).
    checkpoint : a file written every `checkpoint_interval` seconds and at the end; an existing one is continued.
    warm_start : a second `fit` on the same data and settings goes on where the first ended.
    solver_options : further settings of the solver, as a dict; see the options class of its module.

    After `fit`: ``weights_`` (all parameters), ``coef_`` (labels x features), ``intercept_``, ``pairwise_`` (tables),
    ``classes_``, ``trace_`` (a list of LearnPoint), ``status_``, ``n_iter_``, ``primal_``, ``dual_``, ``gap_``.
    """

    def __init__(
        self,
        model: str = "chain",
        solver: str = "bcfw",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        fit_intercept: bool = True,
        pairwise: bool = True,
        loss: Any = None,
        batch_size: int = 1,
        oracle: Oracle | None = None,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.solver = solver
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.fit_intercept = fit_intercept
        self.pairwise = pairwise
        self.loss = loss
        self.batch_size = batch_size
        self.oracle = oracle
        self.eval_every = eval_every
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start
        self.solver_options = solver_options

    # ---- training

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> StructuredSVM:
        """Trains on X and y; `offsets` with concatenated chains. All input is checked before training starts."""
        check_settings(self)
        X, y = check_dense_input(self, X, y, fitting=True)
        data, classes = encode(
            self.model, X, y, offsets=offsets, intercept=self.fit_intercept, pairwise=self.pairwise, cost=self.loss
        )  # fmt: skip
        if self.model not in ("multilabel", *CHOICE_MODELS) and len(classes) < 2:
            raise DataError(f"y has one class only: {classes[0]!r}; a classifier needs at least 2 classes")
        learner = Learner(data, threads_of(self.n_jobs))
        oracle = make_oracle(self.oracle, self.model, learner)
        options = {"batch_size": self.batch_size, **(self.solver_options or {})}
        solver = make_solver(self.solver, learner, oracle, self.C, seed_of(self.random_state), options)
        passes, spent = self._resume(solver, data)
        limits = Limits(self.tol, self.max_iter, self.time_limit, self.eval_every, self.checkpoint_interval)

        def save(done: int, seconds: float) -> None:
            header = {"fingerprint": self._mark, "passes": done, "seconds": seconds}
            if self.checkpoint is not None:
                modelfile.write(self.checkpoint, header, solver.export())

        keep = save if self.checkpoint is not None else None
        self.status_, self.trace_ = drive(solver, limits, self.verbose, self.callback, keep, passes, spent)
        self._finish(solver, data, classes, self.trace_, passes)
        return self

    def _resume(self, solver: Any, data: Encoded) -> tuple[int, float]:
        """Passes and seconds already done, from a checkpoint or (warm_start) from the last fit."""
        names = ("model", "solver", "C", "random_state", "fit_intercept", "pairwise", "batch_size", "solver_options")
        wanted = self.checkpoint is not None or self.warm_start
        self._mark = modelfile.fingerprint(data, {name: getattr(self, name) for name in names}) if wanted else ""
        if self.checkpoint is not None and os.path.exists(self.checkpoint):
            header, arrays = modelfile.read(self.checkpoint)
            if header["fingerprint"] != self._mark:
                raise SettingsError(f"the checkpoint {self.checkpoint} was written for other data or settings")
            solver.restore(arrays)
            return int(header["passes"]), float(header["seconds"])
        saved = getattr(self, "_last_run", None)
        if self.warm_start and saved is not None and saved[0] == self._mark:
            solver.restore(saved[1])
        return 0, 0.0

    def _finish(self, solver: Any, data: Encoded, classes: NDArray[Any], trace: list[LearnPoint], before: int) -> None:
        self.weights_: Reals = solver.weights().copy()
        self.classes_ = classes
        self.n_features_in_ = data.rows.shape[1] - (bool(self.fit_intercept) and self.model not in CHOICE_MODELS)
        self.n_edge_features_ = data.n_edge_features
        self.n_iter_ = max(1, trace[-1].passes if trace else before)
        measured = [p for p in trace if p.primal is not None]
        last = measured[-1] if measured else None
        self.primal_, self.dual_, self.gap_ = (last.primal, last.dual, last.gap) if last else (None, None, None)
        self._last_run = (self._mark, solver.export()) if self.warm_start else None

    # ---- what was learned

    def _split(self) -> tuple[Reals, Reals]:
        check_is_fitted(self)
        if self.model in CHOICE_MODELS:  # one weight a feature
            return self.weights_.reshape(-1, 1), np.zeros((0, 1, 1))
        k, d = len(self.classes_), self.n_features_in_ + bool(self.fit_intercept)
        return self.weights_[: k * d].reshape(d, k), self.weights_[k * d :].reshape(-1, k, k)

    @property
    def coef_(self) -> Reals:
        """(labels, features)."""
        out: Reals = self._split()[0][: self.n_features_in_].T
        return out

    @property
    def intercept_(self) -> Reals:
        unary = self._split()[0]
        return unary[-1].copy() if self.fit_intercept and self.model not in CHOICE_MODELS else np.zeros(unary.shape[1])

    @property
    def pairwise_(self) -> Reals:
        """(pairwise features, K, K); of multilabel interactions only the entries [0][l][m] with l < m are used."""
        return self._split()[1]

    # ---- prediction

    def _learner(self, X: Any, y: Any, offsets: ArrayLike | None) -> Learner:
        check_is_fitted(self)
        X, _ = check_dense_input(self, X, None, fitting=False)
        data, _ = encode(
            self.model, X, y, offsets=offsets, classes=self.classes_, n_features=self.n_features_in_,
            n_edge_features=self.n_edge_features_, intercept=self.fit_intercept, pairwise=self.pairwise, cost=self.loss,
        )  # fmt: skip
        return Learner(data, threads_of(self.n_jobs))

    def predict(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Labels in the form of the training labels: a list for lists, one array for concatenated or flat input."""
        learner = self._learner(X, None, offsets)
        answers = decode(learner, make_oracle(self.oracle, self.model, learner), self.weights_, 0.0)
        return decode_output(self.model, answers, self.classes_, isinstance(X, (list, tuple)) and offsets is None)

    def loss_augmented_decode(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> tuple[Any, Reals]:
        """(answers, hinge losses): the argmax of score + loss for each example, and H_i(w)."""
        learner = self._learner(X, y, offsets)
        answers = decode(learner, make_oracle(self.oracle, self.model, learner), self.weights_, 1.0)
        listed = isinstance(X, (list, tuple)) and offsets is None
        return decode_output(self.model, answers, self.classes_, listed), learner.hinges(self.weights_, answers)

    def decision_function(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Scores of the single labels, (rows, labels); for two classes of a multiclass model the difference."""
        learner = self._learner(X, None, offsets)
        scores = np.asarray(learner.data.rows @ self._split()[0])
        if self.model == "multiclass" and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        if self.model in CHOICE_MODELS:
            return np.split(scores[:, 0], np.cumsum([e.rows.shape[0] for e in X])[:-1])
        if isinstance(X, (list, tuple)) and offsets is None and self.model in ("chain", "graph"):
            return np.split(scores, learner.data.token_begin[1:-1])
        return scores

    def score(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> float:
        """Share of labels (chain, graph, multiclass) or of whole label sets (multilabel) that are right."""
        learner = self._learner(X, y, offsets)
        answers = decode(learner, make_oracle(self.oracle, self.model, learner), self.weights_, 0.0)
        if self.model != "multilabel":
            return float(np.mean(answers.labels == learner.data.truth))
        begin = learner.data.truth_begin
        assert begin is not None
        truth = np.split(learner.data.truth, begin[1:-1])
        return float(np.mean([np.array_equal(a, b) for a, b in zip(answers.split(), truth, strict=True)]))

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model without pickle. Callbacks, oracles and other Python objects are not saved."""
        modelfile.write(path, *self.pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StructuredSVM:
        """Reads a model written by :meth:`save`. Loading never runs code from the file."""
        return cls.unpack(*modelfile.read(path))

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(header for JSON, arrays): the fitted model as plain data."""
        check_is_fitted(self)
        parameters = {
            k: v
            for k, v in self.get_params().items()
            if k not in ("callback", "oracle", "loss", "checkpoint") and _plain(v)
        }
        header = {
            "parameters": parameters, "n_features_in": int(self.n_features_in_),
            "n_edge_features": int(self.n_edge_features_), "status": self.status_, "n_iter": int(self.n_iter_),
            "primal": self.primal_, "dual": self.dual_, "gap": self.gap_,
        }  # fmt: skip
        classes = self.classes_ if not self.classes_.dtype.hasobject else np.array([str(c) for c in self.classes_])
        arrays = {"weights": self.weights_, "classes": classes}
        if self.loss is not None:
            arrays["loss"] = np.asarray(self.loss, np.float64)
        return header, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> StructuredSVM:
        """The reverse of :meth:`pack`."""
        known = {k: v for k, v in header["parameters"].items() if k in cls._get_param_names()}
        model = cls(**known, loss=arrays.get("loss"))
        model.weights_, model.classes_ = arrays["weights"], arrays["classes"]
        model.n_features_in_, model.n_edge_features_ = header["n_features_in"], header["n_edge_features"]
        model.status_, model.n_iter_, model.trace_ = header["status"], header["n_iter"], []
        model.primal_, model.dual_, model.gap_ = header["primal"], header["dual"], header["gap"]
        model._last_run = None
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = self.model == "multilabel"
        tags.non_deterministic = False
        return tags


def _plain(value: Any) -> bool:
    """Whether JSON keeps the value."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str))
