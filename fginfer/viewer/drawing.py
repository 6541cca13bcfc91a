"""Where nodes of the drawing go: a spring layout of small graphs, and of a neighbourhood of large ones; and grids."""

from __future__ import annotations

from typing import Any

import networkx as nx  # type: ignore[import-untyped, unused-ignore]
import numpy as np

from fginfer.viewer.near import Near

MOST_DRAWN = 240  # variables: more are a hairball, and take longer than the page may (chosen)
MOST_UNFOLDED = 60
MOST_PIXELS = 1 << 18
MOST_LINKS = 1200


def drawing(near: Near, grid: list[int] | None) -> dict[str, Any]:
    """Nodes as [variable, x, y], x and y from 0 to 1; links as [variable, variable, factor]; hubs of larger factors."""
    chosen = list(range(near.n)) if near.n <= MOST_DRAWN else _neighbourhood(near)
    inside = set(chosen)
    graph = nx.Graph()
    graph.add_nodes_from(chosen)
    factors = sorted({f for v in chosen for f in near.factors_of(v)[:60]})
    links: list[list[int]] = []
    hubs: list[int] = []
    for f in factors:
        scope = [v for v in near.scope(f) if v in inside]
        if len(scope) < 2 or len(links) >= MOST_LINKS:
            continue
        if len(near.scope(f)) == 2:
            links.append([*scope, f])
            graph.add_edge(*scope)
        else:
            hubs.append(f)
            graph.add_edges_from((v, ("hub", f)) for v in scope)
    for k, rule in enumerate(near.graph.rules[:60]):
        scope = [v for v in rule.variables if v in inside]
        graph.add_edges_from((v, ("rule", k)) for v in scope[:60])
    at = _layout(graph) if grid is None else _in_rows(chosen, grid[1])
    return {
        "nodes": [[v, *at[v]] for v in chosen],
        "links": links,
        "hubs": [[f, *at["hub", f], near.scope(f)] for f in hubs],
        "rules": [[k, *at["rule", k]] for k in range(min(60, len(near.graph.rules))) if ("rule", k) in at],
        "all": near.n == len(chosen),
    }


def _layout(graph: Any) -> dict[Any, list[float]]:
    """Each component by springs, in a square of an area that follows its size; squares in rows."""
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), str(sorted(map(str, part))[:1])))
    sides = [max(1.0, len(part) ** 0.5) for part in parts]
    width = max([*sides, (1.4 * sum(s * s for s in sides)) ** 0.5], default=1.0)
    at: dict[Any, tuple[float, float]] = {}
    x = y = row = 0.0
    for part, side in zip(parts, sides, strict=True):
        if x + side > width * 1.001:
            x, y, row = 0.0, y + row, 0.0
        piece = graph.subgraph(sorted(part, key=str))
        found = _places(piece)
        points = np.array(list(found.values()))
        span = np.maximum(np.ptp(points, axis=0), 1e-9)
        for node, p in zip(found, (points - points.min(0)) / span if len(part) > 1 else points, strict=True):
            at[node] = (x + side * (0.08 + 0.84 * p[0]), y + side * (0.08 + 0.84 * p[1]))
        x, row = x + side, max(row, side)
    high = max(y + row, 1e-9)
    return {node: [round(a / width, 4), round(b / high, 4)] for node, (a, b) in at.items()}


def _in_rows(chosen: list[int], width: int) -> dict[Any, list[float]]:
    """Pixels of a grid where they are."""
    row, column = np.divmod(np.array(chosen), width)
    y, x = (row - row.min()) / max(1, np.ptp(row)), (column - column.min()) / max(1, np.ptp(column))
    return {v: [round(float(a), 4), round(float(b), 4)] for v, a, b in zip(chosen, x, y, strict=True)}


def _places(part: Any) -> dict[Any, Any]:
    """Places of a connected part: by path lengths where that is quick, for it unfolds; else by springs."""
    if len(part) < 2:
        return dict.fromkeys(part, np.full(2, 0.5))
    found: dict[Any, Any] = (
        nx.kamada_kawai_layout(part) if len(part) <= MOST_UNFOLDED else nx.spring_layout(part, seed=0, iterations=80)
    )
    return found


def _neighbourhood(near: Near) -> list[int]:
    """Variables around the one with most factors, in the order of their distance."""
    start = int(near.degree.argmax()) if near.n else 0
    found, seen = [start], {start}
    for v in found:
        for f in near.factors_of(v)[:12]:
            for u in near.scope(f)[:12]:
                if u not in seen and len(found) < MOST_DRAWN:
                    seen.add(u)
                    found.append(u)
    return sorted(found)


def grid_shape(near: Near) -> list[int] | None:
    """Rows and columns, where the factors are the pairs of neighbours of a grid in C order (with diagonals or not)."""
    n, begin = near.n, near.begin
    if n < 9 or n > MOST_PIXELS or not near.n_factors or bool((np.diff(begin) != 2).any()):
        return None
    pairs = np.sort(near.arrays.vars.reshape(-1, 2).astype(np.int64), axis=1)
    steps, counts = np.unique(pairs[:, 1] - pairs[:, 0], return_counts=True)
    wide = steps[(steps > 1) & (counts > n // 2)]
    for width in wide.tolist():
        straight = {1, width}
        diagonal = {width - 1, width + 1}
        known = set(steps.tolist())
        if n % width or not straight <= known or not known <= straight | diagonal:
            continue
        beside = pairs[pairs[:, 1] - pairs[:, 0] == 1]
        if not ((beside[:, 0] + 1) % width == 0).any():
            return [n // width, width]
    return None
