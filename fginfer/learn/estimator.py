"""StructuredSVM: max-margin training of chains, graphs, multilabel and multiclass models, as scikit-learn does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, FginferError, FormatError, SettingsError
from fginfer.learn import modelfile
from fginfer.learn.data import Encoded, Reals, is_listed
from fginfer.learn.encode import CHOICE_MODELS, encode
from fginfer.learn.inputs import (
    check_dense_input,
    check_fitted_shapes,
    check_settings,
    decode_output,
    seed_of,
    threads_of,
)
from fginfer.learn.labels import labels_are_listed
from fginfer.learn.learner import Answers, Learner
from fginfer.learn.oracle import Oracle, decode
from fginfer.learn.solvers import make_oracle, make_solver
from fginfer.learn.trace import LearnPoint, Limits, drive

# What model files keep of a fit, besides weights_ and classes_.
_SAVED = (
    "n_features_in", "n_edge_features", "edge_kind", "label_lists", "status", "n_iter", "primal", "dual", "gap",
)  # fmt: skip


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
    n_jobs : threads of the oracles; the result does not depend on it. batch_size : answers found at the same weights
        before their updates (the solvers that go from example to example); threads share the work on a batch.
    loss : (K, K) cost matrix over ``classes_`` sorted, or None for 0/1 (chain, graph, multiclass). Weights of tokens or
        examples are given with the data, see :class:`fginfer.learn.Example`.
    pairwise : False leaves out the transition or interaction weights.
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
        """Trains on X and y; `offsets` with concatenated examples. All input is checked before training starts."""
        check_settings(self)
        seed = seed_of(self.random_state)
        X, y = check_dense_input(self, X, y, fitting=True)
        data, classes = encode(
            self.model, X, y, offsets=offsets, intercept=self.fit_intercept, pairwise=self.pairwise, cost=self.loss
        )  # fmt: skip
        if self.model not in ("multilabel", *CHOICE_MODELS) and len(classes) < 2:
            raise DataError(f"y has one class only: {classes[0]!r}; a classifier needs at least 2 classes")
        learner = Learner(data, threads_of(self.n_jobs))
        oracle = make_oracle(self.oracle, self.model, learner)
        options = {"batch_size": self.batch_size, **(self.solver_options or {})}
        solver = make_solver(self.solver, learner, oracle, self.C, seed, options)
        passes, spent = self._resume(solver, data)
        limits = Limits(self.tol, self.max_iter, self.time_limit, self.eval_every, self.checkpoint_interval)

        def save(done: int, seconds: float) -> None:
            header = {"fingerprint": self._mark, "passes": done, "seconds": seconds}
            if self.checkpoint is not None:
                modelfile.write(self.checkpoint, header, solver.export())

        keep = save if self.checkpoint is not None else None
        self.status_, self.trace_ = drive(solver, limits, self.verbose, self.callback, keep, passes, spent)
        self.label_lists_ = self.model == "multilabel" and labels_are_listed(y)
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
        self.n_edge_features_, self.edge_kind_ = data.n_edge_features, data.edge_kind
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

    def _encode(self, X: Any, y: Any, offsets: ArrayLike | None, reachable: bool = True) -> Encoded:
        check_is_fitted(self)
        X, _ = check_dense_input(self, X, None, fitting=False)
        data, _ = encode(
            self.model, X, y, offsets=offsets, classes=self.classes_, n_features=self.n_features_in_,
            n_edge_features=self.n_edge_features_, edge_kind=self.edge_kind_, intercept=self.fit_intercept,
            pairwise=self.pairwise, cost=self.loss, reachable=reachable,
        )  # fmt: skip
        return data

    def _decode(self, data: Encoded, loss: float = 0.0) -> tuple[Learner, Answers]:
        learner = Learner(data, threads_of(self.n_jobs))
        oracle = make_oracle(self.oracle, self.model, learner)
        return learner, decode(learner, oracle, self.weights_, loss)

    def _output(self, answers: Answers, X: Any, offsets: ArrayLike | None) -> Any:
        """In the user's labels and in the form of the input (multilabel: of the training labels)."""
        if self.model == "multilabel":
            listed = self.label_lists_
        else:
            listed = offsets is None if self.model in CHOICE_MODELS else is_listed(X, offsets)
        return decode_output(self.model, answers, self.classes_, listed)

    def predict(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Labels in the form of the training labels: a list for lists, one array for concatenated or flat input."""
        return self._output(self._decode(self._encode(X, None, offsets))[1], X, offsets)

    def loss_augmented_decode(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> tuple[Any, Reals]:
        """(answers, hinge losses): the argmax of score + loss for each example, and H_i(w)."""
        learner, answers = self._decode(self._encode(X, y, offsets), 1.0)
        return self._output(answers, X, offsets), learner.hinges(self.weights_, answers)

    def decision_function(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Scores of the single labels, (rows, labels), or of the alternatives; for two classes of a table the
        difference. Multilabel: what switching a label on gains, given the other labels of the answer."""
        data = self._encode(X, None, offsets)
        scores: Reals = np.asarray(data.rows @ self._split()[0])
        if self.model in CHOICE_MODELS:
            assert data.choice_begin is not None
            cuts = data.choice_begin[data.token_begin[1:-1]]
            return np.split(scores[:, 0], cuts) if offsets is None else scores[:, 0]
        if self.model == "multilabel" and self.pairwise:
            pairs = np.triu(self.pairwise_[0], 1)
            on = decode_output(self.model, self._decode(data)[1], np.arange(len(self.classes_)), False)
            return scores + on @ (pairs + pairs.T)
        if self.model in ("chain", "graph") and is_listed(X, offsets):
            return np.split(scores, data.token_begin[1:-1])
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 and self.model != "multilabel" else scores

    def score(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> float:
        """Share of labels (chain, graph, multiclass, choices) or of whole label sets (multilabel) that are right. A
        true label that is not among the candidates of its token counts as wrong, one never seen in training is an
        error."""
        data = self._encode(X, y, offsets, reachable=False)
        truth, begin = data.truth, data.truth_begin
        if data.kind == 0 and data.choice_begin is not None and data.choice is not None:
            data.truth = data.choice[data.choice_begin[:-1]]
        answers = self._decode(data)[1]
        if begin is None:
            return float(np.mean(answers.labels == truth))
        pairs = zip(answers.split(), np.split(truth, begin[1:-1]), strict=True)
        return float(np.mean([np.array_equal(a, b) for a, b in pairs]))

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model without pickle. Callbacks, oracles and other Python objects are not saved."""
        modelfile.write(path, *self.pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StructuredSVM:
        """Reads a model written by :meth:`save`. Loading never runs code from the file."""
        header, arrays = modelfile.read(path)
        try:
            return cls.unpack(header, arrays)
        except (KeyError, TypeError, ValueError, FginferError) as error:
            raise FormatError(f"not a model of StructuredSVM ({error})", str(path)) from None

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(header for JSON, arrays): the fitted model as plain data."""
        check_is_fitted(self)
        parameters = {}
        for name, value in self.get_params().items():
            with suppress(TypeError):  # Python objects do not go into model files
                if name not in ("callback", "oracle", "loss", "checkpoint"):
                    parameters[name] = modelfile.plain(value)
        header = {
            "parameters": parameters, **{name: modelfile.plain(getattr(self, f"{name}_")) for name in _SAVED},
        }  # fmt: skip
        arrays = {"weights": self.weights_, "classes": self.classes_}
        if self.loss is not None:
            arrays["loss"] = np.asarray(self.loss, np.float64)
        return header, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> StructuredSVM:
        """The reverse of :meth:`pack`. What does not fit together is a DataError: the core never sees it."""
        known = {k: v for k, v in dict(header["parameters"]).items() if k in cls._get_param_names()}
        model = cls(**known, loss=arrays.get("loss"))
        check_settings(model)
        for name in _SAVED:
            setattr(model, f"{name}_", header[name])
        model.weights_, model.classes_ = arrays["weights"], arrays["classes"]
        model.trace_, model._last_run = [], None
        check_fitted_shapes(model)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = self.model == "multilabel"
        tags.non_deterministic = False
        return tags
