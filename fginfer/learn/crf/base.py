"""CrfEstimator: what chain, graph and hierarchical random fields share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fginfer.core import clock
from fginfer.core.crf import CrfLoss
from fginfer.core.learn import Edges
from fginfer.errors import DataError, SettingsError, SolverError
from fginfer.learn.base import StructuredEstimator
from fginfer.learn.crf.observed import ObservedLoss, observed_weights
from fginfer.learn.crf.sgd import SgdSolver
from fginfer.learn.crf.size import check_size, predicted_bytes
from fginfer.learn.crf.solver import SOLVERS, CrfPoint, CrfSolver
from fginfer.learn.data.empties import past_empties
from fginfer.learn.data.encode import encode
from fginfer.learn.data.examples import Encoded, Reals, add_intercept, is_listed
from fginfer.learn.data.inputs import check_common_settings, check_dense_input, seed_of, threads_of
from fginfer.learn.data.magnitudes import are_sound
from fginfer.learn.data.sequences import in_the_form_of
from fginfer.learn.data.tokens import TokenDicts, are_token_dicts
from fginfer.learn.inspection import TopWeights
from fginfer.learn.learner import fields_of
from fginfer.learn.row_weights import Weights, from_nonzeros
from fginfer.learn.run.checkpoints import Checkpoints
from fginfer.learn.run.loop import LearnPoint
from fginfer.learn.run.trainer import TOO_LARGE
from fginfer.options import is_number


class CrfEstimator(TopWeights, StructuredEstimator):
    """Minimises l1 |w|_1 + l2/2 |w|^2 - sum over examples of log P(y | x).

    Parameters
    ----------
    l1, l2 : weights of the penalties; the larger l1, the fewer features are left.
    solver : "proxqn" (proximal quasi-Newton on the features that matter), "owlqn" (OWL-QN; L-BFGS where l1 is 0),
        "proxgrad" (accelerated proximal gradient), "bcd" (blockwise coordinate descent with line search, a
        baseline): all reach the same objective. "sgd" (stochastic steps with the cumulative penalty; chains and
        forests) runs `max_iter` passes and comes near it.
    tol : training ends when the largest violation of optimality is this fraction of what it was at the start, and
        (proxqn) ten more steps promise to lower the objective by less than this fraction of it.
    max_iter : steps. time_limit : seconds `fit` may take.
    fit_intercept : adds a feature that is always 1 (penalised as the others are).
    pairwise : False leaves out the transitions.
    features : "all": a weight for every pair of a feature and a label, and of two labels; "observed": for those that
        occur together in the training examples (as CRFsuite has it by default), all others are zero. With hundreds
        of labels that takes a fraction of the memory and time; what never occurred is then not held to be unlikely.
    memory : bytes for marginals kept between a value and its gradient; beyond that they are computed again.
    prune : for large label sets: the probability mass of the answers that the sums of an example may leave out (say
        1e-9; 0: none). What is left out is certified, token by token, by bounds on the labels' probabilities:
        after `fit`, ``lost_`` bounds the mass that any example has lost, and the objective without pruning is at
        most ``slack_`` above ``primal_``. Not with candidate lists or typed edges.
    n_jobs, random_state, verbose, eval_every, callback, checkpoint, checkpoint_interval, warm_start, solver_options :
        as in :class:`fginfer.learn.StructuredSVM`; the options are those of
        :class:`fginfer.learn.crf.solver.OptimiserOptions`.

    X is as for StructuredSVM, or a list of sequences of tokens that are dicts of named features
    (``{"word": "in", "length": 2.0}``) or lists of names. Candidate lists (:class:`fginfer.learn.Example`) restrict the
    labels of a token, in training, decoding and marginals alike.

    After `fit`: ``weights_``, ``coef_`` (sparse, labels x features), ``intercept_``, ``pairwise_``, ``classes_``,
    ``n_nonzero_``, ``status_``, ``n_iter_``, ``primal_`` (the objective), ``gap_`` (the violation that `tol` is
    about), ``trace_``, and ``history_``, a :class:`fginfer.learn.crf.solver.CrfPoint` a step.
    """

    models: ClassVar[tuple[str, ...]] = ("chain", "graph", "multiclass")
    run_settings: ClassVar[tuple[str, ...]] = (
        "model", "solver", "l1", "l2", "fit_intercept", "pairwise", "features", "prune", "solver_options",
    )  # fmt: skip
    # what the base class reads, and random fields have no use for
    model: str = "chain"
    loss = None
    oracle = None
    batch_size = 1
    C = 1.0

    def __init__(
        self,
        l1: float = 1.0,
        l2: float = 0.0,
        solver: str = "proxqn",
        tol: float = 1e-4,
        max_iter: int = 1000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        fit_intercept: bool = True,
        pairwise: bool = True,
        features: str = "all",
        memory: int = 1 << 30,
        prune: float = 0.0,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.fit_intercept = fit_intercept
        self.pairwise = pairwise
        self.features = features
        self.memory = memory
        self.prune = prune
        self.eval_every = eval_every
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start
        self.solver_options = solver_options

    # ---- settings and data

    def _check_settings(self) -> None:
        if self.solver not in (*SOLVERS, "sgd"):
            raise SettingsError(f"solver must be one of {', '.join(SOLVERS)}, sgd, not {self.solver!r}")
        if self.features not in ("all", "observed"):
            raise SettingsError(f"features must be all or observed, not {self.features!r}")
        if self.features == "observed" and self.solver == "sgd":
            raise SettingsError("sgd steps on all features: features='observed' is for the other solvers")
        for name in ("l1", "l2", "memory"):
            value = getattr(self, name)
            if not is_number(value, whole=name == "memory") or not 0 <= value < np.inf:
                raise SettingsError(f"{name} must be a finite number, at least 0, not {value!r}")
        if not is_number(self.prune) or not 0 <= self.prune < 1:
            raise SettingsError(f"prune must be a number from 0 on and below 1, not {self.prune!r}")
        check_common_settings(self)

    def _learn_rows(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        return add_intercept(rows) if self.fit_intercept else rows

    def _apply(self, data: Encoded) -> Any:
        data.rows = self._learn_rows(data.rows)
        return self.weights_

    def _width(self) -> int:
        return self.n_features_in_ + bool(self.fit_intercept)

    def _columns(self, X: Any, offsets: ArrayLike | None, fitting: bool) -> tuple[Any, ArrayLike | None]:
        """Token dicts as rows and offsets; other input as it is."""
        if fitting:
            self.feature_names_ = None
        if not are_token_dicts(X):
            return X, offsets
        if self.model != "chain":
            raise DataError("tokens as dicts make chains; graphs are Example objects with a table of features")
        if fitting:
            self.feature_names_ = TokenDicts.of(X).names
        elif self.feature_names_ is None:
            raise DataError(
                "the model was trained on tables of features, not on tokens with names (fginfer.load opens a tagger of "
                "`fginfer train` so that it takes words)"
            )
        return TokenDicts(self.feature_names_).transform(X)

    def _encode(self, X: Any, y: Any, offsets: ArrayLike | None, reachable: bool = True) -> tuple[Encoded, Reals]:
        check_is_fitted(self, "weights_")
        rows, begin = self._columns(X, offsets, fitting=False)
        if y is not None and rows is not X:
            y = np.concatenate([np.asarray(labels) for labels in y])
        return super()._encode(rows, y, begin, reachable)

    def _output(self, answers: Any, X: Any, offsets: ArrayLike | None) -> Any:
        if are_token_dicts(X):
            return in_the_form_of(X, np.split(self.classes_[answers.labels], answers.end[:-1]))
        return super()._output(answers, X, offsets)

    def _example_weights(self, data: Encoded) -> Reals | None:
        """The weight of an example is that of its tokens."""
        if data.token_weight is None:
            return None
        weight, begin = data.token_weight, data.token_begin
        each = weight[begin[:-1]]
        if not np.array_equal(np.repeat(each, np.diff(begin)), weight):
            raise DataError("a random field weighs whole examples: give all tokens of one the same weight")
        data.token_weight = None  # the core weighs examples
        return np.ascontiguousarray(each)

    def _known_classes(self) -> NDArray[Any] | None:
        """The classes, if they are known before y is; None: those of y."""
        return None

    def _check_labels(self, y: Any) -> None:
        """Raises DataError for a label that there cannot be."""

    def _taxonomy(self, classes: NDArray[Any]) -> NDArray[np.int32] | None:
        """Parents of inner nodes and labels, as the core wants them."""
        return None

    def _make_loss(self, data: Encoded, classes: NDArray[Any], weight: Reals | None = None) -> CrfLoss:
        prune = 0.0 if data.choice_begin is not None else float(self.prune)  # constrained decoding has its own lists
        return CrfLoss(
            fields_of(data), threads=threads_of(self.n_jobs), weight=weight, memory=int(self.memory),
            parent=self._taxonomy(classes), pseudo=self._pseudo(data), prune=prune,
        )  # fmt: skip

    def _pseudo(self, data: Encoded) -> bool:
        return False

    def _check_size(self, data: Encoded, classes: NDArray[Any]) -> None:
        """Refuses what is too large to train, before it takes any memory."""
        parent, k = self._taxonomy(classes), len(classes)
        columns = k if parent is None else len(parent)
        tables = 0 if data.edges == Edges.NONE else data.n_edge_features
        whole = data.rows.shape[1] * columns + tables * k * k
        observed = self.features == "observed"
        weights = len(observed_weights(data, parent, whole)) if observed else whole
        kept = (self.solver_options or {}).get("memory", 10)
        pairs = int(kept) if is_number(kept, whole=True) else 10
        size = predicted_bytes(
            self.solver, weights, whole, int(data.token_begin[-1]), columns, tables, int(self.memory), pairs
        )
        check_size(size, weights, k, observed)

    # ---- training

    def _prepare(self, X: Any, y: Any, offsets: ArrayLike | None) -> tuple[Encoded, CrfLoss]:
        """Everything is checked and laid out; what `fit` finds out about the data is set."""
        self._check_settings()
        rows, begin = self._columns(X, offsets, fitting=True)
        if rows is not X:
            if y is None or len(y) != len(X):
                raise DataError(f"there are {len(X)} sequences of tokens, y must be a list of as many")
            for i, (tokens, labels) in enumerate(zip(X, y, strict=True)):
                if len(tokens) != len(labels):
                    raise DataError(f"example {i} has {len(tokens)} tokens and {len(labels)} labels")
            y = [label for labels in y for label in labels]
        rows, y = check_dense_input(self, rows, y, fitting=True)
        self._check_labels(y)
        data, classes = encode(
            self.model, rows, y, offsets=begin, intercept=False, pairwise=self.pairwise, classes=self._known_classes()
        )  # fmt: skip
        if len(classes) < 2:
            raise DataError(f"y has one class only: {classes[0]!r}; a classifier needs at least 2 classes")
        n_features = data.rows.shape[1]
        data.rows = self._learn_rows(data.rows)
        weight = self._example_weights(data)
        if self.prune > 0 and data.choice_begin is not None:
            raise DataError("candidate lists leave out labels already: prune must be 0")
        self._check_size(data, classes)
        loss = self._make_loss(data, classes, weight)
        self.classes_, self.n_features_in_ = classes, n_features
        self.n_edge_features_, self.edge_kind_, self.label_lists_ = data.n_edge_features, data.edge_kind, False
        return data, loss

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> Self:
        """Trains on X and y; `offsets` with concatenated examples. All input is checked before training starts.

        Ctrl-C raises KeyboardInterrupt, after which the model has what was learned until then, and ``status_`` is
        "interrupted".
        """
        begin = clock.now()
        data, loss = self._prepare(X, y, offsets)
        return self._fit_loss(data, loss, begin)

    def _fit_loss(self, data: Encoded, loss: CrfLoss, begin: float, start: Reals | None = None) -> Self:
        seed = seed_of(self.random_state)
        options = self.solver_options or {}
        solver: Any
        if self.solver == "sgd":
            solver = SgdSolver(loss, data, self.l1, self.l2, seed, options)
        else:
            some: CrfLoss | ObservedLoss = loss
            if self.features == "observed":
                places = observed_weights(data, self._taxonomy(self.classes_), loss.dimension)
                some = ObservedLoss(loss, places)
                start = None if start is None else start[places]
            solver = CrfSolver(self.solver, some, data, self.l1, self.l2, self.tol, seed, options, start)
        self._train(solver, Checkpoints(self, data, solver, None, seed), seed, begin)
        self.weights_ = solver.weights()
        self.history_: list[CrfPoint] = solver.history
        if self.prune > 0:  # the bounds are those of the last weights
            loss.value(self.weights_)
        info = loss.info
        self.lost_, self.slack_ = float(info.lost), float(info.slack)
        if not are_sound(self.weights_):
            raise SolverError(TOO_LARGE)
        if self.status_ == "interrupted":
            raise KeyboardInterrupt
        return self

    # ---- what was learned

    @property
    def coef_(self) -> sp.csr_matrix:
        """(labels, features), sparse."""
        check_is_fitted(self, "weights_")
        return sp.csr_matrix(self._split(self.weights_, self._width())[0][: self.n_features_in_].T)

    @property
    def intercept_(self) -> Reals:
        check_is_fitted(self, "weights_")
        unary = self._split(self.weights_, self._width())[0]
        return unary[-1].copy() if self.fit_intercept else np.zeros(unary.shape[1])

    @property
    def n_nonzero_(self) -> int:
        check_is_fitted(self, "weights_")
        return int(np.count_nonzero(self.weights_))

    # ---- probabilities

    def _marginals(
        self, X: Any, y: Any, offsets: ArrayLike | None, pairs: bool = False
    ) -> tuple[Encoded, Reals, Reals, Reals, Reals | None]:
        """(data, log Z, scores of the truths, (tokens, labels) marginals, those of the pairs on all edges)."""
        data, weights = self._encode(X, y, offsets)
        data.token_weight = None
        if self._pseudo(data) and y is None:
            raise SolverError("a graph has cycles: its marginals are not known exactly; predict() decodes it")
        edges = 0
        if pairs and data.edges != Edges.NONE:
            edges = int(data.token_begin[-1]) - data.n_examples if data.edge_begin is None else len(data.edge_u)  # type: ignore[arg-type]
        loss = self._make_loss(data, self.classes_)
        log_z, truth, cells, both = loss.marginals(weights, edges=edges)
        assert cells is not None
        k, tokens = len(self.classes_), int(data.token_begin[-1])
        if data.choice_begin is None:
            return data, log_z, truth, cells.reshape(tokens, -1)[:, -k:], both
        out = np.zeros((tokens, k))
        assert data.choice is not None
        out[np.repeat(np.arange(tokens), np.diff(data.choice_begin)), data.choice] = cells
        return data, log_z, truth, out, both

    @past_empties(lambda self: (len(self.classes_),))
    def predict_marginals(self, X: Any, offsets: ArrayLike | None = None, pairwise: bool = False) -> Any:
        """P(label of the token | x): (tokens, labels) of each example, in the form of the input. With `pairwise` also
        P(labels of both ends | x) of every edge, (edges, labels, labels): a pair of results."""
        data, _, _, unary, pairs = self._marginals(X, None, offsets, pairwise)
        listed = are_token_dicts(X) or (is_listed(X, offsets) and self.model != "multiclass")
        first: Any = np.split(unary, data.token_begin[1:-1]) if listed else unary
        if not pairwise:
            return first
        if pairs is None:
            pairs = np.zeros((0, len(self.classes_), len(self.classes_)))
        cuts = data.token_begin - np.arange(data.n_examples + 1) if data.edge_begin is None else data.edge_begin
        return first, np.split(pairs, cuts[1:-1]) if listed else pairs

    def predict_proba(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """The marginal probabilities of the labels, as :meth:`predict_marginals`."""
        return self.predict_marginals(X, offsets)

    def log_likelihood(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> Reals:
        """log P(y | x) of every example (of graphs with cycles: the log of the pseudo-likelihood)."""
        _, log_z, truth, _, _ = self._marginals(X, y, offsets)
        return truth - log_z

    # ---- files

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super().pack()
        if self.feature_names_ is not None:
            arrays["feature_names"] = self.feature_names_
        return header, arrays

    def _unpack_weights(self, arrays: dict[str, NDArray[Any]]) -> Weights:
        if "weights" in arrays:
            return arrays["weights"]
        size = int(arrays["size"][0])
        if not 0 <= size < 2**48:
            raise DataError("its weights are damaged")
        return from_nonzeros(arrays["where"], arrays["values"], size, 0, 0)

    def _unpack_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.feature_names_ = arrays.get("feature_names")
        self.history_ = []
        if self.feature_names_ is not None and self.feature_names_.shape != (self.n_features_in_,):
            raise DataError("its features have other names")
