"""What solve() costs beyond the work of the core: microseconds per call on a 10-variable chain.

usage: python -m bench overhead [calls]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from fginfer import FactorGraph, Potts, solve
from fginfer.core.door import check, ffi, lib, new_error
from fginfer.methods import native_methods


def chain() -> FactorGraph:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(9), np.arange(1, 10)], 1)
    return FactorGraph.from_arrays(np.full(10, 4), rng.normal(size=(10, 4)), edges, tables=[Potts(1, 0)])


def core_only(graph: FactorGraph) -> None:
    """The same work through bare calls of the core."""
    s = ffi.new("fgi_settings *", lib.fgi_settings_default())
    s.method = native_methods()["icm"]
    s.max_iterations = 1
    out, error, info = ffi.new("fgi_solver **"), new_error(), ffi.new("fgi_info *")
    check(lib.fgi_solver_create(graph.model.handle, s, out, error), error)
    lib.fgi_solver_run(out[0], -1, -1, info)
    lib.fgi_solver_free(out[0])


def per_call(call: object, calls: int) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(calls):
            call()  # type: ignore[operator]
        best = min(best, (time.process_time() - start) / calls)
    return best * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=5000)
    calls = parser.parse_args().calls
    graph = chain()
    bare = per_call(lambda: core_only(graph), calls)
    whole = per_call(lambda: solve(graph, "icm", max_iterations=1), calls)
    print(f"core calls {bare:.1f} us, solve() {whole:.1f} us, overhead {whole - bare:.1f} us")


if __name__ == "__main__":
    main()
