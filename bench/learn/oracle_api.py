"""The learner of docs/oracles.md beside gdmm: CPU seconds for each oracle call, on the same graphs.

    python -m bench oracle_api [--labels 26,200,1000] [--graphs 40]

A call is one answer of a unigram or of an edge, in both. gdmm's time has its block updates in it, the example's its
perceptron updates. Ratios above 1 say how much longer a call takes through the public Python interface.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.common.edges import raster
from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.solvers.registry import make_solver

PAGE = Path(__file__).resolve().parents[2] / "docs" / "oracles.md"


def example() -> Any:
    code = re.search(r"forty lines.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.group(1), names)  # type: ignore[union-attr]
    return names["GraphPerceptron"]


def grid(rng: np.random.Generator, k: int, side: int, features: int) -> tuple[Any, Any, Any]:
    return rng.normal(size=(side * side, features)), rng.integers(0, k, side * side), raster(side, side)


def encode(graphs: list[tuple[Any, Any, Any]], k: int) -> Encoded:
    begin = np.cumsum([0] + [len(X) for X, _, _ in graphs]).astype(np.int64)
    rows = sp.csr_matrix(np.concatenate([X for X, _, _ in graphs]))
    data = Encoded(Kind.LABELS, Edges.LIST, begin, rows, k, np.concatenate([t for _, t, _ in graphs]).astype(np.int32))
    data.edge_begin = np.cumsum([0] + [len(e) for _, _, e in graphs]).astype(np.int64)
    flat = np.concatenate([e for _, _, e in graphs]).astype(np.int32)
    data.edge_u, data.edge_v = flat[:, 0].copy(), flat[:, 1].copy()
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="26,200,1000")
    parser.add_argument("--graphs", type=int, default=40)
    parser.add_argument("--side", type=int, default=12)
    parser.add_argument("--features", type=int, default=20)
    options = parser.parse_args()
    for k in map(int, options.labels.split(",")):
        rng = np.random.default_rng(k)
        graphs = [grid(rng, k, options.side, options.features) for _ in range(options.graphs)]
        solver = make_solver("gdmm", Learner(encode(graphs, k)), None, 0.1, 0, {})
        start = time.process_time()
        for _ in range(3):
            solver.advance(np.inf)
        ours = (time.process_time() - start) / (solver.info.unary_calls + solver.info.pair_calls)
        model = example()(k, options.features)
        start = time.process_time()
        for _ in range(3):
            for graph in graphs:
                model.update(*graph, rate=0.1, decay=0.999)
        calls = model.unigrams.calls + model.bigrams.calls
        theirs = (time.process_time() - start) / calls
        print(f"K = {k:>5}: gdmm {1e6 * ours:8.2f} us a call, the example {1e6 * theirs:8.2f}, {theirs / ours:.2f}x")


if __name__ == "__main__":
    main()
