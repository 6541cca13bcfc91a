"""StructuredSVM: max-margin training of chains, graphs, multilabel and multiclass models, as scikit-learn does it."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import SettingsError
from fginfer.learn.base import StructuredEstimator
from fginfer.learn.data.encode import CHOICE_MODELS, TOKEN_MODELS
from fginfer.learn.data.examples import Encoded, Reals, add_intercept
from fginfer.learn.data.weights import (
    check_class_weight,
    check_sample_weight,
    class_weights,
    weigh_examples,
    weigh_tokens,
)
from fginfer.learn.inspection import TopWeights


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
    loss : (K, K) cost matrix over ``classes_`` sorted, or None for 0/1 (chain, graph, multiclass); multilabel: the pair
        (cost of a label missed, cost of one too many), or such a pair for each label. Weights of tokens or examples
        are given with the data, see :class:`fginfer.learn.Example`.
    pairwise : False leaves out the transition or interaction weights.
    oracle : an object with ``answer(learner, weights, example, loss)`` instead of the built-in decoders.
    eval_every : measure objective and gap every so many passes (0: only when it may be done, and at the end).
    callback : called with a LearnPoint after every pass; a true return value ends training.
    verbose : 1 shows the log, 2 a line for every pass. ``logging.basicConfig(level="INFO")`` shows it, too.
    checkpoint : a file written every `checkpoint_interval` seconds and at the end; an existing one is continued.
    warm_start : a second `fit` on the same data and settings goes on where the first ended.
    solver_options : further settings of the solver, as a dict; see the options class of its module.
    class_weight : {class: weight} (1 for those left out), or "balanced": inversely proportional to how often a class
        is seen. Multiclass examples are weighed by it as by `sample_weight`; in chains and graphs it multiplies the
        loss of the tokens whose true label it is. gdmm is slow where weights differ by orders of magnitude: use bcfw.

    After `fit`: ``weights_`` (all parameters), ``coef_`` (labels x features), ``intercept_``, ``pairwise_`` (tables),
    ``classes_``, ``trace_`` (a list of LearnPoint), ``status_`` (converged, iteration_limit, time_limit, stopped,
    interrupted), ``n_iter_``, and ``primal_``, ``dual_``, ``gap_`` (None where they are not known),
    and ``sampled_``: the share of the examples that ``primal_`` was measured on; below 1 it is an estimate.
    """

    kind: ClassVar[str] = "linear"
    sparse_weights: ClassVar[bool] = True

    def _check_settings(self) -> None:
        super()._check_settings()
        check_class_weight(self.class_weight)
        if self.class_weight is not None and self.model not in TOKEN_MODELS:
            raise SettingsError(f"class_weight belongs to {', '.join(TOKEN_MODELS)} models, not to {self.model}")

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Trains on X and y; `offsets` with concatenated examples. All input is checked before training starts.

        sample_weight : one number for each example (sequence, graph, row) that multiplies its hinge loss: 2 is the
            same as giving it twice, 0 as leaving it out. Not for label sets with interactions.

        Ctrl-C raises KeyboardInterrupt (a caller's loop must stop), after which the model has what was learned until
        then, and ``status_`` is "interrupted".
        """
        return self._fit(X, y, offsets, sample_weight)

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
        check_is_fitted(self, "weights_")
        unary = self._split(self.weights_, self._width())[0]
        last = unary[-1].toarray()[0] if sp.issparse(unary) else unary[-1].copy()
        return last if self._has_intercept() else np.zeros(unary.shape[1])
