"""HierarchicalCRF: classes are the leaves of a taxonomy, and every node of it has weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError
from fginfer.learn.crf.base import CrfEstimator
from fginfer.learn.data.examples import Reals
from fginfer.learn.run.loop import LearnPoint


def read_taxonomy(taxonomy: Any) -> tuple[list[Any], list[Any], dict[Any, Any]]:
    """(inner nodes with parents first, leaves sorted, parent of each node that has one), from a mapping of nodes to
    parents (None: a root; parents that are no keys are roots) or an array of parents' numbers (-1: a root)."""
    if isinstance(taxonomy, Mapping):
        for node, up in taxonomy.items():
            if not isinstance(up, Hashable):
                raise DataError(f"the parent of {node!r} is {up!r}: a node has one parent, a number or a text")
        parent = {node: up for node, up in taxonomy.items() if up is not None}
        nodes = list(dict.fromkeys([*taxonomy, *parent.values()]))
    else:
        array = np.asarray(taxonomy)
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
            raise DataError("a taxonomy is a mapping of nodes to parents, or an array of the numbers of parents")
        if (array < -1).any() or (array >= len(array)).any():
            node = int(np.argmax((array < -1) | (array >= len(array))))
            raise DataError(f"the parent of node {node} is {array[node]}, nodes are 0 to {len(array) - 1}")
        nodes = list(range(len(array)))
        parent = {node: int(up) for node, up in enumerate(array) if up >= 0}
    above = set(parent.values())
    depth: dict[Any, int] = {}
    for node in nodes:
        path, at = [], node
        while at in parent and at not in depth:
            path.append(at)
            if len(path) > len(nodes):
                raise DataError(f"the taxonomy has a cycle: {node!r} is its own ancestor")
            at = parent[at]
        base = depth.setdefault(at, 0)
        for k, below in enumerate(reversed(path)):
            depth[below] = base + k + 1
    inner = sorted((node for node in nodes if node in above), key=lambda node: depth[node])
    below_all = [node for node in nodes if node not in above]
    leaves = np.unique(np.array(below_all)).tolist()
    if set(leaves) != set(below_all):  # numbers among texts have become texts
        raise DataError("the leaves of a taxonomy are labels of one kind: numbers or texts, not both")
    return inner, leaves, parent


