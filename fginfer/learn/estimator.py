"""StructuredSVM: max-margin training of chains, graphs, multilabel and multiclass models, as scikit-learn does it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fginfer.learn.base import StructuredEstimator
from fginfer.learn.data.encode import CHOICE_MODELS
from fginfer.learn.data.examples import Encoded, Reals, add_intercept


class StructuredSVM(StructuredEstimator):
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

    After `fit`: ``weights_`` (all parameters), ``coef_`` (labels x features), ``intercept_``, ``pairwise_`` (tables),
    ``classes_``, ``trace_`` (a list of LearnPoint), ``status_`` (converged, iteration_limit, time_limit, stopped,
    interrupted), ``n_iter_``, and ``primal_``, ``dual_``, ``gap_`` (None where they are not known).
    """

    kind: ClassVar[str] = "linear"

    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept) and self.model not in CHOICE_MODELS

    def _learn_rows(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        return add_intercept(rows) if self._has_intercept() else rows

    def _apply(self, data: Encoded) -> Reals:
        data.rows = self._learn_rows(data.rows)
        return self.weights_

    def _width(self) -> int:
        return self.n_features_in_ + self._has_intercept()

    @property
    def coef_(self) -> Reals:
        """(labels, features)."""
        check_is_fitted(self, "weights_")
        out: Reals = self._split(self.weights_, self._width())[0][: self.n_features_in_].T
        return out

    @property
    def intercept_(self) -> Reals:
        check_is_fitted(self, "weights_")
        unary = self._split(self.weights_, self._width())[0]
        return unary[-1].copy() if self._has_intercept() else np.zeros(unary.shape[1])
