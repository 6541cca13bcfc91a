"""Constraints side by side: fginfer, CP-SAT (ortools) and toulbar2 (pytoulbar2) on the same models, one core each.

    python -m bench constraints                              every model, 10 s a run
    python -m bench constraints --only sudoku25 queens50 --seconds 30

Prints a line a run: model, solver, status, score, bound and seconds from the model to the answer, set-up included. A
solver that is not installed is left out. Each run has a process of its own, which is ended when its time is long over.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.map.constraints_models import MODELS, Problem

Answer = tuple[str, float | None, float | None]


def value(p: Problem, labels: Any) -> float:
    """The score of a labeling by the definition, -inf if a constraint is violated."""
    for scope in p.different:
        if len({labels[v] for v in scope}) < len(scope):
            return -np.inf
    for literals, weights, low, high in p.linear:
        total = sum(w for (v, a), w in zip(literals, weights, strict=True) if labels[v] == a)
        if (low is not None and total < low) or (high is not None and total > high):
            return -np.inf
    score = sum(s[labels[v]] for v, s in p.unary.items())
    return float(score + sum(t[labels[i], labels[j]] for i, j, t in p.pairs))


def by_fginfer(p: Problem, seconds: float) -> Answer:
    from fginfer import FactorGraph, solve

    graph = FactorGraph(p.cards)
    for v, scores in p.unary.items():
        graph.add_factor([v], scores)
    for i, j, table in p.pairs:
        graph.add_factor([i, j], table)
    for scope in p.different:
        graph.add_all_different(scope)
    for literals, weights, low, high in p.linear:
        graph.add_linear(literals, weights, low, high)
    result = solve(graph, time_limit=seconds)
    score = None if result.labels is None else value(p, result.labels)
    return result.status, score, result.bound


def by_cpsat(p: Problem, seconds: float) -> Answer:
    from ortools.sat.python import cp_model

    m = cp_model.CpModel()
    x = [m.new_int_var(0, k - 1, "") for k in p.cards]
    is_at = [[m.new_bool_var("") for _ in range(k)] for k in p.cards]
    for v, literals in enumerate(is_at):
        m.add_exactly_one(literals)
        m.add(sum(a * b for a, b in enumerate(literals)) == x[v])
    terms = [s * is_at[v][a] for v, scores in p.unary.items() for a, s in enumerate(scores) if s]
    for i, j, table in p.pairs:
        for a, b in np.argwhere(table != 0).tolist():
            s = int(table[a, b])
            if s <= -(10**6):
                m.add_bool_or([is_at[i][a].negated(), is_at[j][b].negated()])
                continue
            both = m.new_bool_var("")
            m.add_implication(both, is_at[i][a])
            m.add_implication(both, is_at[j][b])
            m.add_bool_or([is_at[i][a].negated(), is_at[j][b].negated(), both])
            terms.append(s * both)
    for scope in p.different:
        m.add_all_different([x[v] for v in scope])
    for literals, weights, low, high in p.linear:
        total = sum(w * is_at[v][a] for (v, a), w in zip(literals, weights, strict=True))
        if low is not None:
            m.add(total >= low)
        if high is not None:
            m.add(total <= high)
    if terms:
        m.maximize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.status_name(solver.solve(m)).lower()
    if status == "feasible" and not terms:
        status = "optimal"
    found = status in ("optimal", "feasible")
    score = value(p, [solver.value(v) for v in x]) if found else None
    return status, score, solver.best_objective_bound if terms and found else score


def by_toulbar2(p: Problem, seconds: float) -> Answer:
    import pytoulbar2

    top = 10**7
    c = pytoulbar2.CFN(top)
    for v, k in enumerate(p.cards):
        c.AddVariable(f"x{v}", range(k))
    shift = 0
    for v, scores in p.unary.items():
        c.AddFunction([v], [max(scores) - s for s in scores])
        shift += max(scores)
    for i, j, table in p.pairs:
        most = int(table.max())
        c.AddFunction([i, j], [top if s <= -(10**6) else most - s for s in table.ravel().tolist()])
        shift += most
    for scope in p.different:
        c.AddAllDifferent(scope, encoding="binary")
    for literals, weights, low, high in p.linear:
        tuples = [(v, a, w) for (v, a), w in zip(literals, weights, strict=True)]
        if low is not None:
            c.AddGeneralizedLinearConstraint(tuples, ">=", low)
        if high is not None:
            c.AddGeneralizedLinearConstraint(tuples, "<=", high)
    began = time.monotonic()
    found = c.Solve(timeLimit=max(1, int(seconds)))
    late = time.monotonic() - began >= max(1, int(seconds)) - 0.05
    if found is None:
        return ("time_limit" if late else "infeasible"), None, None
    labels = [int(a) for a in found[0]]
    score = value(p, labels)
    return ("time_limit" if late else "optimal"), score, None if late else shift - found[1]


SOLVERS = {"fginfer": (by_fginfer, "fginfer"), "cp-sat": (by_cpsat, "ortools"), "toulbar2": (by_toulbar2, "pytoulbar2")}


def _work(solver: str, model: str, seconds: float, out: Any) -> None:
    p = MODELS[model]()
    began = time.monotonic()
    try:
        answer: Any = SOLVERS[solver][0](p, seconds)
    except Exception as error:  # a peer that gives up is a line of the table
        answer = (f"{type(error).__name__}: {error}"[:60], None, None)
    out.put((*answer, time.monotonic() - began))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS), metavar="MODEL")
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print(f"{'model':<14}{'solver':<10}{'status':<14}{'score':>12}{'bound':>14}{'seconds':>9}")
    for model in args.only:
        for solver in args.solvers:
            if find_spec(SOLVERS[solver][1]) is None:
                continue
            out = context.Queue()
            process = context.Process(target=_work, args=(solver, model, args.seconds, out))
            process.start()
            try:
                status, score, bound, spent = out.get(timeout=3 * args.seconds + 20)
            except Exception:
                status, score, bound, spent = "killed", None, None, float("nan")
                process.terminate()
            process.join()
            shown = ["-" if x is None else f"{x:.10g}" for x in (score, bound)]
            print(f"{model:<14}{solver:<10}{status:<14}{shown[0]:>12}{shown[1]:>14}{spent:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
