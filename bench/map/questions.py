"""Questions beside the best labeling: k_best against one solve, explain against a CP-SAT deletion loop, marginals.

    python -m bench questions                    models made here; the last infeasible ones take the peer minutes
    python -m bench questions --infeasible 14    without these: two minutes
    python -m bench questions --mar FOLDER       also UAI files: exact, approximate, loopy

k_best: 100 best in at most five times the time of one solve is the aim. The peer is the enumeration of toulbar2
(pytoulbar2), which is told the score of the last of them, so that it has no more to find; `-`: not all within 30 s.
explain: minimal sets of contradicting constraints of 20 infeasible models; the peer asks CP-SAT (ortools) for a core
and leaves out one constraint at a time, as cpmpy's `mus` does. `way out` is what the cheapest relaxation took after
that, which the peer does not look for.
Times are of the processor, one core.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fginfer import FactorGraph, Potts, explain, k_best, marginals, read, read_evidence, solve, write
from fginfer.approximate import Approximation
from fginfer.sum_product import SumProduct


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def ranked_models() -> dict[str, FactorGraph]:
    rng = np.random.default_rng(0)

    def tree(n: int, k: int) -> FactorGraph:
        edges = [[int(rng.integers(max(0, v - 10), v)), v] for v in range(1, n)]
        return FactorGraph.from_arrays([k] * n, rng.normal(size=(n, k)), edges, tables=rng.normal(size=(n - 1, k, k)))

    def segmentation(side: int) -> FactorGraph:
        return FactorGraph.grid((side, side), rng.normal(size=(side, side, 2)), Potts(0.8, 0.0))

    def side_chains(n: int, most: int, near: int) -> FactorGraph:
        graph, at = FactorGraph(rng.integers(2, most, n)), rng.random((n, 3))
        for v in range(n):
            graph.add_factor([v], 3 * rng.normal(size=graph.cards[v]))
        for i in range(n):
            for j in np.argsort(((at - at[i]) ** 2).sum(axis=1))[1 : near + 1].tolist():
                if i < j:
                    graph.add_factor([i, j], np.minimum(0, rng.normal(size=(graph.cards[i], graph.cards[j]))))
        return graph

    return {
        "tree 2000 x 5": tree(2000, 5),
        "tree 20000 x 3": tree(20000, 3),
        "segmentation 40^2": segmentation(40),
        "segmentation 100^2": segmentation(100),
        "side chains 60": side_chains(60, 10, 4),
        "side chains 120": side_chains(120, 20, 6),
    }


def colouring(seed: int) -> tuple[int, int, list[tuple[int, int]]]:
    """More edges than three colours can take: 30 to 3000 of them."""
    rng = np.random.default_rng(seed)
    n = int(12 * 100 ** (seed / 19))
    edges = {(int(min(p)), int(max(p))) for p in (rng.permutation(n)[:2] for _ in range(int(2.6 * n)))}
    return n, 3, sorted(edges)


def by_fginfer(n: int, k: int, edges: list[tuple[int, int]]) -> tuple[str, int, float]:
    """With the seconds of the way out, which come after the last line of the search."""
    graph = FactorGraph([k] * n)
    for u, v in edges:
        graph.add_factor([u, v], Potts(-np.inf, 0.0))
    said = [time.process_time()]
    found = explain(graph, time_limit=10, callback=lambda line: said.append(time.process_time()))
    status = "minimal" if found.minimal else "not minimal" if found.infeasible else "feasible"
    return status, len(found.factors), time.process_time() - said[-1]


def by_cpsat(n: int, k: int, edges: list[tuple[int, int]]) -> tuple[str, int]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in range(k)] for _ in range(n)]
    for row in x:
        model.add_exactly_one(row)
    on = [model.new_bool_var("") for _ in edges]
    for switch, (u, v) in zip(on, edges, strict=True):
        for a in range(k):
            model.add_bool_or([x[u][a].negated(), x[v][a].negated(), switch.negated()])
    number = {switch.index: i for i, switch in enumerate(on)}

    def core(some: list[int]) -> list[int] | None:
        model.clear_assumptions()
        model.add_assumptions([on[i] for i in some])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        if solver.solve(model) != cp_model.INFEASIBLE:
            return None
        return [number[i] for i in solver.sufficient_assumptions_for_infeasibility()]

    left, needed = core(list(range(len(edges)))), list[int]()
    if left is None:
        return "feasible", 0
    while waiting := [i for i in left if i not in needed]:
        smaller = core([i for i in left if i != waiting[-1]])
        if smaller is None:
            needed.append(waiting[-1])
        else:
            left = smaller
    return "minimal", len(left)


ENUMERATE = """
import sys, time, pytoulbar2
problem, began = pytoulbar2.CFN(), time.process_time()
problem.Read(sys.argv[1])
answer = problem.Solve(allSolutions=1000, timeLimit=30)
print("\\nfound", 0 if answer is None else answer[2], time.process_time() - began)
"""


def by_toulbar2(graph: FactorGraph, least: float) -> float | None:
    """Seconds in which toulbar2 lists all labelings of at least this score, the file read; None: not in time."""
    beyond = graph.copy()
    beyond.cutoff = least - 1e-9
    with tempfile.TemporaryDirectory() as folder:
        write(beyond, path := Path(folder) / "model.cfn")
        command = [sys.executable, "-c", ENUMERATE, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
    last = [line.split() for line in said.splitlines() if line.startswith("found")][-1]
    return float(last[2]) if int(last[1]) >= 99 else None  # costs in a file have some digits: a tie may be lost


def show_ranked() -> None:
    print(f"{'model':<22}{'one solve':>10}{'100 best':>10}{'times':>8}{'toulbar2':>10}  status")
    for name, graph in ranked_models().items():
        _, one = timed(lambda g=graph: solve(g, time_limit=30, gap=0.0))
        answers = k_best(graph, 100, time_limit=30)
        _, all_of_them = timed(lambda a=answers: len(a))
        peer = None if find_spec("pytoulbar2") is None else by_toulbar2(graph, answers[-1].score)
        other = "-" if peer is None else f"{peer:.4f}"
        ours = f"{one:>10.4f}{all_of_them:>10.4f}{all_of_them / one:>8.1f}"
        print(f"{name:<22}{ours}{other:>10}  {answers.status}", flush=True)


def show_explained(most: int) -> None:
    ours = f"{'constraints':>12}{'fginfer':>12}{'size':>6}{'seconds':>9}{'way out':>9}"
    print(f"\n{ours}{'cp-sat':>12}{'size':>6}{'seconds':>9}")
    for seed in range(most):
        model = colouring(seed)
        (status, size, after), spent = timed(lambda m=model: by_fginfer(*m))
        line = f"{len(model[2]):>12}{status:>12}{size:>6}{spent - after:>9.3f}{after:>9.3f}"
        if find_spec("ortools") is not None:
            (status, size), spent = timed(lambda m=model: by_cpsat(*m))
            line += f"{status:>12}{size:>6}{spent:>9.3f}"
        print(line, flush=True)


def show_marginals(folder: Path, seconds: float) -> None:
    print(f"\n{'file':<24}{'exact, s':>9}{'error':>9}{'of bp':>9}{'log Z':>12}{'low':>9}{'high':>9}")
    for path in sorted(folder.glob("*.uai")):
        graph = read(path)
        beside = path.with_name(path.name + ".evid")
        graph = graph.condition(read_evidence(beside, graph)).graph if beside.exists() else graph
        exact, spent = timed(lambda g=graph: marginals(g))
        expected = np.concatenate(exact.variables)
        work = Approximation(graph, 0, seconds)
        work.run()
        found, messages = work.estimate(), SumProduct(graph)
        messages.run(1000)
        errors = [np.abs(p - expected).mean() for p in (np.concatenate(found.variables), messages.flat())]
        print(f"{path.name:<24}{spent:>9.2f}{errors[0]:>9.5f}{errors[1]:>9.5f}{exact.log_z:>12.3f}"
              f"{found.low - exact.log_z:>+9.3f}{found.high - exact.log_z:>+9.3f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mar", type=Path, metavar="FOLDER", help="UAI files with few enough states to sum")
    parser.add_argument(
        "--infeasible", type=int, default=20, metavar="N", help="models; the peer needs minutes for the last"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of an approximation")
    args = parser.parse_args()
    show_ranked()
    show_explained(args.infeasible)
    if args.mar is not None:
        show_marginals(args.mar, args.seconds)


if __name__ == "__main__":
    main()
