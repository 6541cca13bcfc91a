"""What the estimators share: training runs that stop, are saved and go on; prediction; model files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fginfer.archives import DAMAGE
from fginfer.core import clock
from fginfer.core.learn import Kind
from fginfer.errors import DataError, FormatError, SolverError
from fginfer.learn.data.empties import past_empties
from fginfer.learn.data.encode import CHOICE_MODELS, MODELS, TOKEN_MODELS, check_cost, encode
from fginfer.learn.data.examples import Encoded, Reals, is_listed
from fginfer.learn.data.inputs import (
    check_dense_input,
    check_fitted_shapes,
    check_settings,
    decode_output,
    seed_of,
    threads_of,
)
from fginfer.learn.data.labels import labels_are_listed
from fginfer.learn.data.magnitudes import are_sound
from fginfer.learn.data.sequences import in_the_form_of
from fginfer.learn.files import storage
from fginfer.learn.learner import Decoded, Learner
from fginfer.learn.max_marginals import max_marginals
from fginfer.learn.oracle import Oracle, decode
from fginfer.learn.row_weights import RowWeights, Weights, from_nonzeros, nonzeros, split, values_of
from fginfer.learn.run.checkpoints import Checkpoints
from fginfer.learn.run.loop import LearnPoint, Limits, drive, log_start, shown
from fginfer.learn.run.trainer import TOO_LARGE
from fginfer.learn.solvers.caveats import tell
from fginfer.learn.solvers.registry import choose_solver, make_oracle, make_solver, wants_rows

# What model files keep of a fit, besides weights_ and classes_.
_SAVED = (
    "n_features_in", "n_edge_features", "edge_kind", "label_lists", "status", "n_iter", "primal", "dual", "gap",
)  # fmt: skip


def pack_weights(weights: Weights) -> dict[str, NDArray[Any]]:
    """All weights, or where that is shorter the places and values of those that are not zero."""
    if not isinstance(weights, RowWeights) and 2 * np.count_nonzero(weights) > len(weights):
        return {"weights": weights}
    where, values = nonzeros(weights)
    return {"where": where, "values": values, "size": np.array([len(weights)])}


class StructuredEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, which differ in how they score the labels of single tokens."""

    models: ClassVar[tuple[str, ...]] = MODELS
    kind: ClassVar[str]  # the kind of the model files
    sparse_weights: ClassVar[bool] = False  # whether weights may be kept by rows

    weights_: Any  # an array, or RowWeights
    classes_: NDArray[Any]
    n_features_in_: int
    n_edge_features_: int

    def __init__(
        self,
        model: str = "chain",
        solver: str = "auto",
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
        class_weight: Any = None,
        hash_features: int | None = None,
        unseen: str = "ignore",
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
        self.class_weight = class_weight
        self.hash_features = hash_features
        self.unseen = unseen

    # ---- what a subclass says

    def _check_settings(self) -> None:
        check_settings(self)

    def _learn_rows(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """The features of the training as the solver is to see them."""
        raise NotImplementedError

    def _named(self, X: Any, fitting: bool = False) -> Any:
        """X with tables of features where it has tokens with named ones."""
        return X

    def _weigh(self, data: Encoded, classes: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        """Puts weights of examples and classes into the training data."""

    def _keep(self, weights: Any) -> Any:
        """From the solver's weights to ``weights_``; the end of a fit."""
        return weights

    def _apply(self, data: Encoded) -> Any:
        """Puts features of new data into its rows as the learner is to see them, and gives the weights for these."""
        raise NotImplementedError

    def _width(self) -> int:
        """Rows of the unary part of ``weights_``."""
        raise NotImplementedError

    # ---- training

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> Self:
        """Trains on X and y; `offsets` with concatenated examples. All input is checked before training starts.

        Ctrl-C raises KeyboardInterrupt (a caller's loop must stop), after which the model has what was learned until
        then, and ``status_`` is "interrupted".
        """
        return self._fit(X, y, offsets)

    def _fit(self, X: Any, y: Any, offsets: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        begin = clock.now()
        self._check_settings()
        seed = seed_of(self.random_state)
        X, y = check_dense_input(self, self._named(X, fitting=True), y, fitting=True)
        data, classes = encode(
            self.model, X, y, offsets=offsets, intercept=False, pairwise=self.pairwise, cost=self.loss
        )  # fmt: skip
        if self.model in TOKEN_MODELS and len(classes) < 2:
            raise DataError(f"y has one class only: {classes[0].item()!r}; a classifier needs at least 2 classes")
        n_features = data.rows.shape[1]
        data.rows = self._learn_rows(data.rows)
        self.solver_ = choose_solver(self.solver, self.model, self.pairwise)
        self._weigh(data, classes, sample_weight)
        options = {"batch_size": self.batch_size, **(self.solver_options or {})}
        sparse = self.sparse_weights and wants_rows(self.solver_, data, self.oracle, options)
        learner = Learner(data, threads_of(self.n_jobs), sparse)
        oracle = make_oracle(self.oracle, self.model, learner)
        getattr(oracle, "check", lambda _: None)(data)
        solver = make_solver(self.solver_, learner, oracle, self.C, seed, options)
        self._train(solver, Checkpoints(self, data, solver, oracle, seed), seed, begin)
        self.classes_, self.n_features_in_ = classes, n_features
        self.n_edge_features_, self.edge_kind_ = data.n_edge_features, data.edge_kind
        self.label_lists_ = self.model == "multilabel" and labels_are_listed(y)
        self.weights_ = self._keep(solver.weights().copy())
        if not are_sound(values_of(self.weights_)):
            raise SolverError(TOO_LARGE)
        if self.status_ == "interrupted":
            raise KeyboardInterrupt
        return self

    def _train(self, solver: Any, run: Checkpoints, seed: int, begin: float) -> None:
        """Runs the solver, on from where `run` has restored it."""
        limits = Limits(self.tol, self.max_iter, self.time_limit, self.eval_every, self.checkpoint_interval)
        with shown(self.verbose):
            log_start(getattr(self, "solver_", self.solver), solver.learner, seed)
            tell(solver)
            self.status_, self.trace_ = drive(
                solver, limits, self.verbose, self.callback, run.save, run.progress, begin
            )  # fmt: skip
        last = self.trace_[-1]
        self.n_iter_ = max(1, last.passes)
        self.primal_, self.dual_, self.gap_ = last.primal, last.dual, last.gap
        self.sampled_ = last.sampled
        if last.primal is not None and last.sampled < 1:
            warn(
                f"primal_ is an estimate from {last.sampled:.1%} of the examples: there was no time to measure all"
                " (sampled_ is that share, gap_ is None)", UserWarning, stacklevel=4,
            )  # fmt: skip
        keeps = self.status_ != "interrupted" or signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._last_run = run.state() if self.warm_start and keeps else None  # never what was left half-way

    # ---- what was learned

    def _split(self, weights: Weights, width: int) -> tuple[Any, Reals]:
        """Unary weights (width x labels), CSR if kept by rows, and pairwise tables (features x labels x labels)."""
        if self.model in CHOICE_MODELS:  # one weight a feature
            return np.asarray(weights).reshape(-1, 1), np.zeros((0, 1, 1))
        return split(weights, width, len(self.classes_))

    @property
    def pairwise_(self) -> Reals:
        """(pairwise features, K, K); of multilabel interactions only the entries [0][l][m] with l < m are used."""
        check_is_fitted(self, "weights_")
        return self._split(self.weights_, self._width())[1]

    # ---- prediction

    def _encode(self, X: Any, y: Any, offsets: ArrayLike | None, reachable: bool = True) -> tuple[Encoded, Any]:
        """New data with the classes and features of the training, and the weights for it."""
        check_is_fitted(self, "weights_")
        X, _ = check_dense_input(self, X, None, fitting=False)
        data, _ = encode(
            self.model, X, y, offsets=offsets, classes=self.classes_, n_features=self.n_features_in_,
            n_edge_features=self.n_edge_features_, edge_kind=self.edge_kind_, intercept=False,
            pairwise=self.pairwise, cost=self.loss, reachable=reachable,
        )  # fmt: skip
        return data, self._apply(data)

    def _decode(self, data: Encoded, weights: Weights, loss: float = 0.0) -> tuple[Learner, Decoded]:
        learner = Learner(data, threads_of(self.n_jobs), isinstance(weights, RowWeights))
        oracle = make_oracle(self.oracle, self.model, learner)
        return learner, decode(learner, oracle, weights, loss)

    def _output(self, answers: Decoded, X: Any, offsets: ArrayLike | None) -> Any:
        """In the user's labels and in the form of the input (multilabel: of the training labels)."""
        if self.model == "multilabel":
            listed = self.label_lists_
        else:
            listed = offsets is None if self.model in CHOICE_MODELS else is_listed(X, offsets)
        found = decode_output(self.model, answers, self.classes_, listed)
        return in_the_form_of(X, found) if isinstance(found, list) else found

    @past_empties(lambda self: ())
    def predict(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Labels in the form of the training labels: a list for lists, one array for concatenated or flat input.
        A sequence without tokens, among others, gets no labels."""
        X = self._named(X)
        return self._output(self._decode(*self._encode(X, None, offsets))[1], X, offsets)

    def loss_augmented_decode(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> tuple[Any, Reals]:
        """(answers, hinge losses): the argmax of score + loss for each example, and H_i(w)."""
        X = self._named(X)
        data, weights = self._encode(X, y, offsets)
        learner, answers = self._decode(data, weights, 1.0)
        return self._output(answers, X, offsets), learner.hinges(weights, answers)

    @past_empties(lambda self: (len(self.classes_),))
    def decision_function(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Chains and graphs: (tokens, labels), the score of the best labeling in which the token has the label
        (max-marginals). The largest of a row is the score of the answer, and the lead over the second the margin of
        the token; on graphs with cycles the other tokens keep the labels of the answer. Multiclass: the scores of the
        labels; choices: of the alternatives; multilabel: what switching a label on gains, given the other labels of
        the answer. For two classes of a table the difference."""
        X = self._named(X)
        data, weights = self._encode(X, None, offsets)
        unary, tables = self._split(weights, data.rows.shape[1])
        if self.model in ("chain", "graph"):
            learner, answers = self._decode(data, weights)
            scores = max_marginals(learner, weights, tables, answers.split())
            if is_listed(X, offsets):
                return in_the_form_of(X, np.split(scores, data.token_begin[1:-1]))
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        product = data.rows @ unary
        scores = product.toarray() if sp.issparse(product) else np.asarray(product)
        if self.model in CHOICE_MODELS:
            assert data.choice_begin is not None
            cuts = data.choice_begin[data.token_begin[1:-1]]
            return np.split(scores[:, 0], cuts) if offsets is None else scores[:, 0]
        if self.model == "multilabel" and self.pairwise:
            pairs = np.triu(self.pairwise_[0], 1)
            on = decode_output(self.model, self._decode(data, weights)[1], np.arange(len(self.classes_)), False)
            return scores + on @ (pairs + pairs.T)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 and self.model != "multilabel" else scores

    def score(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> float:
        """Share of labels (chain, graph, multiclass, choices) or of whole label sets (multilabel) that are right. A
        true label that is not among the candidates of its token counts as wrong, one never seen in training is an
        error."""
        data, weights = self._encode(self._named(X), y, offsets, reachable=False)
        truth, begin = data.truth, data.truth_begin
        if data.kind == Kind.LABELS and data.choice_begin is not None and data.choice is not None:
            data.truth = data.choice[data.choice_begin[:-1]]
        answers = self._decode(data, weights)[1]
        if begin is None:
            return float(np.mean(answers.labels == truth))
        pairs = zip(answers.split(), np.split(truth, begin[1:-1]), strict=True)
        return float(np.mean([np.array_equal(a, b) for a, b in pairs]))

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model without pickle. Callbacks, oracles, class weights in a dict and other Python
        objects are not saved."""
        storage.write(path, *self.pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a model written by :meth:`save`. Loading never runs code from the file."""
        return cls._from_file(path, *storage.read(path))

    @classmethod
    def _from_file(
        cls, path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]], **given: Any
    ) -> Self:
        try:
            return cls.unpack(header, arrays, **given)
        except DAMAGE as error:
            raise FormatError(f"not a model of {cls.__name__} ({error})", str(path)) from None

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(header for JSON, arrays): the fitted model as plain data."""
        check_is_fitted(self, "weights_")
        parameters = {}
        for name, value in self.get_params().items():
            with suppress(TypeError):  # Python objects do not go into model files
                skipped = name in ("callback", "oracle", "loss", "checkpoint")
                if not skipped and not (name == "class_weight" and isinstance(value, dict)):
                    parameters[name] = storage.plain(value)
        header = {
            "kind": self.kind, "parameters": parameters,
            **{name: storage.plain(getattr(self, f"{name}_")) for name in _SAVED},
            "sampled": float(getattr(self, "sampled_", 1.0)),
        }  # fmt: skip
        arrays = {"classes": self.classes_, **pack_weights(self.weights_)}
        if self.loss is not None:  # a function is kept as what it says
            k = len(self.classes_)
            arrays["loss"] = np.asarray(
                check_cost(self.loss, k, self.model, self.classes_) if callable(self.loss) else self.loss, np.float64
            )
        return header, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], **given: Any) -> Self:
        """The reverse of :meth:`pack`. What does not fit together is a DataError: the core never sees it. `given`:
        parameters that a file cannot hold."""
        if header["kind"] != cls.kind:
            raise DataError(f"its kind is {header['kind']}, not {cls.kind}")
        names = cls._get_param_names()  # looks through the signature each time
        known = {k: v for k, v in dict(header["parameters"]).items() if k in names}
        if "loss" in arrays:
            known["loss"] = arrays["loss"]
        model = cls(**{**known, **given})
        model._check_settings()
        for name in _SAVED:
            setattr(model, f"{name}_", header[name])
        model.sampled_ = float(header["sampled"])
        model.classes_ = arrays["classes"]
        model.weights_ = model._unpack_weights(arrays)
        model.trace_, model._last_run = [], None
        model.solver_ = choose_solver(model.solver, model.model, model.pairwise)
        model._unpack_more(arrays)
        check_fitted_shapes(model, model._width())
        return model

    def _unpack_weights(self, arrays: dict[str, NDArray[Any]]) -> Weights:
        """Files have all weights, or the places and values of those that are not zero."""
        if "weights" in arrays:
            return arrays["weights"]
        size, k = int(arrays["size"][0]), 0 if self.model in CHOICE_MODELS else len(self.classes_)
        tables = 0 if not self.pairwise or self.model == "multiclass" else self.n_edge_features_
        pairs = k * k * (1 if self.model == "multilabel" else tables)
        if not 0 <= pairs <= size < 2**48 or (k and (size - pairs) % k):
            raise DataError("its weights are damaged")
        return from_nonzeros(arrays["where"], arrays["values"], size, k, pairs)

    def _unpack_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        """What only this kind of model has."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.model not in ("multiclass", "multilabel"):  # a classifier's folds are stratified by labels of rows
            tags.estimator_type = None
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = self.model == "multilabel"
        tags.non_deterministic = False
        return tags