class HierarchicalCRF(CrfEstimator):
    __doc__ = f"""Classification into the leaves of a taxonomy: a label's score is the sum over the nodes on its path.

    taxonomy : {{node: parent}} (None for a root), with the labels as leaves; or an array of the parents' numbers (-1: a
        root), with the numbers of leaves as labels. None: all labels are alike (multinomial logistic regression).

    X is a table (rows, features), y one label a row. ``coef_`` has a row for every node of ``nodes_``: the inner nodes,
    parents first, then the labels of ``classes_``.

    >>> from fginfer.learn import HierarchicalCRF
    >>> tree = {{"cat": "animal", "dog": "animal", "oak": "plant", "rose": "plant"}}
    >>> X = [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    >>> crf = HierarchicalCRF(taxonomy=tree, l1=0.1).fit(X, ["cat", "dog", "oak", "rose"])
    >>> crf.predict([[1, 0, 1, 0]]).tolist(), crf.nodes_
    (['cat'], ['animal', 'plant', 'cat', 'dog', 'oak', 'rose'])

    {CrfEstimator.__doc__}"""

    kind: ClassVar[str] = "hierarchical-crf"
    model = "multiclass"
    run_settings: ClassVar[tuple[str, ...]] = (*CrfEstimator.run_settings, "taxonomy")

    def __init__(
        self,
        taxonomy: Any = None,
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
        memory: int = 1 << 30,
        eval_every: int = 0,
        callback: Callable[[LearnPoint], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            l1, l2, solver, tol, max_iter, time_limit, n_jobs, random_state, verbose, fit_intercept, pairwise=False,
            memory=memory, eval_every=eval_every, callback=callback, checkpoint=checkpoint,
            checkpoint_interval=checkpoint_interval, warm_start=warm_start, solver_options=solver_options,
        )  # fmt: skip
        self.taxonomy = taxonomy

    def _known_classes(self) -> NDArray[Any] | None:
        """All leaves of the taxonomy are classes, those that y never has, too."""
        if self.taxonomy is None:
            return None
        return np.array(read_taxonomy(self.taxonomy)[1])

    def _check_labels(self, y: Any) -> None:
        if self.taxonomy is None:
            return
        inner, leaves, _ = read_taxonomy(self.taxonomy)
        known = set(leaves)
        for i, label in enumerate(np.asarray(y).tolist()):
            if label not in known:
                what = "an inner node of the taxonomy, not a leaf" if label in inner else "not in the taxonomy"
                raise DataError(f"row {i}: the label {label!r} is {what}")

    def _taxonomy(self, classes: NDArray[Any]) -> NDArray[np.int32] | None:
        if self.taxonomy is None:
            self.nodes_ = classes.tolist()
            self.n_columns_ = len(classes)
            return None
        inner, leaves, parent = read_taxonomy(self.taxonomy)
        place = {node: k for k, node in enumerate(inner)}
        self.nodes_ = [*inner, *leaves]
        self.n_columns_ = len(self.nodes_)
        self._parents = np.array([place[parent[n]] if n in parent else -1 for n in self.nodes_], np.int32)
        return self._parents if inner else None

    # ---- what was learned

    def _by_node(self) -> Reals:
        check_is_fitted(self, "weights_")
        out: Reals = self.weights_.reshape(self._width(), self.n_columns_)
        return out

    @property
    def coef_(self) -> sp.csr_matrix:
        """(nodes, features), sparse."""
        return sp.csr_matrix(self._by_node()[: self.n_features_in_].T)

    @property
    def intercept_(self) -> Reals:
        """One a node."""
        return self._by_node()[-1].copy() if self.fit_intercept else np.zeros(self.n_columns_)

    @property
    def pairwise_(self) -> Reals:
        return np.zeros((0, len(self.classes_), len(self.classes_)))

    def _path_sums(self) -> sp.csr_matrix:
        """(features, labels): the weights of a label and of all nodes above it."""
        weights = sp.csr_matrix(self._by_node())
        k, n = len(self.classes_), self.n_columns_
        above = np.full(n, -1) if n == k else self._parents
        rows, columns = [np.arange(n - k, n)], [np.arange(k)]
        at: NDArray[Any] = np.arange(n - k, n)
        label: NDArray[Any] = np.arange(k)
        while len(at):
            up = above[at]
            at, label = up[up >= 0], label[up >= 0]
            rows.append(at)
            columns.append(label)
        r, c = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_matrix(weights @ sp.csr_matrix((np.ones(len(r)), (r, c)), shape=(n, k)))

    # ---- prediction

    def _scores(self, X: Any) -> Reals:
        data, _ = self._encode(X, None, None)
        scores = data.rows @ self._path_sums()
        return np.asarray(scores.todense() if sp.issparse(scores) else scores)

    def predict(self, X: Any, offsets: ArrayLike | None = None) -> NDArray[Any]:
        best = np.argmax(self._scores(X), 1)
        out: NDArray[Any] = self.classes_[best]
        return out

    def decision_function(self, X: Any, offsets: ArrayLike | None = None) -> Reals:
        """Scores of the labels, (rows, labels); for two classes their difference."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def score(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> float:
        """Share of rows whose label is right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    # ---- files

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super().pack()
        header["parameters"].pop("taxonomy", None)
        if self.taxonomy is not None:
            header["taxonomy"] = [[a, b] for a, b in self.taxonomy.items()] if isinstance(
                self.taxonomy, Mapping
            ) else np.asarray(self.taxonomy).tolist()  # fmt: skip
        return header, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], **given: Any) -> Any:
        saved = header.get("taxonomy")
        if saved:
            saved = dict(map(tuple, saved)) if isinstance(saved[0], list) else np.array(saved, np.int64)
        return super().unpack(header, arrays, taxonomy=saved, **given)

    def _unpack_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._unpack_more(arrays)
        self._taxonomy(self.classes_)
