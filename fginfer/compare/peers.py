"""Other solvers, if they are installed: toulbar2 (program or Python package) and HiGHS on the local-polytope LP.

A peer gets the same graph as our methods, cutoff included. Its labeling is re-scored by the caller: toulbar2, for one,
reports shifted and rounded costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import scipy  # type: ignore[import-untyped, unused-ignore]

from fginfer.compare import toulbar2
from fginfer.compare.answers import PeerAnswer
from fginfer.graph import FactorGraph

LP_ENTRIES = 3_000_000  # an LP with more columns is not tried: it would not be built within any usual limit


@dataclass(frozen=True)
class Peer:
    """A solver that is not ours: how to see whether it is there, and how to run it."""

    name: str
    missing: Callable[[], str | None]  # None if it can be run, else what to install
    run: Callable[[FactorGraph, float], PeerAnswer]
    what: str = ""  # one line about it, for --help and the page
    note: str = ""  # what a reader of its rows must know
    version: Callable[[], str] = lambda: ""


def _highs(graph: FactorGraph, seconds: float) -> PeerAnswer:
    """The relaxation by HiGHS (inside SciPy); its labeling is the rounded solution of the LP."""
    from fginfer.compare.lp import local_polytope

    start = time.perf_counter()
    if graph.constant == -inf:
        return PeerAnswer(None, None, 0.0, "infeasible")
    problem = local_polytope(graph, LP_ENTRIES)
    if problem is None:
        return PeerAnswer(None, None, time.perf_counter() - start, "too_large")
    answer = problem.solve(max(0.0, seconds - (time.perf_counter() - start)))
    spent = time.perf_counter() - start
    if isinstance(answer, str):
        return PeerAnswer(None, None, spent, answer)
    labels, bound = answer
    return PeerAnswer(labels, bound, spent, "infeasible" if bound <= graph.cutoff else "converged")


PEERS = {
    "toulbar2": Peer(
        "toulbar2",
        toulbar2.missing,
        toulbar2.run,
        "exact search for cost functions (the program toulbar2, or the package pytoulbar2)",
        version=toulbar2.version_text,
    ),
    "highs": Peer(
        "highs",
        lambda: None,
        _highs,
        "HiGHS (in SciPy) on the linear program over the local polytope: a bound; its labeling is that program's"
        " solution rounded, so its score says nothing about HiGHS as a solver of integer programs",
        "rounded LP",
        lambda: f"HiGHS in SciPy {scipy.__version__}",
    ),
}
