"""Is anything false said on other ways to an answer? What differential.py does not draw, by the same checks.

    python tests/truth/differential_ways.py --models 2000 [--first SEED] [--way update]

Ways: *update* (new numbers under a solver that has worked), *start* (any labeling, or another method's result, as a
start), *messages* (any numbers as messages, before a run and in the middle), *steps* (runs of any length, labelings
offered between them, a copy of the solver, results asked for in the middle), *ends* (no or one iteration, any gap, no
variables), *evidence* (some labels given), *memory* (auto with next to none for elimination), *file* (through every
format that holds the numbers), *costs* (wcsp and cfn files with upper bounds and negative costs, read by us and by a
few lines here). Prints a JSON line for everything false, then counts. Exit code 1 if there was any.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np
from differential import REFUSALS, Answers, check
from differential_models import REGIMES, Case, Truth, random_case
from ledger import note

import fginfer
from fginfer import FginferError, Solver, available_methods

SECONDS = 20.0


def settings_of(rng: np.random.Generator, method: str | None = None) -> dict[str, Any]:
    method = method or str(rng.choice(available_methods()))
    iterations = {"auto": 4}.get(method, 40)
    return {
        "method": method,
        "gap": float(rng.choice([0.0, 1e-6, 0.01])),
        "seed": int(rng.integers(100)),
        "threads": int(rng.choice([1, 1, 2, 4])),
        "max_iterations": iterations,
    }


def with_cutoff(rng: np.random.Generator, case: Case, how: dict[str, Any]) -> dict[str, Any]:
    """Now and then a cutoff, near what the case has."""
    truth = Truth(case)
    return how | {"cutoff": truth.near_optimum(rng)} if truth.optimum is not None and rng.random() < 0.4 else how


def with_unaries(case: Case, rng: np.random.Generator) -> Case:
    """The same model with other numbers for some variables, drawn as the first were: set_unary replaces all scores of a
    variable, those of further factors over it, too."""
    unaries = {i: rng.permutation(u) for i, u in case.unaries.items()}
    more = tuple((scope, scores) for scope, scores in case.more if not (len(scope) == 1 and scope[0] in unaries))
    return replace(case, unaries=unaries, more=more)


def with_tables(case: Case, graph: Any, rng: np.random.Generator) -> tuple[Case, dict[int, Any]]:
    """The same model with other numbers in tables that one factor has, and these tables by number. (Equal tables are
    stored once, those of negative weights negated.)"""
    factors, changed, stored = list(case.factors), {}, [f.table for f in graph.factors()]
    for k, f in enumerate(factors):
        alone = f.shared < 0 and f.weight > 0 and stored.count(stored[k]) == 1
        if alone and isinstance(f.table, np.ndarray) and rng.random() < 0.5:
            table = rng.permutation(f.table.ravel()).reshape(f.table.shape)
            full = table.T if f.transposed else table
            factors[k], changed[stored[k]] = replace(f, table=table, scores=f.weight * full + 0.0), table
    return replace(case, factors=tuple(factors)), changed


# -- ways: each solves and checks -----------------------------------------------------------------------------------


def update(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), settings_of(rng)
    with Solver(graph, **how) as solver:
        solver.run(SECONDS, int(rng.integers(0, 6)))
        for _ in range(2):
            case = with_unaries(case, rng)
            for i, scores in case.unaries.items():
                graph.set_unary(i, scores)
            if rng.random() < 0.5:
                case, tables = with_tables(case, graph, rng)
                for number, table in tables.items():
                    graph.set_table(number, table)
            solver.update()
            solver.run(SECONDS, int(rng.choice([1, 3, 100])))
            judge(answers, case, graph, how, solver.result())


def start(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), settings_of(rng)
    labels: Any = [int(rng.integers(k)) for k in case.cards]
    if rng.random() < 0.5:
        labels = fginfer.solve(graph, time_limit=SECONDS, **settings_of(rng, how["method"]) | {"max_iterations": 3})
    how = with_cutoff(rng, case, how)
    judge(answers, case, graph, how, fginfer.solve(graph, warm_start=labels, time_limit=SECONDS, **how))


def messages(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    """A bound is one whatever the messages are."""
    method = str(rng.choice(["gdmm", "trws", "mplp", "ad3", "psdd", "bnb"]))
    graph, how = case.graph(), with_cutoff(rng, case, settings_of(rng, method))
    if method == "gdmm" and rng.random() < 0.5:
        how |= {"formulation": "tables", "sweep": str(rng.choice(["on", "off"])), "access": "dense"}
    with Solver(graph, **how) as solver:
        for k in range(int(rng.integers(1, 4))):
            size = (known.messages if (known := solver.result()).messages is not None else np.zeros(0)).size
            power = float(rng.choice([-20, -3, 0, 0, 8, 20, 200]))
            with np.errstate(over="ignore"):
                drawn = rng.normal(size=size) * Truth(case).unit * 10.0**power
            if rng.random() < 0.3:
                drawn = np.round(drawn)
            try:
                solver.warm_start(replace(known, messages=drawn))
            except FginferError:  # numbers too large, or the wrong time for them: said
                answers.refused += 1
            solver.run(SECONDS, int(rng.integers(1, 6)))
            judge(answers, case, graph, how | {"messages": k}, solver.result())


def steps(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), with_cutoff(rng, case, settings_of(rng))
    solver = Solver(graph, **how)
    for k in range(int(rng.integers(2, 8))):
        kind = int(rng.integers(6))
        if kind == 0:
            solver.offer([int(rng.integers(n)) for n in case.cards])
        elif kind == 1:
            solver = pickle.loads(pickle.dumps(solver))
        elif kind == 2:
            solver.run(SECONDS, callback=lambda progress: True)
        elif kind == 3:
            solver.run(float(rng.choice([0.0, 1e-5, 1e-3])))
        else:
            solver.run(SECONDS, int(rng.choice([0, 1, 2, 7])))
        r = solver.result(trace=k % 2 == 0)
        if r.trace or r.score is None:
            judge(answers, case, graph, how | {"step": k, "done": kind, "midway": True}, r)
    solver.close()


def ends(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    """Settings at the end of what they may be."""
    how = settings_of(rng)
    how["max_iterations"] = None if how["method"] in ("auto", "bnb", "edac") else int(rng.choice([0, 0, 1, 300]))
    how["gap"] = float(rng.choice([0.0, 5e-324, 1e-15, 0.5, 1e300, inf]))
    how["threads"] = int(rng.choice([1, 2, 7, 64]))
    if rng.random() < 0.1:
        case = replace(case, cards=(), unaries={}, factors=(), more=tuple(m for m in case.more if not m[0]))
    elif rng.random() < 0.3:  # a large constant, which one label of a variable more takes off again
        size = float(rng.choice([1.0, 1e13, 3e15, 1e300, 1e-300]))
        cards, unary = (*case.cards, 1), np.array([-size])
        case = replace(case, cards=cards, constant=size, unaries=case.unaries | {len(cards) - 1: unary})
        try:
            case.graph().model.normalised()
        except FginferError:
            answers.refused += 1
            return
    graph = case.graph()
    how = with_cutoff(rng, case, how)
    judge(answers, case, graph, how, fginfer.solve(graph, time_limit=SECONDS, **how))


def evidence(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), settings_of(rng)
    chosen = rng.permutation(len(case.cards))[: int(rng.integers(1, len(case.cards) + 1))].tolist()
    given = {i: int(rng.integers(case.cards[i])) for i in chosen}
    unaries = dict(case.unaries)
    for i, label in given.items():
        own = unaries.get(i, np.zeros(case.cards[i]))
        unaries[i] = np.where(np.arange(case.cards[i]) == label, own, -inf)
    known = replace(case, unaries=unaries)
    how = with_cutoff(rng, known, how)
    start = [int(rng.integers(k)) for k in case.cards] if rng.random() < 0.3 else None
    result = fginfer.solve(graph, evidence=given, warm_start=start, time_limit=SECONDS, **how)
    # The unit is that of the model without the known variables.
    judge(answers, known, graph, how | {"given": given}, result, unit=result.unit)


def memory(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), settings_of(rng, "auto")
    how["memory"] = float(rng.choice([0, 100, 1000]))
    how = with_cutoff(rng, case, how)
    judge(answers, case, graph, how, fginfer.solve(graph, time_limit=SECONDS, **how))


def file(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    graph, how = case.graph(), settings_of(rng, "auto")
    suffix = str(rng.choice([".npz", ".wcsp", ".cfn", ".LG", ".h5", ".uai"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        try:
            fginfer.write(graph, path)
        except FginferError:  # a number that the format cannot hold: said, and right
            answers.refused += 1
            return
        again = fginfer.read(path)
    for _ in range(5):
        labels = [int(rng.integers(k)) for k in case.cards]
        ours, theirs = graph.score(labels), again.score(labels)
        if ours != theirs and not abs(ours - theirs) <= 1e-12 * max(abs(ours), abs(theirs)) and suffix != ".uai":
            answers.report("another score in the file", how | {"file": suffix}, said=theirs, before=ours)
    if suffix == ".npz":
        judge(answers, case, graph, how | {"file": suffix}, fginfer.solve(again, time_limit=SECONDS, **how))


def costs(rng: np.random.Generator, case: Case, answers: Answers) -> None:
    """A wcsp or cfn file of whole costs with an upper bound on their sum, and what it means."""
    cards = case.cards
    scopes = [f.variables for f in case.factors if prod(cards[v] for v in f.variables) <= 200]
    scopes += [(i,) for i in range(len(cards)) if rng.random() < 0.7]
    negative = bool(rng.random() < 0.5)
    tables = [rng.integers(-6 if negative else 0, 9, [cards[v] for v in s]) for s in scopes]
    top = int(rng.integers(1, 6 * len(scopes) + 2))
    if scopes and rng.random() < 0.3:  # beside which a cost of 1 is next to nothing
        most = 10 ** int(rng.integers(9, 16))
        tables[0], top = tables[0] + most, top + most
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("model.cfn" if negative else "model.wcsp")
        path.write_text((cfn if negative else wcsp)(cards, scopes, tables, top))
        graph = fginfer.read(path)
    totals = {
        x: int(sum(t[tuple(x[v] for v in s)] for s, t in zip(scopes, tables, strict=True)))
        for x in product(*map(range, cards))
    }
    best = min(totals.values())
    how = settings_of(rng, str(rng.choice(["auto", "auto", "bnb", "edac", "trws", "search", "gdmm"])))
    r = fginfer.solve(graph, time_limit=SECONDS, **how | {"max_iterations": 200})
    answers.solves += 1
    answers.statuses[r.status] += 1
    said = {"optimum": -best, "top": top, "file": "cfn" if negative else "wcsp"}
    if r.labels is not None and (-totals[tuple(r.labels.tolist())] != r.score or -r.score >= top):
        answers.report("wrong score, or at the upper bound", how, r, **said)
    if r.status == "infeasible" and best < top:
        answers.report("not infeasible", how, r, **said)
    if r.is_optimal and (r.score is None or -best - r.score > 1e-12 * max(abs(r.score), r.unit)):
        answers.report("not optimal", how, r, **said)
    if best < top and r.bound is not None and r.bound < -best:
        answers.report("bound below the optimum", how, r, **said)


def wcsp(cards: Any, scopes: Any, tables: Any, top: int) -> str:
    lines = [f"m {len(cards)} {max(cards)} {len(scopes)} {top}", " ".join(map(str, cards))]
    for scope, table in zip(scopes, tables, strict=True):
        lines.append(" ".join(map(str, [len(scope), *scope, 0, table.size])))
        lines += [" ".join(map(str, [*x, table[x]])) for x in np.ndindex(table.shape)]
    return "\n".join(lines) + "\n"


def cfn(cards: Any, scopes: Any, tables: Any, top: int) -> str:
    functions = {
        f"f{k}": {"scope": [f"v{v}" for v in s], "costs": t.ravel().tolist()}
        for k, (s, t) in enumerate(zip(scopes, tables, strict=True))
    }
    variables = {f"v{i}": k for i, k in enumerate(cards)}
    problem = {"name": "random", "mustbe": f"<{top}.0"}
    return json.dumps({"problem": problem, "variables": variables, "functions": functions})


WAYS: dict[str, Callable[[np.random.Generator, Case, Answers], None]] = {
    "update": update,
    "start": start,
    "messages": messages,
    "steps": steps,
    "ends": ends,
    "evidence": evidence,
    "memory": memory,
    "file": file,
    "costs": costs,
}


def judge(
    answers: Answers, case: Case, graph: Any, how: dict[str, Any], result: Any, unit: float | None = None
) -> None:
    truth = Truth(case)
    if unit is not None:
        truth.unit = unit
    answers.solves += 1
    answers.statuses[result.status] += 1
    check(answers, truth, graph, how, result)


def is_taken(case: Case) -> bool:
    """Whether there is anything to solve: some models are refused, with a reason."""
    try:
        case.graph().model.normalised()
    except FginferError:
        return False
    return len(case.cards) > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--models", type=int, default=1000, metavar="N")
    parser.add_argument("--regime", choices=sorted(REGIMES), help="how scores are drawn (default: all kinds)")
    parser.add_argument("--way", action="append", choices=sorted(WAYS), help="only these ways")
    args = parser.parse_args()
    solves, refused, statuses, kinds = 0, 0, Counter[str](), Counter[str]()
    for seed in range(args.first, args.first + args.models):
        case = random_case(seed, args.regime)
        answers = Answers(case)
        for name in args.way or WAYS if is_taken(case) else ():
            rng = np.random.default_rng([seed, sorted(WAYS).index(name)])
            try:
                WAYS[name](rng, case, answers)
            except FginferError as error:
                if any(words in str(error) for words in REFUSALS):
                    answers.refused += 1
                else:
                    answers.report("exception", {"way": name}, error=str(error))
            except Exception:
                answers.report("exception", {"way": name}, error=traceback.format_exc()[-900:])
        for found in answers.wrong:
            kinds[found["kind"]] += 1
            print(json.dumps(found, default=str), flush=True)
        solves, refused = solves + answers.solves, refused + answers.refused
        statuses += answers.statuses
    note("differential_ways.py", "solves", solves, kinds.total() - kinds["slow"])
    print(f"{solves} solves, {refused} refused; {dict(statuses)}", file=sys.stderr)
    print(f"wrong: {dict(kinds) or 'nothing'}", file=sys.stderr)
    return 1 if set(kinds) - {"slow"} else 0


if __name__ == "__main__":
    sys.exit(main())
