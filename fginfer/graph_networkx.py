"""FactorGraph to and from networkx graphs."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import networkx as nx  # type: ignore[import-untyped, unused-ignore]
import numpy as np

from fginfer.errors import ModelError
from fginfer.folding import CONSTANT, Leftovers
from fginfer.rules import Rule
from fginfer.table_values import StoredTables

if TYPE_CHECKING:
    from fginfer.graph import FactorGraph


def to_networkx(graph: FactorGraph, kind: str = "bipartite") -> nx.Graph:
    """See FactorGraph.to_networkx."""
    if kind not in ("bipartite", "markov"):
        raise ModelError(f"kind must be 'bipartite' or 'markov', not {kind!r}")
    out = nx.Graph(constant=graph.constant, cutoff=graph.cutoff)
    for i, labels in enumerate(graph.cards.tolist()):
        out.add_node(i, labels=labels, unary=graph.unary(i))
        if kind == "bipartite":
            out.nodes[i]["bipartite"] = 0
    if kind == "markov":
        graph.to_arrays()  # refuses constraints: their variables are joined by no table
    arrays = graph.table_arrays()
    for variable, rows in Leftovers(arrays).rows.items():
        (out.graph if variable == CONSTANT else out.nodes[variable])["leftovers"] = rows
    tables = StoredTables(arrays)
    for f, factor in enumerate(graph.factors()):
        if kind == "markov":
            out.graph.setdefault("factors", []).append(
                {
                    "variables": factor.variables,
                    "table": tables[factor.table],
                    "weight": factor.weight,
                    "transposed": factor.transposed,
                }
            )
            for pair in combinations(factor.variables, 2):
                out.add_edge(*pair)
                out.edges[pair].setdefault("factors", []).append(f)
            continue
        out.add_node(
            ("factor", f),
            bipartite=1,
            variables=factor.variables,
            table=tables[factor.table],
            weight=factor.weight,
            transposed=factor.transposed,
        )
        out.add_edges_from((i, ("factor", f)) for i in factor.variables)
    for r, rule in enumerate(graph.rules):
        out.add_node(("constraint", r), bipartite=1, variables=rule.variables, rule=rule)
        out.add_edges_from((i, ("constraint", r)) for i in rule.variables)
    return out


def from_networkx(
    cls: type[FactorGraph], source: nx.Graph, labels: str, unary: str, table: str, weight: str
) -> FactorGraph:
    """See FactorGraph.from_networkx."""
    if not isinstance(source, nx.Graph):
        raise ModelError(f"from_networkx takes a networkx graph, not {type(source).__name__}")
    variables = [v for v, d in source.nodes(data=True) if d.get("bipartite") != 1]
    index = {v: i for i, v in enumerate(variables)}
    cards = []
    for v in variables:
        data = source.nodes[v]
        if labels in data:
            cards.append(data[labels])
        elif unary in data:
            cards.append(len(np.atleast_1d(data[unary])))
        elif labels in source.graph:
            cards.append(source.graph[labels])
        else:
            raise ModelError(f"node {v!r} has neither {labels!r} nor {unary!r}, and the graph has no {labels!r}")
    out = cls(np.array(cards, np.int64) if cards else [])
    out.cutoff = source.graph.get("cutoff", -inf)
    if source.graph.get("constant", 0.0) != 0.0:
        out.add_factor([], source.graph["constant"])
    for row in source.graph.get("leftovers", ()):
        out.add_factor([], row[0])
    for v in variables:
        if unary in source.nodes[v]:
            for row in (source.nodes[v][unary], *source.nodes[v].get("leftovers", ())):
                _named(f"node {v!r}", out, [index[v]], row, {})
    rules: list[Rule] = []
    for v, data in source.nodes(data=True):
        if data.get("bipartite") == 1:
            missing = [u for u in data["variables"] if u not in index]
            if missing:
                raise ModelError(f"factor node {v!r} names {missing[0]!r}, which is no variable")
            if isinstance(data.get("rule"), Rule):
                numbers = dict(zip(data["rule"].variables, (index[u] for u in data["variables"]), strict=True))
                moved = data["rule"].restricted({}, numbers) if numbers else data["rule"]
                rules.append(moved)
                continue
            options = {"weight": data.get(weight, 1.0), "transposed": data.get("transposed", False)}
            _named(f"factor node {v!r}", out, [index[u] for u in data["variables"]], data[table], options)
    for f, data in enumerate(source.graph.get("factors", ())):  # factors of a Markov graph: its edges only show them
        scope = [index[u] for u in data["variables"]]
        options = {"weight": data["weight"], "transposed": data["transposed"]}
        _named(f"factor {f}", out, scope, data["table"], options)
    for u, v, data in source.edges(data=True):
        if u not in index or v not in index or "factors" in data:
            continue  # an edge of a factor node, or of a Markov graph
        if table not in data:
            raise ModelError(f"edge {u!r} - {v!r} has no {table!r}: an array of scores, or for example Potts(0, -1)")
        first, second = index[u], index[v]
        if not source.is_directed() and first > second:
            first, second = second, first
        _named(f"edge {u!r} - {v!r}", out, [first, second], data[table], {"weight": data.get(weight, 1.0)})
    if rules:
        out.take_rules(rules)
    return out


def _named(name: str, graph: FactorGraph, scope: list[int], table: Any, options: dict[str, Any]) -> None:
    try:
        graph.add_factor(scope, table, **options)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
