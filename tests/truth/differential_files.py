"""Do files mean what toulbar2 takes them for? Random .cfn and .wcsp files of small models, read by both and by us here.

    python tests/truth/differential_files.py --files 1000 [--first SEED] [--verbose]

Needs pytoulbar2. Files have whole and decimal costs, negative ones, values to be maximised, bounds on the total at,
below and above totals that occur, functions of no variable up to four, default costs with tuples. Totals are enumerated
here in whole numbers. Prints a JSON line for every answer that differs, then counts. Exit code 1 if there was any of
ours (toulbar2 is only reported).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from ledger import note
from numpy.typing import NDArray

import fginfer

Whole = NDArray[np.int64]
METHODS = ("auto", "auto", "bnb", "edac", "dolls", "trws", "search")


@dataclass(frozen=True)
class Problem:
    """Costs in units of 10^-decimals; totals at or above `top` are infeasible. Maximised: all of it negated."""

    kind: str  # cfn or wcsp
    cards: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]
    tables: tuple[Whole, ...]
    top: int
    decimals: int = 0
    maximise: bool = False

    def best(self) -> int | None:
        """The least total below the bound."""
        totals = [
            sum(int(t[tuple(x[v] for v in s)]) for s, t in zip(self.scopes, self.tables, strict=True))
            for x in product(*map(range, self.cards))
        ]
        return min((t for t in totals if t < self.top), default=None)


def random_problem(rng: np.random.Generator) -> Problem:
    cards = tuple(int(k) for k in rng.integers(1, 4, int(rng.integers(1, 6))))
    n, kind = len(cards), str(rng.choice(["cfn", "wcsp"]))
    negative = kind == "cfn" and bool(rng.random() < 0.6)
    scopes = [tuple(rng.permutation(n)[: int(rng.choice([0, 1, 1, 2, 2, 2, 3, 4]))].tolist()) for _ in range(n + 2)]
    most = int(rng.choice([3, 9, 200]))
    tables = [rng.integers(-most if negative else 0, most + 1, [cards[v] for v in s]) for s in scopes]
    draft = Problem(kind, cards, tuple(scopes), tuple(tables), 10**9)
    best = draft.best()
    assert best is not None
    top = int(rng.choice([best, best + 1, best - 1, best + 5, best + 10**6]))
    if kind == "wcsp":
        return Problem(kind, cards, tuple(scopes), tuple(tables), max(top, 1))
    return Problem(kind, cards, tuple(scopes), tuple(tables), top, int(rng.integers(0, 4)), bool(rng.random() < 0.4))


# -- as text -------------------------------------------------------------------------------------------------------


def decimal(units: int, problem: Problem) -> str:
    units = -units if problem.maximise else units
    text = f"{abs(units):0{problem.decimals + 1}d}"
    whole = text[: len(text) - problem.decimals]
    return ("-" if units < 0 else "") + whole + (f".{text[len(whole) :]}" if problem.decimals else "")


def cfn(problem: Problem, rng: np.random.Generator) -> str:
    names = [f"v{i}" for i in range(len(problem.cards))]
    variables = ", ".join(f'"{name}": {k}' for name, k in zip(names, problem.cards, strict=True))
    functions = []
    for k, (scope, table) in enumerate(zip(problem.scopes, problem.tables, strict=True)):
        if len(scope) > 3 or (scope and rng.random() < 0.3):  # toulbar2 reads only tuples where there are more
            default = int(rng.choice(table.ravel()))
            rows = [
                [*map(str, x), decimal(int(table[x]), problem)] for x in np.ndindex(table.shape) if table[x] != default
            ]
            costs = (
                f'"defaultcost": {decimal(default, problem)}, "costs": [{", ".join(", ".join(row) for row in rows)}]'
            )
        else:
            costs = f'"costs": [{", ".join(decimal(int(c), problem) for c in table.ravel())}]'
        functions.append(f'"f{k}": {{"scope": [{", ".join(names[v] for v in scope)}], {costs}}}')
    sign = ">" if problem.maximise else "<"
    head = f'{{"problem": {{"name": "random", "mustbe": "{sign}{decimal(problem.top, problem)}"}},\n'
    return head + f'"variables": {{{variables}}},\n"functions": {{\n' + ",\n".join(functions) + "\n}}\n"


def wcsp(problem: Problem, rng: np.random.Generator) -> str:
    lines = [f"random {len(problem.cards)} {max(problem.cards)} {len(problem.scopes)} {problem.top}"]
    lines.append(" ".join(map(str, problem.cards)))
    for scope, table in zip(problem.scopes, problem.tables, strict=True):
        if not scope:
            lines.append(f"0 {int(table)} 0")
            continue
        default = int(rng.choice(table.ravel()))
        rows = [" ".join(map(str, [*x, table[x]])) for x in np.ndindex(table.shape) if table[x] != default]
        lines.append(" ".join(map(str, [len(scope), *scope, default, len(rows)])))
        lines += rows
    return "\n".join(lines) + "\n"


# -- answers ------------------------------------------------------------------------------------------------------


def ask_peer(path: str, pipe: Any) -> None:
    """In a process of its own, which a file that it does not like ends."""
    import pytoulbar2

    try:
        problem = pytoulbar2.CFN()
        problem.Read(path)
        answer = problem.Solve(timeLimit=10)
    except pytoulbar2.tb2.Contradiction:
        answer = None
    pipe.send(None if answer is None else float(answer[1]))


def peer(path: Path) -> Any:
    mine, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=ask_peer, args=(str(path), other))
    process.start()
    process.join(20)
    if process.is_alive():
        process.kill()
    return mine.recv() if mine.poll() else "no answer"


def compare(seed: int, folder: Path, verbose: bool) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    path = folder / f"model.{problem.kind}"
    path.write_text((cfn if problem.kind == "cfn" else wcsp)(problem, rng))
    best = problem.best()
    truth = None if best is None else float(decimal(best, problem))
    method = str(rng.choice(METHODS))
    r = fginfer.solve(str(path), method, time_limit=20, max_iterations=500)
    ours = None if r.score is None else r.score if problem.maximise else -r.score
    said = {"model": seed, "file": problem.kind, "method": method, "status": r.status, "ours": ours, "optimum": truth}
    # toulbar2 1.4 reads a bound of -0.5 as 0.5.
    theirs = truth if decimal(problem.top, problem).startswith("-0.") else peer(path)
    if verbose:
        print(path.read_text(), said, theirs)
    wrong = []
    near = 10.0**-problem.decimals / 4
    if (r.is_optimal and (truth is None or ours is None or abs(ours - truth) > near)) or (
        r.status == "infeasible" and truth is not None
    ):
        wrong.append({"kind": "false"} | said)
    ahead = 0.0 if ours is None or truth is None else (ours - truth) * (1 if problem.maximise else -1)
    if (ours is not None and truth is None) or ahead > near:
        wrong.append({"kind": "better than the optimum"} | said)
    if method in ("auto", "bnb", "edac", "dolls") and r.status not in ("optimal", "infeasible", "gap_reached"):
        wrong.append({"kind": "not solved"} | said)
    if theirs != "no answer" and (
        (theirs is None) != (truth is None) or (truth is not None and abs(theirs - truth) > near)
    ):
        wrong.append({"kind": "toulbar2 differs", "theirs": theirs} | said)
    if theirs == "no answer":
        wrong.append({"kind": "toulbar2 does not answer"} | said)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--files", type=int, default=200, metavar="N")
    parser.add_argument("--verbose", action="store_true", help="print the files")
    args = parser.parse_args()
    kinds = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.files):
            try:
                wrong = compare(seed, Path(folder), args.verbose)
            except Exception:
                wrong = [{"kind": "exception", "model": seed, "error": traceback.format_exc()[-900:]}]
            for found in wrong:
                kinds[found["kind"]] += 1
                print(json.dumps(found), flush=True)
    note("differential_files.py", "files", args.files, sum(n for k, n in kinds.items() if not k.startswith("toulbar2")))
    print(f"{args.files} files; wrong: {dict(kinds) or 'nothing'}", file=sys.stderr)
    return 1 if any(not kind.startswith("toulbar2") for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
