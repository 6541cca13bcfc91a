"""FactorGraph: build, change and evaluate discrete models. Scores are maximised; -inf forbids a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.condition import Conditioned, condition
from fginfer.constraints import Constraints
from fginfer.core.arrays import ModelArrays
from fginfer.core.model import Model
from fginfer.errors import ModelError
from fginfer.from_arrays import bulk_arrays, grid_arrays
from fginfer.html import html_table
from fginfer.labelings import Factor, check_labels, check_range, factor_list, scores_at
from fginfer.names import numbers_of
from fginfer.rules.scores import rule_scores, score_with_rules
from fginfer.table_values import AnyTable, StoredTables
from fginfer.tables import ImplicitTable, TableRef
from fginfer.what_if import WhatIf

if TYPE_CHECKING:  # networkx and scipy load when first needed: they take longer than most solves
    import networkx as nx  # type: ignore[import-untyped, unused-ignore]

    from fginfer.describe import Description
    from fginfer.lower import Lowered


class FactorGraph(WhatIf, Constraints):
    """A discrete factor graph: variables with `cards[i]` labels, and factors with score tables over some of them.

    >>> g = FactorGraph([2, 3])
    >>> prior = g.add_factor([0], [0.0, 1.0])
    >>> tie = g.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> g.score([1, 2])
    3.0

    `variables={"rain": ["no", "yes"], "floor": 3}` gives names as well; a name then does wherever a number would.
    Factors over one variable are added to its unary scores, factors over none to the constant. Tables with equal
    contents are stored once. Factors may be added at any time; `set_unary` and `set_table` change numbers in place.
    Solvers already running keep the model they started with.
    All methods may be called from several threads.

    What is easier said than listed is a constraint: `add_at_most`, `add_clause`, `add_all_different` and others, which
    never become a table over all their variables. Every `add_...` returns a handle.
    """

    origin: Lowered | None = None  # where it stands for a graph with constraints, to be solved: what these were

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
        given = unaries, edges, table_ids, tables, weights, transposed, constant
        arrays, graph._roles = bulk_arrays(graph._cards, *given)
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
        a = self.table_arrays()
        return int(self._cards.sum(dtype=np.int64)) + len(a.values) + 2 * int((~a.is_dense()).sum())

    @property
    def constant(self) -> float:
        """The score of the factors over no variable."""
        with self.lock:
            return float(self._builder.constant if self._builder is not None else self.table_arrays().constant)

    def snapshot(self) -> Model:
        """A model with the present numbers, which later changes do not touch."""
        with self.lock:
            return self.model.snapshot()

    def table_snapshot(self) -> Model:
        """The same without constraints."""
        with self.lock:
            return self.table_model.snapshot()

    def copy(self) -> FactorGraph:
        """An independent graph; numbers are shared until one of the two changes them.

        >>> g = FactorGraph([2])
        >>> other = g.copy()
        >>> other.set_unary(0, [0.0, 1.0])
        >>> g.score([1]), other.score([1])
        (0.0, 1.0)
        """
        with self.lock:
            other = FactorGraph.from_model(self.table_snapshot(), self._given)
            other._cutoff, other._names = self._cutoff, self.shared_names()
            other._roles, other._rules, other._log = self._roles.copy(), list(self._rules), self._log.copy()
            other._fixed = dict(self._fixed)
        return other

    def to_arrays(self) -> ModelArrays:
        """The whole model as flat read-only arrays (views: nothing is copied, later changes do not show).

        Arrays hold no constraints: a graph that has some gives `lowered().graph.to_arrays()`.

        >>> FactorGraph.from_arrays([2, 3], edges=[[0, 1]], tables=[Potts(0, -1)]).to_arrays().cards.tolist()
        [2, 3]
        """
        with self.lock:
            return ModelArrays.of_model(self.model)

    def table_arrays(self) -> ModelArrays:
        """The factors that have tables in the same way; constraints are in `rules`."""
        with self.lock:
            return ModelArrays.of_model(self.table_model)

    def unary(self, variable: int | str) -> NDArray[np.float64]:
        """The unary scores of a variable.

        >>> g = FactorGraph([2])
        >>> first, second = g.add_factor([0], [0.0, 1.0]), g.add_factor([0], [0.5, 1.0])
        >>> g.unary(0).tolist()
        [0.5, 2.0]
        """
        variable, begin = self.variable(variable), self._unary_begin()
        return self._unary()[begin[variable] : begin[variable + 1]].copy()

    def table(self, table: int | TableRef) -> AnyTable:
        """A stored table: an array (read-only; flat if numpy cannot have its many axes), or Potts, AbsDiff, SqDiff.

        >>> g = FactorGraph([2, 2])
        >>> g.table(g.add_table([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        with self.lock:
            arrays, index = self.table_arrays(), self._table_number(table)
            if not 0 <= index < arrays.n_tables:
                raise ModelError(f"there is no table {index}; there are {arrays.n_tables}")
            return self._roles.rewards.get(index) or StoredTables(arrays)[index]

    def factors(self) -> list[Factor]:
        """The factors with tables over two or more variables, in the order in which they were added.

        >>> g = FactorGraph([2, 2])
        >>> tie = g.add_factor([0, 1], Potts(0, -1))
        >>> [factor.variables for factor in g.factors()]
        [(0, 1)]
        """
        return factor_list(self.table_arrays())

    def __repr__(self) -> str:
        return f"<FactorGraph: {self.n_variables} variables, {self.n_factors} factors, up to {self.max_labels} labels>"

    def _repr_html_(self) -> str:
        rows = {"variables": self.n_variables, "factors": self.n_factors, "labels, at most": self.max_labels}
        return html_table("FactorGraph", rows)

    def __reduce__(self) -> Any:
        with self.lock:
            arrays, log = self.table_arrays(), self.factor_log.copy()
            rest = self._roles.copy(), self._cutoff, self._names, list(self._rules), log, self._fixed
            return _restore, (arrays, self._given, *rest)

    # -- evaluation --------------------------------------------------------------------------------------------

    def score(self, labels: ArrayLike | Mapping[Any, Any]) -> float:
        """The score of a labeling, summed from tables and constraints; -inf if it uses a forbidden state.

        A labeling is a list of labels, or a dict of all variables such as {"rain": "yes", "floor": 2}. Raises
        ModelError for a labeling of another length, or a label that a variable does not have.

        >>> FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[Potts(0, -1)]).score([1, 0])
        0.5
        """
        x = self.check_labels(labels)
        with self.lock:
            model, rules = self.table_snapshot(), self.rules
        return score_with_rules(model, rules, x) if rules else model.score(x)

    def energy(self, labels: ArrayLike | Mapping[Any, Any]) -> float:
        """Minus the score.

        >>> FactorGraph.from_arrays([2], [[0.0, 1.0]]).energy([1])
        -1.0
        """
        return -self.score(labels)

    def factor_scores(self, labels: ArrayLike | Mapping[Any, Any]) -> NDArray[np.float64]:
        """One score per factor over two or more variables, in the order of `factors()`.

        >>> chain = FactorGraph.from_arrays([2] * 3, edges=[[0, 1], [1, 2]], tables=[Potts(0, -1)])
        >>> chain.factor_scores([0, 0, 1]).tolist()
        [0.0, -1.0]
        """
        return self.table_snapshot().factor_scores(self.check_labels(labels))

    def rule_scores(self, labels: ArrayLike) -> NDArray[np.float64]:
        """One score per constraint, in the order of `rules`.

        >>> graph = FactorGraph([2, 2])
        >>> soft, hard = graph.add_clause([(0, 1)], penalty=2.0), graph.add_clause([(1, 1)])
        >>> graph.rule_scores([0, 1]).tolist()
        [-2.0, 0.0]
        """
        return rule_scores(self.rules, check_range(self.check_labels(labels), self._cards))

    def unary_scores(self, labels: ArrayLike) -> NDArray[np.float64]:
        """One score per variable: its unary score (factors over it alone, summed) at its label.

        >>> FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]]).unary_scores([1, 0]).tolist()
        [1.0, 0.5]
        """
        return scores_at(self.check_labels(labels), self._cards, self._unary(), self._unary_begin())

    def check_labels(self, labels: ArrayLike | Mapping[Any, Any]) -> NDArray[np.int32]:
        """The labeling as the core takes it, from a list or {variable: label}; the core checks the ranges.

        >>> FactorGraph([2, 2]).check_labels((1, 0)).tolist()
        [1, 0]
        """
        x = check_labels(numbers_of(self._names, labels, self._cards), self._cards, self._names)
        return x if self._names is None else check_range(x, self._cards, self._names)  # the core knows no names

    def condition(self, evidence: Mapping[Any, Any]) -> Conditioned:
        """The graph that is left when variables are fixed ({variable: label}, by number or name), and the way back.

        Raises ModelError for a variable or label that is not there.

        >>> g = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[Potts(0, -1)])
        >>> given = g.condition({0: 0})
        >>> given.graph.n_variables, given.expand([1]).tolist()
        (1, [0, 1])
        """
        return condition(self, evidence)

    # -- views -------------------------------------------------------------------------------------------------

    def lowered(self) -> Lowered:
        """The same model in tables alone: constraints become small tables with auxiliary variables behind the others.

        It is what methods work on; `complete` and `result` of it translate labelings and results.

        >>> graph = FactorGraph([2] * 10)
        >>> handle = graph.add_at_most(2, [(i, 1) for i in range(10)])
        >>> graph.lowered().graph
        <FactorGraph: 11 variables, 2 factors, up to 3 labels>
        """
        from fginfer.lower import lower

        return lower(self)

    def describe(self) -> Description:
        """Sizes, histograms, components, forest or not, hard constraints, binary and submodular or not, memory.

        >>> FactorGraph.grid((3, 3), np.zeros((3, 3, 2)), Potts(0, -1)).describe().forest
        False
        """
        from fginfer.describe import describe

        return describe(self)

    def to_networkx(self, kind: str = "bipartite") -> nx.Graph:
        """A networkx graph: variables and factors as nodes ("bipartite"), or variables joined by factors ("markov").

        Variables are the nodes 0, 1, ... with `labels` and `unary`; factors are ("factor", f) with `variables`,
        `table`, `weight` and `transposed`. The edges of the Markov graph list their `factors`.

        >>> FactorGraph.from_arrays([2, 2], edges=[[0, 1]], tables=[Potts(0, -1)]).to_networkx("markov").size()
        1
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

    def _unary(self) -> NDArray[np.float64]:
        unary = self.table_arrays().unary
        assert unary is not None
        return unary


def _restore(arrays: ModelArrays, given: int, *state: Any) -> FactorGraph:
    graph = FactorGraph.from_model_arrays(arrays, given)
    graph._roles, graph._cutoff, graph._names, graph._rules, graph._log, graph._fixed = state
    return graph
