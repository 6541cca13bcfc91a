"""What the page of a graph shows, bounded whatever the size of the model: numbers and text as JSON has them."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.graph import FactorGraph
from fginfer.printable import printable
from fginfer.result import Result
from fginfer.viewer.drawing import drawing, grid_shape
from fginfer.viewer.near import Near
from fginfer.viewer.run import run_facts

MOST_VARIABLES = 2000  # with all their details; of larger models the most interesting ones (all limits: chosen)
MOST_FACTORS = 6000
MOST_NAMES = 20_000  # that can be searched for
MOST_LABELS = 200_000  # variables whose chosen label is in the page
MOST_SCORES = 24  # labels of a variable, and rows and columns of a table
MOST_ENTRIES = 150_000  # entries of all tables
MOST_RULES = 500


def plain(x: float) -> float | str:
    """A number as JSON has it, with six digits."""
    return float(f"{x:.6g}") if isfinite(x) else "inf" if x > 0 else "-inf"


class Contents:
    """What stays the same from page to page of one graph."""

    def __init__(self, graph: FactorGraph, title: str) -> None:
        self.graph, self.title = graph, printable(title)
        self.near = Near(graph)
        self.names = graph.shared_names() if graph.names else None
        self.grid = grid_shape(self.near)
        self.drawing = drawing(self.near, self.grid)
        self.description = graph.describe()

    def data(self, given: Result | ArrayLike | None) -> dict[str, Any]:
        """Everything the page knows, for a result, a labeling or nothing."""
        result = given if isinstance(given, Result) else None
        labels: Any = result.labels if result is not None else given
        x = None if labels is None else self.graph.check_labels(labels)
        violated = self.near.violated(x)
        shown = self._shown(x, violated)
        factors = self._factors(shown, violated)
        tables = self._tables(factors)
        return {
            "title": self.title,
            "size": self._size(),
            "variables": [self._variable(v, x, result) for v in shown],
            "factors": [self._factor(f, x, violated) for f in factors],
            "tables": tables,
            "labels": None if x is None else x[:MOST_LABELS].tolist(),
            "names": self._all_names(),
            "drawing": self.drawing,
            "grid": self.grid,
            "rules": self._rules(x),
            "conflicts": {"factors": violated[:200].tolist(), "count": len(violated), "labels": self._forbidden(x)},
            "components": self.near.components(),
            "degrees": self.near.degrees(),
            "run": None if result is None else run_facts(result),
        }

    # -- of the model ------------------------------------------------------------------------------------------

    def _size(self) -> dict[str, Any]:
        d = self.description
        facts = {
            "variables": d.variables,
            "factors over two or more variables": d.interactions,
            "labels, at most": d.max_labels,
            "components": f"{d.components}{', no cycles' if d.forest else ''}",
            "factors that forbid something": d.constraints,
        }
        return facts | ({"constraints": sum(d.rules.values())} if d.rules else {})

    def _shown(self, x: NDArray[np.int32] | None, violated: NDArray[np.int64]) -> list[int]:
        """All variables, or those in conflicts, those that are drawn, those with most factors, and an even sample."""
        n = self.graph.n_variables
        if n <= MOST_VARIABLES:
            return list(range(n))
        first = dict.fromkeys(v for f in violated[:100].tolist() for v in self.near.scope(f))
        first |= dict.fromkeys(node[0] for node in self.drawing["nodes"])
        first |= dict.fromkeys(np.argsort(-self.near.degree, kind="stable")[:100].tolist())
        first |= dict.fromkeys(range(100))
        first |= dict.fromkeys(np.linspace(0, n - 1, MOST_VARIABLES).astype(int).tolist())
        return sorted(list(first)[:MOST_VARIABLES])

    def _factors(self, shown: list[int], violated: NDArray[np.int64]) -> list[int]:
        first = dict.fromkeys(violated[:200].tolist())
        for v in shown:
            if len(first) >= MOST_FACTORS:
                break
            first |= dict.fromkeys(self.near.factors_of(v)[:40])
        return sorted(list(first)[:MOST_FACTORS])

    def _tables(self, factors: list[int]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        left = MOST_ENTRIES
        for f in factors:
            key = str(self.near.table_of(f))
            if key in out or left <= 0:
                continue
            values, shape = self.near.block(f, MOST_SCORES)
            left -= values.size
            out[key] = {"shape": list(shape), "rows": [[plain(v) for v in row] for row in values.tolist()]}
        return out

    def _all_names(self) -> list[str] | None:
        names, n = self.names, self.graph.n_variables
        return [printable(str(names.variable(v))) for v in range(min(n, MOST_NAMES))] if names else None

    def _rules(self, x: NDArray[np.int32] | None) -> list[Any]:
        rules = self.graph.rules
        scores = None if x is None else self.graph.rule_scores(x)
        out = []
        for k, rule in enumerate(rules[:MOST_RULES]):
            score = None if scores is None else plain(float(scores[k]))
            out.append([rule.kind, [int(v) for v in rule.variables[:50]], len(rule.variables), score])
        return out

    # -- of the labeling ---------------------------------------------------------------------------------------

    def _forbidden(self, x: NDArray[np.int32] | None) -> list[int]:
        """Variables whose label is forbidden by its own score."""
        if x is None:
            return []
        bad: list[int] = np.flatnonzero(np.isneginf(self.graph.unary_scores(x)))[:200].tolist()
        return bad

    def _variable(self, v: int, x: NDArray[np.int32] | None, result: Result | None) -> dict[str, Any]:
        card, scores = int(self.graph.cards[v]), self.near.unary(v)
        out: dict[str, Any] = {
            "id": v,
            "card": card,
            "scores": [plain(s) for s in scores[:MOST_SCORES].tolist()],
            "factors": self.near.factors_of(v)[:40],
            "degree": int(self.near.degree[v]),
        }
        labels = self.names.labels(v) if self.names else None
        if labels is not None:
            out["words"] = [printable(word) for word in labels[:MOST_SCORES]]
        if x is not None:
            out["label"] = int(x[v])
            out["margin"] = None if (m := self.near.margin(v, x)) is None else plain(m)
        if result is not None and result.marginals is not None:
            p = result.marginals[v]
            out["shares"] = [plain(s) for s in p[:MOST_SCORES].tolist()]
        return out

    def _factor(self, f: int, x: NDArray[np.int32] | None, violated: NDArray[np.int64]) -> dict[str, Any]:
        at = int(np.searchsorted(violated, f))
        out: dict[str, Any] = {
            "id": f,
            "scope": self.near.scope(f),
            "table": str(self.near.table_of(f)),
            "weight": plain(self.near.weight(f)),
            "turned": self.near.turned(f),
            "hard": self.near.forbids(f),
            "violated": at < len(violated) and int(violated[at]) == f,
        }
        if x is not None:
            score = self.near.score(f, x)
            out["score"] = plain(score) if score > -inf else "-inf"
        return out
