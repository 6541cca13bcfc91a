"""ChainCRF and GraphCRF: random fields over sequences, and over graphs of tokens."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from fginfer.core.crf import CrfLoss, best_labelings
from fginfer.core.learn import Edges
from fginfer.learn.crf.base import CrfEstimator
from fginfer.learn.data.examples import Encoded
from fginfer.options import check_whole


class ChainCRF(CrfEstimator):
    __doc__ = f"""A linear-chain conditional random field.

    >>> from fginfer.learn import ChainCRF
    >>> X = [[{{"word": "the"}}, {{"word": "dog"}}], [{{"word": "a"}}, {{"word": "cat"}}]]
    >>> crf = ChainCRF(l1=0.01, fit_intercept=False).fit(X, [["D", "N"], ["D", "N"]])
    >>> [list(map(str, labels)) for labels in crf.predict([[{{"word": "a"}}, {{"word": "dog"}}]])]
    [['D', 'N']]

    {CrfEstimator.__doc__}"""

    kind: ClassVar[str] = "chain-crf"
    model = "chain"

    def predict_nbest(self, X: Any, n: int = 5, offsets: ArrayLike | None = None) -> list[list[tuple[Any, float]]]:
        """The n most probable label sequences of every example with their probabilities, best first. Takes
        4 n bytes for each label of each token of an example."""
        check_whole("n", n, 1)
        data, weights = self._encode(X, None, offsets)
        data.token_weight = None
        log_z = self._make_loss(data, self.classes_).marginals(weights, cells=False)[0]
        unary, tables = self._split(weights, data.rows.shape[1])
        out = []
        for i in range(data.n_examples):
            b, e = int(data.token_begin[i]), int(data.token_begin[i + 1])
            scores = np.asarray(data.rows[b:e] @ unary)
            if data.choice_begin is not None and data.choice is not None:
                allowed = np.zeros(scores.shape, bool)
                count = np.diff(data.choice_begin[b : e + 1])
                allowed[
                    np.repeat(np.arange(e - b), count), data.choice[data.choice_begin[b] : data.choice_begin[e]]
                ] = 1
                scores[~allowed] = -np.inf
            labels, values = best_labelings(scores, *self._chain_tables(data, tables, b - i, e - i - 1), int(n))
            probability = np.exp(values - log_z[i])
            out.append([(self.classes_[y], float(p)) for y, p in zip(labels, probability, strict=True)])
        return out

    @staticmethod
    def _chain_tables(data: Encoded, tables: Any, first: int, last: int) -> tuple[Any, Any]:
        """(tables or None, which of them each edge first .. last has)."""
        if data.edges == Edges.NONE:
            return None, np.zeros(last - first, np.int64)
        if data.edge_rows is None:
            return tables[:1], np.zeros(last - first, np.int64)
        rows = data.edge_rows[first:last]
        if (np.diff(rows.indptr) == 1).all() and (rows.data == 1).all():
            return tables, rows.indices
        return np.tensordot(rows.toarray(), tables, 1), np.arange(last - first)


class GraphCRF(CrfEstimator):
    __doc__ = f"""A conditional random field over graphs of tokens (:class:`fginfer.learn.Example` with edges).

    Forests are trained exactly. If one of the graphs has a cycle, the pseudo-likelihood is maximised instead: the
    product of P(label of a token | true labels of its neighbours, x). ``objective_`` says which ("likelihood",
    "pseudo-likelihood"). Graphs with cycles are decoded by the MAP engine; marginals exist for forests only.

    >>> from fginfer.learn import Example, GraphCRF
    >>> triangle = Example([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], edges=[[0, 1], [1, 2], [0, 2]])
    >>> crf = GraphCRF(l1=0.01).fit([triangle], [["a", "b", "b"]])
    >>> crf.objective_, list(map(str, crf.predict([triangle])[0]))
    ('pseudo-likelihood', ['a', 'b', 'b'])

    {CrfEstimator.__doc__}"""

    kind: ClassVar[str] = "graph-crf"
    model = "graph"

    def _pseudo(self, data: Encoded) -> bool:
        return has_cycle(data)

    def _make_loss(self, data: Encoded, classes: Any, weight: Any = None) -> CrfLoss:
        loss = super()._make_loss(data, classes, weight)
        if not hasattr(self, "weights_"):
            self.objective_ = "pseudo-likelihood" if self._pseudo(data) else "likelihood"
        return loss


def has_cycle(data: Encoded) -> bool:
    """Whether the edges of any example close a cycle (two edges between the same tokens are one)."""
    if data.edge_begin is None or data.edge_u is None or data.edge_v is None:
        return False
    tokens = int(data.token_begin[-1])
    first = np.repeat(data.token_begin[:-1], np.diff(data.edge_begin))
    u, v = first + data.edge_u, first + data.edge_v
    graph = sp.coo_matrix((np.ones(len(u)), (u, v)), shape=(tokens, tokens))
    return len(u) > tokens - int(connected_components(graph, directed=False, return_labels=False))
