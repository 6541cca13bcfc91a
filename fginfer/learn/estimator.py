"""StructuredSVM: max-margin training of chains, graphs, multilabel and multiclass models, as scikit-learn does it."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, SettingsError
from fginfer.learn.base import StructuredEstimator
from fginfer.learn.data.encode import CHOICE_MODELS, TOKEN_MODELS, encode
from fginfer.learn.data.examples import Encoded, Reals, add_intercept
from fginfer.learn.data.inputs import check_dense_input, seed_of, threads_of
from fginfer.learn.data.labels import labels_are_listed
from fginfer.learn.data.named import Columns, check_named_settings, has_names, restore_names
from fginfer.learn.data.weights import (
    check_class_weight,
    check_sample_weight,
    class_weights,
    weigh_examples,
    weigh_tokens,
)
from fginfer.learn.inspection import TopWeights
from fginfer.learn.learner import Learner
from fginfer.learn.online_fit import OnlineState, check_classes, check_online, is_online, online_pass
from fginfer.learn.solvers.registry import make_oracle, make_solver, wants_rows


class StructuredSVM(TopWeights, StructuredEstimator):
    """Minimises 1/2 |w|^2 + C * sum over examples of the structured hinge loss.

    Parameters
    ----------
    model : "chain", "graph", "multilabel" or "multiclass"; or tokens that choose among their own alternatives:
        "choices" (freely), "matching" (each alternative once), "parse" (projective dependency trees).
        :mod:`fginfer.learn.data.examples` says what X and y look like.
    solver : "auto" (gdmm for label sets with interactions, else bcfw; ``solver_`` says which); "bcfw", "gdmm", "fw",
        "cutting-plane", "ssg" (hinge loss); "soft-bcfw" (gdmm without multipliers, an approximation that the papers
        compare with: it has no gap to close, and is not for use); "dcd" (squared hinge);
        "perceptron", "mira" (no objective, no gap).
    C : weight of the loss. The loss of an answer counts wrong labels, or sums ``loss[truth][answer]``.
    tol : relative duality gap at which training ends. max_iter : passes. time_limit : seconds `fit` may take.
    n_jobs : threads of the oracles; the result does not depend on it. batch_size : answers found at the same weights
        before their updates (bcfw, dcd, perceptron, mira, ssg; labels proposed to gdmm); threads share a batch.
    loss : (K, K) cost matrix over ``classes_`` sorted, or a function ``loss(truth, answer)`` of two labels, or None for
        0/1 (chain, graph, multiclass); multilabel: the pair (cost of a label missed, cost of one too many), or such a
        pair for each label, or a function ``loss(label)`` that gives it. Weights of tokens or examples are given with
        the data, see :class:`fginfer.learn.Example`.
    pairwise : False leaves out the transition or interaction weights.
    oracle : an object with ``answer(learner, weights, example, loss)`` instead of the built-in decoders.
    eval_every : measure objective and gap every so many passes (0: only when it may be done, and at the end).
    callback : called with a LearnPoint after every pass; a true return value ends training.
    verbose : 1 shows what is measured, 2 also the passes between, at most two lines a second.
        ``logging.basicConfig(level="INFO")`` shows it, too.
    checkpoint : a file written every `checkpoint_interval` seconds and at the end; an existing one is continued.
    warm_start : a second `fit` on the same data and settings goes on where the first ended; with another C it begins
        with the answers and duals (bcfw, dcd) or weights (perceptron, mira) found so far, see :func:`path`.
    solver_options : further settings of the solver, as a dict; docs/start/learning_options.md lists them.
    class_weight : {class: weight} (1 for those left out), or "balanced": inversely proportional to how often a class
        is seen. Multiclass examples are weighed by it as by `sample_weight`; in chains and graphs it multiplies the
        loss of the tokens whose true label it is. gdmm is slow where weights differ by orders of magnitude: use bcfw.
    hash_features : where tokens have named features (dicts, strings, lists of strings), hash the names into so many
        columns; None keeps the names of the training in ``feature_names_`` and in model files.
    unseen : what to do with names at prediction that the training did not have: "ignore" (leave them out), "warn",
        "error".

    After `fit`: ``weights_`` (all parameters), ``coef_`` (labels x features), ``intercept_``, ``pairwise_`` (tables),
    ``classes_``, ``trace_`` (a list of LearnPoint), ``status_`` (converged, iteration_limit, time_limit, stopped,
    interrupted, partial), ``feature_names_`` (or None), ``n_iter_``, and ``primal_``, ``dual_``, ``gap_`` (None where
    they are not known),
    and ``sampled_``: the share of the examples that ``primal_`` was measured on; below 1 it is an estimate.

    >>> from fginfer.learn import StructuredSVM
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "cat"}]]
    >>> svm = StructuredSVM(C=10.0).fit(X, [["D", "N"], ["D", "N"]])
    >>> [list(map(str, labels)) for labels in svm.predict([[{"word": "a"}, {"word": "dog"}]])]
    [['D', 'N']]
    """

    kind: ClassVar[str] = "linear"
    feature_names_: NDArray[Any] | None
    _columns: Columns | None
    _online: OnlineState | None
    sparse_weights: ClassVar[bool] = True

    def _check_settings(self) -> None:
        super()._check_settings()
        check_class_weight(self.class_weight)
        check_named_settings(self.hash_features, self.unseen)
        if self.class_weight is not None and self.model not in TOKEN_MODELS:
            raise SettingsError(f"class_weight belongs to {', '.join(TOKEN_MODELS)} models, not to {self.model}")

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Trains on X and y; `offsets` with concatenated examples. All input is checked before training starts.

        sample_weight : one number for each example (sequence, graph, row) that multiplies its hinge loss: 2 is the
            same as giving it twice, 0 as leaving it out. Not for label sets with interactions.

        Ctrl-C raises KeyboardInterrupt (a caller's loop must stop), after which the model has what was learned until
        then, and ``status_`` is "interrupted".
        """
        self._online = None
        return self._fit(X, y, offsets, sample_weight)

    @available_if(is_online)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, offsets: ArrayLike | None = None) -> Self:
        """One more pass, over these examples only, from the weights learned so far: perceptron and mira.

        classes : all labels there will be, needed in the first call. Names of features must be hashed
            (`hash_features`), as later calls may bring new ones."""
        self._check_settings()
        self.solver_ = self.solver
        check_online(self.class_weight)
        begun = hasattr(self, "weights_")
        if not begun and classes is None and self.model not in CHOICE_MODELS:
            raise DataError("the first call of partial_fit needs classes: all labels there will be")
        known = self.classes_ if begun else None if self.model in CHOICE_MODELS else check_classes(classes)
        if begun and classes is not None and not np.array_equal(check_classes(classes), self.classes_):
            raise DataError("classes are not those of the first call")
        if not begun and self.hash_features is None and has_names(X, self.model):
            raise SettingsError("partial_fit needs hash_features for named features: later calls may bring new names")
        X, y = check_dense_input(self, self._named(X, fitting=not begun), y, fitting=not begun)
        given: dict[str, Any] = {"n_features": self.n_features_in_, "n_edge_features": self.n_edge_features_,
                 "edge_kind": self.edge_kind_} if begun else {}  # fmt: skip
        data, found = encode(self.model, X, y, offsets=offsets, classes=known, intercept=False, pairwise=self.pairwise,
                             cost=self.loss, **given)  # fmt: skip
        n_features, data.rows = data.rows.shape[1], self._learn_rows(data.rows)
        self._weigh(data, found, None)
        options = {"batch_size": self.batch_size, **(self.solver_options or {})}
        state = getattr(self, "_online", None) or (OnlineState.of(self.weights_) if begun else None)
        rows = wants_rows(self.solver_, data, self.oracle, options) if state is None else state.rows is not None
        learner = Learner(data, threads_of(self.n_jobs), rows)
        oracle = make_oracle(self.oracle, self.model, learner)
        solver = make_solver(self.solver_, learner, oracle, self.C, seed_of(self.random_state), options)
        self._online, self.weights_ = online_pass(solver, state)
        if not begun:
            self.classes_, self.n_features_in_, self.edge_kind_ = found, n_features, data.edge_kind
            self.n_edge_features_ = data.n_edge_features
            self.label_lists_ = self.model == "multilabel" and labels_are_listed(y)
            self.n_iter_, self.trace_ = 0, []
        self.n_iter_, self.status_, self.sampled_ = self.n_iter_ + 1, "partial", 1.0
        self.primal_ = self.dual_ = self.gap_ = None
        return self

    def _named(self, X: Any, fitting: bool = False) -> Any:
        named = has_names(X, self.model)
        if fitting:
            self._columns = Columns.learn(X, self.model, self.hash_features, self.unseen) if named else None
            self.feature_names_ = None if self._columns is None else self._columns.names
        else:
            check_is_fitted(self, "weights_")
        if not named:
            return X
        if self._columns is None:
            raise DataError(
                "the model was trained on tables of features, not on tokens with names (fginfer.load opens a tagger of "
                "`fginfer train` so that it takes words)"
            )
        self._columns.unseen = "ignore" if fitting else self.unseen
        return self._columns.transform(X, self.model)

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super().pack()
        if self.feature_names_ is not None:
            arrays["feature_names"] = self.feature_names_
        return header, arrays

    def _unpack_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.feature_names_ = restore_names(arrays.get("feature_names"), self.n_features_in_)
        hashed = None if self.hash_features is None or self.hash_features != self.n_features_in_ else self.hash_features
        named = self.feature_names_ is not None or hashed is not None
        self._columns = Columns(self.feature_names_, hashed, self.unseen) if named else None
        self._online = None

    def _weigh(self, data: Encoded, classes: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        weight = None if sample_weight is None else check_sample_weight(sample_weight, data.n_examples)
        if self.class_weight is not None:
            tokens = class_weights(self.class_weight, data.truth, classes)[data.truth]
            if self.model == "multiclass":
                weight = tokens if weight is None else weight * tokens
            else:
                weigh_tokens(data, tokens)
        if weight is not None and (weight != 1).any():
            weigh_examples(data, np.sqrt(weight) if self.solver_ == "dcd" else weight)  # dcd squares the hinge

    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept) and self.model not in CHOICE_MODELS

    def _learn_rows(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        return add_intercept(rows) if self._has_intercept() else rows

    def _apply(self, data: Encoded) -> Any:
        data.rows = self._learn_rows(data.rows)
        return self.weights_

    def _width(self) -> int:
        return self.n_features_in_ + self._has_intercept()

    @property
    def coef_(self) -> Any:
        """(labels, features); a sparse matrix where weights are kept by rows."""
        check_is_fitted(self, "weights_")
        return self._split(self.weights_, self._width())[0][: self.n_features_in_].T

    @property
    def intercept_(self) -> Reals:
        """One number a label; zeros without `fit_intercept`."""
        check_is_fitted(self, "weights_")
        unary = self._split(self.weights_, self._width())[0]
        last = unary[-1].toarray()[0] if sp.issparse(unary) else unary[-1].copy()
        return last if self._has_intercept() else np.zeros(unary.shape[1])
