"""FactorGraph: build, change and evaluate discrete models. Scores are maximised; -inf forbids a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.builder import AnyTable, Builder, StoredTables, check_dense, negate
from fginfer.condition import Conditioned, condition
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.errors import ModelError
from fginfer.from_arrays import bulk_arrays, grid_arrays
from fginfer.html import html_table
from fginfer.labelings import DenseShapes, Factor, check_cards, check_labels, factor_list, scores_at
from fginfer.tables import ImplicitTable, TableRef

if TYPE_CHECKING:  # networkx and scipy load when first needed: they take longer than most solves
    import networkx as nx  # type: ignore[import-untyped, unused-ignore]

    from fginfer.describe import Description


class FactorGraph:
    """A discrete factor graph: variables with `cards[i]` labels, and factors with score tables over some of them.

    >>> g = FactorGraph([2, 3])
    >>> g.add_factor([0], [0.0, 1.0])
    >>> g.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> g.score([1, 2])
    3.0

    Factors over one variable are added to its unary scores, factors over none to the constant. Tables with equal
    contents are stored once. Factors may be added at any time; `set_unary` and `set_table` change numbers in place.
    Solvers already running keep the model they started with.
    All methods may be called from several threads.
    """

    def __init__(self, cards: ArrayLike) -> None:
        self._cards = check_cards(cards)
        self.lock = RLock()  # held while the model is built or changed
        self._given = 0  # factors as given, arity 0 and 1 included
        self._private: set[int] = set()
        self._negatives: dict[int, int] = {}
        self._offsets: NDArray[np.int64] | None = None
        self._shapes: DenseShapes | None = None
        # Either a builder that collects factors, or the finished model.
        self._builder: Builder | None = None
        self._model: Model | None = None
        self._cutoff = -inf

    # -- building ----------------------------------------------------------------------------------------------

    @classmethod
    def from_model_arrays(cls, arrays: ModelArrays, given_factors: int | None = None) -> FactorGraph:
        """A graph over ready-made arrays (checked by the core); the door for file formats and bulk builders."""
        return cls.from_model(arrays.build(), given_factors)

    @classmethod
    def from_model(cls, model: Model, given_factors: int | None = None) -> FactorGraph:
        """A graph that takes over a model of the core; `given_factors` counts folded factors too."""
        arrays = ModelArrays.of_model(model)
        graph = cls(arrays.cards)
        graph._model = model
        graph._given = arrays.n_factors if given_factors is None else given_factors
        return graph

    @classmethod
    def from_arrays(
        cls,
        cards: ArrayLike,
        unaries: ArrayLike | Sequence[ArrayLike] | None = None,
        edges: ArrayLike | None = None,
        table_ids: ArrayLike | None = None,
        tables: ArrayLike | Sequence[ArrayLike | ImplicitTable] | ImplicitTable | None = None,
        weights: ArrayLike | None = None,
        transposed: ArrayLike | None = None,
        *,
        constant: float = 0.0,
    ) -> FactorGraph:
        """A whole model at once, without a Python loop over its factors.

        cards       labels per variable
        unaries     one score per label: a list with one array per variable, all concatenated, or (variables, labels)
        edges       (factors, 2) variables; or (factors, k) for factors over k variables each
        tables      a list of arrays and implicit tables, or one array (tables, labels, labels). Tables keep their ids.
        table_ids   which table each factor reads; not needed for a single table, or one table per factor
        weights     a number per factor (or one for all) that multiplies its table; may be negative or zero
        transposed  flags: the factor reads its table as table[x_second, x_first]

        >>> chain = [[0, 1], [1, 2], [2, 3]]
        >>> g = FactorGraph.from_arrays([3] * 4, edges=chain, tables=[Potts(0, -1)], weights=[1, 2, 1])
        >>> g.score([0, 0, 1, 1])
        -2.0
        """
        graph = cls(cards)
        arrays, negatives = bulk_arrays(graph._cards, unaries, edges, table_ids, tables, weights, transposed, constant)
        graph._negatives = negatives
        graph._given = arrays.n_factors + (0 if unaries is None else len(graph._cards))
        graph._model = arrays.build()
        return graph

    @classmethod
    def grid(
        cls,
        shape: tuple[int, ...],
        unary: ArrayLike,
        pairwise: ArrayLike | ImplicitTable,
        weights: Sequence[ArrayLike] | None = None,
    ) -> FactorGraph:
        """A grid of any dimension in which neighbours share one table: images, volumes, videos.

        shape     of the grid; variable number i is the i-th pixel in C order
        unary     (*shape, labels): one score per pixel and label
        pairwise  one table for all pairs of neighbours: an array (labels, labels), the first in C order along its first
                  axis, or Potts, AbsDiff, SqDiff
        weights   per axis what multiplies the table: an array of the grid's shape less one along that axis, or a number

        >>> picture = np.array([[0, 0, 1], [0, 1, 1]])
        >>> g = FactorGraph.grid(picture.shape, np.stack([1.0 - picture, picture], -1), Potts(0, -0.25))
        >>> g
        <FactorGraph: 6 variables, 13 factors, up to 2 labels>
        """
        return cls.from_arrays(**grid_arrays(shape, unary, pairwise, weights))

    def add_table(self, table: ArrayLike | ImplicitTable) -> TableRef:
        """A table that factors share by its handle: `set_table` changes it for all of them, and for no others."""
        with self.lock:
            return TableRef(self._building().add_own_table(table))

    def add_factor(
        self,
        variables: Sequence[int],
        table: ArrayLike | ImplicitTable | TableRef,
        *,
        weight: float = 1.0,
        transposed: bool = False,
    ) -> None:
        """Adds a factor with scores `weight * table` over `variables`, the last variable fastest.

        The table is an array with one axis per variable (or flat), `Potts`, `AbsDiff` or `SqDiff` (never expanded),
        or a handle from `add_table`. Equal arrays are stored once. A weight may be negative (not with -inf entries)
        or zero (then nothing is forbidden either). `transposed` (pairwise) reads it as table[x_second, x_first].
        """
        with self.lock:
            self._building().add_factor(f"factor {self._given}", variables, table, float(weight), bool(transposed))
            self._given += 1

    def _building(self) -> Builder:
        if self._builder is None:
            base = ModelArrays(cards=self._cards) if self._model is None else ModelArrays.of_model(self._model)
            self._builder = Builder(base, self._private, self._negatives)
        return self._builder

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def cards(self) -> NDArray[np.int32]:
        """Labels per variable."""
        return self._cards

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return len(self._cards)

    @property
    def n_factors(self) -> int:
        """Factors as given, those over one or no variable included."""
        return self._given

    @property
    def max_labels(self) -> int:
        """Labels of the variable that has most."""
        return int(self._cards.max()) if len(self._cards) else 0

    @property
    def table_entries(self) -> int:
        """Distinct scores stored: unaries, dense tables (each once), two parameters per implicit table."""
        a = self.to_arrays()
        return int(self._cards.sum(dtype=np.int64)) + len(a.values) + 2 * int((~a.is_dense()).sum())

    @property
    def constant(self) -> float:
        """The score of the factors over no variable."""
        with self.lock:
            return float(self._builder.constant) if self._builder is not None else float(self.to_arrays().constant)

    @property
    def model(self) -> Model:
        """The model of the core, built on first use."""
        with self.lock:
            if self._builder is not None or self._model is None:
                self._model = self._building().arrays().build()
                self._builder = self._shapes = None
            return self._model

    def snapshot(self) -> Model:
        """A model with the present numbers, which later changes do not touch."""
        with self.lock:
            return self.model.snapshot()

    @property
    def cutoff(self) -> float:
        """Only labelings with a score above it count; -inf (the default): all without a forbidden state.

        Formats with a bound on the total cost set it, and solve takes one of its own as well. A model whose best score
        is at most the cutoff is infeasible.
        """
        return self._cutoff

    @cutoff.setter
    def cutoff(self, score: float) -> None:
        if not score < inf:  # NaN, too
            raise ModelError(f"the cutoff must be finite or -inf, not {score}")
        self._cutoff = float(score)

    def copy(self) -> FactorGraph:
        """An independent graph; numbers are shared until one of the two changes them."""
        with self.lock:
            other = FactorGraph.from_model(self.snapshot(), self._given)
            other._cutoff = self._cutoff
            other._private, other._negatives = set(self._private), dict(self._negatives)
        return other

    def to_arrays(self) -> ModelArrays:
        """The whole model as flat read-only arrays (views: nothing is copied, later changes do not show)."""
        with self.lock:
            return ModelArrays.of_model(self.model)

    def unary(self, variable: int) -> NDArray[np.float64]:
        """The unary scores of a variable."""
        self._check_variable(variable)
        begin = self._unary_begin()
        return self._unary()[begin[variable] : begin[variable + 1]].copy()

    def table(self, table: int | TableRef) -> AnyTable:
        """A stored table: an array (read-only), or Potts, AbsDiff, SqDiff."""
        arrays = self.to_arrays()
        index = table.index if isinstance(table, TableRef) else int(table)
        if not 0 <= index < arrays.n_tables:
            raise ModelError(f"there is no table {index}; there are {arrays.n_tables}")
        return StoredTables(arrays)[index]

    def factors(self) -> list[Factor]:
        """The factors over two or more variables, in the order in which they were added."""
        return factor_list(self.to_arrays())

    def __repr__(self) -> str:
        return f"<FactorGraph: {self.n_variables} variables, {self.n_factors} factors, up to {self.max_labels} labels>"

    def _repr_html_(self) -> str:
        rows = {"variables": self.n_variables, "factors": self.n_factors, "labels, at most": self.max_labels}
        return html_table("FactorGraph", rows)

    def __reduce__(self) -> Any:
        with self.lock:
            return _restore, (self.to_arrays(), self._given, self._private, self._negatives, self._cutoff)

    # -- evaluation --------------------------------------------------------------------------------------------

    def score(self, labels: ArrayLike) -> float:
        """The score of a labeling, summed from the tables; -inf if it uses a forbidden state."""
        return self.snapshot().score(self.check_labels(labels))

    def energy(self, labels: ArrayLike) -> float:
        """Minus the score."""
        return -self.score(labels)

    def factor_scores(self, labels: ArrayLike) -> NDArray[np.float64]:
        """One score per factor over two or more variables, in the order of `factors()`."""
        return self.snapshot().factor_scores(self.check_labels(labels))

    def unary_scores(self, labels: ArrayLike) -> NDArray[np.float64]:
        """One score per variable: its unary score (factors over it alone, summed) at its label."""
        return scores_at(self.check_labels(labels), self._cards, self._unary(), self._unary_begin())

    def check_labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The labeling as the core takes it; the core checks the ranges."""
        return check_labels(labels, self._cards)

    def condition(self, evidence: Mapping[int, int]) -> Conditioned:
        """The graph that is left when variables are fixed ({variable: label}), and how to map its labelings back."""
        return condition(self, evidence)

    # -- new numbers -------------------------------------------------------------------------------------------

    def set_unary(self, variable: int, scores: ArrayLike) -> None:
        """Replaces the unary scores of a variable; running solvers keep the old ones."""
        self._check_variable(variable)
        values = check_dense(f"variable {variable}", scores, (int(self._cards[variable]),), (variable,))
        with self.lock:
            if self._builder is not None:
                begin = self._builder.begin
                self._builder.unary[begin[variable] : begin[variable + 1]] = values
                return
            self.model.set_unary(variable, values)

    def set_unaries(self, scores: ArrayLike) -> None:
        """Replaces all unary scores: concatenated, or (variables, labels) where all label counts are equal."""
        values = np.ascontiguousarray(scores, np.float64).reshape(-1)
        total = int(self._unary_begin()[-1])
        if values.shape != (total,):
            raise ModelError(f"unaries must hold one score per label, {total} in all, not {values.size}")
        with self.lock:
            self.model.set_all_unary(values)

    def set_table(self, table: int | TableRef, values: ArrayLike) -> None:
        """Replaces the entries of a dense table, for all factors that share it; running solvers keep the old ones.

        `table` is a handle from `add_table`, an id given to `from_arrays`, or `factors()[f].table`.
        """
        with self.lock:
            index = table.index if isinstance(table, TableRef) else int(table)
            new = check_dense(f"table {index}", values, self._table_shape(index), ())
            self.model.set_table(index, new)
            if index in self._negatives:
                self.model.set_table(self._negatives[index], np.asarray(negate(new, f"table {index}")))

    # -- views -------------------------------------------------------------------------------------------------

    def describe(self) -> Description:
        """Sizes, histograms, components, forest or not, hard constraints, binary and submodular or not, memory."""
        from fginfer.describe import describe

        return describe(self)

    def to_networkx(self, kind: str = "bipartite") -> nx.Graph:
        """A networkx graph: variables and factors as nodes ("bipartite"), or variables joined by factors ("markov").

        Variables are the nodes 0, 1, ... with `labels` and `unary`; factors are ("factor", f) with `variables`,
        `table`, `weight` and `transposed`. The edges of the Markov graph list their `factors`.
        """
        from fginfer.graph_networkx import to_networkx

        return to_networkx(self, kind)

    @classmethod
    def from_networkx(
        cls,
        source: nx.Graph,
        *,
        labels: str = "labels",
        unary: str = "unary",
        table: str = "table",
        weight: str = "weight",
    ) -> FactorGraph:
        """A model from node and edge attributes; variables are numbered in the order of the nodes.

        A node has `labels` (how many) or `unary` (their scores) or both; an edge has `table` (an array or Potts,
        AbsDiff, SqDiff) and perhaps `weight`. The first axis of a table belongs to the node that comes first in the
        graph, in a directed graph to the source. `labels` may be an attribute of the graph instead. What to_networkx()
        gives is taken, too.

        >>> import networkx as nx
        >>> ring = nx.cycle_graph(4, create_using=nx.Graph)
        >>> nx.set_edge_attributes(ring, Potts(-1, 0), "table")
        >>> nx.set_node_attributes(ring, [0.0, 0.5], "unary")
        >>> FactorGraph.from_networkx(ring).score([0, 1, 0, 1])
        1.0
        """
        from fginfer.graph_networkx import from_networkx

        return from_networkx(cls, source, labels, unary, table, weight)

    # -- small helpers -----------------------------------------------------------------------------------------

    def _check_variable(self, variable: int) -> None:
        if not 0 <= variable < self.n_variables:
            raise ModelError(f"there is no variable {variable}; there are {self.n_variables}")

    def _table_shape(self, index: int) -> tuple[int, ...]:
        """The shape of a dense table, from copies: a view held here would make the next change copy all tables."""
        model = self.model
        if self._shapes is None:
            self._shapes = DenseShapes(ModelArrays.of_model(model))
        return self._shapes[index]

    def _unary(self) -> NDArray[np.float64]:
        unary = self.to_arrays().unary
        assert unary is not None
        return unary

    def _unary_begin(self) -> NDArray[np.int64]:
        if self._offsets is None:
            self._offsets = begins(self._cards)
        return self._offsets


def _restore(
    arrays: ModelArrays, given: int, private: set[int], negatives: dict[int, int], cutoff: float
) -> FactorGraph:
    graph = FactorGraph.from_model_arrays(arrays, given)
    graph._private, graph._negatives, graph._cutoff = private, negatives, cutoff
    return graph
